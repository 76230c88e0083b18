//! The table of capabilities, held to what each QEMU says of itself.

use std::time::Duration;

use vmdisk_facts::{Capability, Introspection};
use vmdisk_qmp::introspect;
use vmdisk_tests::{QemuBuild, fixtures, on_each_qemu};

/// Where a build differs from what its version implies, and why.
const DIFFERENT: &[(&str, &str, &str)] = &[
    ("5.2", "qcow2-zstd", "Debian 11 builds it without zstd"),
    ("7.2", "libblkio", "Debian 12 has no libblkio"),
    ("7.2", "vhost-vdpa-driver", "Debian 12 has no libblkio"),
];

fn asked(build: &QemuBuild) -> Introspection {
    introspect(&build.emulator(), Duration::from_secs(30)).unwrap()
}

#[test]
fn each_qemu_says_what_is_recorded_of_it() {
    on_each_qemu("recorded introspection", |build| {
        let recorded = fixtures()
            .join("capabilities")
            .join(format!("{}.json", build.name));
        let asked = asked(build);
        vmdisk_tests::assert_golden(&recorded, &asked.to_json());
        assert_eq!(Introspection::from_json(&asked.to_json()).unwrap(), asked);
    });
}

#[test]
fn the_table_is_right_about_each_version_but_for_what_builds_leave_out() {
    on_each_qemu("the table of capabilities", |build| {
        let by_version = build.target();
        let mut different: Vec<String> = Vec::new();
        for (name, has) in asked(build).capabilities {
            let capability = Capability::from_name(&name).unwrap();
            if by_version.can(capability).is_yes() != has {
                different.push(name);
            }
        }
        let known: Vec<&str> = DIFFERENT
            .iter()
            .filter(|(version, ..)| *version == build.name)
            .map(|(_, name, _)| *name)
            .collect();
        assert_eq!(different, known, "QEMU {}", build.name);
    });
}
