//! libvirt's schema, and its QEMU driver without a daemon.

use std::fmt::Write as _;

use vmdisk::facts::Capability;
use vmdisk_tests::{LibvirtBuild, has_program, real, run};

use super::{Fixture, exception, fixtures_of_specs, generate, installed};

pub(super) fn version() -> (u32, u32) {
    let said = run("virsh", &["--version"], "").stdout;
    let mut numbers = said.trim().split('.').map(|number| number.parse().unwrap());
    (numbers.next().unwrap(), numbers.next().unwrap())
}

#[test]
fn libvirts_schema_has_all_that_is_written() {
    let is_there = has_program("virt-xml-validate") && has_program("virsh");
    if !real(is_there, "generated XML", "virt-xml-validate and virsh") {
        return;
    }
    let (target, version) = (installed(), version());
    let folder = tempfile::tempdir().unwrap();
    for Fixture { name, text } in fixtures_of_specs() {
        let xml = generate(&text, &target, &[]).unwrap();
        let file = folder.path().join("guest.xml");
        std::fs::write(&file, &xml).unwrap();
        let said = run("virt-xml-validate", &[file.to_str().unwrap(), "domain"], "");
        let is_refused = exception::of_libvirt(&name, version);
        assert_eq!(
            said.code != 0,
            is_refused.is_some(),
            "{name}: {said:?}\n{xml}"
        );
    }
}

#[test]
fn libvirts_driver_defines_and_converts_all_that_is_written() {
    let libvirt = LibvirtBuild::installed();
    if !real(
        libvirt.is_some(),
        "generated XML",
        "virsh and qemu-system-x86_64",
    ) {
        return;
    }
    let Some(libvirt) = libvirt else { return };
    let (target, version) = (installed(), version());
    let session = libvirt.session();
    let mut commands = String::new();
    let specs = fixtures_of_specs();
    for Fixture { name, text } in &specs {
        let xml = generate(text, &target, &[]).unwrap();
        let file = session.folder().join(format!("{name}.xml"));
        std::fs::write(&file, &xml).unwrap();
        let file = file.display();
        let convert = format!("domxml-to-native qemu-argv --xml {file}");
        let _ = writeln!(commands, "echo BEGIN {name}\ndefine {file}\n{convert}");
    }
    // One driver for all: it takes seconds to start.
    let said = session.say(&commands).expect("virsh can be started");
    for Fixture { name, text: _ } in &specs {
        let part = said
            .split("\nBEGIN ")
            .find(|part| part.lines().next() == Some(name));
        let part = part.unwrap_or_else(|| panic!("virsh stopped before {name}: {said}"));
        let is_defined = part.contains(&format!("Domain '{name}' defined"));
        let is_converted = part.contains("-blockdev") || part.contains("vhost-user-blk");
        if let Some(exception) = exception::of_libvirt(name, version) {
            assert!(
                !is_defined,
                "{name}: libvirt takes it, although {}",
                exception.reason
            );
            assert!(part.contains(exception.says), "{name}: {part}");
            continue;
        }
        assert!(is_defined, "{name}: {part}");
        let exception = exception::of_host(name).filter(|exception| part.contains(exception.says));
        match exception {
            Some(exception) => println!("skipped: converting {name}: {}", exception.reason),
            None => assert!(is_converted, "{name}: {part}"),
        }
    }
}

/// Words that this libvirt may be too old for: the capability, the disk's or controller's XML with them, and what a
/// definition that kept them has.
const NEW_WORDS: &[(Capability, &str, &str)] = &[
    (
        Capability::LibvirtIothreadMapping,
        "<disk type='file' device='disk'><driver name='qemu' type='raw' queues='2'>\
         <iothreads><iothread id='1'/><iothread id='2'/></iothreads></driver>\
         <source file='/a.img'/><target dev='vda' bus='virtio'/></disk>",
        "<iothread id=",
    ),
    (
        Capability::LibvirtScsiIothreadMapping,
        "<controller type='scsi' index='0' model='virtio-scsi'><driver queues='2'>\
         <iothreads><iothread id='1'/><iothread id='2'/></iothreads></driver></controller>",
        "<iothread id=",
    ),
    (
        Capability::LibvirtDiscardNoUnref,
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2' discard_no_unref='on'/>\
         <source file='/a.qcow2'/><target dev='vda' bus='virtio'/></disk>",
        "discard_no_unref=",
    ),
    (
        Capability::LibvirtDiscardGranularity,
        "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/a.img'/>\
         <blockio discard_granularity='65536'/><target dev='vda' bus='virtio'/></disk>",
        "discard_granularity=",
    ),
    (
        Capability::LibvirtNvmeBus,
        "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/a.img'/>\
         <target dev='nvme0n1' bus='nvme'/></disk>",
        "bus='nvme'",
    ),
    (
        Capability::LibvirtNbdReconnect,
        "<disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='nbd' name='a'>\
         <host name='store.example' port='10809'/><reconnect delay='10'/></source>\
         <target dev='vda' bus='virtio'/></disk>",
        "<reconnect ",
    ),
    (
        Capability::LibvirtSshIdentity,
        "<disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='ssh' name='a'>\
         <host name='store.example' port='22'/><identity username='fred' keyfile='/key'/></source>\
         <target dev='vda' bus='virtio'/></disk>",
        "<identity ",
    ),
    (
        Capability::LibvirtVhostVdpa,
        "<disk type='vhostvdpa' device='disk'><driver name='qemu' type='raw' cache='none'/>\
         <source dev='/dev/vhost-vdpa-0'/><target dev='vda' bus='virtio'/></disk>",
        "type='vhostvdpa'",
    ),
    (
        Capability::LibvirtDataStore,
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/a.qcow2'>\
         <dataStore type='file'><format type='raw'/><source file='/a.data'/></dataStore></source>\
         <target dev='vda' bus='virtio'/></disk>",
        "<dataStore",
    ),
    (
        Capability::LibvirtStatistics,
        "<disk type='file' device='disk'><driver name='qemu' type='raw'>\
         <statistics><statistic interval='10'/></statistics></driver><source file='/a.img'/>\
         <target dev='vda' bus='virtio'/></disk>",
        "<statistic ",
    ),
    (
        Capability::LibvirtThrottleFilters,
        "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/a.img'/>\
         <target dev='vda' bus='virtio'/><throttlefilters><throttlefilter group='g'/></throttlefilters></disk>",
        "<throttlefilter ",
    ),
];

#[test]
fn what_libvirt_is_too_old_for_is_refused_or_left_out_as_the_linter_says() {
    let test = "words that libvirt does not know";
    let libvirt = LibvirtBuild::installed();
    if !real(libvirt.is_some(), test, "virsh and qemu-system-x86_64") {
        return;
    }
    let Some(libvirt) = libvirt else { return };
    let session = libvirt.session();
    let target = installed();
    let guest = |number: usize, devices: &str| {
        format!(
            "<domain type='qemu'><name>new{number}</name><memory unit='MiB'>64</memory><vcpu>2</vcpu>\
             <iothreads>2</iothreads><os><type arch='x86_64' machine='q35'>hvm</type></os>\
             <devices>{devices}</devices></domain>"
        )
    };
    let mut commands = String::new();
    for (number, (_, devices, _)) in NEW_WORDS.iter().enumerate() {
        let file = session.folder().join(format!("new{number}.xml"));
        std::fs::write(&file, guest(number, devices)).unwrap();
        let file = file.display();
        let _ = writeln!(
            commands,
            "echo BEGIN new{number}\ndefine {file}\ndumpxml new{number}"
        );
    }
    let said = session.say(&commands).expect("virsh can be started");
    for (number, (capability, devices, word)) in NEW_WORDS.iter().enumerate() {
        let name = format!("new{number}");
        let part = said
            .split("\nBEGIN ")
            .find(|part| part.lines().next() == Some(&name))
            .unwrap();
        let does = match (part.contains("defined from"), part.contains(word)) {
            (true, true) => "",
            (true, false) => "does not know and leaves out",
            (false, _) => "does not have",
        };
        let lint = ["lint", "-", "--target", &target, "--format", "concise"];
        let found = run(crate::VMDISK, &lint, &guest(number, devices));
        let finding = found
            .stdout
            .lines()
            .find(|line| line.contains("[unsupported-by-target]") && line.contains("libvirt"));
        let what = capability.name();
        match finding {
            Some(finding) => assert!(
                finding.trim_end_matches(" (assumed)").ends_with(does) && !does.is_empty(),
                "{what}: libvirt {does}, and the linter says: {finding}\n{part}"
            ),
            None => assert_eq!(does, "", "{what}: the linter says nothing\n{part}"),
        }
    }
}
