//! Convert: from one form to another, and nothing lost without a word.

use crate::{CLEAN, Place};

#[test]
fn a_disk_goes_to_qemu_and_comes_back() {
    let place = Place::with(&[("a.xml", CLEAN)]);
    let line = place.run(&["convert", "a.xml", "--to", "qemu"]);
    assert_eq!((line.code, line.stderr.as_str()), (0, ""));
    let back = place.run_with_input(&["convert", "--to", "disk-xml"], line.stdout.as_bytes());
    assert_eq!((back.code, back.stdout.as_str()), (0, CLEAN), "{back:?}");
}

#[test]
fn encryption_refuses_the_conversion_with_its_place() {
    let text = CLEAN.replace(
        "web1.qcow2'/>",
        "web1.qcow2'><encryption format='luks'/></source>",
    );
    let place = Place::with(&[("a.xml", &text)]);
    let run = place.run(&["convert", "a.xml", "--to", "qemu"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("`<encryption>` cannot be carried over"));
    assert!(run.stderr.contains("a.xml:3:"), "{run:?}");
    // The same form keeps it.
    let same = place.run(&["convert", "a.xml", "--to", "disk-xml"]);
    assert!(same.code == 0 && same.stdout.contains("<encryption format='luks'/>"));
}

#[test]
fn what_is_not_about_disks_is_named() {
    let place = Place::with(&[]);
    let line = b"qemu-system-x86_64 -drive file=/a,format=raw,if=virtio -netdev user,id=n -vga std";
    let run = place.run_with_input(&["convert", "--to", "libvirt-xml"], line);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.stderr.contains("`-netdev`, `-vga`"), "{run:?}");
}

#[test]
fn a_command_line_is_checked_and_mended_in_place() {
    let line = "qemu-system-x86_64 \\\n  -drive file=/a,format=raw,if=virtio,cache=unsafe # mine\n";
    let place = Place::with(&[("vm.args", line), ("other.args", "--verbose")]);
    let run = place.run(&["lint", ".", "--format", "concise"]);
    assert_eq!(run.code, 1);
    assert!(
        run.stdout.starts_with("vm.args:2:45: error[cache-unsafe]"),
        "{run:?}"
    );
    place.run(&["lint", "vm.args", "--fix"]);
    assert_eq!(place.read("vm.args"), line.replace("unsafe", "writeback"));
}
