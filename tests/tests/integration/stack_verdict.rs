//! Trace and rules agree about what happens to a flush, and to direct I/O, at every layer of a host's storage.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use serde_json::{Value, json};
use vmdisk::trace::{
    DiskTrace, IoPath, Layer, RequestKind, RequestOutcome, Survival, TraceStep, trace,
};
use vmdisk::{Facts, Host, LintReport, Selection, Severity, lint, read};
use vmdisk_tests::fixtures;

/// The rules about flushes that storage loses.
const RULES: [&str; 4] = [
    "image-on-volatile-filesystem",
    "mount-nobarrier",
    "overlay-volatile",
    "zfs-sync-disabled",
];

fn disk_on(path: &str, is_device: bool) -> String {
    let (kind, attribute) = if is_device {
        ("block", "dev")
    } else {
        ("file", "file")
    };
    let path = path
        .replace('&', "&amp;")
        .replace('\'', "&apos;")
        .replace('<', "&lt;");
    format!(
        "<disk type='{kind}' device='disk'><driver name='qemu' type='raw' cache='none' discard='unmap'/>\
         <source {attribute}='{path}'/><target dev='vda' bus='virtio'/></disk>"
    )
}

fn judged(text: &str, facts: &Facts) -> (DiskTrace, LintReport) {
    let options = Host::new(facts.clone())
        .options()
        .selection(Selection::default().least(Some(Severity::Pedantic)));
    let document = read(text).unwrap();
    let report = lint(&document, &options);
    (trace(&document, &options).disks.remove(0), report)
}

/// The contradictions between trace and rules about one disk.
fn contradictions(text: &str, facts: &Facts) -> Vec<String> {
    let (trace, report) = judged(text, facts);
    let mut found = Vec::new();
    let by_rules: Vec<_> = report
        .diagnostics
        .iter()
        .filter(|it| RULES.contains(&it.rule.name))
        .collect();
    let is_missed = report
        .not_checked
        .iter()
        .any(|it| RULES.contains(&it.rule.name));
    match trace.path.loss.flushed {
        Survival::Lost => {
            let dropped =
                trace.path.steps.iter().filter(|step| {
                    step.effect(RequestKind::Flush).outcome == RequestOutcome::Dropped
                });
            for step in dropped {
                // The step is in the text by its mount point, its device or its kind.
                let name = step.name.rsplit(' ').next().unwrap_or_default();
                let kind = step.name.split(' ').next().unwrap_or_default();
                let names = |it: &&&vmdisk::Diagnostic| {
                    let text = format!("{} {:?}", it.title, it.notes);
                    let is_zfs = it.rule.name == "zfs-sync-disabled";
                    it.severity >= Severity::Warning
                        && (text.contains(name) || text.contains(kind) || is_zfs)
                };
                if !by_rules.iter().any(|it| names(&it)) && !is_missed {
                    found.push(format!(
                        "flushes are lost at {}, and no rule says so",
                        step.name
                    ));
                }
            }
        }
        Survival::Kept if !by_rules.is_empty() => {
            found.push(format!("trace keeps flushed data, and {by_rules:#?}"));
        }
        Survival::Kept | Survival::Unknown => {}
    }
    for (what, rules, is_traced) in others(&trace.path) {
        let of_rules = |name: &str| rules.contains(&name);
        let mut reported = report.diagnostics.iter().map(|it| it.rule.name);
        let is_reported = reported.any(of_rules);
        let is_unchecked = report.not_checked.iter().any(|it| of_rules(it.rule.name));
        match is_traced {
            Some(true) if !is_reported && !is_unchecked => {
                found.push(format!("{what}, and no rule says so"));
            }
            Some(false) if is_reported => found.push(format!("not so, but a rule says: {what}")),
            _ => {}
        }
    }
    found
}

/// What the path of a request shows, with the rules about it; `None` if a fact is missing.
fn others(path: &IoPath) -> [(&'static str, &'static [&'static str], Option<bool>); 5] {
    let step_of = |layers: &[Layer]| path.steps.iter().find(|step| layers.contains(&step.layer));
    let storage = step_of(&[Layer::File, Layer::HostDevice]);
    let write = storage.map(|step| step.effect(RequestKind::Write));
    let of_write = |wanted: RequestOutcome| match write?.outcome {
        RequestOutcome::Unknown => None,
        outcome => Some(outcome == wanted),
    };
    let loops = path.steps.iter().filter(|step| step.layer == Layer::Loop);
    let is_buffered =
        |step: &TraceStep| step.effect(RequestKind::Write).outcome == RequestOutcome::Cached;
    // What a file system frees is not lost below it.
    let of_discards = |outcome: RequestOutcome| {
        let of_step = |step: &&TraceStep| step.effect(RequestKind::Discard).outcome == outcome;
        path.steps.iter().any(|step| of_step(&step))
    };
    let frees = |step: &TraceStep| match step.layer {
        Layer::FileSystem => !step.name.starts_with("overlay"),
        layer => layer == Layer::ThinPool,
    };
    let is_freed = path.steps.iter().any(|step| {
        let outcome = step.effect(RequestKind::Discard).outcome;
        outcome == RequestOutcome::Split || frees(step) && outcome == RequestOutcome::Passed
    });
    // A file system whose options are unknown frees it or not.
    let may_be_freed = path.steps.iter().any(|step| {
        frees(step) && step.effect(RequestKind::Discard).outcome == RequestOutcome::Unknown
    });
    // Other file systems have blocks of their own.
    let passes_on = step_of(&[Layer::FileSystem]).is_none_or(|step| {
        let kind = step.name.split(' ').next();
        kind.is_some_and(|kind| ["ext2", "ext3", "ext4", "xfs"].contains(&kind))
    });
    let is_dropped = of_discards(RequestOutcome::Dropped) && !is_freed;
    let is_unknown = of_discards(RequestOutcome::Unknown);
    [
        (
            "direct I/O is buffered",
            &[
                "btrfs-dio-buffered",
                "io-native-on-buffered-dio",
                "odirect-silently-buffered",
            ],
            of_write(RequestOutcome::Cached),
        ),
        (
            "direct I/O is refused",
            &["odirect-unsupported"],
            of_write(RequestOutcome::Refused),
        ),
        (
            "sectors do not fit",
            &["guest-sector-512-on-4kn"],
            of_write(RequestOutcome::Split).filter(|_| passes_on),
        ),
        (
            "a loop device buffers direct I/O",
            &["loop-device-buffered"],
            Some(loops.into_iter().any(is_buffered)),
        ),
        (
            "discards are dropped",
            &[
                "discard-dropped",
                "discard-crypt-blocked",
                "thin-discards-ignored",
            ],
            match (is_dropped, is_unknown) {
                (true, _) => (!may_be_freed).then_some(true),
                (false, true) => None,
                (false, false) => Some(false),
            },
        ),
    ]
}

/// Every file and device of the facts, as the image of a disk.
fn images(facts: &Facts) -> BTreeSet<(String, bool)> {
    let files = facts.files.iter().filter(|file| !file.present.is_false());
    let files = files.map(|file| (file.path.clone(), file.path.starts_with("/dev/")));
    let devices = facts
        .blockdevs
        .iter()
        .flat_map(|device| device.paths.first());
    files
        .chain(devices.map(|path| (path.clone(), true)))
        .collect()
}

fn recorded() -> Vec<(String, Value)> {
    let mut found = Vec::new();
    for directory in ["facts", "facts-lab", "sysroots"] {
        for entry in fs::read_dir(fixtures().join(directory)).unwrap() {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|it| it == "json") {
                let text = fs::read_to_string(&path).unwrap();
                let name = path.file_name().unwrap().to_string_lossy().into_owned();
                found.push((name, serde_json::from_str(&text).unwrap()));
            }
        }
    }
    found.sort_by(|one, other| one.0.cmp(&other.0));
    found
}

/// Numbers from a seed, the same in each run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % end.max(1)
    }
}

/// Changes one thing of a host that decides about flushes.
fn change(facts: &mut Value, numbers: &mut Numbers) {
    let paths: Vec<String> = facts["files"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(|file| file["path"].as_str().map(str::to_owned))
        .collect();
    let list = ["mounts", "filesystems", "blockdevs", "blockdevs"][numbers.below(4)];
    let Some(all) = facts[list].as_array_mut().filter(|all| !all.is_empty()) else {
        return;
    };
    let nth = numbers.below(all.len());
    let one = &mut all[nth];
    let choice = numbers.below(6);
    match (list, choice) {
        ("mounts", 0) => one["options"]["nobarrier"] = json!(true),
        ("mounts", 1) => one["options"]["barrier"] = json!("0"),
        ("mounts", 2) => one["options"]["fsync"] = json!("volatile"),
        ("mounts", 3) => one["options"]["volatile"] = json!(true),
        ("mounts", _) => one["options"] = json!({}),
        ("filesystems", 0) => one["kind"] = json!("tmpfs"),
        ("filesystems", 1) => one["kind"] = json!("virtiofs"),
        ("filesystems", 2) => {
            one["kind"] = json!("zfs");
            one["zfs"] = json!({"dataset": "tank/x", "sync": "disabled"});
        }
        ("filesystems", 3) if !paths.is_empty() => {
            one["kind"] = json!("overlay");
            one["overlay"] = json!({"upper": paths[numbers.below(paths.len())]});
        }
        ("filesystems", _) => one["kind"] = json!("btrfs"),
        ("blockdevs", 0) => one["kind"] = json!("zram"),
        ("blockdevs", 1) => one["queue"]["write_cache"] = json!("write through"),
        ("blockdevs", 2) => one["queue"]["write_cache"] = Value::Null,
        (_, 3 | 4) if !paths.is_empty() => {
            one["kind"] = json!("loop");
            one["loop"] = json!({
                "backing_file": paths[numbers.below(paths.len())],
                "deleted": choice == 4 && numbers.below(3) == 0,
                "dio": choice == 3,
            });
        }
        _ => one["slaves"] = json!([]),
    }
}

#[test]
fn trace_and_rules_agree_about_every_layer() {
    let (mut stacks, mut lost) = (0, 0);
    let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut numbers = Numbers(7);
    for (name, value) in recorded() {
        for variation in 0..12 {
            let mut changed = value.clone();
            for _ in 0..variation.min(3) {
                change(&mut changed, &mut numbers);
            }
            let Ok(parsed) = Facts::parse(&changed.to_string()) else {
                continue;
            };
            let facts = parsed.facts;
            let images: Vec<_> = images(&facts).into_iter().collect();
            for (path, is_device) in images.iter().take(if variation == 0 { 400 } else { 12 }) {
                let text = disk_on(path, *is_device);
                stacks += 1;
                lost += usize::from(judged(&text, &facts).0.path.loss.flushed == Survival::Lost);
                for error in contradictions(&text, &facts) {
                    let examples = found.entry(error).or_default();
                    examples.push(format!("{name} {variation} {path}"));
                }
            }
        }
    }
    assert!(
        stacks > 2000 && lost > 100,
        "{stacks} stacks, {lost} lose flushes"
    );
    let kinds = found.iter();
    let kinds: Vec<_> = kinds
        .map(|(error, all)| (error, all.len(), &all[..all.len().min(3)]))
        .collect();
    assert!(kinds.is_empty(), "of {stacks}: {kinds:#?}");
}
