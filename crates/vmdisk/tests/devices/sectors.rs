//! `guest-sector-512-on-4kn`

use vmdisk::rules::Severity;
use vmdisk_model::{DiskField, FieldPath};

use super::support::{block, disk, fix_of, guest, lint, lint_on, lint_with, text_of};

const RULE: &str = "guest-sector-512-on-4kn";
const LV: &str = "/dev/vg4k/db1";

#[test]
fn direct_io_makes_it_a_warning_and_the_page_cache_advice() {
    for (driver, severity) in [
        ("cache='none'", Severity::Warning),
        ("cache='directsync'", Severity::Warning),
        ("cache='writeback'", Severity::Advice),
        ("", Severity::Advice),
    ] {
        let said = lint_on(
            RULE,
            "disk-4kn",
            &guest("", &block(driver, LV, "vda", "virtio", "")),
        );
        assert_eq!(said.severities(), [severity], "{driver}");
    }
}

#[test]
fn whoever_wrote_a_size_has_decided() {
    for (blockio, is_reported) in [
        (
            "<blockio logical_block_size='4096' physical_block_size='4096'/>",
            false,
        ),
        ("<blockio logical_block_size='512'/>", false),
        ("<blockio physical_block_size='4096'/>", false),
        ("<blockio physical_block_size='512'/>", true),
        ("<blockio discard_granularity='4096'/>", true),
    ] {
        let said = lint_on(
            RULE,
            "disk-4kn",
            &guest("", &block("cache='none'", LV, "vda", "virtio", blockio)),
        );
        assert_eq!(!said.findings.is_empty(), is_reported, "{blockio}");
    }
}

#[test]
fn devices_that_cannot_have_or_do_not_need_large_sectors_are_left_alone() {
    for devices in [
        block("cache='none'", LV, "sda", "sata", ""),
        block("cache='none'", LV, "hda", "ide", ""),
        block("cache='none'", LV, "vda", "virtio", "<readonly/>"),
        "<disk type='block' device='lun'><driver name='qemu' type='raw' cache='none'/><source dev='/dev/vg4k/db1'/><target dev='sda' bus='scsi'/></disk>".to_owned(),
        "<disk type='block' device='cdrom'><driver name='qemu' type='raw'/><source dev='/dev/vg4k/db1'/><target dev='sda' bus='scsi'/></disk>".to_owned(),
    ] {
        lint_on(RULE, "disk-4kn", &guest("", &devices)).is_clean();
    }
    lint_on(
        RULE,
        "xfs-nvme",
        &guest(
            "",
            &block("cache='none'", "/dev/vg0/db1", "vda", "virtio", ""),
        ),
    )
    .is_clean();
}

#[test]
fn only_a_data_disk_that_does_not_exist_gets_new_sectors() {
    let decided = "<blockio logical_block_size='512'/>";
    let boot = disk("", "/srv/img/old.img", "vda", "virtio", decided);
    let at = |disk, field| FieldPath::Disk(disk, field);
    let physical = |disk| (at(disk, DiskField::PhysicalBlockSize), Some("4096"));
    let logical = |disk| (at(disk, DiskField::LogicalBlockSize), Some("4096"));
    for (boot, path, fix) in [
        (&boot, "/srv/img/old.img", vec![physical(1)]),
        (&boot, "/srv/img/new.img", vec![logical(1), physical(1)]),
        // A file that nobody looked for may exist.
        (&boot, "/srv/img/other.img", vec![physical(1)]),
        // SeaBIOS boots from no such disk.
        (&String::new(), "/srv/img/new.img", vec![physical(0)]),
    ] {
        let devices = boot.clone() + &disk("cache='none'", path, "vdb", "virtio", "");
        let said = lint_on(RULE, "disk-4kn", &guest("", &devices));
        assert_eq!(fix_of(said.one()), fix, "{path}");
    }
}

#[test]
fn a_file_has_the_sectors_of_its_device_where_the_file_system_passes_requests_on() {
    let facts = |kind: &str| {
        format!(
            r#"{{"schema_version":"1.0","mounts":[{{"id":"m1","point":"/srv","fs":"f1"}}],
            "filesystems":[{{"id":"f1","kind":"{kind}","devices":["b1"]}}],
            "blockdevs":[{{"id":"b1","kind":"nvme","paths":["/dev/nvme0n1"],"queue":{{"logical":4096}}}}]}}"#
        )
    };
    for (kind, is_reported) in [
        ("xfs", true),
        ("ext4", true),
        ("btrfs", false),
        ("nfs", false),
    ] {
        let said = lint_with(
            RULE,
            &facts(kind),
            &guest("", &disk("cache='none'", "/srv/a.img", "vda", "virtio", "")),
        );
        assert_eq!(!said.findings.is_empty(), is_reported, "{kind}");
        assert!(said.missed.is_empty(), "{kind}: {:?}", said.missed);
    }
    let unknown = facts("xfs").replace(r#","queue":{"logical":4096}"#, "");
    lint_with(
        RULE,
        &unknown,
        &guest("", &disk("cache='none'", "/srv/a.img", "vda", "virtio", "")),
    )
    .missed("sector size");
}

#[test]
fn seabios_boots_the_first_disk_in_the_order_of_libvirt() {
    let large = "<blockio logical_block_size='4096' physical_block_size='4096'/>";
    let network = "<interface type='user'><boot order='1'/></interface>";
    let guest_of = |disks: [(&str, &str); 2], more: &str| {
        let disks = disks.map(|(dev, inside)| disk("", &format!("/{dev}"), dev, "virtio", inside));
        guest("", &(disks.concat() + more))
    };
    let seabios = |disks, more: &str| {
        let verdict = lint("seabios-4096-sectors", &guest_of(disks, more));
        !verdict.findings.is_empty()
    };
    assert!(seabios([("vdc", ""), ("vda", large)], ""));
    assert!(!seabios([("vdc", large), ("vda", "")], ""));
    assert!(!seabios([("vdc", ""), ("vda", large)], network));
    let first = format!("{large}<boot order='2'/>");
    assert!(seabios([("vdc", &first), ("vda", "")], network));

    let emulated = |disks: [String; 3]| lint("bus-emulated", &guest("", &disks.concat()));
    let virtio = |dev| disk("", &format!("/{dev}"), dev, "virtio", "");
    let found = emulated([
        virtio("vdc"),
        virtio("vda"),
        disk("", "/s", "sda", "sata", ""),
    ]);
    let text = text_of(found.one());
    assert!(text.contains("boots from `vda`"), "{text}");
}
