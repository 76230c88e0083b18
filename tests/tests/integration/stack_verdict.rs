//! Trace and rules agree about what happens to a flush, and to direct I/O, at every layer of a host's storage.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use vmdisk::trace::{DiskTrace, Layer, RequestKind, RequestOutcome, Survival, trace};
use vmdisk::{Facts, HostIndex, LintOptions, LintReport, Severity, Target, lint, read};
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
        "<disk type='{kind}' device='disk'><driver name='qemu' type='raw' cache='none'/>\
         <source {attribute}='{path}'/><target dev='vda' bus='virtio'/></disk>"
    )
}

fn judged(text: &str, facts: &Facts) -> (DiskTrace, LintReport) {
    let index = HostIndex::new(facts);
    let options = LintOptions {
        host: Some(&index),
        target: Target::from_facts(facts),
        ..LintOptions::default()
    };
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
    let is_buffered = trace.path.steps.iter().any(|step| {
        step.layer == Layer::Loop
            && step.effect(RequestKind::Write).outcome == RequestOutcome::Cached
    });
    let rule = "loop-device-buffered";
    let is_reported = report.diagnostics.iter().any(|it| it.rule.name == rule);
    let is_unchecked = report.not_checked.iter().any(|it| it.rule.name == rule);
    if is_buffered && !is_reported && !is_unchecked {
        found.push("a loop device buffers direct I/O, and no rule says so".to_owned());
    }
    found
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
    let (mut stacks, mut lost, mut found) = (0, 0, Vec::new());
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
                let errors = contradictions(&text, &facts);
                found.extend(
                    errors
                        .into_iter()
                        .map(|error| format!("{name} {variation} {path}: {error}")),
                );
            }
        }
    }
    assert!(
        stacks > 2000 && lost > 100,
        "{stacks} stacks, {lost} lose flushes"
    );
    assert!(
        found.is_empty(),
        "{} of {stacks}: {:#?}",
        found.len(),
        &found[..found.len().min(12)]
    );
}
