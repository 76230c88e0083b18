//! The guest side of a disk.

use crate::{
    Address, Device, DiskField, ErrorPolicy, Geometry, IoThreadId, IoThreadQueues, ReadErrorPolicy,
    Statistics, Switch, TargetBus, VirtioOptions, fields,
};
use vmdisk_source::words;

words! {
    /// Which virtio standard the device speaks; libvirt `disk/@model` (5.2.0).
    pub enum VirtioModel as as_str {
        /// Both where the slot allows it.
        Virtio = "virtio",
        /// 0.9 and 1.0.
        Transitional = "virtio-transitional",
        /// 1.0 only.
        NonTransitional = "virtio-non-transitional",
    }
}

words! {
    /// Whether the kernel filters the SCSI commands that pass through; libvirt `disk/@sgio` (1.0.2).
    pub enum Sgio as as_str {
        /// It does; the default.
        Filtered = "filtered",
        /// It does not; no kernel of today can, and libvirt refuses it.
        Unfiltered = "unfiltered",
    }
}

words! {
    /// Whether the tray of a drive with removable media is open; libvirt `target/@tray` (0.9.11).
    /// Default: `closed`.
    pub enum Tray as as_str {
        /// Open, so that the guest sees no medium.
        Open = "open",
        /// Closed.
        Closed = "closed",
    }
}

/// The device model of a frontend, once its controller is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FrontendKind {
    /// `virtio-blk-pci` and kin.
    VirtioBlk,
    /// `scsi-hd` and kin on a virtio-scsi controller.
    VirtioScsi,
    /// `vhost-user-blk-pci`.
    VhostUserBlk,
    /// `scsi-hd` and kin on another SCSI controller.
    Scsi,
    /// `ide-hd` on AHCI.
    Sata,
    /// `ide-hd` on parallel ATA.
    Ide,
    /// `usb-storage`.
    Usb,
    /// `floppy`.
    Fdc,
    /// `nvme-ns` on an emulated NVMe controller.
    Nvme,
    /// SD card.
    Sd,
    /// Not a QEMU device (Xen, UML).
    Foreign,
}

impl FrontendKind {
    /// The name people use for it.
    pub const fn name(self) -> &'static str {
        match self {
            FrontendKind::VirtioBlk => "virtio-blk",
            FrontendKind::VirtioScsi => "virtio-scsi",
            FrontendKind::VhostUserBlk => "vhost-user-blk",
            FrontendKind::Scsi => "scsi",
            FrontendKind::Sata => "sata",
            FrontendKind::Ide => "ide",
            FrontendKind::Usb => "usb",
            FrontendKind::Fdc => "fdc",
            FrontendKind::Nvme => "nvme",
            FrontendKind::Sd => "sd",
            FrontendKind::Foreign => "foreign",
        }
    }

    /// True if requests pass through virtqueues.
    pub const fn is_virtio(self) -> bool {
        matches!(
            self,
            FrontendKind::VirtioBlk | FrontendKind::VirtioScsi | FrontendKind::VhostUserBlk
        )
    }
}

fields! {
    /// The guest side of a disk.
    #[derive(Clone, Debug, Default, PartialEq, Eq)]
    pub struct Frontend of DiskField {
        /// Kind of device; unset is `disk`.
        pub device: Option<Device> = Device,
        /// Name that identifies the disk in the configuration, such as `vda`; libvirt `target/@dev`. The
        /// guest may call it something else.
        pub target: Option<String> = TargetDev,
        /// Bus; unset follows the target's name.
        pub bus: Option<TargetBus> = TargetBus,
        /// virtio standard; bus virtio only.
        pub model: Option<VirtioModel> = Model,
        /// Whether QEMU gets the right to raw I/O, for a logical unit that is passed through; libvirt
        /// `disk/@rawio` (0.9.10), `yes` or `no`.
        pub rawio: Option<Switch> = RawIo,
        /// Filter of SCSI commands, for a logical unit that is passed through.
        pub sgio: Option<Sgio> = Sgio,
        /// Whether requests are noticed by another thread than the vCPU's; libvirt `driver/@ioeventfd`
        /// (0.9.3), QEMU `ioeventfd`. Default: on.
        pub ioeventfd: Option<Switch> = IoEventFd,
        /// Whether the guest is interrupted less often; libvirt `driver/@event_idx` (0.9.5), QEMU
        /// `event_idx`. Default: on.
        pub event_idx: Option<Switch> = EventIdx,
        /// Options of all virtio devices.
        pub virtio: VirtioOptions,
        /// Statistics that are kept of its requests.
        pub statistics: Statistics = Statistics,
        /// Virtqueues; libvirt `driver/@queues` (3.9), QEMU `num-queues`. Default: one per vCPU since machine types 5.2.
        pub queues: Option<u32> = Queues,
        /// Entries of a virtqueue; libvirt `driver/@queue_size` (7.8), QEMU `queue-size`. Default: 256 since QEMU 5.0.
        pub queue_size: Option<u32> = QueueSize,
        /// Event loop; libvirt `driver/@iothread`, QEMU `iothread`. Default: QEMU's main loop.
        pub iothread: Option<IoThreadId> = IoThread,
        /// Queue mapping; libvirt `driver/iothreads` (10.0), QEMU `iothread-vq-mapping` (9.0).
        pub iothread_mapping: Vec<IoThreadQueues> = IoThreadMapping,
        /// Cylinders, heads and sectors.
        pub geometry: Option<Geometry> = Geometry,
        /// Sector size the guest sees, in bytes; libvirt `blockio/@logical_block_size`. Default: 512.
        pub logical_block_size: Option<u32> = LogicalBlockSize,
        /// Size below which the disk reads, changes and writes, in bytes; `blockio/@physical_block_size`. Default: 512.
        pub physical_block_size: Option<u32> = PhysicalBlockSize,
        /// Smallest discard the disk advertises, in bytes; `blockio/@discard_granularity` (9.8).
        pub discard_granularity: Option<u32> = DiscardGranularity,
        /// Effect of a failed write. Default: `enospc`.
        pub error_policy: Option<ErrorPolicy> = ErrorPolicy,
        /// Effect of a failed read. Default: `report`.
        pub read_error_policy: Option<ReadErrorPolicy> = ReadErrorPolicy,
        /// Serial number the guest reads; QEMU cuts it to 20 bytes (virtio, IDE) or 36 (SCSI).
        pub serial: Option<String> = Serial,
        /// World wide name, 16 hexadecimal digits; IDE and SCSI.
        pub wwn: Option<String> = Wwn,
        /// Vendor, at most 8 characters; SCSI.
        pub vendor: Option<String> = Vendor,
        /// Product, at most 16 characters on SCSI, 40 on IDE and SATA.
        pub product: Option<String> = Product,
        /// Revolutions per minute, 1 for an SSD; SCSI, IDE, SATA (libvirt 7.3).
        pub rotation_rate: Option<u32> = RotationRate,
        /// Shown as removable; USB, SCSI. Default: off.
        pub removable: Option<Switch> = Removable,
        /// State of the tray; CD and floppy drives. Default: `closed`.
        pub tray: Option<Tray> = Tray,
        /// Whether the disk says that it knows DPO and FUA; SCSI (libvirt 11.10.0), QEMU `dpofua`. Default:
        /// off up to machine types 10.0, on after.
        pub dpofua: Option<Switch> = DpoFua,
        /// Position in the boot order, from 1.
        pub boot_order: Option<u32> = BootOrder,
        /// Parameter of the boot loader of an IBM Z; libvirt `boot/@loadparm` (3.5.0), QEMU `loadparm` (2.9).
        pub loadparm: Option<String> = LoadParm,
        /// Where it sits in the machine.
        pub address: Option<Address> = Address,
        /// Name of the device; only `ua-…` survives in a persistent definition.
        pub alias: Option<String> = Alias,
        /// Number by which the guest's firmware names a PCI device; libvirt `acpi/@index` (5.6.0).
        pub acpi_index: Option<u32> = AcpiIndex,
    }
    inside virtio: VirtioOptions { iommu: Iommu, ats: Ats, packed: Packed, page_per_vq: PagePerVq }
}

impl Frontend {
    /// A disk called `target` on `bus`, with every option left open.
    pub fn new(target: impl Into<String>, bus: TargetBus) -> Self {
        Frontend {
            target: Some(target.into()),
            bus: Some(bus),
            ..Frontend::unset()
        }
    }

    /// A frontend with nothing set at all.
    pub fn unset() -> Self {
        Frontend::default()
    }

    /// The kind of device in force: `disk` where none is written.
    pub fn effective_device(&self) -> Device {
        self.device.unwrap_or(Device::Disk)
    }

    /// The bus in force: where none is written, the one libvirt takes.
    pub fn effective_bus(&self) -> TargetBus {
        self.bus.unwrap_or_else(|| {
            TargetBus::default_for(
                self.effective_device(),
                self.target.as_deref().unwrap_or_default(),
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unwritten_bus_follows_the_targets_name_as_in_libvirt() {
        for (target, device, bus) in [
            ("vda", Device::Disk, TargetBus::Virtio),
            ("sdb", Device::Disk, TargetBus::Scsi),
            ("hdc", Device::Cdrom, TargetBus::Ide),
            ("xvda", Device::Disk, TargetBus::Xen),
            ("fda", Device::Floppy, TargetBus::Fdc),
            ("whatever", Device::Disk, TargetBus::Ide),
        ] {
            assert_eq!(TargetBus::default_for(device, target), bus, "{target}");
        }
    }
}
