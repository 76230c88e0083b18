//! The built-in devices of a machine: its buses, and the number of disks that they have room for.

use std::collections::BTreeMap;

use crate::{
    Address, Architecture, Controller, ControllerType, Disk, Domain, MachineType, TargetBus,
};

/// The kinds of machines, by the way disks are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Board {
    /// The PCI Express PC: six AHCI ports, no IDE, no floppy controller.
    Q35,
    /// The older PC: two IDE channels and a floppy controller.
    I440fx,
    /// `virt` on Arm, RISC-V and LoongArch: PCI Express only.
    PcieVirt,
    /// POWER `pseries`.
    Pseries,
    /// IBM Z, with virtio on the channel subsystem.
    Ccw,
    /// The PC of 1984, without PCI: an IDE and a floppy controller.
    Isa,
    /// `microvm`, with virtio on MMIO slots.
    Microvm,
    /// Arm boards other than `virt`, with virtio on MMIO slots.
    Mmio,
    /// Another board with a PCI bus.
    OtherPci,
    /// Only the disks are known.
    Unknown,
}

impl Board {
    /// The kind of a machine, by its name.
    pub fn of(architecture: Architecture, name: &str) -> Self {
        let machine = MachineType::new(name);
        let is = |family: &str| {
            let name = machine.without_vendor();
            name.strip_prefix(family)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        if machine.is_q35() {
            Board::Q35
        } else if machine.is_i440fx() {
            Board::I440fx
        } else if is("isapc") {
            Board::Isa
        } else if is("microvm") {
            Board::Microvm
        } else if is("virt") {
            Board::PcieVirt
        } else if is("pseries") {
            Board::Pseries
        } else if architecture == Architecture::S390x {
            Board::Ccw
        } else if matches!(
            architecture,
            Architecture::Aarch64 | Architecture::Armv7l | Architecture::Armv6l
        ) {
            Board::Mmio
        } else {
            Board::OtherPci
        }
    }

    /// Name of the root PCI bus, if it is known.
    pub const fn root_bus(self) -> Option<&'static str> {
        match self {
            Board::Q35 | Board::PcieVirt => Some("pcie.0"),
            Board::I440fx | Board::Pseries | Board::OtherPci => Some("pci.0"),
            Board::Ccw | Board::Isa | Board::Microvm | Board::Mmio | Board::Unknown => None,
        }
    }

    /// Slots of the root PCI bus that the board itself uses: the host bridge and, on PCs, the chipset.
    pub const fn taken_slots(self) -> &'static [u32] {
        match self {
            Board::Q35 => &[0, 31],
            Board::I440fx => &[0, 1],
            Board::PcieVirt | Board::Pseries | Board::OtherPci => &[0],
            Board::Ccw | Board::Isa | Board::Microvm | Board::Mmio | Board::Unknown => &[],
        }
    }

    /// True if additional PCI buses are ports with one slot each.
    pub const fn is_pci_express(self) -> bool {
        matches!(self, Board::Q35 | Board::PcieVirt)
    }

    /// Whether disks can be on a bus of the machine; `None` if its devices are not known.
    ///
    /// libvirt has the same list: it adds controllers of SCSI, SATA and USB wherever PCI devices can be added, refuses
    /// "IDE controllers" on all boards here but `pc`, and "SATA" on IBM Z.
    pub const fn has_bus(self, bus: TargetBus) -> Option<bool> {
        use TargetBus::{Fdc, Ide, Scsi, Sd, Uml, Virtio, Xen};
        Some(match self {
            Board::I440fx => !matches!(bus, Sd | Xen | Uml),
            Board::Q35 => !matches!(bus, Ide | Sd | Xen | Uml),
            Board::PcieVirt | Board::Pseries => !matches!(bus, Ide | Fdc | Sd | Xen | Uml),
            Board::Ccw | Board::Microvm => matches!(bus, Virtio | Scsi),
            Board::Isa => matches!(bus, Ide | Fdc),
            Board::Mmio | Board::OtherPci | Board::Unknown => return None,
        })
    }

    /// The number of disks that libvirt finds room for on a bus, with its default devices beside them; `None` if there is no
    /// limit or it is not known. On virtio every disk is a PCI device, as is each controller of disks.
    ///
    /// Measured with libvirt 9.0: the numbers are the last ones that `virsh define` accepted.
    const fn capacity(self, bus: TargetBus) -> Option<usize> {
        match (self, bus) {
            (Board::I440fx | Board::Isa, TargetBus::Ide) => Some(4),
            (_, TargetBus::Fdc) => Some(2),
            // One root port each, eight to a slot.
            (Board::Q35, TargetBus::Virtio) => Some(236),
            // With a bridge in every slot.
            (Board::I440fx, TargetBus::Virtio) => Some(655),
            // With hubs in every port, of the default controllers.
            (Board::Q35, TargetBus::Usb) => Some(143),
            (Board::I440fx, TargetBus::Usb) => Some(127),
            _ => None,
        }
    }

    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Board::Q35 => "q35",
            Board::I440fx => "pc",
            Board::PcieVirt => "virt",
            Board::Pseries => "pseries",
            Board::Ccw => "s390-ccw-virtio",
            Board::Isa => "isapc",
            Board::Microvm => "microvm",
            Board::Mmio => "this board",
            Board::OtherPci => "this machine",
            Board::Unknown => "an unknown machine",
        }
    }
}

impl Domain {
    /// The board of its machine.
    pub fn board(&self) -> Board {
        let architecture = self.architecture.unwrap_or(Architecture::X86_64);
        let machine = self.machine.as_ref();
        machine.map_or(Board::Unknown, |machine| {
            Board::of(architecture, &machine.0)
        })
    }

    /// The disks from number `from` on for which their bus has no room, each with the number of disks that it has room for.
    /// Addresses in XML can reach more of PCI and USB than libvirt adds by itself.
    pub fn beyond_room(&self, from: usize) -> Vec<(usize, usize)> {
        let board = self.board();
        let is_placed = |disk: &Disk| {
            matches!(
                disk.frontend.address,
                Some(Address::Pci(_) | Address::Usb(_))
            )
        };
        let has_address = |it: &Controller| matches!(it.address, Some(Address::Pci(_)));
        let is_free = !self.disks.iter().any(is_placed)
            && !self
                .controllers
                .iter()
                .any(|it| it.controller_type == ControllerType::Usb);
        let scsi = self.controllers.iter();
        let scsi = scsi.filter(|it| it.controller_type == ControllerType::Scsi);
        let scsi = scsi
            .filter(|it| self.pci_room.is_none() || !has_address(it))
            .count();
        let mut counts = BTreeMap::from([(TargetBus::Virtio, scsi)]);
        let mut beyond = Vec::new();
        for (nth, disk) in self.disks.iter().enumerate() {
            let bus = match disk.frontend.effective_bus() {
                TargetBus::Nvme => TargetBus::Virtio,
                bus => bus,
            };
            let count = counts.entry(bus).or_default();
            let room = match (bus, self.pci_room) {
                (TargetBus::Virtio, Some(_)) if is_placed(disk) => continue,
                (TargetBus::Virtio, Some(room)) => Some(room),
                (TargetBus::Scsi, Some(room)) if scsi > room => {
                    let controller = self.scsi_controller_of(disk);
                    controller.is_some_and(|it| !has_address(it)).then_some(0)
                }
                (TargetBus::Ide | TargetBus::Fdc, _) => board.capacity(bus),
                _ => board.capacity(bus).filter(|_| is_free),
            };
            *count += 1;
            beyond.extend(
                room.filter(|room| *count > *room && nth >= from)
                    .map(|room| (nth, room)),
            );
        }
        beyond
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_machine_is_told_by_its_name_and_instruction_set() {
        for (architecture, name, board) in [
            (Architecture::X86_64, "q35", Board::Q35),
            (Architecture::X86_64, "pc-q35-10.0", Board::Q35),
            (Architecture::X86_64, "pc", Board::I440fx),
            (Architecture::X86_64, "pc-i440fx-7.2", Board::I440fx),
            (Architecture::X86_64, "microvm", Board::Microvm),
            (Architecture::X86_64, "isapc", Board::Isa),
            (Architecture::Aarch64, "virt-9.0", Board::PcieVirt),
            (Architecture::Aarch64, "raspi3b", Board::Mmio),
            (Architecture::Riscv64, "virt", Board::PcieVirt),
            (Architecture::Ppc64, "pseries-8.0", Board::Pseries),
            (Architecture::S390x, "s390-ccw-virtio-9.0", Board::Ccw),
            (Architecture::Mips, "malta", Board::OtherPci),
        ] {
            assert_eq!(Board::of(architecture, name), board, "{name}");
        }
    }
}
