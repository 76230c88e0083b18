//! A vhost-user disk whose guest's memory the daemon cannot see: its driver starts the disk, and nothing is read.

use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vmdisk::facts::Version;
use vmdisk::{LintOptions, lint, read_bytes};
use vmdisk_qmp::{Launch, QemuProcess};
use vmdisk_tests::{QemuBuild, has_program, on_each_qemu, real};

use crate::row::{as_shell, refusal, reported, words};
use crate::setting::Setting;

/// Longest wait for the firmware to start the disk, on a busy machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// How long the firmware of a machine without shared memory is watched, if it starts the disk and nothing is said.
const SILENCE: Duration = Duration::from_secs(3);

/// A storage daemon that serves `a.raw`, with its reads in a file.
struct Daemon(Child);

impl Drop for Daemon {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

impl Daemon {
    /// What it is started with.
    fn words(queues: u32) -> [String; 4] {
        let export =
            "type=vhost-user-blk,id=e0,node-name=f0,addr.type=unix,addr.path=vub.sock,writable=on";
        [
            "--blockdev".to_owned(),
            "driver=file,node-name=f0,filename=a.raw".to_owned(),
            "--export".to_owned(),
            format!("{export},num-queues={queues}"),
        ]
    }

    fn start(qemu: &QemuBuild, setting: &Setting, queues: u32) -> Self {
        let socket = setting.folder().join("vub.sock");
        for left in [&socket, &trace(setting)] {
            let _ = std::fs::remove_file(left);
        }
        let child = Command::new("strace")
            // The tracer stands aside, so that the child is the daemon and ends with it.
            .args([
                "-D",
                "-f",
                "-qq",
                "-e",
                "trace=pread64,preadv,preadv2",
                "-o",
            ])
            .arg(trace(setting))
            .arg(qemu.program("qemu-storage-daemon"))
            .args(Self::words(queues))
            .current_dir(setting.folder())
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut daemon = Daemon(child);
        let begun = Instant::now();
        while !socket.exists() {
            assert_eq!(daemon.0.try_wait().unwrap(), None, "the daemon ended");
            assert!(begun.elapsed() < PATIENCE, "the daemon does not listen");
            std::thread::sleep(Duration::from_millis(5));
        }
        daemon
    }
}

fn trace(setting: &Setting) -> std::path::PathBuf {
    setting.folder().join("trace")
}

/// Reads of a boot sector by the guest's firmware.
fn reads(setting: &Setting) -> usize {
    let text = std::fs::read_to_string(trace(setting)).unwrap_or_default();
    text.lines().filter(|line| line.contains("pread")).count()
}

fn start(qemu: &QemuBuild, options: &str, setting: &Setting) -> QemuProcess {
    Launch::running(qemu.emulator())
        .args(["-display", "none", "-no-user-config", "-accel", "tcg"])
        .args(words(options, setting))
        .in_folder(setting.folder())
        .start()
        .unwrap_or_else(|error| panic!("{options}: {error}"))
}

#[test]
fn a_daemon_that_cannot_see_the_guests_memory_reads_nothing_for_it() {
    let test = "vhost-user without shared memory";
    if !real(has_program("strace"), test, "strace") {
        return;
    }
    let Some(setting) = Setting::new(test) else {
        return;
    };
    let device = "-chardev socket,id=c0,path=vub.sock -device vhost-user-blk-pci,chardev=c0,id=vda,num-queues=1,bootindex=1";
    let memory = |share: &str| {
        format!(
            "-machine q35,memory-backend=m0 -m 128 -object memory-backend-memfd,id=m0,size=128M,share={share} {device}"
        )
    };
    on_each_qemu(test, |qemu| {
        let rule = "vhost-user-needs-shared-mem";
        let shared = memory("on");
        let daemon = Daemon::start(qemu, &setting, 1);
        let before = reads(&setting);
        let begun = Instant::now();
        let guest = start(qemu, &shared, &setting);
        while reads(&setting) == before {
            assert!(
                begun.elapsed() < PATIENCE,
                "nothing is read: {}",
                guest.stderr()
            );
            std::thread::sleep(Duration::from_millis(10));
        }
        assert_eq!(
            reported(rule, qemu, &words(&shared, &setting), &setting),
            None
        );
        drop((guest, daemon));

        for (options, says_so) in [
            (format!("-m 128 {device}"), true),
            (memory("off"), qemu.version >= Version(11, 1, 0)),
        ] {
            let words = words(&options, &setting);
            assert!(
                reported(rule, qemu, &words, &setting).is_some(),
                "{options}"
            );
            let daemon = Daemon::start(qemu, &setting, 1);
            let before = reads(&setting);
            let begun = Instant::now();
            let guest = start(qemu, &options, &setting);
            while begun.elapsed() < SILENCE && !guest.stderr().contains("vhost") {
                std::thread::sleep(Duration::from_millis(10));
            }
            let said = guest.stderr();
            assert_eq!(said.contains("vhost"), says_so, "{options}: {said}");
            assert_eq!(reads(&setting), before, "{options}");
            drop((guest, daemon));
        }
    });
}

#[test]
fn more_queues_than_the_daemon_has_are_refused_and_reported() {
    let test = "queues of a daemon";
    if !real(has_program("strace"), test, "strace") {
        return;
    }
    let Some(setting) = Setting::new(test) else {
        return;
    };
    let device = "-m 128 -smp 4 -object memory-backend-memfd,id=m0,size=128M,share=on -machine q35,memory-backend=m0 \
                  -chardev socket,id=c0,path=vub.sock -device vhost-user-blk-pci,chardev=c0,id=vda,config-wce=off";
    let fewer = format!("{device},num-queues=2");
    // Each QEMU as the one that is asked, and the daemon beside it in one text.
    let found = |qemu: &QemuBuild, options: &str| {
        let guest = as_shell(&words(options, &setting));
        let text = format!(
            "qemu-storage-daemon {} &\n\n{guest}",
            Daemon::words(2).join(" ")
        );
        let options = LintOptions::default().target(qemu.target());
        let report = lint(&read_bytes(text.as_bytes()).unwrap(), &options);
        let mut found = report.diagnostics.iter();
        found.any(|diagnostic| diagnostic.rule.name == "queue-count-refused")
    };
    on_each_qemu(test, |qemu| {
        let daemon = Daemon::start(qemu, &setting, 2);
        assert!(found(qemu, device) && !found(qemu, &fewer));
        let said = refusal(qemu, &words(device, &setting), &setting);
        // 5.2 starts, and says so to nobody.
        let says = "The maximum number of queues supported by the backend is 2";
        let is_refused = said.as_ref().is_some_and(|said| said.contains(says));
        assert_eq!(is_refused, qemu.version >= Version(7, 2, 0), "{said:?}");
        drop(daemon);
        let daemon = Daemon::start(qemu, &setting, 2);
        assert_eq!(refusal(qemu, &words(&fewer, &setting), &setting), None);
        drop(daemon);
    });
}
