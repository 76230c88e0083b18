//! Guests as common tools write them are healthy: nothing above advice, with facts of a good host and without.

use std::path::Path;

use crate::{finish, vmdisk};

/// The guests, in the shape that each tool writes; a pool is given with the guest whose volumes are on it.
const GUESTS: [&[&str]; 8] = [
    &["virt-install.xml"],
    &["gnome-boxes.xml"],
    &["kubevirt.xml"],
    &["nova.xml"],
    &["ovirt.xml"],
    &["multipass.args"],
    &["terraform.xml", "terraform-pool.xml"],
    &["proxmox.args"],
];

#[test]
fn guests_of_common_tools_get_nothing_above_advice() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/healthy");
    let here = || std::fs::read_dir(&directory).unwrap();
    let is_guest = |name: &str| name.ends_with(".args") || name.ends_with(".xml");
    let names = here().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    assert_eq!(
        names.filter(|name| is_guest(name)).count(),
        GUESTS.concat().len()
    );
    for guest in GUESTS {
        for facts in [&[][..], &["--facts", "host.facts.json"]] {
            let fixed = ["lint", "--format", "concise", "-v"];
            let arguments = fixed.iter().chain(guest).chain(facts);
            let run = finish(vmdisk(&directory, arguments), b"");
            assert_eq!(
                (run.code, run.stdout.contains("error[")),
                (0, false),
                "{run:#?}"
            );
            let missed = run.stderr.lines();
            let missed: Vec<&str> = missed
                .filter(|line| line.starts_with("not checked: "))
                .collect();
            let misses = |rule: &str| missed.iter().any(|line| line.contains(rule));
            assert!(!missed.is_empty() || !facts.is_empty(), "{run:#?}");
            // With facts, the rules that need the host did look at the image.
            let is_checked = !misses("iothread-missing-fast-media") && !misses("btrfs-cow-image");
            assert!(is_checked || facts.is_empty(), "{run:#?}");
        }
    }
}

/// The programs of distributions as their packages name them.
const TARGETS: [&str; 4] = [
    "qemu=7.2.22,libvirt=9.0.0",  // Debian 12
    "qemu=6.2.0,libvirt=8.0.0",   // Ubuntu 22.04
    "qemu=8.2.2,libvirt=10.0.0",  // Ubuntu 24.04
    "qemu=9.1.0,libvirt=10.10.0", // RHEL 9
];

#[test]
fn guests_of_common_tools_are_healthy_on_distributions_with_at_most_one_advice() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/healthy");
    for guest in GUESTS {
        for target in TARGETS {
            let fixed = ["lint", "--format", "json", "--target", target];
            let run = finish(vmdisk(&directory, fixed.iter().chain(guest)), b"");
            let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            let findings = report["findings"].as_array().unwrap();
            let severities: Vec<(&str, &str)> = findings
                .iter()
                .map(|it| {
                    (
                        it["severity"].as_str().unwrap(),
                        it["rule"].as_str().unwrap(),
                    )
                })
                .collect();
            // A guest of a newer machine type cannot start on an older QEMU.
            let above = severities.iter().filter(|(severity, rule)| {
                *severity != "advice"
                    && !matches!(*rule, "machine-missing-in-qemu" | "unsupported-by-target")
            });
            assert_eq!(above.count(), 0, "{guest:?} {target}: {severities:?}");
            let advice = severities
                .iter()
                .filter(|(severity, _)| *severity == "advice");
            assert!(advice.count() <= 1, "{guest:?} {target}: {severities:?}");
        }
    }
}

#[test]
fn a_volume_without_its_pool_fails_a_run_that_must_check_everything() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/healthy");
    let lint = |guest: &[&str]| {
        let fixed = ["lint", "--facts", "host.facts.json", "--fail-on-unchecked"];
        finish(vmdisk(&directory, fixed.iter().chain(guest)), b"")
    };
    let beside = lint(&["terraform.xml", "terraform-pool.xml"]);
    assert_eq!(beside.code, 0, "{beside:#?}");
    let alone = lint(&["terraform.xml"]);
    assert_eq!(alone.code, 1, "{alone:#?}");
    assert!(alone.stderr.contains("not checked"), "{alone:#?}");
}
