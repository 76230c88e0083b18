//! libvirt's schema, and its QEMU driver without a daemon.

use std::fmt::Write as _;
use std::path::Path;

use vmdisk_tests::{has_program, real, run};

use super::{Fixture, exception, fixtures_of_specs, generate, installed};

fn version() -> (u32, u32) {
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

/// A folder for libvirt's driver: as root, so that it need not look at QEMU again for each guest.
fn root() -> tempfile::TempDir {
    let root = tempfile::tempdir().unwrap();
    std::fs::create_dir(root.path().join("etc")).unwrap();
    let configuration = "user = \"root\"\ngroup = \"root\"\nsecurity_driver = \"none\"\n";
    std::fs::write(root.path().join("etc/qemu.conf"), configuration).unwrap();
    root
}

/// Runs commands in libvirt's driver; one that fails does not stop those behind it.
fn virsh(root: &Path, commands: &str) -> (String, String) {
    let uri = format!("qemu:///embed?root={}", root.display());
    let run = run("virsh", &["-c", &uri, commands], "");
    (run.stdout, run.stderr)
}

#[test]
fn libvirts_driver_defines_and_converts_all_that_is_written() {
    let is_there = has_program("virsh") && has_program(super::qemu::PROGRAM);
    if !real(is_there, "generated XML", "virsh and qemu-system-x86_64") {
        return;
    }
    let (target, version) = (installed(), version());
    let root = root();
    let mut commands = String::new();
    let specs = fixtures_of_specs();
    for Fixture { name, text } in &specs {
        let xml = generate(text, &target, &[]).unwrap();
        let file = root.path().join(format!("{name}.xml"));
        std::fs::write(&file, &xml).unwrap();
        let file = file.display();
        let convert = format!("domxml-to-native qemu-argv --xml {file}");
        let _ = write!(commands, "echo BEGIN {name}; define {file}; {convert}; ");
    }
    // One driver for all: it takes seconds to start.
    let (said, complaints) = virsh(root.path(), &commands);
    for Fixture { name, text: _ } in &specs {
        let part = said
            .split("BEGIN ")
            .find(|part| part.lines().next() == Some(name));
        let part = part.unwrap_or_else(|| panic!("virsh stopped before {name}: {complaints}"));
        let is_defined = part.contains(&format!("Domain '{name}' defined"));
        let is_converted = part.contains("-blockdev") || part.contains("vhost-user-blk");
        let file = root.path().join(format!("{name}.xml"));
        let file = file.display();
        let again = format!("define {file}; domxml-to-native qemu-argv --xml {file}");
        let why = || virsh(root.path(), &again).1;
        if let Some(exception) = exception::of_libvirt(name, version) {
            assert!(
                !is_defined,
                "{name}: libvirt takes it, although {}",
                exception.reason
            );
            assert!(why().contains(exception.says), "{name}: {}", why());
            continue;
        }
        assert!(is_defined, "{name}: {part}\n{}", why());
        let exception = exception::of_host(name).filter(|exception| why().contains(exception.says));
        match exception {
            Some(exception) => println!("skipped: converting {name}: {}", exception.reason),
            None => assert!(is_converted, "{name}: {part}\n{}", why()),
        }
    }
}
