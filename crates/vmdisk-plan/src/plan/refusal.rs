//! What QEMU or libvirt refuses whatever else is chosen, and what is taken over as asked.

use vmdisk_model::{
    AioMode, Bytes, CacheMode, DetectZeroes, Device, DiskField, ErrorPolicy, FieldPath, Switch,
};

use super::bus::is_lun;
use super::planner::{Chosen, Planner};
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
        let DiskSpec {
            backend: _,
            bus,
            target: _,
            media,
            cache,
            io,
            discard,
            detect_zeroes,
            copy_on_read,
            discard_no_unref: _,
            metadata_cache_size: _,
            queues: _,
            queue_size: _,
            iothread,
            logical_block_size,
            physical_block_size,
            discard_granularity,
            error_policy,
            read_error_policy,
            serial,
            wwn,
            vendor,
            product,
            rotation_rate,
            removable,
            boot: _,
            readonly,
            shareable,
            transient,
            iotune,
        } = spec;
        let keys = [
            ("bus", bus.is_some_and(|bus| bus != BusSpec::Virtio)),
            ("media", media.is_some_and(|media| media != MediaSpec::Disk)),
            // Of a daemon that is written too they are options of its nodes.
            ("cache", cache.is_some() && !is_ours),
            ("io", io.is_some() && !is_ours),
            ("discard", discard.is_some() && !is_ours),
            ("detect-zeroes", detect_zeroes.is_some() && !is_ours),
            ("copy-on-read", copy_on_read.is_some()),
            ("iothread", iothread.is_some()),
            ("logical-block-size", logical_block_size.is_some()),
            ("physical-block-size", physical_block_size.is_some()),
            ("discard-granularity", discard_granularity.is_some()),
            ("error-policy", error_policy.is_some()),
            ("read-error-policy", read_error_policy.is_some()),
            ("serial", serial.is_some()),
            ("wwn", wwn.is_some()),
            ("vendor", vendor.is_some()),
            ("product", product.is_some()),
            ("rotation-rate", rotation_rate.is_some()),
            ("removable", removable.is_some()),
            ("readonly", *readonly == Some(true)),
            ("shareable", *shareable == Some(true)),
            ("transient", *transient == Some(true)),
            ("iotune", iotune.is_some()),
        ];
        self.refuse_keys(
            at,
            &keys,
            "the daemon of a vhost-user-blk disk decides over",
        );
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
        self.refuse_keys(at, &keys, "the SCSI device itself decides over");
    }

    fn refuse_for_media(&mut self, at: &SpecPath, spec: &DiskSpec) {
        let bus = spec.bus;
        let media = spec.media.unwrap_or(MediaSpec::Disk);
        let (fits, help) = match media {
            MediaSpec::Disk => (
                bus != Some(BusSpec::Fdc),
                "a floppy controller has floppy drives",
            ),
            MediaSpec::Floppy => (
                matches!(bus, None | Some(BusSpec::Fdc)),
                "a floppy drive hangs on bus fdc",
            ),
            MediaSpec::Cdrom => (
                matches!(
                    bus,
                    None | Some(
                        BusSpec::Sata
                            | BusSpec::Ide
                            | BusSpec::Scsi
                            | BusSpec::VirtioScsi
                            | BusSpec::Usb
                    )
                ),
                "a CD drive hangs on bus sata, ide, scsi or usb",
            ),
        };
        if !fits {
            let shown = bus.map(|bus| bus.to_string()).unwrap_or_default();
            self.refuse(at.key("bus"), format!("bus {shown} has no {media}"))
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
        let default = match spec.media {
            Some(MediaSpec::Cdrom) => BusSpec::Sata,
            Some(MediaSpec::Floppy) => BusSpec::Fdc,
            Some(MediaSpec::Disk) | None if is_lun(spec) => BusSpec::VirtioScsi,
            Some(MediaSpec::Disk) | None => BusSpec::Virtio,
        };
        let bus = spec.bus.unwrap_or(default);
        let is_virtio = bus == BusSpec::Virtio;
        let is_scsi = matches!(bus, BusSpec::Scsi | BusSpec::VirtioScsi);
        let is_ata = matches!(bus, BusSpec::Sata | BusSpec::Ide);
        let has_large_sectors =
            |size: Option<Bytes>| size.is_some_and(|size| size.0 > 512) && is_ata;
        let is_product_long = spec.product.as_ref().is_some_and(|text| text.len() > 16);
        let keys = [
            ("queues", spec.queues.is_some() && !is_virtio && !is_scsi),
            ("queue-size", spec.queue_size.is_some() && !is_virtio),
            (
                "iothread",
                spec.iothread.is_some() && !is_virtio && !is_scsi,
            ),
            ("wwn", spec.wwn.is_some() && !is_scsi && bus != BusSpec::Ide),
            ("vendor", spec.vendor.is_some() && !is_scsi),
            (
                "product",
                spec.product.is_some() && !is_scsi && !is_ata || is_product_long && is_scsi,
            ),
            (
                "rotation-rate",
                spec.rotation_rate.is_some() && !is_scsi && !is_ata,
            ),
            (
                "removable",
                spec.removable.is_some() && !is_scsi && bus != BusSpec::Usb,
            ),
            ("serial", spec.serial.is_some() && bus == BusSpec::Sd),
            ("iotune", spec.iotune.is_some() && bus == BusSpec::Sd),
            (
                "logical-block-size",
                has_large_sectors(spec.logical_block_size),
            ),
            (
                "discard-granularity",
                has_large_sectors(spec.discard_granularity),
            ),
        ];
        let why = format!("bus {bus} has no such");
        self.refuse_keys(at, &keys, &why);
        let is_disk = matches!(spec.media, None | Some(MediaSpec::Disk));
        if let Some(why) = spec.backend.only_read_because()
            && is_ata
            && is_disk
            && spec.readonly != Some(true)
        {
            let message = format!("bus {bus} has no disks that only read, and {why}");
            self.refuse(at.key("bus"), message).help =
                Some("write `bus: virtio`, or `media: cdrom`".to_owned());
        }
        if is_ata && is_disk && spec.readonly == Some(true) {
            let message = format!("bus {bus} has no disks that only read");
            self.refuse(at.key("readonly"), message).help =
                Some("write `bus: virtio`, or `media: cdrom`".to_owned());
        }
        if bus == BusSpec::Nvme && spec.serial.is_none() {
            let message = "an NVMe disk has a serial number, and none is invented";
            self.refuse(at.clone(), message).help = Some("write `serial`".to_owned());
        }
        let is_q35 = self
            .domain
            .machine
            .as_ref()
            .is_some_and(vmdisk_model::MachineType::is_q35);
        if bus == BusSpec::Ide && is_q35 {
            self.refuse(at.key("bus"), "machine q35 has no parallel ATA")
                .help = Some("write `bus: sata`, or `machine: pc`".to_owned());
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
        let is_qcow2 = spec.backend.is_qcow2();
        let is_file = matches!(spec.backend, BackendSpec::Raw(_) | BackendSpec::Qcow2(_));
        let only_reads = spec.readonly == Some(true) || spec.backend.only_read_because().is_some();
        for (is_wrong, key, message) in [
            (
                spec.shareable == Some(true) && is_qcow2,
                "shareable",
                "a qcow2 image has one writer, and only raw storage is shared",
            ),
            (
                spec.transient == Some(true) && !is_file,
                "transient",
                "only a disk in a file is transient",
            ),
            (
                spec.transient == Some(true) && only_reads,
                "transient",
                "a disk that is only read has nothing to throw away",
            ),
            (
                spec.copy_on_read == Some(true) && only_reads,
                "copy-on-read",
                "a disk that is only read copies nothing up",
            ),
            (
                spec.discard_no_unref == Some(true) && only_reads,
                "discard-no-unref",
                "a disk that is only read discards nothing",
            ),
        ] {
            if is_wrong {
                self.refuse(at.key(key), message);
            }
        }
    }

    /// Takes over what is not chosen but only asked for.
    pub(crate) fn plan_as_asked(&mut self, index: usize, spec: &DiskSpec) {
        let switch = |on: bool| if on { Switch::On } else { Switch::Off };
        let device = self.domain.disks[index].frontend.effective_device();
        let at = |field| FieldPath::Disk(index, field);
        self.note_asked::<DetectZeroes>(
            at(DiskField::DetectZeroes),
            "detect-zeroes",
            spec.detect_zeroes,
        );
        self.note_asked(at(DiskField::CopyOnRead), "copy-on-read", spec.copy_on_read);
        self.note_asked::<ErrorPolicy>(
            at(DiskField::ErrorPolicy),
            "error-policy",
            spec.error_policy,
        );
        self.note_asked(
            at(DiskField::ReadErrorPolicy),
            "read-error-policy",
            spec.read_error_policy,
        );
        self.note_asked(at(DiskField::Serial), "serial", spec.serial.as_ref());
        self.note_asked(at(DiskField::Wwn), "wwn", spec.wwn.as_ref());
        self.note_asked(at(DiskField::Vendor), "vendor", spec.vendor.as_ref());
        self.note_asked(at(DiskField::Product), "product", spec.product.as_ref());
        self.note_asked(
            at(DiskField::RotationRate),
            "rotation-rate",
            spec.rotation_rate,
        );
        self.note_asked(at(DiskField::Removable), "removable", spec.removable);
        self.note_asked(at(DiskField::BootOrder), "boot", spec.boot);
        let is_disk = matches!(device, Device::Disk | Device::Lun);
        let readonly = self.decide(at(DiskField::ReadOnly), "readonly", spec.readonly, |_| {
            let reason = spec.backend.only_read_because().filter(|_| is_disk)?;
            Some(Chosen::by_default(true, reason))
        });
        self.note_asked(at(DiskField::Shareable), "shareable", spec.shareable);
        self.note_asked(at(DiskField::Transient), "transient", spec.transient);
        self.note_asked(
            at(DiskField::Iotune),
            "iotune",
            spec.iotune.as_ref().map(|_| "as asked"),
        );
        let disk = self.disk(index);
        let frontend = &mut disk.frontend;
        frontend.error_policy = spec.error_policy;
        frontend.read_error_policy = spec.read_error_policy;
        frontend.serial.clone_from(&spec.serial);
        frontend.wwn.clone_from(&spec.wwn);
        frontend.vendor.clone_from(&spec.vendor);
        frontend.product.clone_from(&spec.product);
        frontend.rotation_rate = spec.rotation_rate;
        frontend.removable = spec.removable.map(switch);
        frontend.boot_order = spec.boot;
        let backend = &mut disk.backend;
        backend.detect_zeroes = spec.detect_zeroes;
        backend.copy_on_read = spec.copy_on_read.map(switch);
        backend.iotune = spec.iotune.as_ref().map(crate::spec::IotuneSpec::to_model);
        backend.is_read_only = readonly == Some(true) || device == Device::Cdrom;
        backend.is_shareable = spec.shareable == Some(true);
        backend.is_transient = spec.transient == Some(true);
    }
}
