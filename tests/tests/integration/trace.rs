//! `vmdisk trace`: its statements agree with what was measured, and each has a basis.

use std::collections::BTreeSet;
use std::fs;

use vmdisk::facts::direct_io::trials::{Seen, TRIALS};
use vmdisk::trace::{
    DiskTrace, IoPath, Layer, RULE_LAYERS, RequestKind, RequestOutcome, StatementBasis, Survival,
    TraceStep, trace,
};
use vmdisk::{Facts, Host, LintOptions, read};
use vmdisk_tests::{assert_golden, fixtures, run};

/// A disk on a file or device, with direct I/O and discards.
fn disk_on(path: &str) -> String {
    let (kind, attribute) = match path.starts_with("/dev/") {
        true => ("block", "dev"),
        false => ("file", "file"),
    };
    format!(
        "<disk type='{kind}' device='disk'>
  <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
  <source {attribute}='{path}'/>
  <target dev='vda' bus='virtio'/>
</disk>"
    )
}

fn traced(text: &str, facts: &Facts) -> DiskTrace {
    let options = Host::new(facts.clone()).options();
    let mut guest = trace(&read(text).unwrap(), &options);
    assert_eq!(guest.disks.len(), 1);
    guest.disks.remove(0)
}

/// The result of writes to the storage as the lab names it; `None` if it is unknown.
fn write_of(path: &IoPath) -> Option<&'static str> {
    let is_storage = |step: &&TraceStep| matches!(step.layer, Layer::File | Layer::HostDevice);
    let storage = path.steps.iter().find(is_storage).unwrap();
    let is_cached_below = path.steps.iter().any(|step| {
        step.layer == Layer::Loop
            && step.effect(RequestKind::Write).outcome == RequestOutcome::Cached
    });
    match storage.effect(RequestKind::Write).outcome {
        RequestOutcome::Passed | RequestOutcome::Split if is_cached_below => Some("page-cache"),
        RequestOutcome::Passed | RequestOutcome::Split => Some("direct"),
        RequestOutcome::Cached => Some("page-cache"),
        RequestOutcome::Refused => Some("refused"),
        RequestOutcome::Unknown => None,
        other => panic!("{other:?}"),
    }
}

/// The drives that an operation reaches; `None` if that is unknown.
fn drives(path: &IoPath, operation: RequestKind) -> Option<BTreeSet<&str>> {
    let outcomes = path
        .steps
        .iter()
        .map(|step| (step, step.effect(operation).outcome));
    let mut found = BTreeSet::new();
    for (step, outcome) in outcomes {
        match outcome {
            RequestOutcome::Unknown => return None,
            RequestOutcome::Honoured => {
                found.insert(step.name.strip_prefix("/dev/").unwrap());
            }
            _ => {}
        }
    }
    Some(found)
}

fn measured<'a>(outcomes: &'a str, name: &str) -> &'a str {
    let mut words = outcomes.split(' ').filter_map(|word| word.split_once('='));
    words.find(|(key, _)| *key == name).unwrap().1
}

#[test]
fn every_statement_about_a_stack_of_the_lab_agrees_with_its_measurement() {
    let (mut compared, mut unknown) = (0, 0);
    for kernel in ["6.1", "6.12"] {
        let lab = fixtures().join("facts-lab");
        let lines = fs::read_to_string(lab.join(format!("io-path.{kernel}.txt"))).unwrap();
        assert_eq!(lines.lines().count(), 32);
        for (line, user) in lines
            .lines()
            .flat_map(|line| [(line, "root"), (line, "nobody")])
        {
            let (key, outcomes) = line.split_once(": ").unwrap();
            let (stack, path) = key.split_once(' ').unwrap();
            let facts =
                fs::read_to_string(lab.join(format!("{stack}.{kernel}.{user}.json"))).unwrap();
            let facts = Facts::parse(&facts).unwrap().facts;
            let traced = traced(&disk_on(path), &facts).path;
            let case = format!("Linux {kernel}, {user}, {line}: {traced:#?}");
            match write_of(&traced) {
                Some(write) => assert_eq!(write, measured(outcomes, "write"), "{case}"),
                None => unknown += 1,
            }
            compared += usize::from(write_of(&traced).is_some());
            for operation in [RequestKind::Flush, RequestKind::Discard] {
                let Some(drives) = drives(&traced, operation) else {
                    unknown += 1;
                    continue;
                };
                if stack == "multipath" && operation == RequestKind::Flush {
                    // The kernel does not count flushes of requests that multipath clones.
                    assert_eq!(measured(outcomes, "flush"), "none");
                    continue;
                }
                let is_later = |step: &TraceStep| {
                    step.layer == Layer::FileSystem
                        && step.effect(operation).statement.text.ends_with("later")
                };
                if traced.steps.iter().any(is_later) {
                    // What was counted at once is nothing.
                    assert_eq!(measured(outcomes, "discard"), "none", "{case}");
                    compared += 1;
                    continue;
                }
                let seen: BTreeSet<&str> = match measured(outcomes, operation.name()) {
                    "none" | "refused" => BTreeSet::new(),
                    drives => drives.split(',').collect(),
                };
                // One path of several, and only the disk behind a cache, gets discards; which one, the facts do not say.
                let is_choice = traced
                    .steps
                    .iter()
                    .any(|step| matches!(step.layer, Layer::Multipath | Layer::Cache));
                match operation == RequestKind::Discard && is_choice {
                    true => assert!(!seen.is_empty() && seen.is_subset(&drives), "{case}"),
                    false => assert_eq!(drives, seen, "{case}"),
                }
                compared += 1;
            }
        }
    }
    println!("{compared} statements agree with the lab, {unknown} are unknown");
    // On virtiofs, three operations of two users and kernels: the machine outside decides.
    assert_eq!((compared, unknown), (360, 8 + 12));
}

#[test]
fn every_statement_about_o_direct_agrees_with_the_trials() {
    let (mut compared, mut unknown) = (0, 0);
    for trial in TRIALS {
        let (fs, with) = (trial.filesystem, trial.with);
        let kernel = trial.kernel;
        let profile = if with.ends_with("raid1") {
            "raid1"
        } else {
            "single"
        };
        let mode = if with == "data=journal" {
            "journal"
        } else {
            "ordered"
        };
        let overlay = if fs == "overlay" {
            r#"{"upper": "/up"}"#
        } else {
            "null"
        };
        let text = format!(
            r#"{{"schema": "{schema}", "schema_version": "1.0",
            "kernel": {{"version": [{kernel}], "vendor": "debian"}},
            "mounts": [{{"id": "m1", "point": "/srv", "fs": "f1"}}, {{"id": "m2", "point": "/up", "fs": "f2"}}],
            "filesystems": [
              {{"id": "f1", "kind": "{fs}", "btrfs": {{"data_profile": ["{profile}"]}}, "ext4": {{"data_mode": "{mode}"}},
                "overlay": {overlay}}},
              {{"id": "f2", "kind": "ext4", "ext4": {{"data_mode": "ordered"}}}}],
            "files": [{{"path": "/srv/a.img", "present": true, "kind": "regular", "mount": "m1", "nocow": {nocow}}}]}}"#,
            schema = vmdisk::facts::SCHEMA,
            kernel = kernel.to_string().replace('.', ", "),
            nocow = with.starts_with("NOCOW"),
        );
        let facts = Facts::parse(&text).unwrap().facts;
        let seen = match trial.seen {
            Seen::Refused => "refused",
            Seen::Buffered => "page-cache",
            Seen::Direct => "direct",
        };
        match write_of(&traced(&disk_on("/srv/a.img"), &facts).path) {
            Some(write) => {
                assert_eq!(write, seen, "{trial:?}");
                compared += 1;
            }
            None => unknown += 1,
        }
    }
    println!("{compared} statements agree with the trials, {unknown} are unknown");
    // Whether erofs does direct I/O depends on compression, which no fact shows.
    assert_eq!((compared, unknown), (TRIALS.len() - 1, 1));
}

#[test]
fn the_paths_of_the_articles_are_their_golden_files() {
    let mut folders: Vec<_> = fs::read_dir(fixtures().join("articles"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_dir())
        .collect();
    folders.sort();
    assert_eq!(folders.len(), 5, "there are five articles");
    for folder in folders {
        let name = folder.file_name().unwrap().to_str().unwrap();
        let file = |file: &str| format!("fixtures/articles/{name}/{file}");
        let (domain, facts) = (file("domain.xml"), file("facts.json"));
        let text = run(crate::VMDISK, &["trace", &domain, "--facts", &facts], "");
        assert_eq!((text.code, text.stderr.as_str()), (0, ""), "{name}");
        assert_golden(&folder.join("trace.txt"), &text.stdout);
        // Each finding of the linter is attached to a step, or is about the guest.
        let linted = run(
            crate::VMDISK,
            &["lint", &domain, "--facts", &facts, "--format", "concise"],
            "",
        );
        for line in linted.stdout.lines().filter(|line| line.contains('[')) {
            let rule = line.split_once('[').unwrap().1.split_once(']').unwrap().0;
            assert!(text.stdout.contains(&format!("[{rule}]")), "{name}: {line}");
        }
    }
}

#[test]
fn without_facts_each_unknown_statement_names_the_command_that_collects_the_fact() {
    let guest = trace(
        &read(&disk_on("/dev/vg 0/web1")).unwrap(),
        &LintOptions::default(),
    );
    let path = &guest.disks[0].path;
    assert_eq!(path.loss.flushed, Survival::Unknown);
    let mut missing = 0;
    for effect in path.steps.iter().flat_map(|step| &step.effects) {
        if effect.outcome == RequestOutcome::Unknown {
            let StatementBasis::Missing { command, .. } = &effect.statement.basis else {
                panic!("{effect:?}");
            };
            assert_eq!(command.join(" "), "vmdisk facts /dev/vg 0/web1");
            missing += 1;
        }
    }
    assert!(missing >= 6, "{missing}");
    let text = run(crate::VMDISK, &["trace", "-"], &disk_on("/dev/vg 0/web1"));
    assert!(
        text.stdout
            .contains("collect it with `vmdisk facts '/dev/vg 0/web1'`"),
        "{}",
        text.stdout
    );
}

#[test]
fn each_layer_of_the_table_has_a_rule() {
    for (start, _) in RULE_LAYERS {
        let mut rules = vmdisk::rules::RULES.iter();
        assert!(rules.any(|rule| rule.name.starts_with(start)), "{start}");
    }
}

#[test]
fn cache_modes_decide_over_flushes() {
    let measured =
        fs::read_to_string(fixtures().join("measurements/cache-flushes-storage-daemon.json"))
            .unwrap();
    let measured: serde_json::Value = serde_json::from_str(&measured).unwrap();
    let mut compared = 0;
    for (cache, at_device, at_qemu, flushed) in [
        (
            "none",
            RequestOutcome::Passed,
            RequestOutcome::Passed,
            Survival::Kept,
        ),
        (
            "writeback",
            RequestOutcome::Passed,
            RequestOutcome::Passed,
            Survival::Kept,
        ),
        (
            "writethrough",
            RequestOutcome::Blocking,
            RequestOutcome::Passed,
            Survival::Kept,
        ),
        (
            "directsync",
            RequestOutcome::Blocking,
            RequestOutcome::Passed,
            Survival::Kept,
        ),
        (
            "unsafe",
            RequestOutcome::Passed,
            RequestOutcome::Dropped,
            Survival::Lost,
        ),
    ] {
        let facts =
            fs::read_to_string(fixtures().join("facts-lab/md-raid1.6.12.root.json")).unwrap();
        let facts = Facts::parse(&facts).unwrap().facts;
        let text = disk_on("/srv/images/disk.img")
            .replace("cache='none' io='native'", &format!("cache='{cache}'"));
        let path = traced(&text, &facts).path;
        let at = |layer: Layer| {
            let step = path.steps.iter().find(|step| step.layer == layer).unwrap();
            step.effect(RequestKind::Flush).outcome
        };
        assert_eq!(
            (at(Layer::Device), at(Layer::BlockLayer)),
            (at_device, at_qemu),
            "{cache}"
        );
        assert_eq!(path.loss.flushed, flushed, "{cache}");
        compared += agrees_with_counted_flushes(&measured, cache, at_device, at_qemu);
    }
    println!("{compared} samples with counted flushes agree");
    assert_eq!(compared, measured["samples"].as_array().unwrap().len());
}

/// Compares the results of flushes with those that strace counted in benchmarks of a cache mode; the number of samples.
fn agrees_with_counted_flushes(
    measured: &serde_json::Value,
    cache: &str,
    at_device: RequestOutcome,
    at_qemu: RequestOutcome,
) -> usize {
    let cells = measured["cells"].as_array().unwrap();
    let mut compared = 0;
    for sample in measured["samples"].as_array().unwrap() {
        let name = cells[sample["cell"].as_u64().unwrap() as usize]["name"]
            .as_str()
            .unwrap();
        if name.split(' ').next() != Some(cache) {
            continue;
        }
        let semantics = &sample["measurement"]["semantics"];
        let seen = semantics["flushes_seen"].as_u64().unwrap();
        match semantics["flushes_asked"].as_u64() {
            Some(asked) if at_qemu == RequestOutcome::Dropped => {
                assert!(asked > 0 && seen == 0, "{sample}")
            }
            Some(asked) => assert!(asked > 0 && seen >= asked, "{sample}"),
            // Without a flush of the guest there are only those of QEMU: one for several writes at once.
            None => {
                let writes = sample["measurement"]["write"]["operations"]
                    .as_u64()
                    .unwrap();
                let is_flushing = seen * 20 > writes;
                assert_eq!(
                    is_flushing,
                    at_device == RequestOutcome::Blocking,
                    "{sample}"
                );
            }
        }
        compared += 1;
    }
    compared
}

#[test]
fn nothing_is_promised_of_writes_to_a_server() {
    let text = "<disk type='network'><driver name='qemu' type='raw' cache='writeback'/>\
                <source protocol='rbd' name='vms/web1'><host name='ceph1'/></source>\
                <target dev='vda' bus='virtio'/></disk>";
    let loss = traced(text, &Facts::default()).path.loss;
    assert_eq!(
        (loss.flushed, loss.unflushed),
        (Survival::Unknown, Survival::Unknown)
    );
}

#[test]
fn every_form_of_a_guest_has_a_path_and_no_form_prints_what_acts() {
    let hostile = "<disk type='file'><driver name='qemu' type='raw'/><source file='/srv/&#x202e;a&lt;b&gt;\u{9b}31m.img'/>\
                   <target dev='vda' bus='virtio'/></disk>";
    for format in ["text", "json", "svg"] {
        for input in [
            "fixtures/command-lines/web1.sh",
            "fixtures/clean/raw-on-lvm-with-virtio-scsi.xml",
            "fixtures/clean/vhost-user-blk-with-shared-memory.xml",
        ] {
            let traced = run(crate::VMDISK, &["trace", input, "--format", format], "");
            assert_eq!(traced.code, 0, "{input}: {}", traced.stderr);
        }
        let traced = run(crate::VMDISK, &["trace", "-", "--format", format], hostile);
        assert_eq!(traced.code, 0, "{}", traced.stderr);
        assert!(!traced.stdout.contains(['\u{202e}', '\u{9b}']), "{format}");
        if format == "svg" {
            assert!(!traced.stdout.contains("a<b>"), "{}", traced.stdout);
            assert!(
                !traced.stdout.contains("http://") || traced.stdout.matches("http").count() == 1
            );
        }
    }
    let spec = "version: 1\nguest: {vcpus: 4}\ndisks:\n- raw: {path: /srv/a.img, size: 1G}\n";
    let traced = run(crate::VMDISK, &["trace", "-"], spec);
    assert_eq!(traced.code, 0, "{}", traced.stderr);
}

#[test]
fn a_spec_with_mistakes_is_shown_and_fails() {
    let lost = "version: 1\ndisks:\n- {raw: /srv/a.img}\n";
    let traced = run(crate::VMDISK, &["trace", "-"], lost);
    assert_eq!(traced.code, 2, "{}", traced.stdout);
    let spec = "version: 1\ndisks:\n- {raw: {path: /srv/a.img, size: 1G}, bus: virtoi}\n";
    for more in [&[][..], &["--fail-on", "error"], &["--format", "json"]] {
        let traced = run(crate::VMDISK, &[&["trace", "-"][..], more].concat(), spec);
        assert_eq!(traced.code, 2, "{more:?}: {}", traced.stderr);
        assert!(traced.stdout.contains("spec-refused"), "{more:?}");
        assert!(traced.stderr.contains("the spec has mistakes"), "{more:?}");
    }
}

#[test]
fn the_exit_status_tells_findings_and_failures() {
    let input = "fixtures/articles/001-lvm-thin-iothread-hugepages/domain.xml";
    let facts = "fixtures/articles/001-lvm-thin-iothread-hugepages/facts.json";
    for (arguments, code) in [
        (&["trace", input, "vda", "--facts", facts][..], 0),
        (
            &[
                "trace",
                input,
                "vda",
                "--facts",
                facts,
                "--fail-on",
                "error",
            ],
            1,
        ),
        (&["trace", input, "vda", "--fail-on", "error"], 0),
        (&["trace", input, "vdz"], 2),
        (&["trace", "no-such-file"], 2),
    ] {
        let traced = run(crate::VMDISK, arguments, "");
        assert_eq!(traced.code, code, "{arguments:?}: {}", traced.stderr);
    }
}

/// A disk on a qcow2 image, of which the configuration does not list the images below.
const OVERLAY: &str = "<disk type='file' device='disk'>
  <driver name='qemu' type='qcow2'/>
  <source file='/srv/images/top.qcow2'/>
  <target dev='vda' bus='virtio'/>
</disk>";

/// Facts about `/srv/images/top.qcow2` with this header, and other files.
fn image_facts(header: &str, others: &str) -> Facts {
    let text = format!(
        r#"{{"schema": "{schema}", "schema_version": "1.0",
        "mounts": [{{"id": "m1", "point": "/srv", "fs": "f1", "options": {{"nobarrier": null, "discard": null}}}}],
        "filesystems": [{{"id": "f1", "kind": "ext4", "devices": ["b1"], "ext4": {{"data_mode": "ordered"}}}}],
        "blockdevs": [{{"id": "b1", "kind": "disk", "paths": ["/dev/sda"],
          "queue": {{"write_cache": "write through"}}}}],
        "files": [{{"path": "/srv/images/top.qcow2", "present": true, "kind": "regular", "mount": "m1",
          "dio": {{"dioalign": "set", "mem": 512, "off": 512}}, "image": {{"format": "qcow2", {header}}}}}{others}]}}"#,
        schema = vmdisk::facts::SCHEMA,
    );
    Facts::parse(&text).unwrap().facts
}

/// The layers and names of the steps from the format of the top image on.
fn storage_steps(path: &IoPath) -> Vec<String> {
    let steps = path.steps.iter();
    let steps = steps.skip_while(|step| step.layer != Layer::Format);
    steps
        .map(|step| format!("{} {}", step.layer.name(), step.name))
        .collect()
}

#[test]
fn the_images_that_headers_name_are_steps() {
    let path = traced(
        OVERLAY,
        &image_facts(
            r#""data_file": null, "backing": {"path": "base.qcow2", "format": "qcow2"}"#,
            r#", {"path": "/srv/images/base.qcow2", "present": true, "kind": "regular", "mount": "m1",
              "image": {"format": "qcow2", "data_file": "base.data", "backing": {"path": "/dev/sdb", "format": null}}},
            {"path": "/srv/images/base.data", "present": true, "kind": "regular", "mount": "m1"},
            {"path": "/dev/sdb", "present": true, "kind": "block", "image": {"format": "raw", "probed": "raw"}}"#,
        ),
    )
    .path;
    assert_eq!(
        storage_steps(&path)[..8],
        [
            "format qcow2",
            "file /srv/images/top.qcow2",
            "file system ext4 on /srv",
            "drive /dev/sda",
            "format qcow2, backing image 1",
            "file /srv/images/base.qcow2",
            "file /srv/images/base.data",
            "format raw, backing image 2",
        ]
    );
    assert_eq!(storage_steps(&path)[8], "host device /dev/sdb");
    let top = path.steps.iter().find(|step| step.layer == Layer::Format);
    let [read, write, ..] = &top.unwrap().effects[..] else {
        panic!("{top:?}");
    };
    assert_eq!(
        read.statement.text,
        "clusters that the image does not have are read from the backing image"
    );
    assert!(write.statement.text.contains("copies the rest"));
    // Only reads reach the images below.
    for step in path.steps.iter().filter(|step| step.image > Some(0)) {
        assert_eq!(
            step.effect(RequestKind::Write).outcome,
            RequestOutcome::Absent
        );
        assert!(step.effect(RequestKind::Read).outcome.goes_on());
    }
}

#[test]
fn nothing_is_said_of_clusters_below_an_unknown_header() {
    let read = |facts: &Facts| {
        let path = traced(OVERLAY, facts).path;
        let mut formats = path.steps.into_iter();
        let top = formats.find(|step| step.layer == Layer::Format).unwrap();
        top.effect(RequestKind::Read).statement.clone()
    };
    for facts in [
        Facts::default(),
        image_facts(r#""data_file": null"#, ""),
        image_facts(r#""backing": {"unknown": "permission", "detail": "x"}"#, ""),
    ] {
        let read = read(&facts);
        assert!(!read.text.contains("zeroes"), "{read:?}");
        assert!(
            matches!(read.basis, StatementBasis::Missing { .. }),
            "{read:?}"
        );
    }
    let alone = read(&image_facts(r#""backing": null"#, ""));
    assert!(alone.text.contains("zeroes"), "{alone:?}");
}

#[test]
fn clusters_of_internal_snapshots_stay_when_the_guest_discards() {
    let discard_with = |options: &str, snapshots: &str| {
        let overlay = OVERLAY.replace(
            "type='qcow2'",
            &format!("type='qcow2' discard='unmap'{options}"),
        );
        let facts = image_facts(&format!(r#""backing": null, "snapshots": {snapshots}"#), "");
        let mut steps = traced(&overlay, &facts).path.steps.into_iter();
        let format = steps.find(|step| step.layer == Layer::Format).unwrap();
        format.effect(RequestKind::Discard).statement.clone()
    };
    let discard = |snapshots: &str| discard_with("", snapshots);
    let said = discard("2");
    assert!(
        said.text.contains("one of the 2 internal snapshots"),
        "{said:?}"
    );
    assert!(
        matches!(said.basis, StatementBasis::Fact { .. }),
        "{said:?}"
    );
    for none in ["0", "null"] {
        assert!(discard(none).text.starts_with("whole clusters are freed"));
    }
    // No cluster is freed in the image.
    let kept = discard_with(" discard_no_unref='on'", "2");
    assert!(kept.text.starts_with("whole clusters stay"), "{kept:?}");
}

#[test]
fn limits_are_told_with_their_numbers_and_groups_by_their_names() {
    for (element, name, value) in [
        (
            "<iotune><total_iops_sec>500</total_iops_sec><read_bytes_sec>7</read_bytes_sec></iotune>",
            "limits",
            "read_bytes_sec 7, total_iops_sec 500",
        ),
        (
            "<throttlefilters><throttlefilter group='slow'/></throttlefilters>",
            "throttle groups",
            "slow",
        ),
    ] {
        let guest = OVERLAY.replace("</disk>", &format!("{element}</disk>"));
        let steps = traced(&guest, &Facts::default()).path.steps;
        let mut properties = steps.iter().flat_map(|step| &step.properties);
        let told = properties.find(|it| it.name == name).unwrap();
        assert_eq!(told.value, value);
    }
}

#[test]
fn names_in_headers_that_are_not_collected_files_end_the_path_in_the_unknown() {
    for (name, step) in [
        ("base.qcow2", "unknown /srv/images/base.qcow2"),
        ("nbd://server/base", "unknown nbd://server/base"),
        ("json:{}", "unknown json:{}"),
    ] {
        let header = format!(r#""backing": {{"path": "{name}", "format": "qcow2"}}"#);
        let path = traced(OVERLAY, &image_facts(&header, "")).path;
        assert!(storage_steps(&path).contains(&step.to_owned()), "{path:#?}");
        // Writes never reach it, so it decides nothing about their survival.
        assert_eq!(path.loss.flushed, Survival::Kept, "{path:#?}");
        let overlay = OVERLAY.replace("type='qcow2'", "type='qcow2' cache='none'");
        let facts = image_facts(&header, "");
        let direct = traced(&overlay, &facts).path;
        assert_eq!(direct.loss.unflushed, Survival::Kept, "{direct:#?}");
    }
    // A loop has an end.
    let path = traced(
        OVERLAY,
        &image_facts(r#""backing": {"path": "top.qcow2", "format": "qcow2"}"#, ""),
    );
    let formats = path.path.steps.iter();
    assert_eq!(
        formats.filter(|step| step.layer == Layer::Format).count(),
        1
    );
}

/// What the machine type, a passed-through device and copy-on-read change on the way of a request.
#[test]
fn the_defaults_of_old_machines_and_what_bypasses_qemu_are_told() {
    let guest = |machine: &str, disk: &str| {
        format!(
            "<domain type='kvm'><name>a</name><vcpu>2</vcpu>\
             <os><type arch='x86_64' machine='{machine}'>hvm</type></os>\
             <devices>{disk}<controller type='scsi' model='virtio-scsi'/></devices></domain>"
        )
    };
    let file = |driver: &str| {
        format!(
            "<disk type='file'><driver name='qemu' type='qcow2' {driver}/><source file='/a'/>\
             <target dev='vda' bus='virtio'/></disk>"
        )
    };
    let lun = |cache: &str| {
        format!(
            "<disk type='block' device='lun'><driver name='qemu' type='raw' {cache}/><source dev='/dev/sdx'/>\
             <target dev='sda' bus='scsi'/></disk>"
        )
    };
    for (machine, disk, told, untold) in [
        ("pc-q35-10.0", file(""), "queue size           256", "128"),
        ("pc-q35-4.2", file(""), "queue size           128", "256"),
        (
            "pc-q35-10.0",
            file(""),
            "queues               2",
            "queues               1",
        ),
        (
            "pc-q35-5.1",
            file(""),
            "queues               1",
            "[`<vcpu>`]",
        ),
        (
            "q35",
            file("copy_on_read='on'"),
            "also written to the image",
            "512/4096",
        ),
        ("q35", lun(""), "SYNCHRONIZE CACHE, with SG_IO", "fdatasync"),
        ("q35", lun(""), "WRITE, with SG_IO", "page cache"),
        (
            "q35",
            lun("cache='none'"),
            "UNMAP, with SG_IO",
            "WRITE, with SG_IO",
        ),
    ] {
        let text = run(crate::VMDISK, &["trace", "-"], &guest(machine, &disk));
        assert_eq!(text.code, 0, "{}", text.stderr);
        let out = text.stdout;
        assert!(out.contains(told), "{told}\n{out}");
        assert!(!out.contains(untold), "{untold}\n{out}");
    }
}

/// What each step says of itself, `name = value`, with the statements about flushes and discards.
fn says(text: &str, facts: &str) -> String {
    let facts = Facts::parse(facts).unwrap().facts;
    let mut said = String::new();
    for step in traced(text, &facts).path.steps {
        for property in &step.properties {
            said += &format!("{} = {}\n", property.name, property.value);
        }
        for operation in [RequestKind::Flush, RequestKind::Discard] {
            said += &format!("{}\n", step.effect(operation).statement.text);
        }
    }
    said
}

#[test]
fn the_state_of_a_disk_of_the_host_is_told() {
    let facts = "schema_version: '1.0'
cgroups:
  machine:
    io_max:
      - {dev: '8:0', read_bytes: 1000, write_bytes: 2000, read_requests: 30, write_requests: 40}
      - {dev: '8:16', read_bytes: 7}
blockdevs:
  - id: b1
    dev: '8:0'
    kind: disk
    paths: [/dev/sda]
    queue: {write_cache: write through, discard_max: 0}
    scsi: {cache_type: write back, thin_provisioning: true, provisioning_mode: full}
files:
  - {path: /run/daemon.sock, kind: socket, socket: {listening: false}}
";
    let said = says(&disk_on("/dev/sda"), facts);
    for line in [
        "guests read, bytes/s = 1000",
        "guests write, bytes/s = 2000",
        "guests' reads/s = 30",
        "guests' writes/s = 40",
        "write cache = write through",
        "cache of the disk = write back",
        "its driver sends it no discards",
    ] {
        assert!(said.contains(line), "{line}: {said}");
    }
    let other = facts.replace(
        "cache_type: write back, thin_provisioning: true",
        "cache_type: write through",
    );
    let said = says(
        &disk_on("/dev/sda"),
        &other.replace("dev: '8:0', read", "dev: '8:32', read"),
    );
    for line in ["bytes/s", "cache of the disk", "sends it no discards"] {
        assert!(!said.contains(line), "{line}: {said}");
    }
    let daemon = "<disk type='vhostuser' device='disk'><driver name='qemu' type='raw'/>
  <source type='unix' path='/run/daemon.sock'/><target dev='vda' bus='virtio'/></disk>";
    let said = says(daemon, facts);
    assert!(said.contains("listens = no: QEMU cannot connect"), "{said}");
    let said = says(
        daemon,
        &facts.replace("listening: false", "listening: true"),
    );
    assert!(said.contains("listens = yes"), "{said}");
}
