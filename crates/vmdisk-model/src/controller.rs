//! Disk controllers.

use crate::{
    Address, Architecture, ControllerField, FieldKind, IoThreadId, IoThreadQueues, MachineType,
    Switch, VirtioOptions, fields,
};
use vmdisk_source::words;

words! {
    /// Kind of a disk controller; libvirt `controller/@type`.
    pub enum ControllerType as as_str {
        /// SCSI host bus adapter.
        Scsi = "scsi",
        /// AHCI.
        Sata = "sata",
        /// Parallel ATA.
        Ide = "ide",
        /// Floppy.
        Fdc = "fdc",
        /// USB host controller.
        Usb = "usb",
        /// Emulated NVMe controller (libvirt 11.5.0).
        Nvme = "nvme",
    }
}

words! {
    /// Model of a SCSI controller; libvirt `controller/@model`. QEMU's device name differs, see each value.
    pub enum ScsiControllerModel as as_str {
        /// libvirt chooses.
        Auto = "auto",
        /// BusLogic (not in QEMU).
        Buslogic = "buslogic",
        /// LSI 53C895A, QEMU `lsi`; libvirt's default on x86, and slow.
        Lsilogic = "lsilogic",
        /// LSI SAS 1068, QEMU `mptsas1068`.
        Lsisas1068 = "lsisas1068",
        /// LSI SAS 1078, QEMU `megasas`.
        Lsisas1078 = "lsisas1078",
        /// VMware paravirtual, QEMU `pvscsi`.
        Vmpvscsi = "vmpvscsi",
        /// POWER virtual SCSI, QEMU `spapr-vscsi`.
        Ibmvscsi = "ibmvscsi",
        /// virtio-scsi, QEMU `virtio-scsi-pci` and kin.
        VirtioScsi = "virtio-scsi",
        /// virtio-scsi that speaks virtio 0.9 and 1.0.
        VirtioTransitional = "virtio-transitional",
        /// virtio-scsi that speaks virtio 1.0 only.
        VirtioNonTransitional = "virtio-non-transitional",
        /// NCR 53C90, QEMU `esp`.
        Ncr53c90 = "ncr53c90",
        /// Tekram DC-390, QEMU `dc390`.
        Dc390 = "dc390",
        /// AMD Am53C974, QEMU `am53c974`.
        Am53c974 = "am53c974",
    }
}

impl ScsiControllerModel {
    /// libvirt's default model, for a QEMU that has every device of its
    /// architecture (`qemuDomainGetSCSIControllerModel`): POWER's own, on PCs LSI's, else virtio-scsi.
    ///
    /// Until 11.6 libvirt took LSI's for Arm and RISC-V too, where QEMU had it.
    pub fn libvirts_choice(architecture: Architecture, machine: Option<&MachineType>) -> Self {
        match architecture {
            Architecture::Ppc64 | Architecture::Ppc64le
                if machine.is_none_or(|machine| machine.0.starts_with("pseries")) =>
            {
                ScsiControllerModel::Ibmvscsi
            }
            Architecture::X86_64 | Architecture::I686 => ScsiControllerModel::Lsilogic,
            _ => ScsiControllerModel::VirtioScsi,
        }
    }

    /// True for the models that are virtio-scsi.
    pub const fn is_virtio(self) -> bool {
        matches!(
            self,
            ScsiControllerModel::VirtioScsi
                | ScsiControllerModel::VirtioTransitional
                | ScsiControllerModel::VirtioNonTransitional
        )
    }
}

fields! {
    /// A disk controller; libvirt `<controller>`, QEMU `-device virtio-scsi-pci` and similar devices.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Controller of ControllerField {
        /// Kind.
        pub controller_type: ControllerType,
        /// Number among the controllers of its kind; unset is the next free one.
        pub index: Option<u32> = Index,
        /// Model, for SCSI controllers.
        pub scsi_model: Option<ScsiControllerModel>,
        /// Model word of another kind of controller, as written.
        pub other_model: Option<String>,
        /// Request queues; virtio-scsi only. QEMU `num_queues`, default one per vCPU since machine types 5.2.
        pub queues: Option<u32> = Queues,
        /// Commands in flight per LUN; virtio-scsi only.
        pub cmd_per_lun: Option<u32> = CmdPerLun,
        /// Largest request in sectors of 512 bytes; virtio-scsi only.
        pub max_sectors: Option<u32> = MaxSectors,
        /// Whether requests are noticed by another thread than the vCPU's; virtio-scsi only (libvirt 1.2.18).
        pub ioeventfd: Option<Switch> = IoEventFd,
        /// Options of all virtio devices; virtio-scsi only.
        pub virtio: VirtioOptions,
        /// Event loop of all disks on this controller; virtio-scsi only.
        pub iothread: Option<IoThreadId> = IoThread,
        /// Queue mapping; virtio-scsi only, libvirt 11.2.0, QEMU 10.0.
        pub iothread_mapping: Vec<IoThreadQueues> = IoThreadMapping,
        /// Ports; USB (libvirt 1.3.5). QEMU `p2` and `p3` of `qemu-xhci`.
        pub ports: Option<u32> = Ports,
        /// First port of the EHCI controller that this one, of UHCI, serves; libvirt `master/@startport`, QEMU
        /// `firstport`.
        pub start_port: Option<u32> = StartPort,
        /// Serial number; NVMe (libvirt 11.5.0), which must have one.
        pub serial: Option<String> = Serial,
        /// Where it sits.
        pub address: Option<Address> = Address,
        /// Name of the device; only `ua-…` survives in a persistent definition.
        pub alias: Option<String> = Alias,
        /// Number by which the guest's firmware names a PCI device (libvirt 5.6.0).
        pub acpi_index: Option<u32> = AcpiIndex,
    }
    inside virtio: VirtioOptions { iommu: Iommu, ats: Ats, packed: Packed, page_per_vq: PagePerVq }
}

impl ControllerField {
    /// Accepted values of the field; `None` for a group of fields.
    pub const fn kind(self) -> Option<FieldKind> {
        Controller::kind_of(self)
    }
}

impl Controller {
    /// A controller with nothing else set.
    pub const fn new(controller_type: ControllerType, index: u32) -> Self {
        Controller {
            controller_type,
            index: Some(index),
            scsi_model: None,
            other_model: None,
            queues: None,
            cmd_per_lun: None,
            max_sectors: None,
            ioeventfd: None,
            virtio: VirtioOptions {
                iommu: None,
                ats: None,
                packed: None,
                page_per_vq: None,
            },
            iothread: None,
            iothread_mapping: Vec::new(),
            ports: None,
            start_port: None,
            serial: None,
            address: None,
            alias: None,
            acpi_index: None,
        }
    }

    /// A virtio-scsi controller with nothing else set.
    pub const fn virtio_scsi(index: u32) -> Self {
        let mut controller = Controller::new(ControllerType::Scsi, index);
        controller.scsi_model = Some(ScsiControllerModel::VirtioScsi);
        controller
    }
}
