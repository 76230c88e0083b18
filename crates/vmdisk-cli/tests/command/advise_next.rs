//! The commands at the end of `vmdisk advise` and `vmdisk decide`, as a user types them.

use std::fs;
use std::process::Command;

use vmdisk_testing::{installed, needed};

use crate::Place;
use crate::apply::SYSTEM;
use crate::apply_changes::{text_of, with_virsh};

/// The commands of a part of what was printed.
fn commands(said: &str, head: &str) -> String {
    let (_, rest) = said.split_once(head).unwrap_or_else(|| panic!("{said}"));
    let lines = rest
        .lines()
        .skip(1)
        .map_while(|line| line.strip_prefix("  "));
    lines.map(|line| format!("{line}\n")).collect()
}

/// Runs commands with the program, and with those of the place.
fn typed(place: &Place, commands: &str) -> (Option<i32>, String, String) {
    let program = place.path("bin/vmdisk");
    if !program.exists() {
        fs::create_dir_all(place.path("bin")).unwrap();
        std::os::unix::fs::symlink(crate::program(), program).unwrap();
    }
    let mut shell = Command::new("sh");
    shell
        .args(["-e", "-c", commands])
        .current_dir(place.path(""));
    shell.env("PATH", format!("{}{SYSTEM}", place.path("bin").display()));
    text_of(&shell.output().unwrap())
}

#[test]
fn advise_ends_with_the_commands_that_make_the_disk() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    for (words, image, ends_with) in [
        (&[][..], "disk", "vmdisk apply disk.yaml\n"),
        (
            &["--name", "web 1", "--os", "windows"],
            "web 1",
            "vmdisk apply 'web 1.yaml' --define\n",
        ),
    ] {
        let place = Place::with(&[]);
        with_virsh(&place, "");
        fs::create_dir(place.path("my images")).unwrap();
        let folder = place.path("my images");
        let folder = folder.to_str().unwrap();
        let all = [
            "advise",
            "--live",
            "--size",
            "8M",
            "--in",
            folder,
            "--format=text",
        ];
        let advice = place.run(&[&all[..], words].concat());
        assert_eq!(advice.code, 0, "{advice:?}");
        let next = commands(&advice.stdout, "\nnext:");
        assert!(next.ends_with(ends_with), "{next}");
        let (code, said, errors) = typed(&place, &next);
        assert_eq!(code, Some(0), "{next}{said}{errors}");
        let made = fs::read_dir(folder).unwrap().flatten();
        let made: Vec<String> = made
            .map(|it| it.file_name().to_string_lossy().into_owned())
            .collect();
        assert_eq!(made.len(), 1, "{made:?}");
        assert!(made[0].starts_with(image), "{made:?}");
        let spec = place.read(&format!("{image}.yaml"));
        let is_guest = spec.contains("name: web 1\n") && spec.contains("os: windows\n");
        assert_eq!(is_guest, !words.is_empty(), "{spec}");
        assert_eq!(
            place.path("guests/web1").exists() || place.path("guests/web 1").exists(),
            is_guest
        );
    }
}

const GUEST: &str = "<domain type='qemu'>
  <name>web1</name>
  <uuid>0a81f5b2-8403-4b23-88d6-21ccc2f80d6f</uuid>
  <memory unit='MiB'>256</memory>
  <vcpu>1</vcpu>
  <os><type arch='x86_64' machine='q35'>hvm</type></os>
  <features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw'/>
      <source file='IMAGE'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
";

#[test]
fn decide_ends_with_the_commands_that_make_what_it_decided() {
    if needed(installed("qemu-img")).is_none() {
        return;
    }
    let place = Place::with(&[]);
    with_virsh(&place, "");
    place.write("a.img", &vec![7; 1 << 20]);
    let guest = GUEST.replace("IMAGE", place.path("a.img").to_str().unwrap());
    place.write("my guest.xml", guest.as_bytes());
    place.write("guests/web1", guest.as_bytes());
    let decided = place.run(&["decide", "my guest.xml", "--live"]);
    assert_eq!(decided.code, 0, "{decided:?}");
    let next = commands(&decided.stdout, "\nnext:");
    let (code, said, errors) = typed(&place, &next);
    assert_eq!(code, Some(0), "{next}{said}{errors}");
    let changed = place.read("my guest.xml");
    assert!(changed.contains("cache="), "{changed}");
    let again = place.run(&["decide", "my guest.xml", "--live"]).stdout;
    assert!(
        !again.contains("next:") && !again.contains("of libvirt"),
        "{again}"
    );
    // The guest of libvirt, by the same run or from its definition.
    let head = "\nfor the guest web1 of libvirt:";
    let change = commands(&decided.stdout, head);
    let defined = || place.read("guests/web1").contains("cache=");
    place.write("my guest.xml", guest.as_bytes());
    let (code, said, errors) = typed(&place, &change);
    assert_eq!((code, defined()), (Some(0), true), "{change}{said}{errors}");
    place.write("guests/web1", guest.as_bytes());
    let piped = place.run_with_input(
        &["decide", "-", "--live", "--format", "diff"],
        guest.as_bytes(),
    );
    let change = commands(&format!("\n{}", piped.stderr), head);
    assert!(
        change.starts_with("virsh dumpxml --inactive web1 | "),
        "{piped:?}"
    );
    let (code, said, errors) = typed(&place, &change);
    assert_eq!((code, defined()), (Some(0), true), "{change}{said}{errors}");
    // A guest that no spec has all of.
    let other = guest.replace("<devices>", "<devices>\n    <disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/b'><slices><slice type='storage' offset='0' size='1024'/></slices></source><target dev='sda' bus='scsi'/></disk>");
    let other = place.run_with_input(
        &["decide", "-", "--live", "--format", "diff"],
        other.as_bytes(),
    );
    assert!(!other.stderr.contains("of libvirt"), "{other:?}");
}
