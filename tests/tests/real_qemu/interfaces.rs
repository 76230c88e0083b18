//! The default interfaces and drives of machines.

use std::collections::BTreeSet;

use vmdisk::Document;
use vmdisk_tests::interfaces::{PROGRAMS, empty, family, interface, machines};
use vmdisk_tests::{real, repository};

/// Machines of one program and interface that are started.
const TRIED: usize = 2;

#[test]
fn a_drive_without_if_and_the_empty_drives_have_the_recorded_devices() {
    let path = repository().join("crates/vmdisk-qemu/src/interfaces.txt");
    let text = std::fs::read_to_string(path).expect("the recording is in the repository");
    let mut started = 0;
    let mut others = Vec::new();
    for program in PROGRAMS {
        let Some(machines) = machines(program) else {
            others.push(*program);
            continue;
        };
        let own = text.lines().filter(|line| {
            let programs = line.split(' ').next().unwrap_or_default();
            programs.split(',').any(|it| it == *program)
        });
        for line in own {
            let words: Vec<&str> = line.split(' ').skip(1).collect();
            let families: BTreeSet<&str> = words[2..]
                .iter()
                .map(|it| it.trim_end_matches('*'))
                .collect();
            let tried = machines
                .iter()
                .filter(|(name, _)| families.contains(family(name)));
            for (machine, _) in tried.take(TRIED) {
                // Machines that need a kernel or firmware start with some.
                let found = interface(program, machine);
                let recorded = words[..2].join(" ");
                assert_eq!(found, Some(recorded), "{program} -M {machine}");
                started += 1;
            }
        }
    }
    // The QEMUs of other architectures are tried where somebody installed them: libvirt asks each at every start.
    if !others.is_empty() {
        println!("not tried: default interfaces of {}", others.join(", "));
    }
    real(started > 0, "default interfaces", "qemu-system-x86_64");
}

/// Options of which two are combined.
const OPTIONS: [&str; 14] = [
    "",
    "-nodefaults",
    "-hda IMAGE",
    "-hdb IMAGE",
    "-hdc IMAGE",
    "-cdrom IMAGE",
    "-fda IMAGE",
    "-drive file=IMAGE,format=raw",
    "-drive file=IMAGE,format=raw -drive file=IMAGE,format=raw",
    "-drive file=IMAGE,format=raw,if=ide,index=2",
    "-drive file=IMAGE,format=raw,if=floppy",
    "-drive file=IMAGE,format=raw,if=virtio",
    "-drive file=IMAGE,format=raw,media=cdrom",
    "-drive file=IMAGE,format=raw,if=none,id=n -device ide-hd,drive=n",
];

#[test]
fn the_empty_drives_of_a_command_line_are_those_of_qemu() {
    let mut equal = 0;
    let mut wrong = Vec::new();
    for machine in ["pc", "q35"] {
        for (nth, first) in OPTIONS.iter().enumerate() {
            for second in &OPTIONS[nth + 1..] {
                let options = format!("{first} {second}").replace("IMAGE", "null-co://");
                let words: Vec<&str> = options.split_whitespace().collect();
                let Some(real) = empty("x86_64", machine, &words) else {
                    continue;
                };
                let line = format!("qemu-system-x86_64 -M {machine} {options}");
                let found = vmdisk::read(&line).map(|it| Document::empty_drives(&it));
                let found: BTreeSet<String> = found
                    .unwrap_or_default()
                    .into_iter()
                    .map(str::to_owned)
                    .collect();
                equal += usize::from(found == real);
                // With a drive at a given place, the list is empty on purpose.
                let is_silent = found.is_empty() && options.contains("index=");
                if found != real && !is_silent {
                    wrong.push(format!("{line}: {found:?}, and QEMU has {real:?}"));
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    real(equal > 100, "empty drives", "qemu-system-x86_64");
}
