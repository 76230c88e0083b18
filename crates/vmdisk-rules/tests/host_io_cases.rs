//! Cases of the rules about cache modes, direct I/O, formats and thin storage that are too many for their pages.
#![allow(
    clippy::disallowed_methods,
    reason = "tests read the recorded hosts and the articles' guests"
)]

use std::path::{Path, PathBuf};

use vmdisk_facts::{Facts, HostIndex, Target};
use vmdisk_model::{Change, DiskField, FieldPath};
use vmdisk_rules::{Confidence, Context, Finding, Outcome, Policy, Severity, check};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn facts_in(file: &Path) -> Facts {
    let text =
        std::fs::read_to_string(file).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    let read =
        Facts::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", file.display()));
    assert!(
        read.warnings.is_empty(),
        "{}: {:?}",
        file.display(),
        read.warnings
    );
    read.facts
}

fn recorded(host: &str) -> Facts {
    facts_in(&fixtures().join(format!("facts/{host}.json")))
}

/// Runs all rules over a guest or a disk as libvirt writes it.
fn run(xml: &str, facts: Option<&Facts>, target: &str, policy: Policy) -> Outcome {
    let document = vmdisk_libvirt::read(xml).unwrap_or_else(|failure| panic!("{failure:?}\n{xml}"));
    assert!(
        document.problems.is_empty(),
        "{:?}\n{xml}",
        document.problems
    );
    let host = facts.map(HostIndex::new);
    let target: Target = if target.is_empty() {
        Target::default()
    } else {
        target.parse().unwrap()
    };
    let context = Context {
        domain: &document.domain,
        target: &target,
        host: host.as_ref(),
        policy,
        problems: &document.problems,
    };
    check(&context)
}

/// A disk with these attributes in its `<driver>`, this source and these further children.
fn disk(device: &str, driver: &str, source: &str, rest: &str) -> String {
    let (kind, source) = if source.starts_with("/dev/") {
        ("block", format!("<source dev='{source}'/>"))
    } else if source.is_empty() {
        ("file", String::new())
    } else {
        ("file", format!("<source file='{source}'/>"))
    };
    let target = match device {
        "cdrom" => "<target dev='sda' bus='sata'/>",
        "floppy" => "<target dev='fda' bus='fdc'/>",
        "lun" => "<target dev='sda' bus='scsi'/>",
        _ => "<target dev='vda' bus='virtio'/>",
    };
    format!(
        "<disk type='{kind}' device='{device}'><driver name='qemu' {driver}/>{source}{target}{rest}</disk>"
    )
}

/// What these rules said of the outcome, as `rule severity`, in the order of rules.
fn said(outcome: &Outcome, rules: &[&str]) -> Vec<String> {
    let mut said: Vec<String> = outcome
        .findings
        .iter()
        .filter(|finding| rules.contains(&finding.rule.name))
        .map(|finding| format!("{} {}", finding.rule.name, finding.severity))
        .collect();
    said.sort();
    said
}

/// Which of these rules could not look at something.
fn not_checked<'a>(outcome: &Outcome, rules: &[&'a str]) -> Vec<&'a str> {
    rules
        .iter()
        .copied()
        .filter(|name| {
            outcome
                .not_checked
                .iter()
                .any(|missed| missed.rule.name == *name)
        })
        .collect()
}

fn finding<'o>(outcome: &'o Outcome, rule: &str) -> &'o Finding {
    outcome
        .findings
        .iter()
        .find(|finding| finding.rule.name == rule)
        .unwrap_or_else(|| panic!("{rule} says nothing: {outcome:#?}"))
}

const DIRECT: [&str; 6] = [
    "btrfs-cow-image",
    "btrfs-dio-buffered",
    "btrfs-dio-csum-corruption",
    "io-native-on-buffered-dio",
    "odirect-silently-buffered",
    "odirect-unsupported",
];

#[test]
fn each_host_answers_o_direct_in_its_own_way() {
    let native = "type='raw' cache='none' io='native'";
    let none = "type='raw' cache='none'";
    for (host, path, driver, expected) in [
        ("xfs-nvme", "/srv/img/web2.img", native, &[][..]),
        (
            "ramfs",
            "/run/build/build1.img",
            none,
            &["odirect-unsupported error"],
        ),
        (
            "tmpfs",
            "/run/build/build1.img",
            none,
            &["odirect-silently-buffered warning"],
        ),
        // Where Linux AIO is the worse part of the same cause, it alone is told.
        (
            "tmpfs",
            "/run/build/build1.img",
            native,
            &["io-native-on-buffered-dio warning"],
        ),
        (
            "ext4-data-journal",
            "/srv/img/web1.img",
            none,
            &["odirect-silently-buffered warning"],
        ),
        (
            "ext4-data-journal",
            "/srv/img/web1.img",
            "type='raw' cache='directsync'",
            &["odirect-silently-buffered warning"],
        ),
        (
            "btrfs-checksums-6.1",
            "/srv/img/web1.img",
            none,
            &["btrfs-cow-image warning", "btrfs-dio-csum-corruption error"],
        ),
        (
            "btrfs-checksums-6.1",
            "/srv/img/web1.img",
            native,
            &["btrfs-cow-image warning", "btrfs-dio-csum-corruption error"],
        ),
        ("btrfs-checksums-6.1", "/srv/nocow/db1.img", native, &[]),
        (
            "btrfs-checksums-6.18",
            "/srv/img/web1.img",
            none,
            &["btrfs-cow-image warning", "btrfs-dio-buffered warning"],
        ),
        (
            "btrfs-checksums-6.18",
            "/srv/img/web1.img",
            native,
            &[
                "btrfs-cow-image warning",
                "io-native-on-buffered-dio warning",
            ],
        ),
        (
            "btrfs-checksums-6.18",
            "/srv/img/web1.img",
            "type='raw' cache='writeback'",
            &["btrfs-cow-image warning"],
        ),
        // A file that is yet to be made is as its directory.
        (
            "btrfs-checksums-6.18",
            "/srv/img/new.img",
            none,
            &["btrfs-cow-image warning", "btrfs-dio-buffered warning"],
        ),
        ("btrfs-nocow-6.18", "/srv/nocow/new.img", none, &[]),
        // Without checksums, but with two copies that have to agree.
        (
            "btrfs-raid1-nocow-6.18",
            "/srv/nocow/db1.img",
            none,
            &["btrfs-dio-buffered warning"],
        ),
        ("lvm-thin-64k", "/dev/vg0/web1", native, &[]),
    ] {
        let facts = recorded(host);
        let outcome = run(
            &disk("disk", driver, path, ""),
            Some(&facts),
            "",
            Policy::default(),
        );
        assert_eq!(said(&outcome, &DIRECT), expected, "{host} {path} {driver}");
        assert!(
            not_checked(&outcome, &DIRECT).is_empty(),
            "{host} {path} {driver}"
        );
    }
}

#[test]
fn what_cannot_be_meant_is_neither_reported_nor_missing() {
    for xml in [
        disk("disk", "type='raw' cache='writeback'", "/dev/vg0/web1", ""),
        disk("cdrom", "type='raw'", "", "<readonly/>"),
        "<disk type='vhostuser' device='disk'><source type='unix' path='/run/v.sock'/><target dev='vda' bus='virtio'/></disk>".to_owned(),
        "<disk type='network' device='disk'><driver name='qemu' type='raw' cache='none' io='native'/>\
         <source protocol='nbd' name='x'><host name='nbd.example'/></source><target dev='vda' bus='virtio'/></disk>".to_owned(),
    ] {
        let outcome = run(&xml, None, "", Policy::default());
        assert!(said(&outcome, &DIRECT).is_empty(), "{xml}");
        assert!(not_checked(&outcome, &DIRECT).is_empty(), "{xml}: {:#?}", outcome.not_checked);
    }
}

#[test]
fn a_device_nobody_collected_is_not_judged_by_the_file_system_of_its_node() {
    let facts = Facts::parse(
        "mounts:\n- {id: m1, point: /dev, fstype: devtmpfs, fs: f1}\n\
         filesystems:\n- {id: f1, kind: devtmpfs}\n",
    )
    .unwrap()
    .facts;
    for source in ["/dev/vg0/web1", "/dev/sdq"] {
        let outcome = run(
            &disk("disk", "type='raw' cache='none'", source, ""),
            Some(&facts),
            "",
            Policy::default(),
        );
        assert!(said(&outcome, &DIRECT).is_empty(), "{source}");
        assert!(
            not_checked(&outcome, &DIRECT).contains(&"odirect-unsupported"),
            "{source}"
        );
    }
}

#[test]
fn an_image_below_is_opened_with_the_same_mode() {
    let facts = recorded("ramfs");
    let xml = "<disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none'/>\
        <source file='/top.qcow2'/>\
        <backingStore type='file'><format type='raw'/><source file='/run/build/build1.img'/></backingStore>\
        <target dev='vda' bus='virtio'/></disk>";
    let outcome = run(xml, Some(&facts), "", Policy::default());
    let found = finding(&outcome, "odirect-unsupported");
    assert_eq!(found.related.len(), 1);
    assert!(
        found.title.contains("/run/build/build1.img"),
        "{}",
        found.title
    );
}

#[test]
fn giving_up_o_direct_gives_up_linux_aio_with_it_and_never_touches_a_shared_disk() {
    let changes = |driver: &str, rest: &str| {
        let facts = recorded("ramfs");
        let outcome = run(
            &disk("disk", driver, "/run/build/build1.img", rest),
            Some(&facts),
            "",
            Policy::default(),
        );
        finding(&outcome, "odirect-unsupported")
            .fix
            .clone()
            .map(|fix| fix.changes)
    };
    let cache = |word: &str| Change::set(FieldPath::Disk(0, DiskField::Cache), word);
    let threads = Change::set(FieldPath::Disk(0, DiskField::Aio), "threads");
    assert_eq!(
        changes("type='raw' cache='none'", ""),
        Some(vec![cache("writeback")])
    );
    assert_eq!(
        changes("type='raw' cache='directsync'", ""),
        Some(vec![cache("writethrough")])
    );
    assert_eq!(
        changes("type='raw' cache='none' io='native'", ""),
        Some(vec![cache("writeback"), threads])
    );
    assert_eq!(changes("type='raw'", "<shareable/>"), None);
    assert_eq!(changes("type='raw' cache='none'", "<shareable/>"), None);
}

#[test]
fn a_verdict_from_a_version_is_less_sure_than_one_that_was_seen() {
    for (host, path, rule, expected) in [
        (
            "ramfs",
            "/run/build/build1.img",
            "odirect-unsupported",
            Confidence::Certain,
        ),
        (
            "ext4-data-journal",
            "/srv/img/web1.img",
            "odirect-silently-buffered",
            Confidence::Certain,
        ),
        (
            "tmpfs",
            "/run/build/build1.img",
            "odirect-silently-buffered",
            Confidence::Assumed,
        ),
        (
            "btrfs-checksums-6.1",
            "/srv/img/web1.img",
            "btrfs-dio-csum-corruption",
            Confidence::Assumed,
        ),
    ] {
        let facts = recorded(host);
        let outcome = run(
            &disk("disk", "type='raw' cache='none'", path, ""),
            Some(&facts),
            "",
            Policy::default(),
        );
        let found = finding(&outcome, rule);
        assert_eq!(found.confidence, expected, "{host}");
        let says_so = found
            .notes
            .iter()
            .any(|note| note.contains("known from the versions"));
        assert_eq!(
            says_so,
            expected == Confidence::Assumed,
            "{:?}",
            found.notes
        );
    }
}

const CACHE: [&str; 5] = [
    "cache-implicit",
    "cache-unsafe",
    "cache-writethrough",
    "native-without-direct",
    "shareable-cached",
];

#[test]
fn one_cause_in_the_cache_attributes_is_told_once() {
    for (device, driver, rest, expected) in [
        ("disk", "type='raw' cache='none'", "", &[][..]),
        ("disk", "type='raw'", "", &["cache-implicit advice"]),
        ("disk", "type='raw'", "<readonly/>", &[]),
        ("disk", "type='raw'", "<shareable/>", &[]),
        (
            "disk",
            "type='raw'",
            "<transient/>",
            &["cache-implicit advice"],
        ),
        ("cdrom", "type='raw'", "<readonly/>", &[]),
        ("cdrom", "type='raw' cache='writethrough'", "", &[]),
        ("floppy", "type='raw'", "", &[]),
        (
            "disk",
            "type='raw' cache='writethrough'",
            "",
            &["cache-writethrough warning"],
        ),
        (
            "disk",
            "type='raw' cache='directsync'",
            "<shareable/>",
            &["cache-writethrough warning"],
        ),
        (
            "disk",
            "type='raw' cache='writethrough'",
            "<readonly/>",
            &[],
        ),
        (
            "disk",
            "type='raw' cache='writethrough'",
            "<shareable/>",
            &["shareable-cached error"],
        ),
        (
            "disk",
            "type='raw' cache='unsafe'",
            "<shareable/>",
            &["shareable-cached error"],
        ),
        (
            "disk",
            "type='raw' cache='writeback'",
            "<shareable/><readonly/>",
            &[],
        ),
        (
            "disk",
            "type='raw' io='native'",
            "",
            &["native-without-direct error"],
        ),
        // libvirt looks before it fills in `none` for a shareable disk.
        (
            "disk",
            "type='raw' io='native'",
            "<shareable/>",
            &["native-without-direct error"],
        ),
        (
            "cdrom",
            "type='raw' io='native'",
            "<readonly/>",
            &["native-without-direct error"],
        ),
        (
            "disk",
            "type='raw' io='native' cache='writethrough'",
            "",
            &["cache-writethrough warning", "native-without-direct error"],
        ),
        (
            "disk",
            "type='raw' io='native' cache='directsync'",
            "",
            &["cache-writethrough warning"],
        ),
        ("lun", "type='raw'", "", &[]),
    ] {
        let xml = disk(device, driver, "/srv/img/a.img", rest);
        let outcome = run(&xml, None, "", Policy::default());
        assert_eq!(said(&outcome, &CACHE), expected, "{xml}");
    }
}

#[test]
fn io_uring_is_denied_to_nobody_to_everybody_or_to_those_outside_a_group() {
    let host = |disabled: &str, group: &str| {
        let text = format!("limits: {{io_uring_disabled: {disabled}, io_uring_group: {group}}}\n");
        Facts::parse(&text).unwrap().facts
    };
    let rule = ["io-uring-disabled"];
    for (disabled, group, target, expected, missing) in [
        ("0", "-1", "", &[][..], false),
        ("null", "null", "", &[], false),
        ("2", "-1", "", &["io-uring-disabled error"], false),
        ("2", "107", "", &["io-uring-disabled error"], false),
        ("1", "-1", "", &["io-uring-disabled error"], false),
        ("1", "107", "", &[], true),
        ("{unknown: permission}", "-1", "", &[], true),
        ("2", "-1", "qemu=7.2", &["io-uring-disabled error"], false),
        (
            "2",
            "-1",
            "qemu=10.0.13",
            &["io-uring-disabled warning"],
            false,
        ),
        ("2", "-1", "qemu=11.1", &["io-uring-disabled error"], false),
    ] {
        let facts = host(disabled, group);
        let xml = disk(
            "disk",
            "type='raw' cache='none' io='io_uring'",
            "/srv/img/a.img",
            "",
        );
        let outcome = run(&xml, Some(&facts), target, Policy::default());
        assert_eq!(
            said(&outcome, &rule),
            expected,
            "{disabled} {group} {target}"
        );
        assert_eq!(
            !not_checked(&outcome, &rule).is_empty(),
            missing,
            "{disabled} {group} {target}"
        );
    }
    let facts = host("2", "-1");
    for (driver, source, better) in [
        (
            "type='raw' cache='none' io='io_uring'",
            "/dev/vg0/a",
            "native",
        ),
        (
            "type='raw' cache='writeback' io='io_uring'",
            "/dev/vg0/a",
            "threads",
        ),
        (
            "type='raw' cache='none' io='io_uring'",
            "/srv/img/a.img",
            "threads",
        ),
    ] {
        let outcome = run(
            &disk("disk", driver, source, ""),
            Some(&facts),
            "",
            Policy::default(),
        );
        let fix = finding(&outcome, "io-uring-disabled").fix.clone().unwrap();
        assert_eq!(
            fix.changes,
            [Change::set(FieldPath::Disk(0, DiskField::Aio), better)],
            "{driver} {source}"
        );
    }
}

const FORMAT: [&str; 2] = ["format-mismatch", "format-missing"];

#[test]
fn a_format_is_held_against_the_header_where_there_is_one() {
    let facts = Facts::parse(
        "files:\n\
         - {path: /raw, image: {format: raw}}\n\
         - {path: /qcow2, image: {format: qcow2}}\n\
         - {path: /vmdk, image: {format: vmdk}}\n\
         - {path: /luks, image: {format: luks}}\n\
         - {path: /new-format, image: {format: hologram}}\n\
         - {path: /hidden, image: {unknown: permission}}\n\
         - {path: /gone, present: false}\n",
    )
    .unwrap()
    .facts;
    for (device, format, path, expected, missing) in [
        ("disk", "type='raw'", "/raw", &[][..], false),
        ("disk", "type='raw'", "/luks", &[], false),
        ("disk", "type='raw'", "/new-format", &[], false),
        ("disk", "type='raw'", "/gone", &[], false),
        ("disk", "type='raw'", "/hidden", &[], true),
        ("disk", "type='raw'", "/elsewhere", &[], true),
        (
            "disk",
            "type='raw'",
            "/qcow2",
            &["format-mismatch error"],
            false,
        ),
        (
            "cdrom",
            "type='raw'",
            "/vmdk",
            &["format-mismatch error"],
            false,
        ),
        ("disk", "type='qcow2'", "/qcow2", &[], false),
        (
            "disk",
            "type='qcow2'",
            "/raw",
            &["format-mismatch error"],
            false,
        ),
        ("disk", "type='vpc'", "/raw", &[], false),
        ("disk", "", "/raw", &["format-missing warning"], false),
        ("disk", "", "/hidden", &["format-missing warning"], false),
        ("disk", "", "/qcow2", &["format-missing error"], false),
        ("cdrom", "", "/raw", &[], false),
        ("cdrom", "", "/qcow2", &["format-missing error"], false),
        ("floppy", "", "/raw", &[], false),
        ("lun", "", "/dev/raw", &[], false),
    ] {
        let xml = disk(device, format, path, "");
        let outcome = run(&xml, Some(&facts), "", Policy::default());
        assert_eq!(said(&outcome, &FORMAT), expected, "{xml}");
        assert_eq!(!not_checked(&outcome, &FORMAT).is_empty(), missing, "{xml}");
    }
}

const THIN: [&str; 4] = [
    "detect-zeroes-unmap-no-discard",
    "discard-missing-thin",
    "thin-chunk-large-with-snapshots",
    "thin-zeroing-off",
];

#[test]
fn thin_storage_is_told_from_thick() {
    let sparse = "/srv/img/web1.img";
    for (host, driver, source, rest, expected) in [
        (
            "lvm-thin-64k",
            "type='raw' cache='none'",
            "/dev/vg0/web1",
            "",
            &["discard-missing-thin warning"][..],
        ),
        (
            "lvm-thin-64k",
            "type='raw' cache='none' discard='ignore'",
            "/dev/vg0/web1",
            "",
            &["discard-missing-thin warning"],
        ),
        (
            "lvm-thin-64k",
            "type='raw' cache='none' discard='unmap'",
            "/dev/vg0/web1",
            "",
            &[],
        ),
        (
            "lvm-thin-64k",
            "type='raw' cache='none'",
            "/dev/vg0/web1",
            "<readonly/>",
            &[],
        ),
        (
            "lvm-thin-64k",
            "type='raw' cache='none' detect_zeroes='unmap'",
            "/dev/vg0/web1",
            "",
            &["detect-zeroes-unmap-no-discard warning"],
        ),
        (
            "xfs-nvme",
            "type='raw' cache='none'",
            "/dev/vg0/db1",
            "",
            &[],
        ),
        (
            "btrfs-checksums-6.18",
            "type='raw' cache='writeback'",
            sparse,
            "",
            &["discard-missing-thin advice"],
        ),
        (
            "btrfs-checksums-6.18",
            "type='raw' cache='writeback'",
            sparse,
            "<transient/>",
            &[],
        ),
        (
            "xfs-nvme",
            "type='qcow2' cache='none'",
            "/srv/img/web1.qcow2",
            "",
            &["discard-missing-thin advice"],
        ),
        (
            "lvm-thin-4m-nozero",
            "type='raw' cache='none' discard='unmap'",
            "/dev/vg0/web1",
            "",
            &["thin-zeroing-off error"],
        ),
        // The one volume was snapshot, the next is the snapshot, the third shares nothing.
        (
            "lvm-thin-4m-snapshots",
            "type='raw' cache='none' discard='unmap'",
            "/dev/vg0/web1",
            "",
            &["thin-chunk-large-with-snapshots warning"],
        ),
        (
            "lvm-thin-4m-snapshots",
            "type='raw' cache='none' discard='unmap'",
            "/dev/vg0/web1-before-upgrade",
            "",
            &["thin-chunk-large-with-snapshots warning"],
        ),
        (
            "lvm-thin-4m-snapshots",
            "type='raw' cache='none' discard='unmap'",
            "/dev/vg0/web2",
            "",
            &[],
        ),
    ] {
        let facts = recorded(host);
        let xml = disk("disk", driver, source, rest);
        let outcome = run(&xml, Some(&facts), "", Policy::default());
        assert_eq!(said(&outcome, &THIN), expected, "{host} {xml}");
        assert!(not_checked(&outcome, &THIN).is_empty(), "{host} {xml}");
    }
}

#[test]
fn who_shares_the_host_decides_how_bad_old_data_is() {
    let facts = recorded("lvm-thin-4m-nozero");
    let xml = disk(
        "disk",
        "type='raw' cache='none' discard='unmap'",
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
        assert!(
            found.notes.iter().any(|note| note.contains("trade-off")),
            "{:?}",
            found.notes
        );
    }
}

#[test]
fn without_root_the_chunk_is_known_and_zeroing_is_not() {
    let facts = Facts::parse(
        "blockdevs:\n\
         - id: b1\n  dev: '253:3'\n  kind: lvm-thin\n  paths: [/dev/vg0/web1]\n\
         \x20 queue: {io_opt: 4194304, discard_granularity: 4194304}\n\
         \x20 lvm: {vg: vg0, lv: web1, snapshots: 2, zero: {unknown: permission}, chunk: {unknown: permission}}\n",
    )
    .unwrap()
    .facts;
    let xml = disk(
        "disk",
        "type='raw' cache='none' discard='unmap'",
        "/dev/vg0/web1",
        "",
    );
    let outcome = run(&xml, Some(&facts), "", Policy::default());
    assert_eq!(
        said(&outcome, &THIN),
        ["thin-chunk-large-with-snapshots warning"]
    );
    assert_eq!(not_checked(&outcome, &THIN), ["thin-zeroing-off"]);
}

#[test]
fn a_source_is_missing_only_if_somebody_looked() {
    let facts = Facts::parse(
        "files:\n- {path: /there, kind: regular}\n- {path: /gone, present: false}\n\
         blockdevs:\n- {id: b1, dev: '8:16', kind: disk, paths: [/dev/sdb]}\n",
    )
    .unwrap()
    .facts;
    let rule = ["source-missing"];
    for (device, path, expected, missing) in [
        ("disk", "/there", &[][..], false),
        ("disk", "/dev/sdb", &[], false),
        ("disk", "/nobody-looked", &[], true),
        ("disk", "/gone", &["source-missing error"], false),
        ("cdrom", "/gone", &["source-missing warning"], false),
        ("cdrom", "", &[], false),
    ] {
        let outcome = run(
            &disk(device, "type='raw'", path, ""),
            Some(&facts),
            "",
            Policy::default(),
        );
        assert_eq!(said(&outcome, &rule), expected, "{device} {path}");
        assert_eq!(
            !not_checked(&outcome, &rule).is_empty(),
            missing,
            "{device} {path}"
        );
    }
}

fn article(name: &str) -> (String, Facts) {
    let folder = fixtures().join("articles").join(name);
    let xml = std::fs::read_to_string(folder.join("domain.xml")).unwrap();
    (xml, facts_in(&folder.join("facts.json")))
}

fn all_of_these_rules() -> Vec<&'static str> {
    let more = ["io-uring-disabled", "source-missing"];
    [&DIRECT[..], &CACHE, &FORMAT, &THIN, &more].concat()
}

#[test]
fn the_articles_are_told_what_they_did_not_know() {
    for (name, expected) in [
        (
            "000-btrfs-cache-modes",
            &["btrfs-cow-image warning", "btrfs-dio-csum-corruption error"][..],
        ),
        (
            "001-lvm-thin-iothread-hugepages",
            &["discard-missing-thin warning", "thin-zeroing-off error"],
        ),
        (
            "002-md-btrfs-schedulers",
            &["btrfs-cow-image warning", "btrfs-dio-csum-corruption error"],
        ),
        ("003-qcow2-io-native", &["discard-missing-thin advice"]),
        (
            "004-direct-raw-qcow2",
            &[
                "cache-implicit advice",
                "cache-implicit advice",
                "cache-implicit advice",
                "cache-implicit advice",
                "discard-missing-thin advice",
            ],
        ),
    ] {
        let (xml, facts) = article(name);
        let outcome = run(&xml, Some(&facts), "", Policy::default());
        assert_eq!(said(&outcome, &all_of_these_rules()), expected, "{name}");
        assert!(
            not_checked(&outcome, &all_of_these_rules()).is_empty(),
            "{name}: {:#?}",
            outcome.not_checked
        );
    }
}

#[test]
fn each_mode_of_the_first_article_has_its_own_answer() {
    let (xml, facts) = article("000-btrfs-cache-modes");
    for (mode, expected) in [
        (
            "writethrough",
            &["btrfs-cow-image warning", "cache-writethrough warning"][..],
        ),
        (
            "none",
            &["btrfs-cow-image warning", "btrfs-dio-csum-corruption error"],
        ),
        ("writeback", &["btrfs-cow-image warning"]),
        ("unsafe", &["btrfs-cow-image warning", "cache-unsafe error"]),
    ] {
        let xml = xml.replace("cache='none'", &format!("cache='{mode}'"));
        let outcome = run(&xml, Some(&facts), "", Policy::default());
        assert_eq!(said(&outcome, &all_of_these_rules()), expected, "{mode}");
    }
}
