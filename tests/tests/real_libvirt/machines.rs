//! Machines and their buses: what a spec gets, a real libvirt starts, and what a bus has room for, it defines.

use vmdisk::facts::Facts;
use vmdisk::plan::{BusSpec, Plan, Spec, plan};
use vmdisk::rules::Severity;
use vmdisk::write::libvirt_xml;
use vmdisk::{LintOptions, lint, read};
use vmdisk_tests::{LibvirtBuild, Step, Verdict, libvirts};

/// A guest whose disks are all on one bus.
fn spec(guest: &str, bus: BusSpec, count: usize, folder: &str) -> String {
    // Definitions with one name are in the way of each other.
    let name = format!("{}-{bus}-{count}", guest.replace(": ", "-"));
    let mut text = format!("version: 1\nguest: {{name: {name}, type: qemu, {guest}}}\ndisks:\n");
    for nth in 0..count {
        let media = if bus == BusSpec::Fdc {
            "floppy"
        } else {
            "disk"
        };
        text += &format!("- raw: {{path: {folder}/{nth}.img}}\n  bus: {bus}\n  media: {media}\n");
        if bus == BusSpec::Nvme {
            text += &format!("  serial: n{nth}\n");
        }
    }
    text
}

fn planned(text: &str, libvirt: &LibvirtBuild) -> Option<Plan> {
    let spec = Spec::from_yaml(text).unwrap();
    plan(&spec, &Facts::default(), &libvirt.target()).ok()
}

#[test]
fn libvirt_starts_every_bus_that_a_pc_has_and_none_else_is_planned() {
    // The installed one, which is the oldest, has its QEMU beside it.
    let mut is_installed = true;
    for libvirt in libvirts("starting the buses of PCs") {
        let session = libvirt.session();
        let folder = session.folder().display().to_string();
        for nth in 0..2 {
            let image = std::fs::File::create(session.folder().join(format!("{nth}.img"))).unwrap();
            image.set_len(1_474_560).unwrap();
        }
        let (mut guests, mut cells) = (Vec::new(), Vec::new());
        for guest in ["machine: q35", "machine: pc", "os: windows"] {
            for bus in BusSpec::ALL {
                if *bus == BusSpec::Nvme {
                    continue; // not an element of these libvirts
                }
                if let Some(plan) = planned(&spec(guest, *bus, 2, &folder), &libvirt) {
                    guests.push(libvirt_xml(&plan.domain).unwrap());
                    cells.push(format!("{guest} {bus}"));
                }
            }
        }
        let is_first = std::mem::take(&mut is_installed);
        let step = if is_first { Step::Start } else { Step::Define };
        let verdicts = session.verdicts(step, guests.iter().map(String::as_str));
        for (cell, verdict) in cells.iter().zip(&verdicts) {
            assert_eq!(verdict, &Verdict::Accepted, "{cell}");
        }
        println!("libvirt {}: {} cells started", libvirt.version, cells.len());
        assert!(cells.len() >= 17);
    }
}

#[test]
fn libvirt_finds_room_for_as_many_disks_as_a_plan_and_lint_takes_no_more() {
    for libvirt in libvirts("filling the buses of PCs") {
        let (mut guests, mut last) = (Vec::new(), Vec::new());
        for (machine, bus, most) in [
            ("q35", BusSpec::Virtio, 236),
            ("pc", BusSpec::Virtio, 655),
            ("q35", BusSpec::Usb, 143),
            ("pc", BusSpec::Usb, 127),
            ("pc", BusSpec::Ide, 4),
        ] {
            let text = |count| spec(&format!("machine: {machine}"), bus, count, "/srv");
            let full = planned(&text(most), &libvirt).unwrap_or_else(|| panic!("{machine} {bus}"));
            assert!(planned(&text(most + 1), &libvirt).is_none());
            guests.push(libvirt_xml(&full.domain).unwrap());
            // Two more are refused by libvirt, and by the linter.
            let mut domain = full.domain;
            domain.name = domain.name.map(|name| name + "-more");
            for nth in 0..2 {
                let mut disk = domain.disks[0].clone();
                disk.frontend.target = Some(format!("{}zz{}", bus_prefix(bus), ["y", "z"][nth]));
                domain.disks.push(disk);
            }
            let xml = libvirt_xml(&domain).unwrap();
            if bus != BusSpec::Ide {
                let found = lint(&read(&xml).unwrap(), &LintOptions::default());
                let mut found = found.diagnostics.iter();
                assert!(
                    found.any(|it| it.rule.name == "address-beyond-controller"
                        && it.severity == Severity::Error),
                    "{machine} {bus}"
                );
            }
            // Where the bridges of a pc end depends on the order in which libvirt fills them.
            if (machine, bus) != ("pc", BusSpec::Virtio) {
                last.push(xml);
            }
        }
        let session = libvirt.session();
        let verdicts = session.verdicts(Step::Define, guests.iter().map(String::as_str));
        assert!(
            verdicts.iter().all(|it| *it == Verdict::Accepted),
            "{verdicts:?}"
        );
        let verdicts = session.verdicts(Step::Define, last.iter().map(String::as_str));
        println!("libvirt {}: {verdicts:?}", libvirt.version);
        assert!(
            verdicts.iter().all(|it| *it != Verdict::Accepted),
            "{verdicts:?}"
        );
    }
}

const fn bus_prefix(bus: BusSpec) -> &'static str {
    match bus {
        BusSpec::Virtio => "vd",
        BusSpec::Ide => "hd",
        _ => "sd",
    }
}
