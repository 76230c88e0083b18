//! What a host denies: rings of io_uring, and slots for Linux AIO.

use std::process::{Command, Output, Stdio};

use vmdisk::Severity;
use vmdisk::facts::{Fact, Version};
use vmdisk_tests::{QemuBuild, has_program, on_each_qemu, real};

use crate::row::{reported_on, words};
use crate::setting::Setting;

/// Starts a QEMU whose kernel answers a system call with an error; its first read is asked for over its monitor.
fn start_denied(qemu: &QemuBuild, words: &[String], call: &str, error: &str) -> (Output, String) {
    let trace = tempfile::NamedTempFile::new().unwrap();
    let mut child = Command::new("strace")
        .args(["-f", "-qq", "-o"])
        .arg(trace.path())
        .args(["-e", &format!("trace={call},io_submit,io_uring_enter")])
        .args(["-e", &format!("inject={call}:error={error}")])
        .arg(qemu.emulator())
        .args(["-S", "-display", "none", "-no-user-config", "-accel", "tcg"])
        .args(["-monitor", "stdio"])
        .args(words)
        .env("LC_ALL", "C")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut monitor = child.stdin.take().expect("it was piped");
    // A QEMU that has ended reads nothing.
    let _ = std::io::Write::write_all(&mut monitor, b"qemu-io f0 \"read 0 4k\"\nquit\n");
    drop(monitor);
    let output = child.wait_with_output().unwrap();
    let trace = std::fs::read_to_string(trace.path()).unwrap();
    (output, trace)
}

/// Nodes with the device that the linter wants to see; qemu-io wants them without.
fn with_device(nodes: &str) -> String {
    format!("{nodes} -device virtio-blk-pci,drive=f0,id=vda")
}

#[test]
fn a_denied_ring_ends_a_qemu_or_leaves_it_to_threads_as_the_rule_says() {
    let test = "denied io_uring";
    if !real(has_program("strace"), test, "strace") {
        return;
    }
    let Some(setting) = Setting::new(test) else {
        return;
    };
    let mut facts = setting.facts().clone();
    facts.limits.io_uring_disabled = Fact::Known(2);
    let nodes = "-blockdev driver=file,node-name=f0,filename={a.raw},aio=io_uring";
    let (nodes, words) = (words(nodes, &setting), words(&with_device(nodes), &setting));
    on_each_qemu(test, |qemu| {
        let (output, trace) = start_denied(qemu, &nodes, "io_uring_setup", "EPERM");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        // Its own event loop takes a ring where it gets one, and says nothing where it does not.
        assert!(!trace.contains("io_uring_enter"), "{trace}");
        let found = reported_on("io-uring-disabled", qemu, &words, &facts);
        if qemu.name == "10.0" {
            assert!(output.status.success(), "{said}");
            assert!(said.contains("falling back to thread pool"), "{said}");
            assert_eq!(found, Some(Severity::Warning));
        } else {
            let says = if qemu.version < Version(10, 0, 0) {
                "Unable to use io_uring: failed to init linux io_uring ring"
            } else {
                "aio=io_uring was specified, but is not available"
            };
            assert!(!output.status.success() && said.contains(says), "{said}");
            assert_eq!(found, Some(Severity::Error));
        }
    });
}

#[test]
fn slots_for_linux_aio_that_the_host_has_not_are_reported() {
    let test = "denied Linux AIO";
    if !real(has_program("strace"), test, "strace") {
        return;
    }
    let Some(setting) = Setting::new(test) else {
        return;
    };
    let nodes = "-blockdev driver=file,node-name=f0,filename={a.raw},aio=native,cache.direct=on";
    let (nodes, words) = (words(nodes, &setting), words(&with_device(nodes), &setting));
    on_each_qemu(test, |qemu| {
        let mut facts = setting.facts().clone();
        facts.limits.aio_max_nr = Fact::Known(65536);
        let rule = "aio-slots-exhausted";
        assert_eq!(reported_on(rule, qemu, &words, &facts), None);
        facts.limits.aio_max_nr = Fact::Known(1000);
        let severity = if qemu.version < Version(10, 0, 0) {
            Severity::Error
        } else {
            Severity::Warning
        };
        assert_eq!(reported_on(rule, qemu, &words, &facts), Some(severity));

        let (output, trace) = start_denied(qemu, &nodes, "io_setup", "EAGAIN");
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(trace.contains("io_setup(1024"), "{trace}");
        // 10.0 asks the kernel what it can, and submits nothing else.
        assert!(!trace.contains("IOCB_CMD_PREAD"), "{trace}");
        if qemu.version < Version(10, 0, 0) {
            assert!(!output.status.success(), "{said}");
            assert!(said.contains("Unable to use native AIO"), "{said}");
        } else {
            assert!(output.status.success(), "{said}");
            assert!(said.contains("falling back to thread pool"), "{said}");
        }
    });
}
