//! Combinations that QEMU or libvirt always refuses, and values that are used as requested.

use vmdisk_fields as fields;
use vmdisk_model::{
    AioMode, Bytes, CacheMode, DetectZeroes, Device, DiskField, FieldPath, FieldValue, Fields,
    Switch, TargetBus,
};

use super::bus::{fits, is_lun, target_bus};
use super::choice::Chosen;
use super::planner::Planner;
use crate::spec::{BackendSpec, BusSpec, DiskSpec, MediaSpec, SpecPath};

impl Planner<'_> {
    /// Refuses options that the disk's kind cannot have.
    pub(crate) fn refuse_what_cannot_be(&mut self, index: usize, spec: &DiskSpec) {
        let at = SpecPath::disk(index);
        if let BackendSpec::VhostUserBlk(socket) = &spec.backend {
            self.refuse_on_vhost_user(&at, spec, socket.serves.is_some());
            return;
        }
        if is_lun(spec) {
            self.refuse_on_lun(&at, spec);
        }
        self.refuse_for_media(&at, spec);
        self.refuse_for_bus(&at, spec);
        self.refuse_together(&at, spec);
    }

    fn refuse_keys(&mut self, at: &SpecPath, keys: &[(&str, bool)], why: &str) {
        for (key, is_written) in keys {
            if *is_written {
                self.refuse(at.key(*key), format!("{why} `{key}`"));
            }
        }
    }

    /// libvirt's list: `virDomainDiskVhostUserValidate`.
    fn refuse_on_vhost_user(&mut self, at: &SpecPath, spec: &DiskSpec, is_ours: bool) {
        let is_refused = |field: &&DiskField| {
            let row = fields::disk(**field);
            // Of a daemon that is written too they are options of its nodes.
            let is_the_daemons =
                row.is_of_the_medium && !row.is_of_the_device || **field == DiskField::Cache;
            let is_elsewhere = is_elsewhere(**field, TargetBus::Virtio);
            let is_refused = row.is_refused_on_vhost_user || is_elsewhere.is_some();
            is_refused && asks_for(spec, **field) && !(is_ours && is_the_daemons)
        };
        let mut keys = vec![
            ("bus", spec.bus.is_some_and(|bus| bus != BusSpec::Virtio)),
            (
                "media",
                spec.media.is_some_and(|media| media != MediaSpec::Disk),
            ),
            ("iothread", spec.iothread.is_some()),
            ("iotune", spec.iotune.is_some()),
        ];
        let fields = DiskSpec::FIELDS.iter().filter(is_refused);
        keys.extend(fields.filter_map(|field| Some((fields::disk(*field).spec?, true))));
        self.refuse_keys(at, &keys, "the daemon of a vhost-user-blk disk controls");
    }

    fn refuse_on_lun(&mut self, at: &SpecPath, spec: &DiskSpec) {
        let is_scsi = matches!(spec.bus, None | Some(BusSpec::Scsi | BusSpec::VirtioScsi));
        let keys = [
            ("bus", !is_scsi),
            ("media", spec.media.is_some()),
            ("serial", spec.serial.is_some()),
            ("wwn", spec.wwn.is_some()),
            ("vendor", spec.vendor.is_some()),
            ("product", spec.product.is_some()),
            ("rotation-rate", spec.rotation_rate.is_some()),
            ("removable", spec.removable.is_some()),
            ("copy-on-read", spec.copy_on_read == Some(true)),
            // Its writes are SCSI commands, in which QEMU does not look for zeroes.
            (
                "detect-zeroes",
                matches!(
                    spec.detect_zeroes,
                    Some(DetectZeroes::On | DetectZeroes::Unmap)
                ),
            ),
            ("logical-block-size", spec.logical_block_size.is_some()),
            ("physical-block-size", spec.physical_block_size.is_some()),
            ("discard-granularity", spec.discard_granularity.is_some()),
            ("transient", spec.transient == Some(true)),
            ("iotune", spec.iotune.is_some()),
        ];
        self.refuse_keys(at, &keys, "the SCSI device itself controls");
    }

    fn refuse_for_media(&mut self, at: &SpecPath, spec: &DiskSpec) {
        let bus = spec.bus;
        let media = spec.media();
        if media == MediaSpec::Disk && matches!(spec.backend, BackendSpec::Empty(_)) {
            self.refuse(at.key("empty"), "only a CD or floppy drive can be empty")
                .help = Some("write `media: cdrom` or `media: floppy`".to_owned());
        }
        let help = match media {
            MediaSpec::Disk => "a floppy controller has floppy drives",
            MediaSpec::Floppy => "a floppy drive needs bus fdc",
            MediaSpec::Cdrom => "a CD drive needs bus sata, ide, scsi or usb",
        };
        if let Some(bus) = bus.filter(|bus| !fits(media, *bus)) {
            self.refuse(at.key("bus"), format!("bus {bus} has no {media}"))
                .help = Some(help.to_owned());
        }
        if media == MediaSpec::Disk {
            return;
        }
        let keys = [
            ("copy-on-read", spec.copy_on_read == Some(true)),
            ("rotation-rate", spec.rotation_rate.is_some()),
            ("transient", spec.transient == Some(true)),
            ("discard-no-unref", spec.discard_no_unref == Some(true)),
        ];
        let why = format!("a {media} drive has no");
        self.refuse_keys(at, &keys, &why);
    }

    fn refuse_for_bus(&mut self, at: &SpecPath, spec: &DiskSpec) {
        let default = match spec.media() {
            MediaSpec::Cdrom => BusSpec::Sata,
            MediaSpec::Floppy => BusSpec::Fdc,
            MediaSpec::Disk if is_lun(spec) => BusSpec::VirtioScsi,
            MediaSpec::Disk => BusSpec::Virtio,
        };
        let bus = spec.bus.unwrap_or(default);
        let is_virtio = bus == BusSpec::Virtio;
        let is_scsi = matches!(bus, BusSpec::Scsi | BusSpec::VirtioScsi);
        let is_ata = matches!(bus, BusSpec::Sata | BusSpec::Ide);
        let has_large_sectors =
            |size: Option<Bytes>| size.is_some_and(|size| size.0 > 512) && is_ata;
        let product = spec.product.as_deref().unwrap_or_default();
        if is_scsi && product.len() > 16 {
            let message = format!("a product on bus {bus} has at most 16 characters");
            self.refuse(at.key("product"), message);
        }
        let is_elsewhere = |field| is_elsewhere(field, target_bus(bus)).is_some();
        let mut keys = vec![
            (
                "iothread",
                spec.iothread.is_some() && !is_virtio && !is_scsi,
            ),
            (
                "iotune",
                spec.iotune.is_some() && is_elsewhere(DiskField::Iotune),
            ),
            (
                "logical-block-size",
                has_large_sectors(spec.logical_block_size),
            ),
            (
                "discard-granularity",
                has_large_sectors(spec.discard_granularity),
            ),
        ];
        let misplaced = DiskSpec::FIELDS.iter().filter(|field| {
            // The queues of a SCSI disk are its controller's.
            let is_the_controllers = **field == DiskField::Queues && is_scsi;
            spec.has(**field) && is_elsewhere(**field) && !is_the_controllers
        });
        keys.extend(misplaced.filter_map(|field| Some((fields::disk(*field).spec?, true))));
        let why = format!("bus {bus} does not support");
        self.refuse_keys(at, &keys, &why);
        let is_disk = spec.media() == MediaSpec::Disk;
        if let Some(why) = spec.backend.only_read_because()
            && is_ata
            && is_disk
            && spec.readonly != Some(true)
        {
            let message = format!("bus {bus} does not support read-only disks, and {why}");
            self.refuse(at.key("bus"), message).help =
                Some("write `bus: virtio`, or `media: cdrom`".to_owned());
        }
        if is_ata && is_disk && spec.readonly == Some(true) {
            let message = format!("bus {bus} does not support read-only disks");
            self.refuse(at.key("readonly"), message).help =
                Some("write `bus: virtio`, or `media: cdrom`".to_owned());
        }
        if bus == BusSpec::Nvme && spec.serial.is_none() {
            let message = "an NVMe disk requires a serial number";
            self.refuse(at.clone(), message).help = Some("write `serial`".to_owned());
        }
    }

    /// Options that exclude each other, each of them asked for.
    fn refuse_together(&mut self, at: &SpecPath, spec: &DiskSpec) {
        let is_cached = spec.cache.is_some_and(|cache| !cache.switches().direct);
        if spec.io == Some(AioMode::Native) && is_cached {
            let cache = spec.cache.unwrap_or(CacheMode::Writeback);
            let message = format!("QEMU refuses native AIO with cache {cache}");
            self.refuse(at.key("io"), message).help =
                Some("write `cache: none`, or `io: threads`".to_owned());
        }
        self.refuse_on_network(at, spec);
        self.refuse_aio_elsewhere(at, spec);
        let is_qcow2 = spec.backend.is_qcow2();
        let is_file = matches!(spec.backend, BackendSpec::Raw(_) | BackendSpec::Qcow2(_));
        let only_reads = spec.readonly == Some(true) || spec.backend.only_read_because().is_some();
        for (is_wrong, key, message) in [
            (
                spec.shareable == Some(true) && is_qcow2,
                "shareable",
                "only raw storage can be shared; a qcow2 image has one writer",
            ),
            (
                spec.transient == Some(true) && !is_file,
                "transient",
                "only a disk in a file can be transient",
            ),
            (
                spec.transient == Some(true) && only_reads,
                "transient",
                "a read-only disk has no writes to discard at shutdown",
            ),
            (
                spec.copy_on_read == Some(true) && only_reads,
                "copy-on-read",
                "a read-only disk cannot copy on read",
            ),
            (
                spec.discard_no_unref == Some(true) && only_reads,
                "discard-no-unref",
                "a read-only disk does not discard",
            ),
        ] {
            if is_wrong {
                self.refuse(at.key(key), message);
            }
        }
    }

    /// Decides whether the guest may write.
    fn plan_read_only(&mut self, index: usize, spec: &DiskSpec) {
        let device = self.domain.disks[index].frontend.effective_device();
        let is_cdrom = device == Device::Cdrom;
        let asked = spec.readonly.filter(|asked| *asked || !is_cdrom);
        let at = FieldPath::Disk(index, DiskField::ReadOnly);
        let readonly = self.decide(at, "readonly", asked, |_| {
            let reason = match device {
                Device::Cdrom => {
                    spec.readonly?;
                    "a CD drive is read-only, whatever is asked for".to_owned()
                }
                Device::Disk | Device::Lun | Device::Floppy => spec.backend.only_read_because()?,
            };
            Some(Chosen::by_default(true, reason))
        });
        self.disk(index).backend.is_read_only = readonly == Some(true) || is_cdrom;
    }

    /// Takes over what is not chosen but only asked for.
    pub(crate) fn plan_as_asked(&mut self, index: usize, spec: &DiskSpec) {
        let at = |field| FieldPath::Disk(index, field);
        for field in DiskSpec::FIELDS {
            if *field == DiskField::ReadOnly {
                self.plan_read_only(index, spec);
            } else if let (Some(value), Some(key)) = (spec.get(*field), fields::disk(*field).spec)
                && !CHOSEN.contains(field)
            {
                self.note_asked(at(*field), key, Some(shown(&value)));
                let disk = self.disk(index);
                let value = field.kind().and_then(|kind| value.to_kind(kind));
                if let (Some(slot), Some(value)) = (disk.field_mut(*field), value) {
                    slot.set(value);
                }
            }
        }
        let iotune = spec.iotune.as_ref();
        self.note_asked(at(DiskField::Iotune), "iotune", iotune.map(|_| "as asked"));
        self.disk(index).backend.iotune = iotune.map(|it| Box::new(it.to_model()));
    }
}

/// Default choices, each by its own function.
const CHOSEN: &[DiskField] = &[
    DiskField::TargetDev,
    DiskField::Cache,
    DiskField::Aio,
    DiskField::Discard,
    DiskField::DiscardNoUnref,
    DiskField::ErrorPolicy,
    DiskField::ReadErrorPolicy,
    DiskField::MetadataCacheSize,
    DiskField::Queues,
    DiskField::QueueSize,
    DiskField::LogicalBlockSize,
    DiskField::PhysicalBlockSize,
    DiskField::DiscardGranularity,
];

/// A value in the words of a spec.
fn shown(value: &FieldValue) -> String {
    match value {
        FieldValue::Switch(switch) => (*switch == Switch::On).to_string(),
        _ => value.to_string(),
    }
}

/// True if a spec sets a field to more than `false`, where that is what a disk without it has.
fn asks_for(spec: &DiskSpec, field: DiskField) -> bool {
    let value = spec.get(field);
    let of_model = value.and_then(|value| value.to_kind(field.kind()?));
    of_model.is_some()
}

/// Where a field of a hard disk would be right, if the newest libvirt refuses it on this bus for QEMU's sake. What libvirt
/// refuses on SATA only is written for QEMU, which has one device for both buses; a rule refuses it in XML.
fn is_elsewhere(field: DiskField, bus: TargetBus) -> Option<&'static str> {
    let bus = match bus {
        TargetBus::Sata => TargetBus::Ide,
        other => other,
    };
    fields::disk(field)
        .takers
        .elsewhere(bus, Device::Disk, |_| None)
}
