//! Starts the installed QEMU on what rules call refused, and holds their texts to the evidence.
//!
//! What libvirt refuses is tried in `tests/tests/real_libvirt`.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "tests make files and start programs, and say what they skip; the library does neither"
)]

use std::path::{Path, PathBuf};
use std::process::Command;

use vmdisk::rules::{Evidence, find};
use vmdisk_testing::{installed, needed};

/// What a program says when it refuses.
fn refusal(program: &str, arguments: &[&str], folder: &Path) -> String {
    let output = Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        !output.status.success(),
        "{program} {arguments:?} accepts it: {said}"
    );
    said
}

/// The texts that a rule quotes of a program.
fn quoted(rule: &str, program: &str) -> Vec<&'static str> {
    let rule = find(rule).unwrap_or_else(|| panic!("there is no rule {rule}"));
    let texts: Vec<&str> = rule
        .evidence
        .iter()
        .filter_map(|evidence| match evidence {
            Evidence::Refused { by, text, .. } if by.starts_with(program) => Some(*text),
            Evidence::Refused { .. }
            | Evidence::Measured { .. }
            | Evidence::Source(_)
            | Evidence::Cve(_)
            | Evidence::NotMeasuredHere(_) => None,
        })
        .collect();
    assert!(
        !texts.is_empty(),
        "{} quotes nothing of {program}",
        rule.name
    );
    texts
}

/// An empty folder for one test, with a raw image `a.img` in it.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("what an earlier run left can be removed");
    }
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let image = std::fs::File::create(folder.join("a.img")).expect("a file can be made");
    image.set_len(1 << 20).expect("it can grow");
    folder
}

#[test]
fn qemu_refuses_in_the_words_that_rules_quote() {
    if needed(installed("qemu-io")).is_none() {
        return;
    }
    let folder = folder("refused-by-qemu");
    let node = "driver=file,filename=a.img,node-name=f0,detect-zeroes=unmap";
    for (rule, program, arguments) in [
        (
            "native-without-direct",
            "qemu-io",
            &[
                "-f",
                "raw",
                "-i",
                "native",
                "-t",
                "writeback",
                "-c",
                "quit",
                "a.img",
            ][..],
        ),
        (
            "format-mismatch",
            "qemu-io",
            &["-f", "qcow2", "-c", "quit", "a.img"],
        ),
        (
            "detect-zeroes-unmap-no-discard",
            "qemu-storage-daemon",
            &["--blockdev", node],
        ),
        (
            "lun-on-virtio-blk",
            "qemu-system-x86_64",
            &[
                "-nodefaults",
                "-display",
                "none",
                "-blockdev",
                "driver=file,filename=a.img,node-name=f0",
                "-device",
                "virtio-blk-pci,drive=f0,scsi=on",
            ],
        ),
        (
            "machine-missing-in-qemu",
            "qemu-system-x86_64",
            &["-machine", "pc-q35-99.0"],
        ),
    ] {
        if needed(installed(program)).is_none() {
            continue;
        }
        let said = refusal(program, arguments, &folder);
        for text in quoted(rule, "QEMU") {
            assert!(
                said.contains(text),
                "{rule} quotes `{text}`, and {program} says: {said}"
            );
        }
    }
}

#[test]
fn qemu_refuses_o_direct_on_ramfs() {
    if needed(installed("qemu-io")).is_none() || needed(installed("unshare")).is_none() {
        return;
    }
    let folder = folder("refused-on-ramfs");
    // A mount namespace of its own, so that nothing is mounted on the machine.
    let namespace = ["--user", "--map-root-user", "--mount"];
    let mounted = "mkdir -p ram && mount -t ramfs none ram && cp a.img ram/";
    let overlay = "qemu-img create -q -f qcow2 -F raw -b $PWD/ram/a.img top.qcow2";
    let scripts = [
        format!("{mounted} && exec qemu-io -f raw -t none -c quit ram/a.img"),
        format!("{mounted} && {overlay} && exec qemu-io -f qcow2 -t none -c quit top.qcow2"),
    ];
    let may_mount = Command::new("unshare")
        .args(namespace)
        .args(["sh", "-c", "mkdir try && mount -t ramfs none try"])
        .current_dir(&folder)
        .output()
        .is_ok_and(|output| output.status.success());
    if !vmdisk_testing::is_given(may_mount, "a ramfs that can be mounted") {
        return;
    }
    for script in scripts {
        let arguments = [&namespace[..], &["sh", "-c", &script]].concat();
        let said = refusal("unshare", &arguments, &folder);
        for text in quoted("odirect-unsupported", "QEMU") {
            assert!(
                said.contains(text),
                "the rule quotes `{text}`, and QEMU says: {said}"
            );
        }
    }
}
