//! Storage that grows, and what it shows and gives back.

use vmdisk::rules::{Policy, Severity};

use super::support::{THIN, disk, finding, in_words, missed, on, recorded, run, said, written};

/// The rules about thin storage say this of a disk on this host, and looked at everything.
fn expect(host: &str, source: &str, driver: &str, rest: &str, expected: &[&str]) {
    let xml = disk("disk", &format!("cache='none' {driver}"), source, rest);
    let outcome = on(&recorded(host), &xml);
    assert_eq!(said(&outcome, &THIN), expected, "{host} {xml}");
    let missed = missed(&outcome, &THIN);
    assert!(missed.is_empty(), "{host} {xml}: {missed:?}");
}

#[test]
fn thin_storage_without_discard_is_told_from_thick() {
    let (raw, lv) = ("type='raw'", "/dev/vg0/web1");
    let warning = ["discard-missing-thin warning"];
    expect("lvm-thin-64k", lv, raw, "", &warning);
    expect(
        "lvm-thin-64k",
        lv,
        "type='raw' discard='ignore'",
        "",
        &warning,
    );
    expect("lvm-thin-64k", lv, "type='raw' discard='unmap'", "", &[]);
    expect("lvm-thin-64k", lv, raw, "<readonly/>", &[]);
    expect("xfs-nvme", "/dev/vg0/db1", raw, "", &[]);
    expect("xfs-nvme", "/srv/img/web2.img", raw, "", &[]);
    let advice = ["discard-missing-thin advice"];
    expect(
        "xfs-nvme",
        "/srv/img/web1.qcow2",
        "type='qcow2'",
        "",
        &advice,
    );
    let sparse = "/srv/img/web1.img";
    expect("btrfs-checksums-6.18", sparse, raw, "", &advice);
    expect("btrfs-checksums-6.18", sparse, raw, "<transient/>", &[]);
}

/// A QEMU whose discards corrupt qcow2: advice about the host can wait for the next one, a pool that runs full cannot.
#[test]
fn a_pool_is_named_beside_advice_that_waits_for_a_newer_qemu() {
    let qcow2 = |discard: &str| format!("type='qcow2' cache='none' {discard}");
    let file = |discard: &str| disk("disk", &qcow2(discard), "/srv/img/web2.qcow2", "");
    let volume = disk("disk", &qcow2(""), "/dev/vg0/web1", "").replace("vda", "vdb");
    let third = file("").replace("vda", "vdc").replace("web2", "web3");
    let facts = recorded("lvm-thin-64k");
    for (first, expected) in [
        (
            file(""),
            &[
                "discard-missing-thin advice",
                "discard-missing-thin warning",
            ][..],
        ),
        (
            file("discard='unmap'"),
            &[
                "discard-missing-thin warning",
                "qcow2-discard-corruption advice",
            ],
        ),
    ] {
        let xml = format!(
            "<domain type='kvm'><name>web</name><devices>{first}{volume}{third}</devices></domain>"
        );
        let outcome = run(&xml, Some(&facts), "qemu=7.2", Policy::default());
        let rules = ["discard-missing-thin", "qcow2-discard-corruption"];
        assert_eq!(said(&outcome, &rules), expected, "{xml}");
        let pool = outcome
            .findings
            .iter()
            .find(|it| it.severity == Severity::Warning);
        let pool = pool.expect("the pool is warned of");
        assert!(!pool.is_about_host && pool.fix.is_none(), "{pool:?}");
    }
}

#[test]
fn zeroes_to_be_discarded_without_discard_are_one_cause() {
    let driver = "type='raw' detect_zeroes='unmap'";
    let expected = ["detect-zeroes-unmap-no-discard warning"];
    expect("lvm-thin-64k", "/dev/vg0/web1", driver, "", &expected);
}

#[test]
fn blocks_of_a_nocow_image_that_are_shared_are_told_from_those_that_are_not() {
    let rule = ["btrfs-nocow-snapshotted"];
    let host = |kind: &str, nocow: &str, shared: &str, capped: &str| {
        written(&format!(
            "mounts: [{{id: m1, point: /i, fs: f1}}]\nfilesystems: [{{id: f1, kind: {kind}}}]\n\
             files: [{{path: /i/a.img, present: true, mount: m1, nocow: {nocow}, shared_extents: {shared}, \
             extents_capped: {capped}}}]\n"
        ))
    };
    let xml = |rest: &str| disk("disk", "type='raw' cache='none'", "/i/a.img", rest);
    for (kind, nocow, shared, capped, is_reported, is_missed) in [
        ("btrfs", "true", "true", "false", true, false),
        ("btrfs", "true", "true", "true", true, false),
        ("btrfs", "true", "false", "false", false, false),
        ("btrfs", "true", "false", "true", false, true),
        (
            "btrfs",
            "true",
            "{unknown: permission}",
            "false",
            false,
            true,
        ),
        ("btrfs", "false", "true", "false", false, false),
        ("xfs", "null", "true", "false", false, false),
    ] {
        let outcome = on(&host(kind, nocow, shared, capped), &xml(""));
        let case = format!("{kind} {nocow} {shared} {capped}");
        assert_eq!(!said(&outcome, &rule).is_empty(), is_reported, "{case}");
        assert_eq!(!missed(&outcome, &rule).is_empty(), is_missed, "{case}");
    }
    let outcome = on(&host("btrfs", "true", "true", "false"), &xml("<readonly/>"));
    assert!(said(&outcome, &rule).is_empty(), "nobody writes to it");
}

#[test]
fn discards_that_end_in_encryption_are_told_from_those_that_go_on() {
    let rule = ["discard-crypt-blocked"];
    let told = |host: &str, source: &str, driver: &str| {
        let xml = disk(
            "disk",
            &format!("type='raw' cache='none' {driver}"),
            source,
            "",
        );
        let outcome = on(&recorded(host), &xml);
        assert!(missed(&outcome, &rule).is_empty(), "{host} {source}");
        !said(&outcome, &rule).is_empty()
    };
    let (host, without) = ("luks-without-discards", "/dev/mapper/without-discards");
    assert!(told(host, without, "discard='unmap'"));
    assert!(!told(host, without, "discard='ignore'"));
    assert!(!told(host, without, ""));
    assert!(!told(host, "/dev/mapper/with-discards", "discard='unmap'"));
    // Nothing is encrypted there.
    assert!(!told("lvm-thin-64k", "/dev/vg0/web1", "discard='unmap'"));
}

#[test]
fn what_a_pool_takes_for_itself_is_not_blocked_by_the_encryption_below() {
    let rule = ["discard-crypt-blocked"];
    let host = |kind: &str, discard_max: &str, crypt: &str| {
        written(&format!(
            "files: [{{path: /dev/vg0/a, kind: block, device: '253:1'}}]\n\
             blockdevs: [{{id: b1, kind: {kind}, dev: '253:1', paths: [/dev/vg0/a], slaves: [b2], queue: {{discard_max: {discard_max}}}}}, \
             {{id: b2, kind: crypt-luks2, paths: [/dev/mapper/c], crypt: {crypt}, queue: {{discard_max: 0}}}}]\n"
        ))
    };
    let xml = disk(
        "disk",
        "type='raw' cache='none' discard='unmap'",
        "/dev/vg0/a",
        "",
    );
    let blocked = "{allow_discards: false}";
    for (kind, discard_max, crypt, is_reported) in [
        ("lvm", "0", blocked, true),
        ("lvm-thin", "4194304", blocked, false),
        // The drive below takes none, so that it is not the encryption's doing.
        ("lvm", "0", "{allow_discards: {unknown: undecided}}", false),
        ("lvm", "0", "{allow_discards: true}", false),
    ] {
        let outcome = on(&host(kind, discard_max, crypt), &xml);
        assert_eq!(
            !said(&outcome, &rule).is_empty(),
            is_reported,
            "{kind} {crypt}"
        );
    }
    let outcome = on(&host("lvm", "{unknown: permission}", blocked), &xml);
    assert!(!missed(&outcome, &rule).is_empty());
}

#[test]
fn large_chunks_matter_to_whoever_shares_them() {
    let (host, driver) = ("lvm-thin-4m-snapshots", "type='raw' discard='unmap'");
    let shares = ["thin-chunk-large-with-snapshots warning"];
    expect(host, "/dev/vg0/web1", driver, "", &shares);
    expect(host, "/dev/vg0/web1-before-upgrade", driver, "", &shares);
    expect(host, "/dev/vg0/web2", driver, "", &[]);
}

#[test]
fn who_shares_the_host_decides_how_bad_old_data_is() {
    let facts = recorded("lvm-thin-4m-nozero");
    let xml = disk(
        "disk",
        "type='raw' discard='unmap'",
        "/dev/mapper/vg0-web1",
        "",
    );
    for (policy, severity) in [
        (Policy::MultiTenant, Severity::Error),
        (Policy::SingleTenant, Severity::Warning),
        (Policy::Lab, Severity::Advice),
    ] {
        let outcome = run(&xml, Some(&facts), "", policy);
        let found = finding(&outcome, "thin-zeroing-off");
        assert_eq!(found.severity, severity);
        let notes: Vec<String> = found.details().notes.iter().map(in_words).collect();
        let notes = notes.join("\n");
        assert!(notes.contains("trade-off"), "{notes}");
    }
}

#[test]
fn without_root_the_chunk_is_known_and_zeroing_is_not() {
    let facts = written(
        "blockdevs:\n\
         - id: b1\n  dev: '253:3'\n  kind: lvm-thin\n  paths: [/dev/vg0/web1]\n\
         \x20 queue: {io_opt: 4194304, discard_granularity: 4194304}\n\
         \x20 lvm: {vg: vg0, lv: web1, snapshots: 2, zero: {unknown: permission}, chunk: {unknown: permission}}\n",
    );
    let xml = disk("disk", "type='raw' discard='unmap'", "/dev/vg0/web1", "");
    let outcome = on(&facts, &xml);
    assert_eq!(
        said(&outcome, &THIN),
        ["thin-chunk-large-with-snapshots warning"]
    );
    assert_eq!(missed(&outcome, &THIN), ["thin-zeroing-off"]);
}

#[test]
fn a_device_above_a_thin_volume_whose_pool_ignores_discards_drops_them() {
    let pool = |discards: &str| {
        written(&format!(
            "blockdevs:\n\
             - {{id: b1, kind: partition, paths: [/dev/mapper/above], slaves: [b2], queue: {{discard_max: 4194304}}}}\n\
             - {{id: b2, kind: lvm-thin, paths: [/dev/vg0/web1], queue: {{discard_max: 4194304}}, lvm: {{vg: vg0, lv: web1, discards: {discards}}}}}\n"
        ))
    };
    let rules = ["discard-dropped", "thin-discards-ignored"];
    for (path, discards, expected) in [
        (
            "/dev/mapper/above",
            "ignore",
            &["discard-dropped pedantic"][..],
        ),
        ("/dev/mapper/above", "passdown", &[]),
        (
            "/dev/vg0/web1",
            "ignore",
            &["thin-discards-ignored warning"],
        ),
    ] {
        let xml = disk("disk", "type='raw' cache='none' discard='unmap'", path, "");
        let outcome = on(&pool(discards), &xml);
        assert_eq!(said(&outcome, &rules), expected, "{path} {discards}");
    }
}
