//! Runs that are killed or stopped at any point: no program goes on, no setting stays changed, nothing is left behind.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk_testing::LoopDevice;
use vmdisk_tests::{has_program, real, run_in};

use crate::VMDISK;
use crate::bench_command::{process_of, programs_of};

/// A loop device over a file in a directory of its own, marked for benchmarks.
struct Marked {
    device: LoopDevice,
    directory: tempfile::TempDir,
}

impl Marked {
    fn new() -> Option<Self> {
        // Runs of other tests revert what a killed run left behind.
        vmdisk_testing::with_own_folder(Path::new("/run/vmdisk-bench")).ok()?;
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("scratch.img");
        let marked = Self {
            device: LoopDevice::new(&file, 64 << 20, &[]).ok()?,
            directory,
        };
        let serial = marked.serial();
        let said = run_in(
            marked.directory.path(),
            VMDISK,
            &["bench", "prepare-device", marked.device.path()],
            &format!("{serial}\n"),
        );
        assert_eq!(said.code, 0, "{}", said.stderr);
        Some(marked)
    }

    fn serial(&self) -> String {
        let file = fs::canonicalize(self.directory.path().join("scratch.img")).unwrap();
        file.to_str().unwrap().to_owned()
    }

    fn setting(&self, name: &str) -> String {
        let device = self.device.path().trim_start_matches("/dev/");
        fs::read_to_string(format!("/sys/block/{device}/queue/{name}"))
            .unwrap()
            .trim()
            .to_owned()
    }

    fn arguments(&self, output: &str) -> Vec<String> {
        [
            "bench",
            "run",
            "schedulers",
            "--destroy-data-on",
            self.device.path(),
            "--confirm-serial",
            &self.serial(),
            "--size",
            "16M",
            "--seconds",
            "0.2",
            "--rounds",
            "6",
            "--noisy",
            "--output",
            output,
        ]
        .map(str::to_owned)
        .into()
    }

    fn start(&self, output: &str) -> Child {
        Command::new(VMDISK)
            .args(self.arguments(output))
            .current_dir(self.directory.path())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap()
    }

    /// The next start, which measures nothing: its output is there already.
    fn start_again(&self) {
        let output = self.directory.path().join("out-there");
        fs::create_dir_all(&output).unwrap();
        fs::write(output.join("journal.jsonl"), "").unwrap();
        let arguments = self.arguments("out-there");
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = run_in(self.directory.path(), VMDISK, &arguments, "");
        assert_eq!(said.code, 2, "{}", said.stderr);
    }

    /// A run that only says what it would do.
    fn dry_run(&self) {
        let mut arguments = self.arguments("unused");
        arguments.push("--dry-run".to_owned());
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let said = run_in(self.directory.path(), VMDISK, &arguments, "");
        assert_eq!(said.code, 0, "{}", said.stderr);
    }

    /// What is in the directory beside the device's file and what the run was told to write.
    fn strays(&self) -> Vec<String> {
        fs::read_dir(self.directory.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().to_string_lossy().into_owned())
            .filter(|name| name != "scratch.img" && !name.starts_with("out"))
            .collect()
    }
}

/// The processes that work in a directory or whose command line names it, such as fio and its run.
fn processes(directory: &Path) -> Vec<String> {
    let named = directory.to_str().unwrap();
    fs::read_dir("/proc")
        .unwrap()
        .flatten()
        .filter_map(|entry| {
            let line = fs::read(entry.path().join("cmdline")).ok()?;
            let line = String::from_utf8_lossy(&line).replace('\0', " ");
            let place = fs::read_link(entry.path().join("cwd")).unwrap_or_default();
            // The test itself works elsewhere, and what has ended has no command line.
            let is_there = line.contains(named) || place.starts_with(directory);
            (is_there && !line.is_empty()).then_some(line)
        })
        .collect()
}

#[track_caller]
fn nobody_goes_on(directory: &Path) {
    let until = Instant::now() + Duration::from_secs(5);
    while !processes(directory).is_empty() {
        assert!(Instant::now() < until, "{:?}", processes(directory));
        std::thread::sleep(Duration::from_millis(20));
    }
    // A process that ends has no command line before it closes its files, and the next start leaves a locked journal alone.
    while journals().any(|journal| is_locked(&journal)) {
        assert!(Instant::now() < until, "a journal is locked");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn journals() -> impl Iterator<Item = PathBuf> {
    let entries = fs::read_dir("/run/vmdisk-bench").into_iter().flatten();
    entries.flatten().map(|entry| entry.path())
}

fn is_locked(journal: &Path) -> bool {
    let tried = Command::new("flock")
        .arg("-n")
        .arg(journal)
        .arg("true")
        .status();
    journal.exists() && !tried.unwrap().success()
}

#[test]
fn a_run_that_is_killed_at_any_point_leaves_nothing_changed_after_the_next_start() {
    let test = "a_run_that_is_killed_at_any_point";
    if !real(has_program("fio"), test, "fio") {
        return;
    }
    let marked = Marked::new();
    if !real(marked.is_some(), test, "root and loop devices") {
        return;
    }
    let marked = marked.unwrap();
    let names = ["scheduler", "nr_requests", "wbt_lat_usec"];
    let before = names.map(|name| marked.setting(name));
    // The same points in every run, from the first moments to the middle of measuring.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let (mut changed, mut measured) = (0, 0);
    for point in 0..5_u64 {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        let mut child = marked.start(&format!("out-{point}"));
        if point == 0 {
            std::thread::sleep(Duration::from_millis(state % 500));
        } else {
            // After the first change, so that there is something to revert.
            let until = Instant::now() + Duration::from_secs(60);
            while marked.setting("scheduler") == before[0] && Instant::now() < until {
                std::thread::sleep(Duration::from_millis(1));
            }
            std::thread::sleep(Duration::from_millis(state % 900));
        }
        let is_measured = || {
            let running = processes(marked.directory.path());
            running.iter().any(|line| line.starts_with("fio "))
        };
        // One kill comes while fio measures, at any load of the machine.
        let until = Instant::now() + Duration::from_secs(60);
        while point == 4 && !is_measured() && Instant::now() < until {
            std::thread::sleep(Duration::from_millis(1));
        }
        measured += u32::from(is_measured());
        child.kill().unwrap();
        child.wait().unwrap();
        let left = names.map(|name| marked.setting(name));
        changed += u32::from(left[0] != before[0]);
        nobody_goes_on(marked.directory.path());
        let strays = marked.strays();
        marked.dry_run();
        assert_eq!(names.map(|name| marked.setting(name)), left);
        assert_eq!(marked.strays(), strays, "a dry run changes nothing");
        marked.start_again();
        assert_eq!(
            names.map(|name| marked.setting(name)),
            before,
            "point {point}"
        );
        assert_eq!(marked.strays(), Vec::<String>::new(), "point {point}");
    }
    assert!(changed > 0, "no kill came while something was changed");
    assert!(measured > 0, "no kill came while fio measured");
}

#[test]
fn no_program_of_a_run_is_given_the_path_of_its_device() {
    let test = "no_program_of_a_run_is_given_the_path";
    let programs = ["fio", "strace", "qemu-storage-daemon"];
    if !real(
        programs.into_iter().all(has_program),
        test,
        "fio, strace and qemu-storage-daemon",
    ) {
        return;
    }
    let marked = Marked::new();
    if !real(marked.is_some(), test, "root and loop devices") {
        return;
    }
    let marked = marked.unwrap();
    let folder = marked.directory.path();
    let link = folder.join("the-given-name");
    std::os::unix::fs::symlink(marked.device.path(), &link).unwrap();
    for engine in ["host-fio", "storage-daemon"] {
        let plan = format!(
            "version: 1\nname: t\nquestion: q\nsize: 8M\nseconds: 0.1\nramp: 0\nphases: [steady]\n\
             workloads: [4k-random-write-qd1]\nfixed: {{engine: {engine}, backend: device}}\n\
             matrix:\n  scheduler: [none, mq-deadline]\n"
        );
        fs::write(folder.join("plan.yaml"), plan).unwrap();
        let (calls, output) = (format!("calls-{engine}"), format!("out-{engine}"));
        let mut words = vec!["-f", "-s", "4096", "-o", &calls];
        words.extend(["-e", "trace=execve,open,openat,openat2", VMDISK]);
        words.extend(["bench", "run", "--plan", "plan.yaml"]);
        let (link, serial) = (link.to_str().unwrap(), marked.serial());
        words.extend(["--destroy-data-on", link, "--confirm-serial", &serial]);
        words.extend(["--rounds", "1", "--no-warm-up", "--noisy"]);
        words.extend(["--output", &output]);
        let run = run_in(folder, "strace", &words, "");
        assert_eq!(run.code, 0, "{}", run.stderr);
        let calls = fs::read_to_string(folder.join(calls)).unwrap();
        let started = calls.lines().filter(|line| line.contains("execve("));
        assert!(started.count() > 1, "{engine}: {calls}");
        let programs = programs_of(&calls);
        for line in calls
            .lines()
            .filter(|line| programs.contains(process_of(line)))
        {
            for path in [link, marked.device.path()] {
                assert!(!line.contains(&format!("{path}\"")), "{engine}: {line}");
            }
        }
    }
}

#[test]
fn a_run_that_is_stopped_sets_back_what_it_changed_by_itself() {
    let test = "a_run_that_is_stopped";
    if !real(has_program("fio"), test, "fio") {
        return;
    }
    let marked = Marked::new();
    if !real(marked.is_some(), test, "root and loop devices") {
        return;
    }
    let marked = marked.unwrap();
    let before = marked.setting("scheduler");
    let mut child = marked.start("out");
    let until = Instant::now() + Duration::from_secs(60);
    while marked.setting("scheduler") == before && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(1));
    }
    let interrupt = Command::new("kill")
        .args(["-INT", &child.id().to_string()])
        .status();
    assert!(interrupt.unwrap().success());
    let status = child.wait().unwrap();
    assert_eq!(status.code(), Some(2));
    assert_eq!(marked.setting("scheduler"), before);
    nobody_goes_on(marked.directory.path());
    assert_eq!(marked.strays(), Vec::<String>::new());
}
