//! Plans parsed from texts.

mod socket;

use std::path::PathBuf;

use vmdisk_model::{AioMode, CacheMode, FrontendKind};

use super::*;

fn limits() -> Limits {
    Limits {
        processors: 2,
        ..Limits::default()
    }
}

fn options() -> PlanOptions {
    PlanOptions {
        limits: limits(),
        ..PlanOptions::default()
    }
}

fn names(plan: &Plan) -> Vec<&str> {
    let configurations = plan.configurations.iter();
    configurations
        .map(|configuration| configuration.name.as_str())
        .collect()
}

fn preset(name: &str) -> &'static str {
    PRESETS
        .iter()
        .find(|preset| preset.name == name)
        .unwrap()
        .text
}

const MATRIX: &str = "
version: 1
name: test
question: which?
size: 64M
phases: [first-touch, steady]
workloads: [4k-random-write-qd32, 4k-random-read-qd1]
fixed: {engine: storage-daemon}
matrix:
  format: [raw, qcow2]
  preallocation: ['off', metadata]
  cache: [none, writeback]
  aio: [threads, native]
baseline: {format: raw, preallocation: 'off'}
";

#[test]
fn a_matrix_keeps_possible_combinations_and_gives_reasons_for_the_others() {
    let plan = read_plan(MATRIX, "test", &options()).unwrap();
    assert_eq!(
        names(&plan),
        [
            "raw-off-none-threads",
            "raw-off-none-native",
            "raw-off-writeback-threads",
            "qcow2-off-none-threads",
            "qcow2-off-none-native",
            "qcow2-off-writeback-threads",
            "qcow2-metadata-none-threads",
            "qcow2-metadata-none-native",
            "qcow2-metadata-writeback-threads",
        ]
    );
    let why: Vec<(&str, &str)> = plan
        .left_out
        .iter()
        .map(|left_out| (left_out.why.as_str(), left_out.what.as_str()))
        .collect();
    assert_eq!(
        why[0].0,
        "aio=native was specified, but it requires cache.direct=on, which was not specified"
    );
    assert!(
        why[0]
            .1
            .starts_with("raw-off-writeback-native, qcow2-off-writeback-native")
    );
    assert!(why.contains(&(
        "raw has no metadata to allocate",
        "raw-metadata-none-threads, raw-metadata-none-native, raw-metadata-writeback-threads, \
         raw-metadata-writeback-native"
    )));
    assert!(why.contains(&(
        "reading unwritten storage fetches no data",
        "4k-random-read-qd1 in phase first-touch"
    )));
    // Nine configurations, written in two phases and read in one.
    assert_eq!(plan.cells.len(), 27);
}

/// Returns a plan of two listed configurations, with factors fixed for both.
fn listed(fixed: &str, one: &str, other: &str) -> Plan {
    let text = format!(
        "version: 1\nname: t\nquestion: q\nsize: 64M\nphases: [steady]\nworkloads: [4k-random-write-qd1]\n\
         fixed: {{{fixed}}}\nconfigurations: [{{name: one, {one}}}, {{name: other, {other}}}]\n"
    );
    read_plan(&text, "t", &options()).unwrap()
}

#[test]
fn a_listed_configuration_is_measured_as_written_or_left_out() {
    for (fixed, other, why) in [
        (
            "engine: host-fio",
            "format: qcow2, cache: writeback",
            "host-fio does not use format=qcow2, cache=writeback",
        ),
        (
            "engine: host-fio",
            "preallocation: full",
            "host-fio does not use preallocation=full",
        ),
        (
            "engine: host-fio",
            "scheduler: bfq",
            "host-fio does not use scheduler=bfq",
        ),
        (
            "engine: host-fio",
            "iothread: true",
            "host-fio does not use iothread=true",
        ),
        (
            "engine: storage-daemon",
            "frontend: virtio-scsi",
            "storage-daemon does not use frontend=virtio-scsi",
        ),
        (
            "engine: storage-daemon",
            "queues: 4",
            "storage-daemon does not use queues=4",
        ),
        (
            "engine: storage-daemon",
            "iothread: true",
            "storage-daemon does not use iothread=true",
        ),
    ] {
        let plan = listed(fixed, "no-cow: false", other);
        assert_eq!(names(&plan), ["one"], "{other}");
        let left_out = LeftOut {
            what: "other".to_owned(),
            why: why.to_owned(),
        };
        assert_eq!(plan.left_out, [left_out]);
    }
    // A factor that requests the default behaviour is allowed.
    let plan = listed("engine: host-fio", "format: raw", "iothread: false");
    assert_eq!(names(&plan), ["one", "other"]);
    // A fixed factor may apply to the other engine only.
    let plan = listed(
        "cache: none, aio: native",
        "engine: host-fio",
        "engine: storage-daemon",
    );
    assert_eq!(names(&plan), ["one", "other"]);
    assert!(!plan.configurations[0].factors.contains_key("cache"));
}

#[test]
fn an_unused_value_is_not_part_of_the_name() {
    let text = MATRIX.replace("engine: storage-daemon", "engine: host-fio");
    let plan = read_plan(&text.replace("baseline:", "#"), "test", &options()).unwrap();
    assert_eq!(names(&plan), ["only"]);
    assert_eq!(
        plan.left_out
            .iter()
            .filter(|it| it.why.starts_with("host-fio would repeat the measurement"))
            .count(),
        1
    );
}

#[test]
fn an_unknown_engine_is_refused() {
    let text = MATRIX.replace("engine: storage-daemon", "engine: qemu-img-bench");
    let error = read_plan(&text, "test", &options()).unwrap_err();
    assert!(
        error
            .to_string()
            .ends_with("is not one of host-fio, storage-daemon, guest"),
        "{error}"
    );
}

#[test]
fn the_baseline_differs_in_no_other_factor() {
    let plan = read_plan(MATRIX, "test", &options()).unwrap();
    for view in plan.views() {
        let name = &view.configuration.name;
        let expected =
            name.replacen("qcow2-off", "raw-off", 1)
                .replacen("qcow2-metadata", "raw-off", 1);
        let baseline = plan.cells[view.id.0].baseline.map(|id| plan.view(id));
        if *name == expected {
            assert!(baseline.is_none(), "{name}");
            continue;
        }
        let baseline = baseline.unwrap();
        assert_eq!(baseline.configuration.name, expected);
        assert_eq!(baseline.phase, view.phase);
        assert_eq!(baseline.workload, view.workload);
    }
}

#[test]
fn factors_are_converted_to_a_disk() {
    let text = "
version: 1
name: test
question: which?
size: 64M
phases: [steady]
workloads: [4k-random-read-qd1]
fixed: {engine: guest, cache: none, aio: native, iothread: true, queues: 2, vcpus: 2}
matrix: {frontend: [virtio-blk, virtio-scsi, vhost-user-blk, nvme]}
";
    let plan = read_plan(text, "test", &options()).unwrap();
    assert_eq!(
        names(&plan),
        ["virtio-blk", "virtio-scsi", "vhost-user-blk"]
    );
    assert_eq!(plan.left_out[0].why, "QEMU runs nvme in its main loop only");
    let kinds = plan.configurations.iter().map(|configuration| {
        let disk = configuration.disk();
        assert_eq!(disk.backend.cache, Some(CacheMode::None));
        assert_eq!(disk.backend.aio, Some(AioMode::Native));
        configuration.guest.frontend_kind(disk)
    });
    assert_eq!(
        kinds.collect::<Vec<_>>(),
        [
            FrontendKind::VirtioBlk,
            FrontendKind::VirtioScsi,
            FrontendKind::VirtioBlk
        ]
    );
    assert!(plan.configurations[2].is_served_by_daemon);
    let record = plan.record();
    assert!(
        record.configurations[0].disk_xml.contains("iothread='1'"),
        "{}",
        record.configurations[0].disk_xml
    );
    assert_eq!(record.hash().len(), 64);
    assert_eq!(record.hash(), plan.record().hash());
    assert_eq!(record.dangling(), None);
    let text = serde_json::to_string(&record).unwrap();
    assert_eq!(serde_json::from_str::<PlanRecord>(&text).unwrap(), record);
}

#[test]
fn every_preset_is_a_plan_that_lists_its_omissions() {
    for preset in PRESETS {
        let mut options = options();
        if preset.name.starts_with("raid1-") {
            let error = read_plan(preset.text, preset.name, &options).unwrap_err();
            assert!(
                error
                    .to_string()
                    .contains("compares 2 directories: set `--directory`"),
                "{error}"
            );
            options.directories = vec![PathBuf::from("/mnt/a"), PathBuf::from("/mnt/b")];
        }
        let plan = read_plan(preset.text, preset.name, &options).unwrap();
        assert_eq!(plan.name, preset.name);
        let needs_more = matches!(preset.name, "thin-chunk" | "schedulers");
        assert_eq!(plan.cells.is_empty(), needs_more, "{}", preset.name);
        assert!(!needs_more || !plan.left_out.is_empty());
        options.limits = Limits {
            processors: 64,
            device: Some((PathBuf::from("/dev/disk/by-id/x"), "SERIAL".to_owned())),
            group: Some("vg0".to_owned()),
            huge_page_bytes: 1 << 40,
            ..limits()
        };
        let all = read_plan(preset.text, preset.name, &options).unwrap();
        assert!(!all.cells.is_empty());
        assert!(
            all.cells.iter().any(|cell| cell.baseline.is_some()),
            "{}",
            preset.name
        );
    }
    let plan = read_plan(preset("five-backends"), "five-backends", &options()).unwrap();
    assert_eq!(names(&plan), ["native", "raw", "qcow2", "qcow2-prealloc"]);
    assert!(plan.left_out[0].what.contains("direct"));
    let plan = read_plan(preset("crystaldiskmark"), "crystaldiskmark", &options()).unwrap();
    let why = |what: &str| {
        let mut left_out = plan.left_out.iter();
        left_out
            .find(|left_out| left_out.what.contains(what))
            .unwrap()
            .why
            .clone()
    };
    assert!(why("tuned-4-vcpus, tuned-8-vcpus").contains("than the host's 2 processors"));
    let plan = read_plan(preset("huge-pages"), "huge-pages", &options()).unwrap();
    assert_eq!(names(&plan), ["small-pages"]);
    assert!(
        plan.left_out[0]
            .why
            .starts_with("the host has 0 MiB of free huge pages")
    );
}

#[test]
fn directories_of_the_user_are_a_factor() {
    let mut options = options();
    options.directories = ["/mnt/btrfs/images", "/mnt/xfs/images"]
        .map(PathBuf::from)
        .to_vec();
    let plan = read_plan(preset("cache-modes"), "cache-modes", &options).unwrap();
    assert_eq!(plan.configurations.len(), 10);
    // Both directories are named `images`, but names must be unique.
    assert_eq!(names(&plan)[..2], ["none-images", "none-images-2"]);
    let of = |index: usize| {
        plan.cells[index]
            .baseline
            .map(|id| plan.view(id).configuration.factors["directory"].clone())
    };
    for (index, view) in plan.views().enumerate() {
        if let Some(directory) = of(index) {
            assert_eq!(directory, view.configuration.factors["directory"]);
        }
    }
}

#[test]
fn presets_name_the_pairs_that_their_articles_compare() {
    let mut options = options();
    options.limits = Limits {
        device: Some((PathBuf::from("/dev/disk/by-id/x"), "SERIAL".to_owned())),
        group: Some("vg0".to_owned()),
        ..limits()
    };
    options.directories = vec![PathBuf::from("/mnt/a")];
    let pairs = |name: &str, options: &PlanOptions| {
        let plan = read_plan(preset(name), name, options).unwrap();
        let pairs = plan.pairs.iter();
        let pairs: Vec<String> = pairs.map(|(one, other)| format!("{one}:{other}")).collect();
        pairs.join(" ")
    };
    for (name, expected) in [
        ("volumes", "thin-volume:volume qcow2:volume"),
        ("dd-direct", "io-native:threads"),
        ("five-backends", "qcow2:raw qcow2-prealloc:qcow2 direct:raw"),
        ("crystaldiskmark", "vhost-user-blk:tuned"),
        ("cache-modes", "unsafe:writeback"),
    ] {
        assert_eq!(pairs(name, &options), expected);
    }
    // Files are compared in the same directory, and with every device.
    options.directories.push(PathBuf::from("/mnt/b"));
    assert_eq!(
        pairs("cache-modes", &options),
        "unsafe-a:writeback-a unsafe-b:writeback-b"
    );
    assert!(pairs("five-backends", &options).ends_with("direct:raw-a direct:raw-b"));
    // A pair whose volume is left out is no pair.
    options.limits.device = None;
    assert_eq!(pairs("volumes", &options), "");
    let text = preset("volumes").replace("[thin-volume, volume]", "[thin-volume, volum]");
    let error = read_plan(&text, "volumes", &options).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("no configuration is named volum"),
        "{error}"
    );
}

#[test]
fn leaving_out_a_cell_removes_what_only_it_used() {
    let mut plan = read_plan(MATRIX, "test", &options()).unwrap();
    plan.leave_out(|cell| {
        let is_raw = cell.configuration.factors["format"] == "raw";
        let is_first_read = cell.configuration.name == "qcow2-off-none-native"
            && cell.workload.name.contains("read");
        if is_first_read {
            return Some("that one".to_owned());
        }
        (is_raw || cell.workload.name.contains("read")).then(|| "because".to_owned())
    });
    assert!(names(&plan).iter().all(|name| name.starts_with("qcow2")));
    assert_eq!(plan.workloads.len(), 1);
    assert_eq!(plan.cells.len(), 12);
    assert!(plan.cells.iter().all(|cell| cell.baseline.is_none()));
    assert_eq!(plan.record().dangling(), None);
    let [because, that_one] = &plan.left_out[plan.left_out.len() - 2..] else {
        panic!("two reasons");
    };
    assert_eq!(because.why, "because");
    // A configuration that is removed completely is named alone.
    assert!(
        because.what.starts_with(
            "raw-off-none-threads, raw-off-none-native, raw-off-writeback-threads, qcow2-"
        ),
        "{}",
        because.what
    );
    assert_eq!(
        that_one.what,
        "qcow2-off-none-native 4k-random-read-qd1 steady"
    );
}

#[test]
fn two_cells_compared_only_with_each_other_are_left_out_together() {
    const TEXT: &str = "
version: 1
name: pairs
question: what does it change?
size: 64M
phases: [steady]
workloads: [4k-random-write-qd1, 4k-random-read-qd1]
fixed: {engine: storage-daemon, format: raw, preallocation: full}
matrix: {cache: [none, writeback]}
baseline: {cache: none}
";
    let reads_of = |name: &'static str| {
        move |cell: &crate::CellView<'_>| {
            (cell.configuration.name == name && cell.workload.name.contains("read"))
                .then(|| "it cannot read".to_owned())
        }
    };
    for (gone, other) in [("none", "writeback"), ("writeback", "none")] {
        let mut plan = read_plan(TEXT, "test", &options()).unwrap();
        assert_eq!(plan.cells.len(), 4);
        plan.leave_out(reads_of(gone));
        assert_eq!(plan.cells.len(), 2, "without reading {gone}");
        assert_eq!(plan.workloads.len(), 1);
        assert_eq!(plan.record().dangling(), None);
        assert!(
            plan.left_out
                .iter()
                .any(|left_out| left_out.what.starts_with(other)
                    && left_out.why == format!("{gone}, which it is compared with, is left out")),
            "{:?}",
            plan.left_out
        );
    }
    // With a third cell the second one still has a comparison.
    let text = TEXT.replace("[none, writeback]", "[none, writeback, unsafe]");
    let mut plan = read_plan(&text, "test", &options()).unwrap();
    plan.leave_out(reads_of("none"));
    assert_eq!(plan.cells.len(), 5);
}

#[test]
fn mistakes_are_reported_together_and_syntax_errors_with_a_line() {
    let text = MATRIX
        .replace("4k-random-read-qd1", "4k-random-read")
        .replace("cache: [none", "cahce: [none")
        .replace("[threads, native]", "[thread]");
    let error = read_plan(&text, "my.yaml", &options())
        .unwrap_err()
        .to_string();
    assert!(error.starts_with("my.yaml: "), "{error}");
    assert!(error.contains("the queue depth is missing"), "{error}");
    assert!(error.contains("`cahce` is not a factor"), "{error}");
    let error = read_plan(
        &MATRIX.replace("[threads, native]", "[thread]"),
        "my.yaml",
        &options(),
    )
    .unwrap_err();
    assert!(
        error
            .to_string()
            .contains("aio: `thread` is not one of threads, native, io_uring"),
        "{error}"
    );
    let error = read_plan(
        &MATRIX.replace("size: 64M", "sice: 64M"),
        "my.yaml",
        &options(),
    )
    .unwrap_err();
    assert!(error.to_string().starts_with("my.yaml:5: "), "{error}");
    for fills in ["0", "11", "-1"] {
        let text = MATRIX.replace("size: 64M", &format!("size: 64M\nfills: {fills}"));
        let error = read_plan(&text, "my.yaml", &options()).unwrap_err();
        assert!(error.to_string().contains("fills: "), "{error}");
    }
    for text in ["", "[", "version: 2", "a: &a [*a]", "\u{0}"] {
        assert!(read_plan(text, "x", &options()).is_err(), "{text:?}");
    }
    for text in ["", "- 1", "x"] {
        let error = read_plan(text, "x", &options()).unwrap_err().to_string();
        assert!(error.contains("expected a group of keys"), "{error}");
    }
    let many = format!(
        "matrix: {{queues: [{}], vcpus: [{}]}}",
        (1..=200)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(","),
        (1..=200)
            .map(|n| n.to_string())
            .collect::<Vec<_>>()
            .join(",")
    );
    let text = format!(
        "version: 1\nname: x\nquestion: x\nsize: 64M\nphases: [steady]\nworkloads: [4k-random-read-qd1]\n{many}\n"
    );
    let error = read_plan(&text, "x", &options()).unwrap_err();
    assert!(
        error.to_string().contains("at most 10000 combinations"),
        "{error}"
    );
}

#[test]
fn a_fixed_factor_that_no_configuration_uses_leaves_them_out() {
    let of = |fixed: &str, matrix: &str, engine| {
        let text = format!(
            "version: 1\nname: t\nquestion: q\nsize: 8M\nphases: [steady]\nworkloads: [4k-random-read-qd1]\n\
             fixed: {{{fixed}}}\nmatrix: {{{matrix}}}\n"
        );
        let options = PlanOptions {
            engine,
            ..options()
        };
        let plan = read_plan(&text, "t", &options).unwrap();
        let reasons: Vec<String> = plan.left_out.iter().map(|it| it.why.clone()).collect();
        (plan.configurations.len(), reasons.join("; "))
    };
    let directories = "directory: [/a, /b]";
    for (fixed, why) in [
        ("format: qcow2", "host-fio does not use format=qcow2"),
        (
            "cache: unsafe, aio: io_uring",
            "host-fio does not use cache=unsafe, aio=io_uring",
        ),
        // What host-fio does anyway.
        ("format: raw", ""),
    ] {
        let fixed = format!("engine: host-fio, {fixed}");
        let expected = if why.is_empty() { 2 } else { 0 };
        assert_eq!(of(&fixed, directories, None), (expected, why.to_owned()));
    }
    // Another configuration uses it, or the user has chosen the engine.
    let engines = "engine: [host-fio, storage-daemon]";
    assert_eq!(of("format: qcow2", engines, None).0, 2);
    let engine = Some(EngineKind::HostFio);
    assert_eq!(
        of("format: qcow2, engine: storage-daemon", directories, engine).0,
        2
    );
}
