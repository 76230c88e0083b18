//! `source-is-mounted`, `md-degraded`.

use vmdisk::rules::Severity;
use vmdisk_model::{FieldPath, ImageField};

use super::support::{block, disk, guest, lint, lint_on, lint_with, text_of};

const MOUNTED: &str = "source-is-mounted";

fn by_id(end: &str) -> String {
    format!("/dev/disk/by-id/wwn-0x5000c500a1b2c3d{end}")
}

#[test]
fn whatever_the_host_does_with_a_device_is_seen() {
    for (path, words) in [
        // A partition of it is mounted.
        (by_id("4"), Some("mounted at /srv/backup")),
        (by_id("4-part1"), Some("mounted at /srv/backup")),
        // The partition beside it is not.
        (by_id("4-part2"), None),
        // A volume group is active on it, and the volume itself is free.
        (by_id("5"), Some("the logical volume /dev/vg0/guestdata")),
        ("/dev/vg0/guestdata".to_owned(), None),
        // Both members of a btrfs, of which mountinfo names one.
        (by_id("6"), Some("mounted at /srv/archive")),
        (by_id("7"), Some("mounted at /srv/archive")),
        (by_id("8-part1"), Some("is active swap")),
        (
            by_id("8-part2"),
            Some("the opened container /dev/mapper/vault"),
        ),
        (by_id("8"), Some("is active swap")),
        ("/dev/loop0".to_owned(), Some("mounted at /mnt/rescue")),
    ] {
        let said = lint_on(
            MOUNTED,
            "mounted-partition",
            &guest("", &block("", &path, "vda", "virtio", "")),
        );
        match words {
            Some(words) => {
                assert!(
                    text_of(said.one()).contains(words),
                    "{path}: {}",
                    text_of(said.one())
                );
                assert_eq!(said.one().severity, Severity::Error, "{path}");
            }
            None => said.is_clean(),
        }
    }
}

#[test]
fn a_guest_that_only_reads_is_warned_and_not_even_that_if_the_host_only_reads_too() {
    let severities = |path: &str, inside: &str| {
        let text = guest("", &block("", path, "vda", "virtio", inside));
        lint_on(MOUNTED, "mounted-partition", &text).severities()
    };
    assert_eq!(severities(&by_id("4"), "<readonly/>"), [Severity::Warning]);
    assert_eq!(severities(&by_id("9"), "<readonly/>"), []);
    assert_eq!(severities(&by_id("9"), ""), [Severity::Error]);
}

#[test]
fn an_image_file_is_mounted_through_its_loop_device() {
    let said = lint_on(
        MOUNTED,
        "mounted-partition",
        &guest("", &disk("", "/srv/img/rescue.img", "vda", "virtio", "")),
    );
    assert!(text_of(said.one()).contains("/mnt/rescue"));
    lint_on(
        MOUNTED,
        "mounted-partition",
        &guest("", &disk("", "/srv/img/other.img", "vda", "virtio", "")),
    )
    .is_clean();
}

#[test]
fn drives_for_media_are_left_alone_and_files_need_no_facts() {
    let drive = format!(
        "<disk type='block' device='cdrom'><source dev='{}'/><target dev='sda' bus='sata'/></disk>",
        by_id("4")
    );
    lint_on(MOUNTED, "mounted-partition", &guest("", &drive)).is_clean();
    lint(
        MOUNTED,
        &guest("", &disk("", "/a.img", "vda", "virtio", "")),
    )
    .is_clean();
}

#[test]
fn a_device_that_nobody_looked_at_is_not_called_free() {
    let text = guest("", &block("", "/dev/vg9/x", "vda", "virtio", ""));
    lint_on(MOUNTED, "mounted-partition", &text).missed("/dev/vg9/x");
    let facts = |rest: &str| {
        format!(
            r#"{{"schema_version":"1.0","blockdevs":[{{"id":"b1","kind":"lvm","paths":["/dev/vg9/x"]{rest}}}]}}"#
        )
    };
    lint_with(MOUNTED, &facts(""), &text).missed("not collected");
    lint_with(
        MOUNTED,
        &facts(r#","mounted_at":[],"holders":{"unknown":"permission"},"partitions":[]"#),
        &text,
    )
    .missed("permission");
    lint_with(
        MOUNTED,
        &facts(r#","mounted_at":[],"holders":[],"partitions":[]"#),
        &text,
    )
    .is_clean();
    // One thing that is known to be wrong is enough.
    let said = lint_with(
        MOUNTED,
        &facts(r#","mounted_at":["/x"],"holders":{"unknown":"permission"}"#),
        &text,
    );
    assert_eq!(said.severities(), [Severity::Error]);
}

#[test]
fn partition_maps_that_the_host_makes_for_every_table_hold_nothing() {
    let facts = |mounted: &str| {
        format!(
            r#"{{"schema_version":"1.0","blockdevs":[
            {{"id":"b1","kind":"multipath","paths":["/dev/mapper/mpatha"],"mounted_at":[],"holders":["b2"],"partitions":[]}},
            {{"id":"b2","kind":"multipath-partition","paths":["/dev/mapper/mpatha-part1"],"mounted_at":[{mounted}],"holders":[],"partitions":[],"slaves":["b1"]}}]}}"#
        )
    };
    let text = guest("", &block("", "/dev/mapper/mpatha", "vda", "virtio", ""));
    lint_with(MOUNTED, &facts(""), &text).is_clean();
    assert_eq!(
        lint_with(MOUNTED, &facts("\"/x\""), &text).severities(),
        [Severity::Error]
    );
}

#[test]
fn a_cycle_in_the_facts_ends() {
    let facts = r#"{"schema_version":"1.0","blockdevs":[
        {"id":"b1","kind":"disk","paths":["/dev/sda"],"mounted_at":[],"holders":["b2"],"partitions":[]},
        {"id":"b2","kind":"md","paths":["/dev/md0"],"mounted_at":[],"holders":["b1"],"partitions":[],"slaves":["b1"]}]}"#;
    let text = guest("", &block("", "/dev/sda", "vda", "virtio", ""));
    assert!(text_of(lint_with(MOUNTED, facts, &text).one()).contains("the array /dev/md0"));
}

const DEGRADED: &str = "md-degraded";

/// A host with an array under a volume group.
fn array(md: &str, lvm: &str) -> String {
    format!(
        r#"{{"schema_version":"1.0","blockdevs":[
        {{"id":"b1","kind":"lvm","paths":["/dev/vg0/a"],"slaves":["b3"],"lvm":{{{lvm}}}}},
        {{"id":"b2","kind":"lvm","paths":["/dev/vg0/b"],"slaves":["b3"],"lvm":null}},
        {{"id":"b3","kind":"md","paths":["/dev/md0"],"slaves":["b4"],"md":{{{md}}}}},
        {{"id":"b4","kind":"nvme","paths":["/dev/nvme0n1"]}}]}}"#
    )
}

fn two_volumes() -> String {
    guest(
        "",
        &(block("", "/dev/vg0/a", "vda", "virtio", "")
            + &block("", "/dev/vg0/b", "vdb", "virtio", "")),
    )
}

#[test]
fn an_array_is_reported_once_with_all_its_disks() {
    let facts = array(
        r#""level":"raid1","degraded":1,"raid_disks":2,"sync":"idle""#,
        r#""segtype":"linear""#,
    );
    let said = lint_with(DEGRADED, &facts, &two_volumes());
    let finding = said.one();
    assert_eq!(
        finding.text.title,
        "/dev/md0 under `vda` is degraded: 1 of its 2 members missing"
    );
    assert_eq!(
        finding.details().related[0].at,
        FieldPath::Image(1, 0, ImageField::Path)
    );
}

#[test]
fn a_rebuild_is_told_from_an_array_that_waits_for_a_drive() {
    for (sync, words) in [("recover", "it was rebuilding"), ("idle", "not rebuilding")] {
        let facts = array(
            &format!(r#""level":"raid5","degraded":2,"sync":"{sync}""#),
            "",
        );
        let said = lint_with(DEGRADED, &facts, &two_volumes());
        assert!(
            text_of(said.one()).contains(words),
            "{}",
            text_of(said.one())
        );
    }
}

#[test]
fn levels_without_redundancy_have_none_to_lose() {
    let facts = array(
        r#""level":"raid0","degraded":null,"sync":null"#,
        r#""segtype":"linear","health":null"#,
    );
    lint_with(DEGRADED, &facts, &two_volumes()).is_clean();
}

#[test]
fn an_unhealthy_volume_counts_and_its_health_is_asked_only_of_mirrors() {
    let md = r#""level":"raid1","degraded":0,"raid_disks":2"#;
    let said = lint_with(
        DEGRADED,
        &array(md, r#""segtype":"raid1","health":"partial""#),
        &two_volumes(),
    );
    assert!(
        said.one().text.title.contains("`partial`"),
        "{}",
        said.one().text.title
    );
    lint_with(
        DEGRADED,
        &array(md, r#""segtype":"linear""#),
        &two_volumes(),
    )
    .is_clean();
    lint_with(DEGRADED, &array(md, r#""segtype":"raid1""#), &two_volumes())
        .missed("the health of /dev/vg0/a");
    lint_with(DEGRADED, &array(r#""level":"raid1""#, ""), &two_volumes()).missed("/dev/md0");
}
