//! Guests as common tools write them are healthy: nothing above advice, with facts of a good host and without.

use std::collections::BTreeSet;
use std::path::Path;

use crate::{finish, vmdisk};

/// The guests, in the shape that each tool writes; a pool is given with the guest whose volumes are on it. Those of
/// virt-install are what `virt-install --print-xml` of Debian 12 writes for these systems.
const GUESTS: [&[&str]; 38] = [
    &["virt-install.xml"],
    &["gnome-boxes.xml"],
    &["kubevirt.xml"],
    &["nova.xml"],
    &["ovirt.xml"],
    &["multipass.args"],
    &["terraform.xml", "terraform-pool.xml"],
    &["proxmox.args"],
    &["aarch64-virt.xml"],
    &["cloudstack.xml"],
    &["cockpit-machines.xml"],
    &["foreman.xml"],
    &["ganeti.args"],
    &["gnome-boxes-install.xml"],
    &["gpu-passthrough.xml"],
    &["harvester.xml"],
    &["lima.args"],
    &["minikube.xml"],
    &["nova-ceph.xml"],
    &["nova-scsi.xml"],
    &["opennebula.xml"],
    &["ovirt-block.xml"],
    &["quickemu.args"],
    &["s390x.xml"],
    &["talos.xml"],
    &["unraid-win.xml"],
    &["vagrant.xml"],
    &["windows-virtio-scsi.xml"],
    &["virt-install-centos-stream9.xml"],
    &["virt-install-debian11.xml"],
    &["virt-install-fedora37.xml"],
    &["virt-install-freebsd13-1.xml"],
    &["virt-install-generic.xml"],
    &["virt-install-opensuse15-4.xml"],
    &["virt-install-rhel9-1.xml"],
    &["virt-install-ubuntu22-04.xml"],
    &["virt-install-win10.xml"],
    &["virt-install-win2k22.xml"],
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
    let hosts = TARGETS.map(|target| ["--target", target]);
    for guest in GUESTS {
        for host in hosts.into_iter().chain([["--facts", "host.facts.json"]]) {
            let fixed = ["lint", "--format", "json"];
            let run = finish(
                vmdisk(&directory, fixed.iter().chain(&host).chain(guest)),
                b"",
            );
            let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
            let findings = report["findings"].as_array().unwrap();
            let word = |it: &serde_json::Value, key| it[key].as_str().unwrap().to_owned();
            let found = |it| (word(it, "severity"), word(it, "rule"), word(it, "subject"));
            let found: Vec<(String, String, String)> = findings.iter().map(found).collect();
            // A guest of a newer machine type cannot start on an older QEMU.
            let above = found.iter().filter(|(severity, rule, _)| {
                severity != "advice"
                    && !matches!(
                        rule.as_str(),
                        "machine-missing-in-qemu" | "unsupported-by-target"
                    )
            });
            assert_eq!(above.count(), 0, "{guest:?} {host:?}: {found:?}");
            // At most one is about the guest. Each rule gives advice about the host once for all guests.
            let about = |subject: &str| {
                let advice = found
                    .iter()
                    .filter(|it| it.0 == "advice" && it.2 == subject);
                advice.map(|it| &it.1).collect::<Vec<_>>()
            };
            let (of_guest, of_host) = (about("guest"), about("host"));
            assert!(of_guest.len() <= 1, "{guest:?} {host:?}: {found:?}");
            let distinct: BTreeSet<_> = of_host.iter().collect();
            assert_eq!(
                distinct.len(),
                of_host.len(),
                "{guest:?} {host:?}: {found:?}"
            );
            let all = of_guest.len() + of_host.len();
            assert!(all <= 2, "{guest:?} {host:?}: {found:?}");
        }
    }
}

#[test]
fn advice_about_a_host_is_given_once_for_all_its_guests() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/healthy");
    let guests = GUESTS
        .into_iter()
        .flatten()
        .filter(|name| name.starts_with("virt-install-"));
    let fixed = ["lint", "--format", "concise", "--target", TARGETS[0]];
    let run = finish(vmdisk(&directory, fixed.iter().chain(guests)), b"");
    let about = run
        .stdout
        .matches("advice[qcow2-discard-corruption]")
        .count();
    assert_eq!((run.code, about), (0, 1), "{run:#?}");
    // A baseline knows it of each guest, so that one guest alone has nothing new.
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.xml", "b.xml"] {
        let guest = directory.join("virt-install-debian11.xml");
        std::fs::copy(guest, folder.path().join(name)).unwrap();
    }
    let target = ["--target", TARGETS[0]];
    let create = ["lint", "--write-baseline", "--baseline", "known.json"];
    let made = finish(
        vmdisk(
            folder.path(),
            create.iter().chain(&target).chain(&["a.xml", "b.xml"]),
        ),
        b"",
    );
    assert_eq!(made.code, 0, "{made:#?}");
    let lint = ["lint", "--format", "concise", "--baseline", "known.json"];
    for inputs in [&["a.xml", "b.xml"][..], &["b.xml"]] {
        let run = finish(
            vmdisk(folder.path(), lint.iter().chain(&target).chain(inputs)),
            b"",
        );
        assert!(!run.stdout.contains("advice["), "{run:#?}");
    }
}

#[test]
fn discards_that_wait_for_a_newer_qemu_are_advised_once_for_all_guests() {
    let healthy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/healthy");
    let guest = std::fs::read_to_string(healthy.join("virt-install-debian11.xml")).unwrap();
    let guest = guest.replace(r#" discard="unmap""#, "");
    let folder = tempfile::tempdir().unwrap();
    for name in ["a.xml", "b.xml"] {
        std::fs::write(folder.path().join(name), &guest).unwrap();
    }
    // A QEMU with the fix can use discards now: each guest has the advice.
    for (qemu, advised) in [("qemu=7.2.22", 1), ("qemu=11.1.0", 2)] {
        let lint = ["lint", "--format", "concise", "--target", qemu];
        let inputs = ["a.xml", "b.xml"];
        let run = finish(vmdisk(folder.path(), lint.iter().chain(&inputs)), b"");
        let found = run.stdout.matches("advice[discard-missing-thin]").count();
        assert_eq!((run.code, found), (0, advised), "{run:#?}");
    }
}

#[test]
fn advice_about_a_host_names_the_other_guests_that_it_holds_for() {
    let healthy = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/healthy");
    let guest = std::fs::read_to_string(healthy.join("virt-install-debian11.xml")).unwrap();
    let folder = tempfile::tempdir().unwrap();
    let mut inputs = Vec::new();
    for number in 0..8 {
        let (file, name) = (format!("{number}.xml"), format!("<name>g{number}</name>"));
        let named = guest.replace("<name>debian11</name>", &name);
        assert_ne!(named, guest);
        std::fs::write(folder.path().join(&file), named).unwrap();
        inputs.push(file);
    }
    let lint = |format: &str, inputs: &[String]| {
        let fixed = ["lint", "--format", format, "--target", TARGETS[0]].map(str::to_owned);
        finish(vmdisk(folder.path(), fixed.iter().chain(inputs)), b"")
    };
    let line = "qcow2-discard-corruption also holds for g1, g2, g3, g4, g5 and 2 more\n";
    assert!(lint("full", &inputs).stderr.contains(line));
    let note = "\"it also holds for g1, g2, g3, g4, g5, g6, g7\"";
    assert_eq!(lint("json", &inputs).stdout.matches(note).count(), 1);
    for format in ["full", "json"] {
        let alone = lint(format, &inputs[..1]);
        assert!(!format!("{alone:?}").contains("also holds"), "{alone:?}");
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
