//! The common parts of virtio devices: transport and version of the standard.

use vmdisk_model::{Address, CcwAddress, FieldPath, Switch, VirtioModel, VirtioOptions};

use crate::board::Transport;
use crate::json::JsonObject;
use crate::options::Medium;
use crate::writer::Writer;

/// An option that depends on the transport of a virtio device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum VirtioField {
    Ats,
    PagePerVq,
    AcpiIndex,
    IoEventFd,
}

impl Writer<'_> {
    /// The transport of a virtio device: from its address, otherwise that of the board.
    pub(crate) fn transport(&self, address: Option<&Address>) -> Transport {
        match address {
            Some(Address::Pci(_)) => Transport::Pci,
            Some(Address::Ccw(_)) => Transport::Ccw,
            Some(Address::VirtioMmio) => Transport::Mmio,
            Some(Address::Other(word)) if word == "ccw" => Transport::Ccw,
            Some(
                Address::Other(_)
                | Address::Drive(_)
                | Address::Usb(_)
                | Address::SpaprVio(_)
                | Address::Unassigned,
            )
            | None => Transport::of(self.machine().board),
        }
    }

    /// The driver of a virtio device: `virtio-blk-pci`, `virtio-scsi-ccw`, `virtio-blk-pci-transitional`.
    pub(crate) fn virtio_driver(
        &mut self,
        base: &str,
        transport: Transport,
        model: Option<VirtioModel>,
        at: FieldPath,
    ) -> String {
        let end = match model {
            Some(VirtioModel::Virtio) | None => "",
            Some(VirtioModel::Transitional) => "-transitional",
            Some(VirtioModel::NonTransitional) => "-non-transitional",
        };
        if !end.is_empty() && transport != Transport::Pci {
            self.problem(at, "only virtio devices on PCI have transitional models");
        }
        format!("{base}-{}{end}", transport.suffix())
    }

    /// Adds the address of a virtio device.
    pub(crate) fn virtio_place(
        &mut self,
        object: &mut JsonObject,
        transport: Transport,
        address: Option<&Address>,
        at: FieldPath,
    ) {
        match (transport, address) {
            (Transport::Pci, address) => self.pci_place(object, address, at),
            (Transport::Ccw, Some(Address::Ccw(CcwAddress { cssid, ssid, devno }))) => {
                object.push("devno", format!("{cssid:x}.{ssid:x}.{devno:04x}"));
            }
            // The board finds a free transport.
            (Transport::Mmio, Some(Address::VirtioMmio)) => {}
            (
                Transport::Ccw | Transport::Mmio,
                Some(Address::Usb(_) | Address::SpaprVio(_) | Address::Unassigned),
            )
            | (Transport::Ccw, Some(Address::VirtioMmio))
            | (Transport::Mmio, Some(Address::Ccw(_))) => {
                self.problem(
                    at,
                    "a virtio device cannot have an address of this type here",
                );
            }
            (Transport::Ccw | Transport::Mmio, Some(Address::Other(word))) => self.leave_out(
                at,
                format!("the address of type '{word}' is not written: QEMU chooses one"),
            ),
            (Transport::Ccw | Transport::Mmio, Some(Address::Drive(_))) => {
                self.problem(at, "a virtio device cannot be on a disk controller");
            }
            // A PCI address selects the PCI transport.
            (Transport::Ccw | Transport::Mmio, Some(Address::Pci(_)) | None) => {}
        }
    }

    /// Drops the legacy interface of a device behind an IOMMU on the root bus of a machine with PCI Express: QEMU drops
    /// it by itself only in a root port, where libvirt puts such a device, and refuses the option otherwise.
    pub(crate) fn virtio_without_legacy(
        &mut self,
        object: &mut JsonObject,
        options: &VirtioOptions,
        model: Option<VirtioModel>,
        address: Option<&Address>,
    ) {
        let is_on_root = match address {
            Some(Address::Pci(address)) => address.bus == 0,
            Some(Address::Other(word)) => word == "pci",
            None => true,
            Some(_) => false,
        };
        let is_plain = matches!(model, None | Some(VirtioModel::Virtio));
        let has_iommu = options.iommu == Some(Switch::On);
        let is_on_line = self.medium() != Medium::Monitor;
        if has_iommu
            && is_on_root
            && is_plain
            && is_on_line
            && self.machine().board.is_pci_express()
        {
            object.push("disable-legacy", "on");
        }
    }

    /// Reports options that a virtio device supports only on PCI, or not on MMIO.
    pub(crate) fn check_transport(
        &mut self,
        transport: Transport,
        options: &VirtioOptions,
        ioeventfd: Option<Switch>,
        acpi_index: Option<u32>,
        at: impl Fn(VirtioField) -> FieldPath,
    ) {
        let VirtioOptions {
            iommu: _,
            ats,
            packed: _,
            page_per_vq,
        } = options;
        let is_pci = transport == Transport::Pci;
        for (field, is_refused) in [
            (VirtioField::Ats, ats.is_some() && !is_pci),
            (VirtioField::PagePerVq, page_per_vq.is_some() && !is_pci),
            (VirtioField::AcpiIndex, acpi_index.is_some() && !is_pci),
            (
                VirtioField::IoEventFd,
                ioeventfd.is_some() && transport == Transport::Mmio,
            ),
        ] {
            if is_refused {
                self.problem(
                    at(field),
                    "a virtio device supports this option only on PCI",
                );
            }
        }
    }
}
