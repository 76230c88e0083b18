//! A guest that exists beside the guest of a spec.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use vmdisk_facts::{Facts, Target};
use vmdisk_plan::*;

const RAW: &str = "disks: [{target: vda, bus: virtio, raw: {path: /i/a.img}}]";

fn parsed(yaml: &str) -> Spec {
    Spec::from_yaml(yaml).unwrap_or_else(|error| panic!("{error:?}\n{yaml}"))
}

fn planned(spec: &Spec, facts: &str) -> Plan {
    let facts = Facts::from_yaml(&format!("schema_version: '1.0'\n{facts}"));
    let planned = plan(spec, &facts.unwrap().facts, &Target::default());
    planned.unwrap_or_else(|errors| panic!("{errors:?}"))
}

/// The differences as `KEY: PLANNED, not EXISTING`.
fn compared(asked: &str, existing: &str) -> Vec<String> {
    compared_on("", asked, existing)
}

/// The same, with facts for the plan.
fn compared_on(facts: &str, asked: &str, existing: &str) -> Vec<String> {
    let [asked, existing] = [asked, existing].map(|it| parsed(&format!("version: 1\n{it}")));
    let found = asked.differences(&planned(&asked, facts), &planned(&existing, "").domain);
    let found = found.iter();
    let found = found.map(|it| format!("{}: {}, not {}", it.key, it.planned, it.existing));
    found.collect()
}

#[test]
fn what_a_spec_sets_is_compared_and_what_it_leaves_open_is_not() {
    let guest = |keys: &str| format!("guest: {{name: a, {keys}}}\n{RAW}\n");
    for (asked, existing, expected) in [
        ("memory: 1G", "memory: 1G", &[][..]),
        ("memory: 8G", "memory: 512M", &["memory: 8G, not 512M"]),
        ("vcpus: 2", "vcpus: 2, memory: 8G", &[]),
        ("vcpus: 2", "vcpus: 1", &["vcpus: 2, not 1"]),
        ("vcpus: 2", "memory: 1G", &["vcpus: 2, not 1"]),
        // The operating system is no part of a guest.
        ("os: linux", "memory: 1G", &[]),
        // libvirt writes the newest version of the machine that is asked for.
        ("machine: q35", "machine: q35", &[]),
        ("machine: q35", "machine: pc-q35-9.0", &[]),
        ("machine: pc", "machine: pc-i440fx-9.0", &[]),
        (
            "machine: q35",
            "machine: pc-i440fx-9.0",
            &["machine: q35, not pc-i440fx-9.0"],
        ),
        (
            "machine: pc",
            "machine: pc-q35-9.0",
            &["machine: pc, not pc-q35-9.0"],
        ),
        (
            "machine: pc-q35-9.0",
            "machine: pc-q35-8.2",
            &["machine: pc-q35-9.0, not pc-q35-8.2"],
        ),
    ] {
        let found = compared(&guest(asked), &guest(existing));
        assert_eq!(found, expected, "{asked}; {existing}");
    }
}

#[test]
fn a_disk_differs_by_what_is_set_by_its_image_and_by_what_decides_over_data() {
    let disk = |keys: &str, image: &str| {
        format!("guest: {{name: a}}\ndisks: [{{target: vda, bus: virtio, {keys} {image}}}]\n")
    };
    let raw = "raw: {path: /i/a.img}";
    for (asked, existing, expected) in [
        (disk("", raw), disk("", raw), &[][..]),
        (
            disk("", raw),
            disk("", "raw: {path: /i/b.img}"),
            &["disk vda: raw.path: /i/a.img, not /i/b.img"],
        ),
        (
            disk("cache: none,", raw),
            disk("cache: writeback,", raw),
            &["disk vda: cache: none, not writeback"],
        ),
        (disk("", raw), disk("serial: x,", raw), &[]),
        (
            disk("serial: y,", raw),
            disk("serial: x,", raw),
            &["disk vda: serial: y, not x"],
        ),
        (
            disk("serial: y,", raw),
            disk("", raw),
            &["disk vda: serial: y, not unset"],
        ),
        // A default that is asked for is a wish as any other.
        (
            disk("readonly: false,", raw),
            disk("readonly: true,", raw),
            &["disk vda: readonly: false, not true"],
        ),
        (disk("readonly: false,", raw), disk("", raw), &[]),
        (disk("", raw), disk("readonly: true,", raw), &[]),
        // Limits are asked for as a whole.
        (
            disk("iotune: {read-iops-sec: 1},", raw),
            disk("iotune: {read-iops-sec: 1, write-iops-sec: 2},", raw),
            &["disk vda: iotune.write-iops-sec: unset, not 2"],
        ),
        (
            disk("", raw),
            disk("iotune: {write-iops-sec: 2},", raw),
            &[],
        ),
    ] {
        let found = compared(&asked, &existing);
        assert_eq!(found, expected, "{asked}{existing}");
    }
}

#[test]
fn what_the_storage_decides_differs_by_facts_or_with_the_storage() {
    let disk = |keys: &str, image: &str| {
        format!("guest: {{name: a}}\ndisks: [{{target: vda, bus: virtio, {keys} {image}}}]\n")
    };
    let xfs = "mounts: [{id: m, point: /i, fs: f}]\nfilesystems: [{id: f, kind: xfs}]\n";
    let ecryptfs = xfs.replace("xfs", "ecryptfs");
    let [raw, qcow2] = ["raw: {path: /i/a}", "qcow2: {path: /i/b}"];
    let by_facts = disk("cache: none, io: native, discard: unmap,", raw);
    for (facts, asked, existing, expected) in [
        // Without facts, the plan does not know better than the guest.
        ("", disk("", raw), &by_facts, &[][..]),
        ("", disk("cache: none,", raw), &by_facts, &[]),
        (xfs, disk("", raw), &by_facts, &[]),
        (
            &ecryptfs,
            disk("", raw),
            &by_facts,
            &["cache: writeback, not none", "io: threads, not native"],
        ),
        (
            xfs,
            disk("", raw),
            &disk("cache: unsafe,", raw),
            &["cache: none, not unsafe"],
        ),
        // QEMU refuses native AIO with the page cache.
        (
            "",
            disk("cache: writeback,", raw),
            &by_facts,
            &["cache: writeback, not none", "io: threads, not native"],
        ),
        // Another option decides.
        (
            "",
            disk("shareable: true,", raw),
            &disk("shareable: true, cache: writeback,", raw),
            &["cache: none, not writeback"],
        ),
        (
            "",
            disk("detect-zeroes: unmap,", raw),
            &disk("detect-zeroes: unmap, discard: ignore,", raw),
            &["discard: unmap, not ignore"],
        ),
        // Only a disk that is written has discards.
        (
            "",
            disk("readonly: true,", raw),
            &disk("discard: unmap,", raw),
            &["readonly: true, not unset", "discard: ignore, not unmap"],
        ),
        (
            "",
            disk("readonly: false,", qcow2),
            &disk("readonly: true,", qcow2),
            &["readonly: false, not true", "discard: unmap, not ignore"],
        ),
        // What was known is known of the old storage.
        (
            "",
            disk("", qcow2),
            &disk("cache: none, io: native, discard: ignore,", raw),
            &[
                "qcow2: {\"path\":\"/i/b\"}, not unset",
                "cache: writeback, not none",
                "io: threads, not native",
                "discard: unmap, not ignore",
            ],
        ),
    ] {
        let found = compared_on(facts, &asked, existing);
        let found: Vec<&str> = found.iter().map(|it| &it["disk vda: ".len()..]).collect();
        assert_eq!(found, expected, "{facts}{asked}{existing}");
    }
}

#[test]
fn disks_are_the_same_by_their_target() {
    let disks = |targets: &[&str]| {
        let disk = |it: &&str| format!("{{target: {it}, bus: virtio, raw: {{path: /i/{it}}}}}");
        let disks: Vec<String> = targets.iter().map(disk).collect();
        format!("guest: {{name: a}}\ndisks: [{}]\n", disks.join(", "))
    };
    let one = disks(&["vda"]);
    for (asked, existing, expected) in [
        (&["vda", "vdb"][..], &["vdb", "vda"][..], &[][..]),
        (
            &["vda", "vdb"],
            &["vda"],
            &["disk vdb: a disk, not no disk"],
        ),
        (
            &["vda"],
            &["vda", "vdb"],
            &["disk vdb: no disk, not a disk"],
        ),
    ] {
        assert_eq!(compared(&disks(asked), &disks(existing)), expected);
    }
    assert!(compared(&one, &one).is_empty());
}
