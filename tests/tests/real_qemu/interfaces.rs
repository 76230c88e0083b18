//! The default interfaces and drives of machines.

use std::collections::BTreeSet;

use vmdisk_tests::interfaces::{PROGRAMS, family, interface, machines};
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
