//! A vhost-user disk with both of its halves written by us: a guest writes and calls fsync, and the daemon's
//! fdatasyncs are counted. With the defaults of both halves there are none, and the linter says so.

// A helper of a test fails like the test itself.
#![allow(clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk::facts::Facts;
use vmdisk::model::{BackendSource, Domain, DomainType, Switch};
use vmdisk::plan::{DiskSpec, GuestSpec, Spec, plan};
use vmdisk::write::{self, CommandLine, QemuOptions};
use vmdisk::{LintOptions, Severity, lint, read_bytes};
use vmdisk_tests::{QemuBuild, guest, has_program, on_each_qemu, real};

/// Writes with an fsync after each.
const WRITES: usize = 100;

/// Longest wait for the guest, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(120);

/// A process that ends with this value.
struct Process(Child);

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// What came of a guest's writes.
#[derive(Debug)]
struct Outcome {
    /// How the guest saw the disk's cache.
    cache: String,
    /// How often the daemon called fdatasync.
    flushes: usize,
}

/// The guest that the planner makes of a socket and an image behind it, as large as this test needs.
fn planned(folder: &Path, build: &QemuBuild) -> Domain {
    let socket = folder.join("vub.sock");
    let image = folder.join("served.raw");
    let line = format!(
        "vhost-user-blk:{},serves.path={},serves.format=raw,queues=1",
        socket.display(),
        image.display()
    );
    let spec = Spec {
        guest: Some(GuestSpec {
            memory: Some(vmdisk::model::Bytes(128 << 20)),
            ..GuestSpec::default()
        }),
        ..Spec::new(vec![DiskSpec::from_one_liner(&line).unwrap()])
    };
    let mut domain = plan(&spec, &Facts::default(), &build.target())
        .unwrap()
        .domain;
    // Emulated, so that it runs anywhere.
    domain.domain_type = Some(DomainType::Qemu);
    domain
}

fn written(domain: &Domain, build: &QemuBuild) -> CommandLine {
    let options = QemuOptions {
        target: build.target(),
    };
    write::qemu_command_line(domain, &options).unwrap()
}

/// How severely the linter takes the pair, read from the text that starts it.
fn reported(line: &CommandLine) -> Option<Severity> {
    let text = line.to_shell();
    let document =
        read_bytes(text.as_bytes()).unwrap_or_else(|failure| panic!("{failure:?}\n{text}"));
    lint(&document, &LintOptions::default())
        .diagnostics
        .iter()
        .find(|diagnostic| diagnostic.rule.name == "vhost-user-flushes-lost")
        .map(|diagnostic| diagnostic.severity)
}

/// Starts both halves, lets the guest write, and counts.
fn run(
    build: &QemuBuild,
    folder: &Path,
    line: &CommandLine,
    guest: &(PathBuf, PathBuf),
) -> Outcome {
    std::fs::File::create(folder.join("served.raw"))
        .unwrap()
        .set_len(16 << 20)
        .unwrap();
    let [daemon] = line.daemons.as_slice() else {
        panic!("{line:?}");
    };
    let socket = Path::new(&daemon.socket);
    let _ = std::fs::remove_file(socket);
    let trace = folder.join("trace");
    let words = daemon.argv();
    let mut process = Process(
        Command::new("strace")
            // The tracer stands aside, so that the child is the daemon and ends with it.
            .args(["-D", "-f", "-qq", "-e", "trace=fdatasync,fsync", "-o"])
            .arg(&trace)
            .arg(build.program("qemu-storage-daemon"))
            .args(&words[1..])
            .stdin(Stdio::null())
            .spawn()
            .unwrap(),
    );
    let begun = Instant::now();
    while !socket.exists() {
        assert_eq!(
            process.0.try_wait().unwrap(),
            None,
            "the daemon ended: {words:?}"
        );
        assert!(begun.elapsed() < PATIENCE, "the daemon does not listen");
        std::thread::sleep(Duration::from_millis(10));
    }
    let console = folder.join("console");
    let words = line.argv();
    let append =
        format!("console=ttyS0 quiet panic=-1 loglevel=3 no_timer_check vmdisk.count={WRITES}");
    let mut qemu = Process(
        Command::new(build.emulator())
            .args(&words[1..])
            .args([
                "-display",
                "none",
                "-no-reboot",
                "-cpu",
                "max",
                "-append",
                &append,
            ])
            .arg("-kernel")
            .arg(&guest.0)
            .arg("-initrd")
            .arg(&guest.1)
            .arg("-serial")
            .arg(format!("file:{}", console.display()))
            .stdin(Stdio::null())
            .stderr(std::fs::File::create(folder.join("errors")).unwrap())
            .spawn()
            .unwrap(),
    );
    let said =
        || String::from_utf8_lossy(&std::fs::read(&console).unwrap_or_default()).into_owned();
    let errors = || std::fs::read_to_string(folder.join("errors")).unwrap_or_default();
    while qemu.0.try_wait().unwrap().is_none() {
        assert!(
            begun.elapsed() < PATIENCE,
            "the guest is not done: {}\n{}",
            said(),
            errors()
        );
        std::thread::sleep(Duration::from_millis(20));
    }
    // The trace is whole before the daemon is gone: what it flushes at its end is not the guest's.
    let flushes = std::fs::read_to_string(&trace)
        .unwrap()
        .lines()
        .filter(|line| line.contains("sync("))
        .count();
    drop(process);
    let said = said();
    assert!(
        said.contains(&format!("LAB end {WRITES}")) && !said.contains("LAB failed"),
        "{said}\n{}",
        errors()
    );
    let cache = said
        .lines()
        .find_map(|line| line.trim().strip_prefix("LAB cache "))
        .unwrap();
    Outcome {
        cache: cache.to_owned(),
        flushes,
    }
}

#[test]
fn the_flushes_of_a_guest_reach_the_file_through_both_halves_that_we_write_and_not_through_the_defaults()
 {
    let test = "vhost-user flushes";
    let guest = guest();
    if !real(
        guest.is_some() && has_program("strace"),
        test,
        "a guest (cargo xtask guest) and strace",
    ) {
        return;
    }
    let guest = guest.unwrap();
    on_each_qemu(test, |build| {
        let folder = tempfile::tempdir().unwrap();
        let domain = planned(folder.path(), build);
        let ours = written(&domain, build);
        assert_eq!(reported(&ours), None, "{}", ours.to_shell());
        let outcome = run(build, folder.path(), &ours, &guest);
        assert_eq!(outcome.cache, "write back");
        assert!(outcome.flushes >= WRITES, "{outcome:?}");

        // The same without what we add: both halves as they come.
        let mut defaults = domain.clone();
        for disk in &mut defaults.disks {
            let BackendSource::VhostUser(socket) = &mut disk.backend.source else {
                panic!("{disk:?}");
            };
            assert_eq!(socket.config_wce.take(), Some(Switch::Off));
        }
        let line = written(&defaults, build);
        assert_eq!(
            reported(&line),
            Some(Severity::Error),
            "{}",
            line.to_shell()
        );
        let outcome = run(build, folder.path(), &line, &guest);
        assert_eq!(outcome.cache, "write through");
        assert!(outcome.flushes <= 1, "{outcome:?}");
    });
}
