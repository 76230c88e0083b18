//! The bus of a disk, and the kind of device on it.

use vmdisk_source::words;

words! {
    /// Kind of device that the guest sees; libvirt `disk/@device`. Default: `disk`.
    pub enum Device as as_str {
        /// A disk.
        Disk = "disk",
        /// A CD or DVD drive.
        Cdrom = "cdrom",
        /// A floppy drive.
        Floppy = "floppy",
        /// A SCSI logical unit of the host, passed through with its commands; QEMU `scsi-block`.
        Lun = "lun",
    }
}

words! {
    /// Bus that the disk is attached to; libvirt `target/@bus`.
    pub enum TargetBus as as_str {
        /// A virtio device of its own.
        Virtio = "virtio",
        /// A SCSI controller; which model decides what it is.
        Scsi = "scsi",
        /// AHCI.
        Sata = "sata",
        /// Parallel ATA.
        Ide = "ide",
        /// USB mass storage.
        Usb = "usb",
        /// Floppy controller.
        Fdc = "fdc",
        /// Emulated NVMe controller (libvirt 11.5.0).
        Nvme = "nvme",
        /// SD card.
        Sd = "sd",
        /// Xen paravirtual.
        Xen = "xen",
        /// User-mode Linux.
        Uml = "uml",
    }
}

impl TargetBus {
    /// The bus that libvirt takes when none is written: by the prefix of the target's name, else IDE.
    ///
    /// Source: libvirt `src/conf/domain_postparse.c`, `virDomainDiskDefPostParse`.
    pub fn default_for(device: Device, target: &str) -> Self {
        match device {
            Device::Floppy => TargetBus::Fdc,
            Device::Disk | Device::Cdrom | Device::Lun => {
                TargetBus::of_target_name(target).unwrap_or(TargetBus::Ide)
            }
        }
    }

    /// The bus implied by a target name: `vda` virtio, `sda` SCSI, `hda` IDE, `xvda` Xen, …
    pub fn of_target_name(target: &str) -> Option<Self> {
        const PREFIXES: [(&str, TargetBus); 7] = [
            ("xvd", TargetBus::Xen),
            ("ubd", TargetBus::Uml),
            ("nvme", TargetBus::Nvme),
            ("hd", TargetBus::Ide),
            ("sd", TargetBus::Scsi),
            ("vd", TargetBus::Virtio),
            ("fd", TargetBus::Fdc),
        ];
        PREFIXES
            .iter()
            .find(|(prefix, _)| target.starts_with(prefix))
            .map(|(_, bus)| *bus)
    }

    /// Prefix of target names that fit the bus; several buses share `sd`.
    pub const fn target_prefix(self) -> &'static str {
        match self {
            TargetBus::Virtio => "vd",
            TargetBus::Scsi | TargetBus::Sata | TargetBus::Usb | TargetBus::Sd => "sd",
            TargetBus::Ide => "hd",
            TargetBus::Fdc => "fd",
            TargetBus::Nvme => "nvme",
            TargetBus::Xen => "xvd",
            TargetBus::Uml => "ubd",
        }
    }
}
