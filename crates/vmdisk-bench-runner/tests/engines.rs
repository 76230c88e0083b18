//! The engines with real programs: they measure what the plan says, and leave nothing behind.
//!
//! Each test needs its programs. Without them it prints the reason and passes; with `VMDISK_REAL=require` it fails.
#![allow(
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "tests fail by panicking, and say what they skip"
)]

use std::path::Path;

use vmdisk_bench_runner::engines::{Workspace, engine};
use vmdisk_bench_runner::{
    Cancel, CellId, CellValues, CellView, Direction, Engine, EngineKind, Error, Limits, Load,
    Measurement, Phase, Plan, PlanOptions, RunContext, Sample, allowed_processors, read_plan,
};
use vmdisk_testing::{LoopMount, needed};

fn plan(text: &str) -> Plan {
    let options = PlanOptions {
        limits: Limits {
            processors: 2,
            allowed_processors: allowed_processors(),
            ..Limits::default()
        },
        ..PlanOptions::default()
    };
    read_plan(text, "test", &options).unwrap()
}

pub(crate) fn has(programs: &[&str]) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let missing: Vec<&&str> = programs
        .iter()
        .filter(|program| {
            !std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
        })
        .collect();
    vmdisk_testing::is_given(missing.is_empty(), &format!("{missing:?}"))
}

/// Measures every cell of a plan once, like a run.
pub(crate) fn measured(plan: &Plan, directory: &Path) -> Vec<(CellId, Result<Measurement, Error>)> {
    measured_between(plan, directory, &mut || {})
}

/// As [`measured`]; `look` is called before the first sample, and after each.
fn measured_between(
    plan: &Plan,
    directory: &Path,
    look: &mut dyn FnMut(),
) -> Vec<(CellId, Result<Measurement, Error>)> {
    let workspace = Workspace::with_changes_in(directory, &directory.join("changes"));
    let cancel = Cancel::new();
    let mut results = Vec::new();
    for kind in EngineKind::ALL.iter().copied() {
        let cells: Vec<CellView<'_>> = plan.views().filter(|cell| cell.engine == kind).collect();
        if cells.is_empty() {
            continue;
        }
        let mut engine: Box<dyn Engine> = engine(kind, &workspace).unwrap();
        assert!(!engine.versions(&cells).unwrap().is_empty());
        for index in 0..plan.configurations.len() {
            let of_one: Vec<CellView<'_>> = cells
                .iter()
                .filter(|cell| std::ptr::eq(cell.configuration, &plan.configurations[index]))
                .copied()
                .collect();
            for cell in &of_one {
                assert_eq!(engine.refuses(cell), None);
            }
            engine.prepare(&of_one, &cancel).unwrap();
        }
        let context = RunContext {
            round: 1,
            cancel: &cancel,
            seed: 42,
        };
        for cell in &cells {
            look();
            engine
                .run(&[*cell], &context, &mut |id, result| {
                    results.push((id, result))
                })
                .unwrap();
        }
        look();
        engine.cleanup().unwrap();
    }
    results
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

/// Checks the fields that every engine fills in.
#[track_caller]
fn whole(plan: &Plan, (id, result): &(CellId, Result<Measurement, Error>)) -> Measurement {
    let cell = plan.view(*id);
    let name = cell.name();
    let measured = match result {
        Ok(measured) => measured.clone(),
        Err(error) => panic!("{name}: {error}"),
    };
    // A busy machine completes few requests.
    let directions: Vec<&Direction> = [&measured.read, &measured.write]
        .into_iter()
        .flatten()
        .collect();
    assert!(!directions.is_empty(), "{name}: {measured:?}");
    for direction in directions {
        assert!(direction.operations > 0, "{name}: {measured:?}");
        if let Load::Blocks(blocks) = &cell.workload.load {
            // fio also counts the bytes of requests that were in flight at the end.
            let requests = direction.bytes / blocks.block_bytes;
            let in_flight = u64::from(blocks.depth * blocks.jobs);
            let expected = direction.operations..=direction.operations + in_flight;
            assert!(expected.contains(&requests), "{name}: {measured:?}");
        }
    }
    if let Load::Blocks(blocks) = &cell.workload.load
        && let (Some(every), Some(write)) = (blocks.sync_every, &measured.write)
    {
        let asked = measured.semantics.flushes_asked.unwrap_or(0);
        let expected = write.operations / u64::from(every);
        assert!(asked > 0 && asked + 1 >= expected, "{name}: {measured:?}");
    }
    counted(&cell, &measured);
    assert!(!measured.commands.is_empty(), "{name}");
    assert_eq!(
        measured.semantics.complaints,
        Vec::<String>::new(),
        "{name}"
    );
    measured
}

/// Checks that a first touch goes over the disk once, and that what bypasses the page cache reaches the device.
#[track_caller]
fn counted(cell: &CellView<'_>, measured: &Measurement) {
    let name = cell.name();
    let size = cell.configuration.size.0;
    let Load::Blocks(blocks) = &cell.workload.load else {
        return;
    };
    let bytes = |direction: &Option<Direction>| direction.as_ref().map_or(0, |it| it.bytes);
    let (read, written) = (bytes(&measured.read), bytes(&measured.write));
    let in_flight = blocks.block_bytes * u64::from(blocks.depth * blocks.jobs);
    match cell.phase {
        Phase::FirstTouch => {
            assert!(read + written <= size + in_flight, "{name}: {measured:?}");
            assert!(measured.covered > Some(0.0), "{name}: {measured:?}");
        }
        Phase::Steady => {
            assert!(measured.seconds > 0.03, "{name}: {measured:?}");
            assert_eq!(measured.covered, None);
        }
    }
    // A file system in memory, or one over another, has no device.
    let Some(device) = measured.devices.first() else {
        return;
    };
    let is_direct = cell.configuration.disk().backend.is_direct();
    if cell.phase == Phase::Steady && !cell.configuration.is_buffered {
        let least = if is_direct { read } else { read.min(size) };
        assert!(device.read_bytes >= least / 2, "{name}: {measured:?}");
    }
    if is_direct {
        assert!(device.written_bytes >= written / 2, "{name}: {measured:?}");
    }
}

#[test]
fn a_first_touch_of_several_jobs_goes_over_the_disk_once() {
    if !has(&["qemu-storage-daemon", "fio"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(
        "version: 1\nname: t\nquestion: q\nsize: 8M\nseconds: 20\nphases: [first-touch]\n\
         workloads: [64k-random-write-qd4, 64k-sequential-write-qd2-jobs3]\n\
         fixed: {cache: none, aio: threads, format: raw}\nmatrix: {engine: [host-fio, storage-daemon]}\n",
    );
    let began = std::time::Instant::now();
    let results = measured(&plan, directory.path());
    assert_eq!(results.len(), 4);
    for result in &results {
        let covered = whole(&plan, result).covered.unwrap();
        assert!((0.9..=1.1).contains(&covered), "{covered}");
    }
    assert!(began.elapsed().as_secs() < 60, "one pass ends the sample");
}

/// A file system on a loop device, with its folder; `None` if it cannot be made here.
fn loop_mount(mount_options: &str) -> Option<(LoopMount, tempfile::TempDir)> {
    let folder = tempfile::tempdir().unwrap();
    let mkfs = ["mkfs.ext4", "-q", "-F", "-E", "lazy_itable_init=0"];
    let mounted = needed(LoopMount::new(
        folder.path(),
        256 << 20,
        &mkfs,
        mount_options,
    ))?;
    Some((mounted, folder))
}

#[test]
fn labels_agree_with_the_counters_of_a_device_that_nobody_else_uses() {
    if !has(&["qemu-storage-daemon", "qemu-img", "fio"]) {
        return;
    }
    let Some((mounted, _folder)) = loop_mount("defaults") else {
        return;
    };
    const SIZE: u64 = 32 << 20;
    for engine in ["host-fio", "storage-daemon"] {
        let (fixed, cached) = match engine {
            "host-fio" => ("", "direct: false"),
            _ => (", cache: none", "cache: writeback"),
        };
        for (phase, workload, seconds) in [
            ("first-touch", "64k-random-write-qd4", 20.0),
            ("steady", "1m-sequential-read-qd4", 0.5),
        ] {
            let plan = plan(&format!(
                "version: 1\nname: t\nquestion: q\nsize: 32M\nseconds: {seconds}\nramp: 0\nphases: [{phase}]\n\
                 workloads: [{workload}]\nfixed: {{engine: {engine}{fixed}}}\n\
                 configurations:\n- {{name: direct}}\n- {{name: cached, {cached}}}\n",
            ));
            let mut moved = Vec::new();
            let results =
                measured_between(&plan, mounted.point(), &mut || moved.push(mounted.moved()));
            assert_eq!(results.len(), 2);
            for (nth, result) in results.iter().enumerate() {
                let name = plan.view(result.0).name();
                let measured = whole(&plan, result);
                let [read, written] = [0, 1].map(|it| moved[nth + 1][it] - moved[nth][it]);
                let is_direct = name.starts_with("direct");
                match (&measured.write, &measured.read) {
                    (Some(write), _) => {
                        // One pass, and on the device nothing but its blocks and metadata.
                        assert!(
                            (SIZE * 9 / 10..=SIZE).contains(&write.bytes),
                            "{name}: {write:?}"
                        );
                        assert!(written < SIZE + SIZE / 2, "{name}: {written}");
                        assert!(!is_direct || written >= write.bytes, "{name}: {written}");
                    }
                    (None, Some(asked)) => {
                        let least = if is_direct {
                            asked.bytes
                        } else {
                            asked.bytes.min(SIZE)
                        };
                        assert!(read >= least - least / 10, "{name}: {read} of {least}");
                    }
                    (None, None) => panic!("{name}: {measured:?}"),
                }
                // The engine saw what this test saw.
                let device = &measured.devices[0];
                assert!(
                    device.read_bytes <= read && device.written_bytes <= written,
                    "{name}"
                );
            }
        }
    }
}

#[test]
fn counters_bytes_and_flushes_are_those_of_the_sample_without_its_ramp() {
    if !has(&["qemu-storage-daemon", "fio"]) {
        return;
    }
    let Some((mounted, _folder)) = loop_mount("defaults") else {
        return;
    };
    // The ramp sends as many requests as the sample.
    let plan = plan(
        "version: 1\nname: t\nquestion: q\nsize: 32M\nseconds: 0.6\nramp: 0.6\nphases: [steady]\n\
         workloads: [64k-random-read-qd4, 4k-random-write-qd1-sync, 4k-random-read-qd1-rate100]\n\
         fixed: {cache: none, aio: threads, format: raw}\nmatrix: {engine: [host-fio, storage-daemon]}\n",
    );
    let results = measured(&plan, mounted.point());
    assert_eq!(results.len(), 6);
    for result in &results {
        let name = plan.view(result.0).name();
        let measured = whole(&plan, result);
        assert!(!measured.inputs["job"].contains("ramp"));
        let device = &measured.devices[0];
        if let Some(read) = &measured.read {
            let range = read.bytes..=read.bytes + read.bytes / 10 + (1 << 20);
            assert!(range.contains(&device.read_bytes), "{name}: {measured:?}");
        }
        if let Some(asked) = measured.semantics.flushes_asked {
            let seen = measured.semantics.flushes_seen.unwrap();
            // The journal of ext4 has flushes of its own.
            assert!(
                (asked - asked / 10..asked * 8 / 5 + 20).contains(&seen),
                "{name}: {seen} of {asked}"
            );
        }
    }
}

#[test]
fn the_place_of_a_disk_is_noted_by_each_engine_in_each_phase() {
    if !has(&["qemu-storage-daemon", "qemu-img", "fio", "findmnt"]) {
        return;
    }
    let Some((mounted, _folder)) = loop_mount("defaults") else {
        return;
    };
    let point = mounted.point().display();
    let buffered = format!("losetup --direct-io=off \"$(findmnt -no SOURCE '{point}')\"");
    let mut shell = std::process::Command::new("sh");
    assert!(shell.args(["-c", &buffered]).status().unwrap().success());
    for engine in ["host-fio", "storage-daemon"] {
        let plan = plan(&format!(
            "version: 1\nname: t\nquestion: q\nsize: 16M\nseconds: 0.3\nramp: 0\nphases: [first-touch, steady]\n\
             workloads: [64k-random-write-qd4]\nfixed: {{engine: {engine}}}\nmatrix:\n  no-cow: [false]\n",
        ));
        let results = measured(&plan, mounted.point());
        assert_eq!(results.len(), 2);
        for result in &results {
            let notes = whole(&plan, result).notes;
            let is_noted = |it: &String| it.contains("is a loop device without direct I/O");
            assert!(notes.iter().any(is_noted), "{engine}: {notes:?}");
        }
    }
}

#[test]
fn a_sample_that_a_cache_answers_against_its_label_does_not_count() {
    if !has(&["qemu-storage-daemon", "qemu-img", "fio"]) {
        return;
    }
    // ext4 accepts O_DIRECT and goes through the page cache where it journals data.
    let Some((mounted, _folder)) = loop_mount("data=journal") else {
        return;
    };
    let plan = plan(
        "version: 1\nname: t\nquestion: q\nsize: 4M\nseconds: 1\nramp: 0\nphases: [steady]\n\
         workloads: [64k-random-read-qd8]\nfixed: {cache: none}\nmatrix: {engine: [host-fio, storage-daemon]}\n",
    );
    let results = measured(&plan, mounted.point());
    assert_eq!(results.len(), 2);
    for (id, result) in results {
        let measurement = result.unwrap();
        let complaints = measurement.semantics.complaints.join("; ");
        assert!(
            complaints.contains("bypass the page cache, but only"),
            "{complaints}"
        );
        let sample = Sample {
            round: 1,
            position: 0,
            cell: id,
            at_seconds: 0.0,
            measurement,
        };
        assert!(!sample.counts());
        let values = CellValues::of(&plan.cells, &plan.workloads, [&sample]);
        assert!(values.of_cell(id).is_empty(), "{values:?}");
    }
}

#[test]
fn fio_measures_files_of_the_host_in_both_phases() {
    if !has(&["fio"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(
        "version: 1\nname: t\nquestion: q\nsize: 16M\nseconds: 0.2\nphases: [first-touch, steady]\n\
         workloads: [4k-random-read-qd32, 4k-random-write-qd1-sync, 64k-sequential-write-qd1-blocking]\n\
         fixed: {engine: host-fio}\nmatrix:\n  no-cow: [false]\n",
    );
    let results = measured(&plan, directory.path());
    assert_eq!(results.len(), plan.cells.len());
    for result in &results {
        let measured = whole(&plan, result);
        let cell = plan.view(result.0);
        if cell.workload.name.contains("sync") {
            assert!(measured.sync.is_some());
        }
        assert!(measured.inputs["job"].contains("direct=1"));
    }
    assert!(is_empty(directory.path()), "nothing stays behind");
}

#[test]
fn an_install_is_replayed_on_the_host() {
    if !has(&["fio"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(
        "version: 1\nname: t\nquestion: q\nsize: 16M\nphases: [first-touch]\nworkloads: [install-replay]\n\
         fixed: {engine: host-fio}\nmatrix:\n  no-cow: [false]\n",
    );
    for result in &measured(&plan, directory.path()) {
        let measured = whole(&plan, result);
        assert!(measured.semantics.flushes_asked > Some(100), "{measured:?}");
    }
    assert!(is_empty(directory.path()));
}

#[test]
fn a_storage_daemon_is_driven_by_fio() {
    if !has(&["qemu-storage-daemon", "qemu-img", "fio"]) {
        return;
    }
    // A path that is too long for a socket address.
    let parent = tempfile::tempdir().unwrap();
    let directory = parent.path().join("d".repeat(100));
    std::fs::create_dir(&directory).unwrap();
    let plan = plan(
        "version: 1\nname: t\nquestion: q\nsize: 16M\nseconds: 0.6\nphases: [steady]\n\
         workloads: [4k-random-read-qd32, 4k-random-write-qd1-sync]\n\
         fixed: {format: qcow2, cache: none, aio: native}\n\
         configurations:\n- {name: qcow2, engine: storage-daemon}\n\
         - {name: unsafe, engine: storage-daemon, cache: unsafe, aio: threads}\n\
         - {name: raw, engine: storage-daemon, format: raw}\n",
    );
    let results = measured(&plan, &directory);
    assert_eq!(results.len(), 6);
    for result in &results {
        let measured = whole(&plan, result);
        let direction = measured.read.as_ref().or(measured.write.as_ref()).unwrap();
        assert!(direction.latency.as_ref().unwrap().percentiles_ns["99"] > 0);
    }
    assert!(is_empty(&directory));
}

/// Returns the processors on which a program may run, as soon as it runs below a directory.
fn processors_of(program: &str, directory: &Path) -> String {
    let until = std::time::Instant::now() + std::time::Duration::from_secs(30);
    while std::time::Instant::now() < until {
        for entry in std::fs::read_dir("/proc").unwrap().flatten() {
            let line = std::fs::read_to_string(entry.path().join("cmdline")).unwrap_or_default();
            let works_in = std::fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            // The first word is taskset until it has replaced itself.
            if line.split('\0').next() != Some(program) || !works_in.starts_with(directory) {
                continue;
            }
            let status = std::fs::read_to_string(entry.path().join("status")).unwrap_or_default();
            let list = status
                .lines()
                .find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
            if let Some(list) = list {
                return list.trim().to_owned();
            }
        }
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
    "it did not run".to_owned()
}

#[test]
fn a_daemon_and_fio_run_on_the_processors_of_their_configuration() {
    if !has(&["qemu-storage-daemon", "fio", "taskset"]) {
        return;
    }
    let last = allowed_processors().into_iter().next_back().unwrap();
    for (engine, program) in [
        ("storage-daemon", "qemu-storage-daemon"),
        ("host-fio", "fio"),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let plan = plan(&format!(
            "version: 1\nname: t\nquestion: q\nsize: 16M\nseconds: 1\nphases: [steady]\n\
             workloads: [4k-random-read-qd8]\nfixed: {{engine: {engine}}}\nmatrix: {{processors: [{last}]}}\n",
        ));
        let path = directory.path().to_owned();
        let watch = std::thread::spawn(move || processors_of(program, &path));
        let results = measured(&plan, directory.path());
        let measured = whole(&plan, &results[0]);
        let argv = &measured.commands[0].argv;
        assert_eq!(argv[..3], ["taskset", "-c", &last.to_string()]);
        assert_eq!(argv[3], program);
        assert_eq!(watch.join().unwrap(), last.to_string(), "{program}");
    }
}

#[test]
fn cancellation_leaves_nothing_behind() {
    if !has(&["fio"]) {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let plan = plan(
        "version: 1\nname: t\nquestion: q\nsize: 16M\nseconds: 30\nphases: [steady]\n\
         workloads: [4k-random-write-qd32]\nfixed: {engine: host-fio}\nmatrix:\n  no-cow: [false]\n",
    );
    let workspace = Workspace::with_changes_in(directory.path(), &directory.path().join("changes"));
    let mut engine = engine(EngineKind::HostFio, &workspace).unwrap();
    let cells: Vec<CellView<'_>> = plan.views().collect();
    engine.versions(&cells).unwrap();
    let cancel = Cancel::new();
    let other = cancel.clone();
    let stopper = std::thread::spawn(move || {
        std::thread::sleep(std::time::Duration::from_millis(700));
        other.cancel();
    });
    engine.prepare(&cells, &cancel).unwrap();
    let began = std::time::Instant::now();
    let context = RunContext {
        round: 1,
        cancel: &cancel,
        seed: 1,
    };
    let mut results = Vec::new();
    let ended = engine.run(&cells, &context, &mut |_, result| results.push(result));
    assert!(matches!(ended, Err(Error::Cancelled)), "{ended:?}");
    assert!(results.is_empty(), "{results:?}");
    assert!(began.elapsed().as_secs() < 10);
    engine.cleanup().unwrap();
    stopper.join().unwrap();
    assert!(is_empty(directory.path()));
}
