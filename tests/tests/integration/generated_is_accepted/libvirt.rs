//! libvirt's schema, and its QEMU driver without a daemon.

use std::fmt::Write as _;

use vmdisk_tests::{LibvirtBuild, has_program, real, run};

use super::{Fixture, exception, fixtures_of_specs, generate_anyway, installed, libvirt_version};

#[test]
fn libvirts_schema_has_all_that_is_written() {
    let is_there = has_program("virt-xml-validate") && has_program("virsh");
    if !real(is_there, "generated XML", "virt-xml-validate and virsh") {
        return;
    }
    let target = installed();
    let version = libvirt_version(&target);
    let folder = tempfile::tempdir().unwrap();
    for Fixture { name, text } in fixtures_of_specs() {
        let xml = generate_anyway(&text, &target, &[]);
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
    let target = installed();
    let version = libvirt_version(&target);
    let session = libvirt.session();
    let mut commands = String::new();
    let specs = fixtures_of_specs();
    for Fixture { name, text } in &specs {
        let xml = generate_anyway(text, &target, &[]);
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
