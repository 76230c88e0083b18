//! `duplicate-disk-source`

use vmdisk_model::{FieldPath, ImageField};

use super::support::{block, disk, guest, lint, lint_on, lint_with, text_of};

const RULE: &str = "duplicate-disk-source";

/// Two disks on one file, with these elements inside.
fn twice(first: &str, second: &str) -> String {
    guest(
        "",
        &(disk("", "/a.img", "vda", "virtio", first)
            + &disk("", "/a.img", "vdb", "virtio", second)),
    )
}

#[test]
fn who_writes_and_who_shares_decides() {
    for (first, second, is_reported) in [
        ("", "", true),
        ("<readonly/>", "", true),
        ("", "<readonly/>", true),
        ("<readonly/>", "<readonly/>", false),
        ("<shareable/>", "<shareable/>", false),
        ("<shareable/>", "", true),
        ("<shareable/>", "<readonly/><shareable/>", false),
        ("<shareable/>", "<readonly/>", true),
        // QEMU writes a transient disk's changes elsewhere.
        ("<transient/>", "<transient/>", false),
        ("<transient/>", "<readonly/>", false),
        ("<transient/>", "", true),
    ] {
        let said = lint_on(RULE, "xfs-nvme", &twice(first, second));
        assert_eq!(
            !said.findings.is_empty(),
            is_reported,
            "{first} and {second}"
        );
    }
}

#[test]
fn of_many_disks_each_is_held_against_the_first_it_conflicts_with() {
    let inside = [
        "<readonly/>",
        "<readonly/><shareable/>",
        "<shareable/>",
        "",
        "<readonly/>",
    ];
    let disks: String = inside
        .iter()
        .enumerate()
        .map(|(index, inside)| {
            let dev = format!("vd{}", char::from(b'a' + index as u8));
            disk("", "/a.img", &dev, "virtio", inside)
        })
        .collect();
    let said = lint(RULE, &guest("", &disks));
    let at = |index| FieldPath::Image(index, 0, ImageField::Path);
    let pairs: Vec<_> = said
        .findings
        .iter()
        .map(|finding| (finding.at, finding.details().related[0].at))
        .collect();
    // The shareable writer meets the reader that does not share; the plain writer meets everybody; the
    // last reader meets the shareable writer first.
    assert_eq!(pairs, [(at(2), at(0)), (at(3), at(0)), (at(4), at(2))]);
}

#[test]
fn drives_with_the_same_medium_and_empty_drives_are_fine() {
    let drive = |dev: &str, source: &str| {
        format!("<disk type='file' device='cdrom'>{source}<target dev='{dev}' bus='sata'/></disk>")
    };
    let iso = "<source file='/i.iso'/>";
    let devices = drive("sda", iso) + &drive("sdb", iso) + &drive("sdc", "") + &drive("sdd", "");
    lint(RULE, &guest("", &devices)).is_clean();
}

#[test]
fn sources_that_are_not_on_this_host_are_not_compared() {
    let network = |dev: &str| {
        format!(
            "<disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='nbd' name='x'><host name='h'/></source><target dev='{dev}' bus='virtio'/></disk>"
        )
    };
    lint(RULE, &guest("", &(network("vda") + &network("vdb")))).is_clean();
}

#[test]
fn two_disks_that_only_read_need_no_facts() {
    let devices = disk("", "/a.img", "vda", "virtio", "<readonly/>")
        + &disk("", "/b.img", "vdb", "virtio", "<readonly/>");
    lint(RULE, &guest("", &devices)).is_clean();
}

#[test]
fn one_disk_needs_no_facts_and_many_miss_them_once() {
    lint(RULE, &guest("", &disk("", "/a.img", "vda", "virtio", ""))).is_clean();
    let many: String = ["a", "b", "c", "d"]
        .iter()
        .map(|name| {
            disk(
                "",
                &format!("/{name}.img"),
                &format!("vd{name}"),
                "virtio",
                "",
            )
        })
        .collect();
    let said = lint(RULE, &guest("", &many));
    said.missed("no facts were given");
    assert_eq!(said.missed.len(), 1, "{:?}", said.missed);
}

#[test]
fn a_hard_link_and_a_symbolic_link_are_the_same_file() {
    let facts = |inode: &str| {
        format!(
            r#"{{"schema_version":"1.0","files":[
                {{"path":"/a.img","present":true,"kind":"regular","inode":"8:1/12"}},
                {{"path":"/b.img","present":true,"kind":"regular","inode":"{inode}"}}]}}"#
        )
    };
    let devices =
        disk("", "/a.img", "vda", "virtio", "") + &disk("", "/b.img", "vdb", "virtio", "");
    let text = guest("", &devices);
    let said = lint_with(RULE, &facts("8:1/12"), &text);
    assert!(
        said.one().text.title.contains("the same image as"),
        "{}",
        said.one().text.title
    );
    lint_with(RULE, &facts("8:1/13"), &text).is_clean();
}

#[test]
fn one_file_is_recognized_under_each_spelling_of_its_path() {
    for (first, second, is_reported) in [
        ("/srv/a.img", "/srv//a.img", true),
        ("/srv/./a.img", "//srv/a.img", true),
        ("/srv/a.img", "/srv/b.img", false),
        // `x` may be a link.
        ("/srv/a.img", "/srv/x/../a.img", false),
        ("a.img", ".//a.img", false),
    ] {
        let devices = disk("", first, "vda", "virtio", "") + &disk("", second, "vdb", "virtio", "");
        let said = lint(RULE, &guest("", &devices));
        assert_eq!(said.findings.len(), usize::from(is_reported), "{second}");
    }
}

#[test]
fn one_volume_of_a_pool_is_one_image() {
    let volume = |pool: &str, target: &str| {
        format!(
            "<disk type='volume' device='disk'><driver name='qemu' type='raw'/>\
             <source pool='{pool}' volume='v'/><target dev='{target}' bus='virtio'/></disk>"
        )
    };
    for (pool, is_reported) in [("p", true), ("q", false)] {
        let text = guest("", &(volume("p", "vda") + &volume(pool, "vdb")));
        let said = lint(RULE, &text);
        assert_eq!(said.findings.len(), usize::from(is_reported), "{pool}");
    }
}

#[test]
fn the_backing_image_that_a_header_names_is_in_use() {
    let facts = r#"{"schema_version": "1.0", "files": [
        {"path": "/top.qcow2", "present": true, "inode": "8:1/1",
         "image": {"format": "qcow2", "backing": {"path": "base.qcow2", "format": "qcow2"}}},
        {"path": "/base.qcow2", "present": true, "inode": "8:1/2", "image": {"format": "qcow2"}}]}"#;
    for (inside, is_reported) in [("", true), ("<readonly/>", false)] {
        let devices = disk("", "/top.qcow2", "vda", "virtio", "")
            + &disk("", "/base.qcow2", "vdb", "virtio", inside);
        let devices = devices.replace("'raw'", "'qcow2'");
        let said = lint_with(RULE, facts, &guest("", &devices));
        assert_eq!(said.findings.len(), usize::from(is_reported), "{inside}");
    }
}

#[test]
fn a_loop_device_overlaps_its_file_and_a_partition_its_disk() {
    for (first, second, how) in [
        (
            disk("", "/srv/img/rescue.img", "vda", "virtio", ""),
            block("", "/dev/loop0", "vdb", "virtio", ""),
            "a loop device over",
        ),
        (
            block(
                "",
                "/dev/disk/by-id/wwn-0x5000c500a1b2c3d5",
                "vda",
                "virtio",
                "",
            ),
            block(
                "",
                "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2",
                "vdb",
                "virtio",
                "",
            ),
            "",
        ),
        (
            block(
                "",
                "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2",
                "vda",
                "virtio",
                "",
            ),
            block("", "/dev/sdb", "vdb", "virtio", ""),
            "a partition of",
        ),
    ] {
        let said = lint_on(RULE, "mounted-partition", &guest("", &(first + &second)));
        if how.is_empty() {
            assert!(said.findings.is_empty(), "{:#?}", said.findings);
        } else {
            assert!(text_of(said.one()).contains(how), "{}", text_of(said.one()));
        }
    }
}

#[test]
fn a_data_file_is_opened_as_an_image_is() {
    let with = |source: &str| {
        format!(
            "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/>{source}<target dev='vda' bus='virtio'/></disk>"
        )
    };
    let written = with(
        "<source file='/a.qcow2'><dataStore type='file'><format type='raw'/><source file='/a.img'/></dataStore></source>",
    );
    let in_header = with("<source file='/a.qcow2'/>");
    let facts = r#"{"schema_version": "1.0", "files": [
        {"path": "/a.qcow2", "present": true, "image": {"format": "qcow2", "data_file": "/a.img"}}]}"#;
    for (qcow2, is_writable, expected) in [
        (&written, true, 1),
        (&in_header, true, 1),
        (&in_header, false, 0),
    ] {
        let inside = if is_writable { "" } else { "<readonly/>" };
        let qcow2 = qcow2.replace("<target", &format!("{inside}<target"));
        let raw = disk("", "/a.img", "vdb", "virtio", inside);
        let said = lint_with(RULE, facts, &guest("", &(qcow2 + &raw)));
        assert_eq!(said.findings.len(), expected, "{:#?}", said.findings);
    }
}
