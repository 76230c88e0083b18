//! `duplicate-target`, `target-bus-mismatch`, `unstable-device-path`.

use vmdisk::rules::{Applicability, Severity};
use vmdisk_model::{DiskField, FieldPath, ImageField};

use super::support::{block, disk, fix_of, guest, lint, lint_on, lint_with, text_of};

#[test]
fn each_further_disk_of_one_name_is_offered_another_free_one() {
    let disks: String = ["vda", "vdb", "vda", "vda"]
        .iter()
        .enumerate()
        .map(|(index, dev)| disk("", &format!("/{index}.img"), dev, "virtio", ""))
        .collect();
    let said = lint("duplicate-target", &guest("", &disks));
    let fixes: Vec<_> = said.findings.iter().flat_map(fix_of).collect();
    let at = |disk| FieldPath::Disk(disk, DiskField::TargetDev);
    assert_eq!(fixes, [(at(2), Some("vdc")), (at(3), Some("vdd"))]);
    assert!(
        said.findings[1].details().related[0].at == at(0),
        "the first one is pointed at"
    );
}

#[test]
fn one_name_on_two_buses_and_an_empty_drive_are_one_name_too() {
    let devices = disk("", "/a.img", "sda", "scsi", "")
        + "<disk type='file' device='cdrom'><target dev='sda' bus='sata'/></disk>";
    let said = lint("duplicate-target", &guest("", &devices));
    let text = text_of(said.one());
    assert!(
        text.contains("target 'sda' duplicated for disk sources '/a.img' and '<null>'"),
        "{text}"
    );
}

#[test]
fn a_source_that_is_not_modelled_is_not_quoted() {
    let network = "<disk type='network' device='disk'><driver name='qemu' type='raw'/><source protocol='nbd' name='x'><host name='h'/></source><target dev='vda' bus='virtio'/></disk>";
    let said = lint("duplicate-target", &guest("", &network.repeat(2)));
    assert!(
        !text_of(said.one()).contains("duplicated for"),
        "{:#?}",
        said.one()
    );
}

#[test]
fn names_that_are_not_letters_are_reported_without_a_proposal() {
    let devices =
        disk("", "/a.img", "nvme0n1", "nvme", "") + &disk("", "/b.img", "nvme0n1", "nvme", "");
    let said = lint("duplicate-target", &guest("", &devices));
    assert!(said.one().fix.is_none());
    assert!(said.one().text.help.is_some());
}

#[test]
fn a_name_fits_its_bus_by_libvirts_convention() {
    for (dev, bus, fits) in [
        ("vda", "virtio", true),
        ("sda", "scsi", true),
        ("sda", "sata", true),
        ("sda", "usb", true),
        ("hda", "ide", true),
        ("nvme0n1", "nvme", true),
        ("hda", "sata", false),
        ("vda", "sata", false),
        ("vda", "scsi", false),
        ("sda", "virtio", false),
        ("hda", "virtio", false),
        ("xvda", "virtio", false),
        // Xen has conventions of its own.
        ("sda", "xen", true),
        ("hda", "xen", true),
        // A name of no convention is refused elsewhere.
        ("disk0", "virtio", true),
    ] {
        let said = lint(
            "target-bus-mismatch",
            &guest("", &disk("", "/a.img", dev, bus, "")),
        );
        assert_eq!(
            said.findings.is_empty(),
            fits,
            "{dev} on {bus}: {:#?}",
            said.findings
        );
        assert!(said.missed.is_empty());
    }
}

#[test]
fn the_name_of_a_cd_drive_matters_less() {
    let drive = "<disk type='file' device='cdrom'><target dev='hdc' bus='sata'/></disk>";
    let said = lint("target-bus-mismatch", &guest("", drive));
    assert_eq!(said.severities(), [Severity::Pedantic]);
    let other = disk("", "/a.img", "hdc", "sata", "");
    let said = lint("target-bus-mismatch", &guest("", &other));
    assert_eq!(said.severities(), [Severity::Advice]);
}

#[test]
fn a_name_that_fits_may_be_taken_already() {
    let devices =
        disk("", "/a.img", "vda", "virtio", "") + &disk("", "/b.img", "sda", "virtio", "");
    let said = lint("target-bus-mismatch", &guest("", &devices));
    let finding = said.one();
    assert_eq!(
        fix_of(finding),
        [(FieldPath::Disk(1, DiskField::TargetDev), Some("vdb"))]
    );
    assert_eq!(
        finding.fix.as_ref().unwrap().applicability,
        Applicability::Unsafe
    );
}

#[test]
fn names_that_the_kernel_gives_out_are_told_from_names_that_stay() {
    for (path, is_reported) in [
        ("/dev/sda", true),
        ("/dev/sda1", true),
        ("/dev/nvme0n1p2", true),
        ("/dev/vdb", true),
        ("/dev/xvdb", true),
        ("/dev/dm-3", true),
        ("/dev/mmcblk0", true),
        ("/dev/zd16", true),
        ("/dev/rbd0", true),
        // Whoever makes these chooses the number.
        ("/dev/md0", false),
        ("/dev/loop0", false),
        ("/dev/nbd0", false),
        ("/dev/md/images", false),
        ("/dev/mapper/vg0-a", false),
        ("/dev/vg0/a", false),
        ("/dev/zvol/tank/a", false),
        ("/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part1", false),
        ("/dev/disk/by-path/pci-0000:00:1f.2-ata-1", false),
        ("/dev/disk/by-partuuid/0fc63daf", false),
    ] {
        let said = lint(
            "unstable-device-path",
            &guest("", &block("", path, "vda", "virtio", "")),
        );
        assert_eq!(!said.findings.is_empty(), is_reported, "{path}");
        assert!(said.missed.is_empty(), "the rule needs no facts");
    }
}

#[test]
fn a_cd_drive_of_the_host_is_left_alone_and_a_device_as_a_file_is_not() {
    let drive = "<disk type='block' device='cdrom'><source dev='/dev/sr0'/><target dev='sda' bus='sata'/></disk>";
    lint("unstable-device-path", &guest("", drive)).is_clean();
    for (path, count) in [
        ("/dev/sda", 1),
        ("/dev/nvme0n1p1", 1),
        ("/dev/shm/a", 0),
        ("/srv/sda", 0),
    ] {
        let said = lint(
            "unstable-device-path",
            &guest("", &disk("", path, "vda", "virtio", "")),
        );
        assert_eq!(said.findings.len(), count, "{path}");
    }
}

#[test]
fn the_stable_name_is_the_one_that_tells_most() {
    for (facts, path, name) in [
        ("xfs-nvme", "/dev/dm-0", "/dev/vg0/db1"),
        (
            "xfs-nvme",
            "/dev/nvme1n1",
            "/dev/disk/by-id/nvme-eui.36344730541000020025384e00000001",
        ),
        (
            "mounted-partition",
            "/dev/sdb2",
            "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4-part2",
        ),
        ("mounted-partition", "/dev/dm-1", "/dev/mapper/vault"),
    ] {
        let text = guest("", &block("", path, "vda", "virtio", ""));
        let said = lint_on("unstable-device-path", facts, &text);
        let at = FieldPath::Image(0, 0, ImageField::Path);
        assert_eq!(fix_of(said.one()), [(at, Some(name))], "{path}");
    }
    // A device that the facts do not have gets no proposal.
    let said = lint_on(
        "unstable-device-path",
        "xfs-nvme",
        &guest("", &block("", "/dev/sdz", "vda", "virtio", "")),
    );
    assert!(said.one().fix.is_none());
}

#[test]
fn the_kernel_name_of_a_multipath_map_is_a_warning_if_the_facts_know_the_map() {
    let text = guest("", &block("", "/dev/dm-0", "vda", "virtio", ""));
    let host = "../facts-lab/multipath.6.12.root";
    for (said, severity) in [
        (
            lint_on("unstable-device-path", host, &text),
            Severity::Warning,
        ),
        // A logical volume has a name of its own.
        (
            lint_on("unstable-device-path", "xfs-nvme", &text),
            Severity::Error,
        ),
        (lint("unstable-device-path", &text), Severity::Error),
    ] {
        assert_eq!(said.severities(), [severity]);
    }
    let said = lint_on("unstable-device-path", host, &text);
    let at = FieldPath::Image(0, 0, ImageField::Path);
    assert_eq!(fix_of(said.one()), [(at, Some("/dev/mapper/mpatha"))]);
    let said = text_of(said.one());
    assert!(said.contains("it is a multipath map"), "{said}");
}

#[test]
fn a_device_below_an_overlay_is_found_too() {
    let text = guest(
        "",
        "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/a.qcow2'/><backingStore type='block'><format type='raw'/><source dev='/dev/sdb'/><backingStore/></backingStore><target dev='vda' bus='virtio'/></disk>",
    );
    let said = lint("unstable-device-path", &text);
    assert_eq!(said.one().at, FieldPath::Image(0, 1, ImageField::Path));
}

#[test]
fn a_device_is_described_by_kind_model_and_size() {
    for (size, words) in [
        ("1920383410176", "(disk, FAST, 1920 GB)"),
        ("134217728", "(disk, FAST, 128 MiB)"),
    ] {
        let facts = format!(
            r#"{{"blockdevs": [{{"id": "b1", "dev": "8:16", "kind": "disk", "model": "FAST", "size": {size},
                "paths": ["/dev/sdb", "/dev/disk/by-id/wwn-0x5000c500a1b2c3d4"]}}]}}"#
        );
        let text = guest("", &block("", "/dev/sdb", "vda", "virtio", ""));
        let said = lint_with("unstable-device-path", &facts, &text);
        let said = text_of(said.one());
        assert!(
            said.contains(&format!("`/dev/sdb` was a block device {words}")),
            "{said}"
        );
    }
}
