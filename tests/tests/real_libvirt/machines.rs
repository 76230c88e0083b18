//! Machines and their buses: what a spec gets, a real libvirt starts, and what a bus has room for, it defines.

use vmdisk::facts::Facts;
use vmdisk::plan::{BusSpec, Plan, Spec, plan, plan_into};
use vmdisk::rules::Severity;
use vmdisk::write::{libvirt_xml, planned_xml};
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
                    guests.push(planned_xml(&plan).unwrap());
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

/// A guest whose devices have the slots `taken` of the root bus, and further elements.
fn full(machine: &str, taken: std::ops::Range<u32>, more: &str) -> String {
    let mut devices = String::new();
    for (nth, slot) in taken.enumerate() {
        devices += &format!(
            "<controller type='virtio-serial' index='{nth}'><address type='pci' domain='0x0000' bus='0x00' slot='{slot:#x}' function='0x0'/></controller>\n"
        );
    }
    format!(
        "<domain type='qemu'>\n<name>full</name>\n<memory unit='MiB'>64</memory>\n<os><type arch='x86_64' machine='{machine}'>hvm</type></os>\n\
         <features><acpi/></features>\n<devices>\n<controller type='usb' model='none'/>\n{devices}{more}<memballoon model='none'/>\n</devices>\n</domain>\n"
    )
}

/// A port or bridge on bus `index`, at a slot of the root bus.
fn pci_controller(model: &str, index: u32, slot: u32) -> String {
    format!(
        "<controller type='pci' index='{index}' model='{model}'><address type='pci' domain='0x0000' bus='0x00' slot='{slot:#x}' function='0x0'/></controller>\n"
    )
}

#[test]
fn disks_are_added_to_a_guest_while_its_pci_bus_has_room_and_libvirt_agrees() {
    let port = |index, slot| pci_controller("pcie-root-port", index, slot);
    let bridge = pci_controller("pci-bridge", 1, 31);
    let on_bridge = |slots: std::ops::Range<u32>| {
        let serial = |slot: u32| {
            format!(
                "<controller type='virtio-serial' index='{}'><address type='pci' domain='0x0000' bus='0x01' slot='{slot:#x}' function='0x0'/></controller>\n",
                100 + slot
            )
        };
        slots.map(serial).collect::<String>()
    };
    // The guest, and how many disks find a place; none for more than are tried.
    let guests = [
        (full("pc", 2..32, ""), Some(0)),
        (full("pc", 2..31, ""), None),
        (
            full("pc", 2..31, &(bridge.clone() + &on_bridge(1..31))),
            None,
        ),
        (full("pc", 2..31, &(bridge + &on_bridge(1..32))), Some(0)),
        (full("q35", 1..31, ""), Some(0)),
        (full("q35", 1..29, &port(1, 29)), None),
        (full("q35", 1..30, &port(1, 30)), Some(8)),
    ];
    const TRIED: usize = 9;
    for libvirt in libvirts("filling PCI buses") {
        let session = libvirt.session();
        let (mut texts, mut expected) = (Vec::new(), Vec::new());
        for (xml, room) in &guests {
            let document = read(xml).unwrap();
            for (bus, count, taken) in [
                (BusSpec::Virtio, room.unwrap_or(TRIED), true),
                (
                    BusSpec::Virtio,
                    room.map_or(TRIED, |room| room + 1),
                    room.is_none(),
                ),
                (BusSpec::VirtioScsi, 1, *room != Some(0)),
            ] {
                let disks: Vec<String> = (0..count)
                    .map(|nth| format!("- {{raw: {{path: /srv/{nth}.img}}, bus: {bus}}}\n"))
                    .collect();
                if disks.is_empty() {
                    continue;
                }
                let text = format!("version: 1\ndisks:\n{}", disks.concat());
                let spec = Spec::from_yaml(&text).unwrap();
                let planned = plan_into(
                    &spec,
                    document.domain(),
                    &Facts::default(),
                    &libvirt.target(),
                );
                assert_eq!(planned.is_ok(), taken, "{bus} {count} {xml} {planned:?}");
                // What the plan refuses is linted and defined all the same.
                let mut devices = String::new();
                for nth in 0..count {
                    let letter = char::from(b'a' + u8::try_from(nth).unwrap());
                    let (name, on) = match bus {
                        BusSpec::Virtio => (format!("vd{letter}"), "virtio"),
                        _ => (format!("sd{letter}"), "scsi"),
                    };
                    devices += &format!(
                        "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/srv/{nth}.img'/><target dev='{name}' bus='{on}'/></disk>\n"
                    );
                }
                if bus == BusSpec::VirtioScsi {
                    devices += "<controller type='scsi' index='0' model='virtio-scsi'/>\n";
                }
                let number = texts.len();
                let whole = xml
                    .replace("<memballoon", &(devices + "<memballoon"))
                    .replace("<name>full", &format!("<name>full{number}"));
                let found = lint(&read(&whole).unwrap(), &LintOptions::default());
                let is_reported = found
                    .diagnostics
                    .iter()
                    .any(|it| it.rule.name == "address-beyond-controller");
                assert_eq!(is_reported, !taken, "{whole}");
                texts.push(whole);
                expected.push((taken, bus));
            }
        }
        let verdicts = session.verdicts(Step::Define, texts.iter().map(String::as_str));
        for ((verdict, text), (taken, bus)) in verdicts.iter().zip(&texts).zip(&expected) {
            assert_eq!(
                *verdict == Verdict::Accepted,
                *taken,
                "{bus} {verdict:?} {text}"
            );
        }
        println!(
            "libvirt {}: {} guests with full buses",
            libvirt.version,
            texts.len()
        );
    }
}
