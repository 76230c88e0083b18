//! Starts the installed QEMU and libvirt on chains that rules call refused, and holds their texts to the evidence.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "tests make files and start programs, and say what they skip; the library does neither"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use vmdisk_rules::{Evidence, find};

/// Whether the programs are installed; without them the test says so, and fails under `VMDISK_REAL=require`.
fn are_installed(programs: &[&str]) -> bool {
    programs.iter().all(|program| {
        let installed = Command::new(program)
            .arg("--version")
            .output()
            .is_ok_and(|output| output.status.success());
        if !installed {
            let required = std::env::var("VMDISK_REAL").is_ok_and(|value| value == "require");
            assert!(!required, "VMDISK_REAL=require, and there is no {program}");
            eprintln!("skipped: there is no {program}");
        }
        installed
    })
}

fn output(program: &str, arguments: &[&str], folder: &Path) -> Output {
    Command::new(program)
        .args(arguments)
        .current_dir(folder)
        .env("LC_ALL", "C")
        .env("XDG_RUNTIME_DIR", folder)
        .output()
        .unwrap_or_else(|error| panic!("{program}: {error}"))
}

/// Runs qemu-img and wants it to succeed.
fn qemu_img(arguments: &[&str], folder: &Path) {
    let output = output("qemu-img", arguments, folder);
    assert!(
        output.status.success(),
        "qemu-img {arguments:?}: {output:?}"
    );
}

/// The text that a rule quotes of a program.
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

/// A folder with images that nobody starts a guest from.
fn images(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("what an earlier run left can be removed");
    }
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let create = ["create", "-q", "-f", "qcow2"];
    let over = |image: &str, backing: &str| {
        qemu_img(
            &[&create[..], &["-F", "qcow2", "-b", backing, image, "1M"]].concat(),
            &folder,
        );
    };
    let rebase = |image: &str, backing: &str| {
        let words = ["rebase", "-u", "-f", "qcow2", "-F", "qcow2", "-b", backing];
        qemu_img(&[&words[..], &[image]].concat(), &folder);
    };
    qemu_img(&[&create[..], &["base", "1M"]].concat(), &folder);
    over("middle", "base");
    over("missing", "base");
    rebase("missing", "gone");
    over("loop", "base");
    rebase("loop", "loop");
    over("unnamed", "middle");
    edit(&folder.join("unnamed"), |bytes| {
        let magic = [0xe2, 0x79, 0x2a, 0xca];
        let at = bytes
            .windows(4)
            .position(|window| window == magic)
            .expect("qemu-img records the format");
        // An extension that nobody knows is read past.
        bytes[at..at + 4].copy_from_slice(&[0x12, 0x34, 0x56, 0x78]);
    });
    over("corrupt", "base");
    edit(&folder.join("corrupt"), |bytes| bytes[79] |= 2);
    folder
}

fn edit(image: &Path, change: impl FnOnce(&mut [u8])) {
    let mut bytes = std::fs::read(image).expect("it was just made");
    change(&mut bytes);
    std::fs::write(image, bytes).expect("it is writable");
}

#[test]
fn libvirt_and_qemu_refuse_broken_chains_in_the_words_that_rules_quote() {
    if !are_installed(&["virsh", "qemu-system-x86_64", "qemu-img", "qemu-io"]) {
        return;
    }
    let folder = images("refused-chains");
    let path = |name: &str| folder.join(name).to_str().expect("it is UTF-8").to_owned();
    // The driver inside virsh itself: no daemon, nothing of the machine is touched.
    let root = format!("qemu:///embed?root={}", path("libvirt"));
    std::fs::create_dir_all(path("libvirt/etc")).expect("folders can be made");
    let settings =
        "stdio_handler=\"file\"\nsecurity_driver=\"none\"\nuser=\"root\"\ngroup=\"root\"\n";
    std::fs::write(path("libvirt/etc/qemu.conf"), settings).expect("files can be written");
    for (rule, image) in [
        ("backing-missing", "missing"),
        ("backing-format-missing", "unnamed"),
        ("chain-too-long", "loop"),
    ] {
        let guest = format!(
            "<domain type='qemu'><name>refused</name><memory unit='MiB'>64</memory>\
             <os><type arch='x86_64' machine='q35'>hvm</type></os><devices><disk type='file' device='disk'>\
             <driver name='qemu' type='qcow2'/><source file='{}'/><target dev='vda' bus='virtio'/></disk></devices></domain>",
            path(image)
        );
        std::fs::write(path("guest.xml"), guest).expect("files can be written");
        let output = output("virsh", &["-c", &root, "create", "guest.xml"], &folder);
        let said = String::from_utf8_lossy(&output.stderr);
        assert!(!output.status.success(), "libvirt starts {image}: {said}");
        let texts = quoted(rule, "libvirt");
        assert!(
            texts.iter().any(|text| said.contains(text)),
            "{rule} quotes {texts:?}, and libvirt says: {said}"
        );
    }
    let output = output(
        "qemu-io",
        &["-f", "qcow2", "-c", "quit", "corrupt"],
        &folder,
    );
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(!output.status.success(), "QEMU opens it: {said}");
    assert!(
        quoted("qcow2-corrupt-bit", "QEMU")
            .iter()
            .any(|text| said.contains(text)),
        "QEMU says: {said}"
    );
}
