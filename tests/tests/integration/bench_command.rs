//! `vmdisk bench` with a real program that measures: qemu-storage-daemon.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_tests::{Run, has_program, real, run_in};

use crate::VMDISK;

const PLAN: &str = "
version: 1
name: formats
question: Does the format matter?
size: 16M
seconds: 0.1
ramp: 0
phases: [steady]
workloads: [4k-random-read-qd32]
fixed: {engine: storage-daemon, cache: none, aio: threads}
matrix: {format: [raw, qcow2]}
baseline: {format: raw}
";

fn has_programs() -> bool {
    ["qemu-img", "qemu-storage-daemon", "fio"]
        .into_iter()
        .all(has_program)
}

/// A directory with the plan in it.
fn place() -> tempfile::TempDir {
    let place = tempfile::tempdir().unwrap();
    std::fs::write(place.path().join("plan.yaml"), PLAN).unwrap();
    place
}

fn vmdisk(place: &Path, arguments: &[&str]) -> Run {
    run_in(place, VMDISK, arguments, "")
}

#[test]
fn what_exists_is_read_side_by_side_and_never_opened_for_writing() {
    const TEST: &str = "what_exists_is_read";
    let has_programs = has_program("fio") && has_program("strace");
    if !real(has_programs, TEST, "fio and strace") {
        return;
    }
    let place = tempfile::tempdir().unwrap();
    let folder = place.path();
    if run_in(folder, "strace", &["-f", "-o", "try", "true"], "").code != 0 {
        eprintln!("skipped: {TEST}: strace may not look into programs here");
        return;
    }
    let images = ["one.img", "other.img"];
    let data = vec![0x5a; 4 << 20];
    for image in images {
        std::fs::write(folder.join(image), &data).unwrap();
    }
    let mut words = vec!["-f", "-s", "4096", "-o", "calls", "-e"];
    words.extend([
        "trace=execve,open,openat,openat2,truncate,unlink,unlinkat,rename",
        VMDISK,
        "bench",
        "read",
    ]);
    words.extend(images);
    words.extend([
        "--workload",
        "4k-random-read-qd8",
        "--seconds",
        "0.3",
        "--rounds",
        "1",
    ]);
    words.extend(["--no-warm-up", "--noisy", "--output", "out"]);
    let run = run_in(folder, "strace", &words, "");
    assert_eq!(run.code, 0, "{}", run.stderr);
    let calls = std::fs::read_to_string(folder.join("calls")).unwrap();
    for image in images {
        let named: Vec<&str> = calls.lines().filter(|line| line.contains(image)).collect();
        // Programs get the open descriptor.
        let programs = programs_of(&calls);
        let of_program = named
            .iter()
            .find(|line| programs.contains(process_of(line)));
        assert_eq!(of_program, None, "{image}: only vmdisk names it");
        let is_reading = |line: &&str| line.contains("O_RDONLY") && !line.contains("O_CREAT");
        let is_launch = |line: &&str| line.contains("execve(");
        let others: Vec<&&str> = named
            .iter()
            .filter(|line| !is_reading(line) && !is_launch(line))
            .collect();
        assert!(others.is_empty(), "{others:?}");
        assert_eq!(std::fs::read(folder.join(image)).unwrap(), data);
        assert!(run.stdout.contains(image), "{}", run.stdout);
    }
    let writes = vmdisk(
        folder,
        &[
            "bench",
            "read",
            "one.img",
            "--workload",
            "4k-random-write-qd1",
        ],
    );
    assert_eq!(writes.code, 2, "{}", writes.stdout);
    assert!(writes.stderr.contains("only read"), "{}", writes.stderr);
}

fn bench(place: &Path, output: &str, more: &[&str]) -> Run {
    let mut arguments = vec![
        "bench",
        "run",
        "--plan",
        "plan.yaml",
        "--noisy",
        "--seed",
        "1",
        "--output",
        output,
    ];
    arguments.extend(more);
    vmdisk(place, &arguments)
}

/// The names in a directory, hidden ones too.
fn names(place: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(place)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_run_that_answers_nothing_says_so_and_names_the_time_it_needs() {
    let name = "a_run_that_answers_nothing_says_so";
    if !real(
        has_programs(),
        name,
        "qemu-img, qemu-storage-daemon and fio",
    ) {
        return;
    }
    let place = place();
    let words = [
        "bench",
        "run",
        "--plan",
        "plan.yaml",
        "--noisy",
        "--quick",
        "--time-budget",
        "3s",
    ];
    let run = vmdisk(place.path(), &words);
    assert_eq!(run.code, 2, "{}{}", run.stdout, run.stderr);
    for said in [
        "nothing is answered",
        "use `--time-budget",
        "left: 4k-random-read-qd32 of qcow2, raw, about",
    ] {
        assert!(run.stderr.contains(said), "{said}: {}", run.stderr);
    }
}

#[test]
fn a_run_is_compared_with_the_newest_one_of_a_name_and_shown_over_time() {
    let name = "a_run_is_compared_with_the_newest_one_of_a_name";
    if !real(
        has_programs(),
        name,
        "qemu-img, qemu-storage-daemon and fio",
    ) {
        return;
    }
    let place = place();
    let none = bench(place.path(), "none", &["--baseline", "nightly"]);
    assert_eq!(none.code, 2);
    assert!(
        none.stderr.contains("vmdisk-baselines/nightly"),
        "{}",
        none.stderr
    );
    assert!(!place.path().join("none").exists(), "nothing was measured");
    let saved = bench(
        place.path(),
        "first",
        &["--no-warm-up", "--save-baseline", "nightly"],
    );
    assert_eq!(saved.code, 0, "{}", saved.stderr);
    // A machine that others use may change meanwhile, and then there is no verdict.
    let later = bench(
        place.path(),
        "later",
        &[
            "--no-warm-up",
            "--save-baseline",
            "nightly",
            "--baseline",
            "nightly",
        ],
    );
    assert!(
        later
            .stdout
            .contains("\nstudied: no difference, the same plan was measured twice"),
        "{later:?}"
    );
    let shown = vmdisk(place.path(), &["bench", "history", "nightly"]);
    assert!(
        shown.stdout.starts_with("nightly: 2 runs over time\n"),
        "{}",
        shown.stdout
    );
    // A slow-down fails, as a run of CI must.
    let path = std::fs::read_dir(place.path().join("vmdisk-baselines/nightly")).unwrap();
    let path = path.map(|it| it.unwrap().path()).max().unwrap();
    let mut result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
    for sample in result["samples"].as_array_mut().unwrap() {
        if sample["cell"] == 1 {
            let iops = sample["measurement"]["read"]["iops"].as_f64().unwrap();
            sample["measurement"]["read"]["iops"] = (iops * 50.0).into();
        }
    }
    std::fs::write(&path, result.to_string()).unwrap();
    let last = bench(
        place.path(),
        "last",
        &["--no-warm-up", "--baseline", "nightly"],
    );
    assert!(
        last.code == 1 || last.stdout.contains("the machine changed"),
        "{last:?}"
    );
    let bad = bench(place.path(), "bad", &["--save-baseline", "../nightly"]);
    assert_eq!(bad.code, 2, "{}", bad.stderr);
}

#[test]
fn a_run_ends_with_its_reports_and_leaves_no_image() {
    let name = "a_run_ends_with_its_reports_and_leaves_no_image";
    if !real(
        has_programs(),
        name,
        "qemu-img, qemu-storage-daemon and fio",
    ) {
        return;
    }
    let place = place();
    let run = bench(place.path(), "out", &["--no-warm-up"]);
    assert_eq!(run.code, 0, "{}{}", run.stdout, run.stderr);
    assert!(
        run.stdout
            .starts_with("formats: Does the format matter?\n6 rounds, seed 1"),
        "{}",
        run.stdout
    );
    assert!(run.stderr.contains("round 6 of 6"), "{}", run.stderr);
    assert_eq!(names(place.path()), ["out", "plan.yaml"]);
    assert_eq!(
        names(&place.path().join("out")),
        [
            "facts.json",
            "journal.jsonl",
            "report.html",
            "report.md",
            "result.json",
            "run.json",
            "samples",
            "samples.csv"
        ]
    );
    // The report can be written again, of the directory and of the result alike.
    for run_of in ["out", "out/result.json"] {
        let again = vmdisk(place.path(), &["bench", "report", run_of]);
        assert_eq!(again.stdout, run.stdout);
    }
    // It replaces nothing of the run.
    for name in ["out/result.json", "out/samples/round-001-cell-000.json"] {
        let before = std::fs::read(place.path().join(name)).unwrap();
        let refused = vmdisk(place.path(), &["bench", "report", "out", "-o", name]);
        assert_eq!(refused.code, 2, "{}", refused.stderr);
        assert_eq!(std::fs::read(place.path().join(name)).unwrap(), before);
    }
    let json = vmdisk(
        place.path(),
        &["bench", "report", "out", "--format", "json"],
    );
    let result: serde_json::Value = serde_json::from_str(&json.stdout).unwrap();
    assert_eq!(result["samples"].as_array().unwrap().len(), 12);
    let commands = &result["samples"][0]["measurement"]["commands"];
    assert!(
        commands.to_string().contains("qemu-storage-daemon"),
        "{commands}"
    );
    // Its facts are those that its header names.
    let facts = vmdisk(place.path(), &["facts", "check", "out/facts.json"]);
    assert_eq!(facts.code, 0, "{}", facts.stderr);

    let same = vmdisk(
        place.path(),
        &["bench", "compare", "out", "out/result.json"],
    );
    assert!(
        same.stdout.starts_with("studied: no difference"),
        "{}{}",
        same.stdout,
        same.stderr
    );
    let kernel = result["header"]["environment"]["kernel"].as_str().unwrap();
    let other = json.stdout.replace(kernel, "2.6.32");
    std::fs::write(place.path().join("kernel.json"), &other).unwrap();
    let one = vmdisk(place.path(), &["bench", "compare", "out", "kernel.json"]);
    assert_eq!(one.code, 0, "{}", one.stderr);
    assert!(
        one.stdout
            .starts_with(&format!("studied: kernel: {kernel} and 2.6.32\n")),
        "{}",
        one.stdout
    );
    let other = other.replace("\"size_bytes\": 16777216", "\"size_bytes\": 33554432");
    std::fs::write(place.path().join("two.json"), other).unwrap();
    let two = vmdisk(place.path(), &["bench", "compare", "out", "two.json"]);
    assert_eq!((two.code, two.stdout.as_str()), (2, ""));
    assert!(
        two.stderr.contains("not comparable: kernel: "),
        "{}",
        two.stderr
    );
    assert!(
        two.stderr.contains("; size of disks: 16 MiB and 32 MiB"),
        "{}",
        two.stderr
    );

    let second = bench(place.path(), "out", &[]);
    assert_eq!(second.code, 2);
    assert!(
        second.stderr.contains("it already exists"),
        "{}",
        second.stderr
    );
}

#[test]
fn what_does_not_fit_is_refused_before_anything_is_made() {
    let place = place();
    for (more, why) in [
        (
            vec!["--size", "3G"],
            "the images need 9.0 GiB at once, but `--space-budget` allows 5.0 GiB",
        ),
        (vec!["--seconds", "100"], "6 rounds take about"),
        (
            vec!["--size", "12345"],
            "expected a multiple of 4 KiB of at least 1 MiB",
        ),
        (vec!["--directory", "nowhere"], "not a directory"),
    ] {
        let run = bench(place.path(), "out", &more);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
        // Where the program is missing there is nothing to measure, which is refused too.
        let is_missing = run.stderr.contains("no configuration can be measured here");
        assert!(
            run.stderr.contains(why) || (is_missing && !has_programs()),
            "{}",
            run.stderr
        );
    }
    assert_eq!(names(place.path()), ["plan.yaml"]);
}

#[test]
fn a_directory_with_files_of_the_user_is_never_written_into() {
    let place = place();
    let mine = place.path().join("precious");
    std::fs::create_dir(&mine).unwrap();
    let files = ["result.json", "report.md", "samples.csv", "facts.json"];
    for file in files {
        std::fs::write(mine.join(file), "mine").unwrap();
    }
    let run = bench(place.path(), "precious", &[]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    let is_missing = run.stderr.contains("nothing to compare");
    assert!(
        run.stderr.contains("it already exists") || (is_missing && !has_programs()),
        "{}",
        run.stderr
    );
    for file in files {
        assert_eq!(
            std::fs::read_to_string(mine.join(file)).unwrap(),
            "mine",
            "{file}"
        );
    }
    assert_eq!(names(&mine).len(), files.len());
}

#[test]
fn a_run_with_nothing_to_compare_is_refused_with_what_was_left_out() {
    let place = tempfile::tempdir().unwrap();
    let text = PLAN
        .replace(
            "engine: storage-daemon, cache: none, aio: threads",
            "engine: host-fio",
        )
        .replace(
            "matrix: {format: [raw, qcow2]}",
            "configurations: [{name: raw, format: raw}, {name: qcow2, format: qcow2}]",
        )
        .replace("baseline: {format: raw}", "baseline: {name: raw}");
    std::fs::write(place.path().join("plan.yaml"), text).unwrap();
    let run = bench(place.path(), "out", &[]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{}", run.stderr);
    assert!(
        run.stderr
            .contains("qcow2: host-fio does not use format=qcow2"),
        "{}",
        run.stderr
    );
    assert!(run.stderr.contains("nothing to compare"), "{}", run.stderr);
    let dry = bench(place.path(), "out", &["--dry-run"]);
    assert_eq!(dry.code, 2, "{}", dry.stderr);
    assert!(dry.stderr.contains("nothing to compare"), "{}", dry.stderr);
    assert!(!dry.stdout.is_empty(), "the plan is printed");
    assert_eq!(names(place.path()), ["plan.yaml"]);
}

#[test]
fn a_run_that_gets_the_same_signal_twice_cleans_up() {
    let name = "a_run_that_gets_the_same_signal_twice_cleans_up";
    if !real(
        has_programs(),
        name,
        "qemu-img, qemu-storage-daemon and fio",
    ) {
        return;
    }
    let place = place();
    let child = start(place.path());
    signal(&child, "-TERM");
    signal(&child, "-TERM");
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(names(place.path()), ["out", "plan.yaml"]);
    assert!(place.path().join("out/report.md").exists());
}

/// Starts a long run and waits for its first samples.
fn start(place: &Path) -> Child {
    let arguments = [
        "bench",
        "run",
        "--plan",
        "plan.yaml",
        "--noisy",
        "--output",
        "out",
        "--seed",
        "2",
        "--to-facts",
        "host.json",
    ];
    let child = Command::new(VMDISK)
        .args(arguments)
        .args(["--rounds", "8", "--seconds", "0.3"])
        .current_dir(place)
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let journal = place.join("out/journal.jsonl");
    let began = Instant::now();
    let has_samples = || {
        let text = std::fs::read_to_string(&journal).unwrap_or_default();
        text.matches("\"entry\":\"sample\"").count() >= 3
    };
    while !has_samples() {
        assert!(began.elapsed() < Duration::from_secs(120), "no sample came");
        std::thread::sleep(Duration::from_millis(50));
    }
    child
}

fn signal(child: &Child, signal: &str) {
    let status = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn a_run_that_is_interrupted_keeps_its_samples_and_goes_on() {
    let name = "a_run_that_is_interrupted_keeps_its_samples_and_goes_on";
    if !real(
        has_programs(),
        name,
        "qemu-img, qemu-storage-daemon and fio",
    ) {
        return;
    }
    let place = place();
    let child = start(place.path());
    signal(&child, "-INT");
    let output = child.wait_with_output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(
        stderr.contains("cancelled; the samples are kept"),
        "{stderr}"
    );
    assert!(
        stderr.contains("resume it with `vmdisk bench resume out`"),
        "{stderr}"
    );
    assert_eq!(names(place.path()), ["out", "plan.yaml"]);
    let report = vmdisk(place.path(), &["bench", "report", "out"]);
    assert!(
        report
            .stdout
            .contains("the run was stopped; it can be resumed"),
        "{}",
        report.stdout
    );

    let resumed = vmdisk(place.path(), &["bench", "resume", "out", "--noisy"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert!(
        resumed.stdout.contains("\n8 rounds, seed 2"),
        "{}",
        resumed.stdout
    );
    assert!(
        !resumed.stdout.contains("it can be resumed"),
        "{}",
        resumed.stdout
    );
    // What was asked of the run is done when it is complete.
    assert!(
        resumed
            .stderr
            .contains("wrote 2 figures of 2 configurations to "),
        "{}",
        resumed.stderr
    );
    assert_eq!(names(place.path()), ["host.json", "out", "plan.yaml"]);
}

#[test]
fn a_run_that_is_killed_leaves_a_journal_and_the_next_start_takes_its_images_away() {
    let name = "a_run_that_is_killed_leaves_a_journal_and_the_next_start_takes_its_images_away";
    if !real(
        has_programs(),
        name,
        "qemu-img, qemu-storage-daemon and fio",
    ) {
        return;
    }
    let place = place();
    let mut child = start(place.path());
    signal(&child, "-KILL");
    child.wait().unwrap();
    let report = vmdisk(place.path(), &["bench", "report", "out"]);
    assert!(
        report
            .stdout
            .contains("is still in progress or was interrupted"),
        "{}",
        report.stdout
    );
    let resumed = vmdisk(place.path(), &["bench", "resume", "out", "--noisy"]);
    assert_eq!(resumed.code, 0, "{}", resumed.stderr);
    assert_eq!(names(place.path()), ["host.json", "out", "plan.yaml"]);
}

#[test]
fn every_preset_says_what_it_would_do_and_leave_out() {
    let place = tempfile::tempdir().unwrap();
    let presets = vmdisk(place.path(), &["bench", "presets"]);
    let names_of: Vec<&str> = presets
        .stdout
        .lines()
        .take_while(|line| !line.is_empty())
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(names_of.len(), 16);
    let guest = "<domain><devices><disk type='file'><driver name='qemu' type='qcow2' cache='directsync'/>\
                 <source file='/srv/a'/><target dev='vda' bus='virtio'/></disk></devices></domain>";
    std::fs::write(place.path().join("guest.xml"), guest).unwrap();
    for preset in names_of {
        let mut arguments = vec!["bench", "run", preset, "--dry-run"];
        if preset.starts_with("raid1-") {
            arguments.extend(["--directory", ".", "--directory", "/"]);
        }
        if preset == "lint" {
            arguments.extend(["--domain", "guest.xml"]);
        }
        let run = vmdisk(place.path(), &arguments);
        // A plan that this host refuses ends as its run does.
        let code = 2 * i32::from(run.stderr.contains("error: "));
        assert_eq!(run.code, code, "{preset}: {}", run.stderr);
        assert!(
            run.stdout.contains("rounds, about"),
            "{preset}: {}",
            run.stdout
        );
        if preset == "lint" {
            assert!(
                run.stdout.contains("cache-writethrough-vda-before"),
                "{}",
                run.stdout
            );
        }
    }
    assert_eq!(names(place.path()), ["guest.xml"]);
    let unknown = vmdisk(place.path(), &["bench", "run", "cache-mode"]);
    assert!(
        unknown.stderr.contains("did you mean `cache-modes`?"),
        "{}",
        unknown.stderr
    );
    let not_speed = vmdisk(
        place.path(),
        &["bench", "verify", "cache-unsafe", "--dry-run"],
    );
    assert!(
        not_speed.stderr.contains("cache-unsafe is not about speed"),
        "{}",
        not_speed.stderr
    );
}

/// The process or thread of a line of strace.
pub(crate) fn process_of(line: &str) -> &str {
    line.split_whitespace().next().unwrap_or_default()
}

/// The processes that run another program than the traced one.
pub(crate) fn programs_of(calls: &str) -> BTreeSet<&str> {
    let started = calls.lines().filter(|line| line.contains("execve("));
    started.skip(1).map(process_of).collect()
}
