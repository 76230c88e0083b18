//! Where a device sits in the machine.

/// Address on a PCI bus.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct PciAddress {
    /// Domain (segment).
    pub domain: u32,
    /// Bus.
    pub bus: u32,
    /// Slot.
    pub slot: u32,
    /// Function.
    pub function: u32,
    /// True if the slot carries several functions.
    pub multifunction: Option<crate::Switch>,
}

/// Address on a disk controller; libvirt `<address type='drive'>`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DriveAddress {
    /// Index of the controller.
    pub controller: u32,
    /// Bus (channel) of the controller.
    pub bus: u32,
    /// SCSI target.
    pub target: u32,
    /// Unit (SCSI LUN).
    pub unit: u32,
}

/// Where a device sits in the machine; libvirt `<address>`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Address {
    /// On a PCI bus.
    Pci(PciAddress),
    /// On a disk controller.
    Drive(DriveAddress),
    /// An address type that is not modelled yet, by its libvirt word; its text is kept by the reader.
    Other(String),
}
