//! The fields of a disk.

use vmdisk_model::{Device, DiskField, TargetBus};

use crate::DeviceModel::{
    Floppy, IdeCd, IdeHd, NvmeNamespace, ScsiBlock, ScsiCd, ScsiHd, UsbStorage, VhostUserBlk,
    VirtioBlk,
};
use crate::ValueForm::{Positive, WordOr, YesNo};
use crate::row::{FieldRow, libvirt, no_libvirt, rows};
use crate::{DeviceModel, Later, Letters, Takers, ValueLimits, Zero};

type Devices = &'static [DeviceModel];

// Which devices have a property; `device-list-properties` of QEMU 5.2 to 11.1 agree on them.
const VIRTIO: Devices = &[VirtioBlk, VhostUserBlk];
const BLOCK: Devices = &[
    VirtioBlk,
    ScsiHd,
    ScsiCd,
    IdeHd,
    IdeCd,
    UsbStorage,
    Floppy,
    NvmeNamespace,
];
const SHARED: Devices = &[
    VirtioBlk,
    ScsiHd,
    ScsiCd,
    ScsiBlock,
    IdeHd,
    IdeCd,
    UsbStorage,
    Floppy,
    NvmeNamespace,
];
const CHS: Devices = &[VirtioBlk, ScsiHd, IdeHd];
const ERRORS: Devices = &[
    VirtioBlk, ScsiHd, ScsiCd, ScsiBlock, IdeHd, IdeCd, UsbStorage,
];
const SERIAL: Devices = &[VirtioBlk, ScsiHd, ScsiCd, IdeHd, IdeCd, UsbStorage];
const BOOTED: Devices = &[
    VirtioBlk,
    VhostUserBlk,
    ScsiHd,
    ScsiCd,
    ScsiBlock,
    IdeHd,
    IdeCd,
    UsbStorage,
    NvmeNamespace,
];

// Which disks libvirt lets have a field.
const ON_VIRTIO: Takers = Takers::only(&[TargetBus::Virtio], "the bus virtio");
const ON_SCSI: Takers = Takers::only(&[TargetBus::Scsi], "the bus scsi");
const ATA: &[TargetBus] = &[TargetBus::Ide, TargetBus::Sata];
const NOT_SD: Takers = Takers::all_but(&[TargetBus::Sd], "another bus than sd");
const ROTATING: Takers = Takers::only(
    &[TargetBus::Scsi, TargetBus::Sata, TargetBus::Ide],
    "one of the buses scsi, sata, ide",
);
const WITH_GEOMETRY: Takers = Takers::all_but(
    &[TargetBus::Usb, TargetBus::Sd],
    "one of the buses virtio, scsi, sata, ide",
);
const ANY: Takers = Takers::ALL;
const BLOCK_SIZES: ValueLimits = ValueLimits::powers(512, 2 << 20, Zero::Unset);
const HARD_DISK: &[Device] = &[Device::Disk];

const LATER_SOURCE_TYPES: &[Later] = &[
    ("dir", (0, 7, 5), None),
    ("network", (0, 8, 7), None),
    ("volume", (1, 0, 5), None),
    ("nvme", (6, 0, 0), Some((2, 12, 0))),
    ("vhostuser", (7, 1, 0), Some((2, 12, 0))),
    ("vhostvdpa", (9, 8, 0), Some((8, 1, 0))),
    ("ctl", (12, 0, 0), None),
];

rows! {
    /// Every field, in the order in which libvirt writes attributes.
    DISK_FIELDS;
    /// The row of a field of a disk.
    disk(DiskField);

    Disk: "a disk", libvirt("disk", (0, 0, 3));
    SourceType: "a type of source", libvirt("@type", (0, 0, 3)).later(LATER_SOURCE_TYPES);
    Device: "a kind of device", libvirt("@device", (0, 1, 4)).later(&[("lun", (0, 9, 10), None)])
        .not_of_the_device().spec("media");
    Model: "a virtio model", libvirt("@model", (5, 2, 0)).takers(ON_VIRTIO).elsewhere(VIRTIO);
    RawIo: "raw I/O", libvirt("@rawio", (0, 9, 10)).form(YesNo).not_of_the_device();
    Sgio: "a filter of SCSI commands", libvirt("@sgio", (1, 0, 2)).not_of_the_device();
    Snapshot: "what a snapshot does", libvirt("@snapshot", (0, 9, 5)).not_of_the_device();

    Driver: "a driver", libvirt("driver", (0, 1, 8));
    DriverName: "the name of a driver", libvirt("driver/@name", (0, 1, 8));
    Cache: "a cache mode", libvirt("driver/@cache", (0, 6, 0)).form(WordOr(&["default"]))
        .later(&[("directsync", (0, 9, 5), None), ("unsafe", (0, 9, 7), None)]).not_vhost_user()
        // The unit's own on `scsi-block`; refused together with the other options of the host side for vhost-user.
        .on("write-cache", BLOCK).elsewhere(&[VhostUserBlk, ScsiBlock]).spec("cache");
    ErrorPolicy: "an error policy", libvirt("driver/@error_policy", (0, 8, 0)).later(&[("report", (0, 9, 7), None)])
        .not_vhost_user().on("werror", ERRORS).qemu_words(&[("enospace", "enospc")]).spec("error-policy");
    ReadErrorPolicy: "an error policy", libvirt("driver/@rerror_policy", (0, 9, 7))
        .not_vhost_user().on("rerror", ERRORS).spec("read-error-policy");
    Aio: "a host I/O mode", libvirt("driver/@io", (0, 8, 8)).later(&[("io_uring", (6, 3, 0), Some((5, 0, 0)))])
        .not_vhost_user().node("aio").not_of_the_device().spec("io");
    IoEventFd: "ioeventfd", libvirt("driver/@ioeventfd", (0, 9, 3)).takers(ON_VIRTIO).not_vhost_user()
        .on("ioeventfd", &[VirtioBlk]);
    EventIdx: "event_idx", libvirt("driver/@event_idx", (0, 9, 5)).takers(ON_VIRTIO).on("event_idx", VIRTIO);
    CopyOnRead: "copy on read", libvirt("driver/@copy_on_read", (0, 9, 10))
        .not_vhost_user().node("copy-on-read").spec("copy-on-read");
    Discard: "a discard mode", libvirt("driver/@discard", (1, 0, 6))
        .not_vhost_user().node("discard").not_of_the_device().spec("discard");
    IoThread: "an iothread", libvirt("driver/@iothread", (1, 2, 8)).qemu_since((2, 1, 0)).not_vhost_user()
        .on("iothread", &[VirtioBlk]).spec("iothread");
    DetectZeroes: "zero detection", libvirt("driver/@detect_zeroes", (2, 0, 0))
        .not_vhost_user().node("detect-zeroes").not_of_the_device().spec("detect-zeroes");
    DiscardNoUnref: "discard_no_unref", libvirt("driver/@discard_no_unref", (9, 5, 0)).qemu_since((8, 1, 0))
        .node("discard-no-unref").spec("discard-no-unref");
    Queues: "queues", libvirt("driver/@queues", (3, 9, 0)).qemu_since((2, 7, 0)).takers(ON_VIRTIO)
        .on("num-queues", VIRTIO).spec("queues")
        // With one more, some versions of QEMU abort.
        .values(ValueLimits::numbers(1, 1024, Zero::UnsetForLibvirt));
    QueueSize: "a queue size", libvirt("driver/@queue_size", (7, 8, 0)).qemu_since((2, 12, 0))
        .takers(ON_VIRTIO.refused_since((9, 1, 0))).on("queue-size", VIRTIO).spec("queue-size")
        .values(ValueLimits::powers(4, 1024, Zero::UnsetForLibvirt));
    Iommu: "iommu", libvirt("driver/@iommu", (3, 5, 0)).takers(ON_VIRTIO).on("iommu_platform", VIRTIO);
    Ats: "ats", libvirt("driver/@ats", (3, 5, 0)).takers(ON_VIRTIO).on("ats", VIRTIO);
    Packed: "packed queues", libvirt("driver/@packed", (6, 3, 0)).takers(ON_VIRTIO).on("packed", VIRTIO);
    PagePerVq: "page_per_vq", libvirt("driver/@page_per_vq", (7, 9, 0)).qemu_since((2, 8, 0)).takers(ON_VIRTIO)
        .on("page-per-vq", VIRTIO);
    IoThreadMapping: "a mapping of queues to iothreads", libvirt("driver/iothreads", (10, 0, 0)).qemu_since((9, 0, 0))
        .on("iothread-vq-mapping", &[VirtioBlk]);
    MetadataCacheSize: "a metadata cache", libvirt("driver/metadata_cache", (7, 0, 0))
        .not_vhost_user().node("cache-size").spec("metadata-cache-size");
    Statistics: "statistics", libvirt("driver/statistics", (11, 9, 0)).qemu_since((10, 2, 0))
        .on("stats-intervals", BLOCK);

    Source: "a source", libvirt("source", (0, 0, 3)).not_of_the_device();
    StartupPolicy: "a startup policy", libvirt("source/@startupPolicy", (0, 9, 7)).not_of_the_device();
    SocketPath: "a socket", libvirt("source/@path", (7, 1, 0));
    Reconnect: "a reconnection", libvirt("source/reconnect", (7, 1, 0));
    ConfigWce: "config-wce", no_libvirt("config-wce").on("config-wce", &[VhostUserBlk]);

    Geometry: "a geometry", libvirt("geometry", (0, 10, 0)).takers(WITH_GEOMETRY).not_vhost_user().on("cyls", CHS);
    GeometryTranslation: "a translation of its geometry", libvirt("geometry/@trans", (0, 10, 0))
        .takers(Takers::only(&[TargetBus::Ide, TargetBus::Usb, TargetBus::Sd], "the bus ide"))
        .on("bios-chs-trans", &[IdeHd]);
    BlockIo: "block sizes", libvirt("blockio", (0, 10, 2));
    LogicalBlockSize: "block sizes", libvirt("blockio/@logical_block_size", (0, 10, 2)).not_vhost_user()
        .on("logical_block_size", BLOCK).spec("logical-block-size").values(BLOCK_SIZES);
    PhysicalBlockSize: "block sizes", libvirt("blockio/@physical_block_size", (0, 10, 2)).not_vhost_user()
        .on("physical_block_size", BLOCK).spec("physical-block-size").values(BLOCK_SIZES);
    DiscardGranularity: "block sizes", libvirt("blockio/@discard_granularity", (9, 8, 0)).not_vhost_user()
        .on("discard_granularity", BLOCK).spec("discard-granularity");

    Target: "a target", libvirt("target", (0, 0, 3));
    TargetDev: "the name of a target", libvirt("target/@dev", (0, 0, 3)).not_of_the_device().spec("target");
    TargetBus: "a bus", libvirt("target/@bus", (0, 4, 3)).later(&[("nvme", (11, 5, 0), None)])
        .not_of_the_device().spec("bus");
    Tray: "an open tray", libvirt("target/@tray", (0, 9, 11))
        .takers(ANY.devices(&[Device::Cdrom, Device::Floppy], "a CD or floppy drive")).not_of_the_device();
    Removable: "`removable`", libvirt("target/@removable", (1, 1, 3))
        .takers(Takers::only(&[TargetBus::Usb], "the bus usb").later((9, 6, 0), &[TargetBus::Scsi], HARD_DISK))
        .on("removable", &[ScsiHd, UsbStorage]).spec("removable");
    RotationRate: "a rotation rate", libvirt("target/@rotation_rate", (7, 3, 0)).qemu_since((2, 11, 0))
        .takers(ROTATING.devices(HARD_DISK, "a device of the kind disk"))
        .on("rotation_rate", &[ScsiHd, ScsiBlock, IdeHd]).spec("rotation-rate");
    DpoFua: "dpofua", libvirt("target/@dpofua", (11, 10, 0)).on("dpofua", &[ScsiHd]);

    Iotune: "limits", libvirt("iotune", (0, 9, 8)).takers(NOT_SD.refused_since((9, 1, 0)))
        .not_vhost_user().of_the_medium().spec("iotune");
    ThrottleFilters: "throttle groups", libvirt("throttlefilters", (11, 2, 0)).of_the_medium();
    ReadOnly: "read-only", libvirt("readonly", (0, 0, 3)).not_vhost_user().not_of_the_device().spec("readonly");
    Shareable: "shareable", libvirt("shareable", (0, 3, 3)).not_vhost_user()
        .on("share-rw", SHARED).elsewhere(&[VhostUserBlk]).spec("shareable");
    Transient: "transient", libvirt("transient", (0, 9, 5)).not_vhost_user().spec("transient");
    ShareBacking: "shared backing images", libvirt("transient/@shareBacking", (7, 4, 0)).form(YesNo).not_of_the_device();
    Serial: "a serial number", libvirt("serial", (0, 7, 1)).takers(NOT_SD).not_vhost_user()
        // On the controller, which all its namespaces share.
        .on("serial", SERIAL).elsewhere(&[NvmeNamespace]).spec("serial")
        .values(ValueLimits::Text { most: usize::MAX, letters: Letters::Safe });
    Wwn: "a WWN", libvirt("wwn", (0, 10, 1)).not_vhost_user()
        .takers(Takers::only(&[TargetBus::Scsi, TargetBus::Ide], "the bus scsi or ide"))
        .on("wwn", &[ScsiHd, ScsiCd, IdeHd, IdeCd]).spec("wwn").values(ValueLimits::Wwn);
    Vendor: "a vendor", libvirt("vendor", (1, 0, 1)).takers(ON_SCSI).not_vhost_user()
        .on("vendor", &[ScsiHd, ScsiCd]).spec("vendor")
        .values(ValueLimits::Text { most: 8, letters: Letters::Printable });
    Product: "a product", libvirt("product", (1, 0, 1)).takers(ON_SCSI.later((11, 0, 0), ATA, &[])).not_vhost_user()
        .on("product", &[ScsiHd, ScsiCd]).on("model", &[IdeHd, IdeCd]).spec("product")
        .values(ValueLimits::Text { most: 40, letters: Letters::Printable });
    BootOrder: "a place in the boot order", libvirt("boot/@order", (0, 8, 8)).form(Positive)
        // On the floppy controller.
        .on("bootindex", BOOTED).elsewhere(&[Floppy]).spec("boot").values(ValueLimits::numbers(1, u32::MAX, Zero::Number));
    LoadParm: "a parameter of the boot loader", libvirt("boot/@loadparm", (3, 5, 0))
        .on("loadparm", &[VirtioBlk, VhostUserBlk, ScsiHd, ScsiCd]);
    Alias: "a name of the device", libvirt("alias/@name", (0, 7, 6)).not_of_the_device();
    AcpiIndex: "an ACPI index", libvirt("acpi/@index", (5, 6, 0)).takers(ON_VIRTIO).on("acpi-index", VIRTIO);
    Address: "an address", libvirt("address", (0, 7, 6));
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::Spelling;

    #[test]
    fn no_device_has_a_property_twice_and_no_place_is_taken_twice() {
        for device in DeviceModel::ALL {
            let named = DISK_FIELDS
                .iter()
                .map(|field| disk(*field).spelling(device));
            let named = named.filter(|property| matches!(property, Spelling::Named(_)));
            let names: Vec<Spelling> = named.collect();
            let all: BTreeSet<String> = names.iter().map(|name| format!("{name:?}")).collect();
            assert_eq!(all.len(), names.len(), "{}", device.name());
        }
        let places: BTreeSet<&str> = DISK_FIELDS
            .iter()
            .map(|field| disk(*field).libvirt.place)
            .collect();
        assert_eq!(places.len(), DiskField::ALL.len());
    }
}
