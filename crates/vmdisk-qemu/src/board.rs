//! The built-in devices of a machine: its buses, its disk controllers and its virtio transport.

use vmdisk_facts::Target;
use vmdisk_model::{Architecture, Domain, MachineType, Scope};

/// The kinds of machines, by the way disks are attached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Board {
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
    /// Boards with virtio on MMIO slots: `microvm`, and Arm boards other than `virt`.
    Mmio,
    /// Another board with a PCI bus.
    OtherPci,
    /// Only the disks are known.
    Unknown,
}

/// The transport of a virtio device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// PCI.
    Pci,
    /// Channel I/O.
    Ccw,
    /// An MMIO slot of the board.
    Mmio,
}

impl Transport {
    /// The suffix of the device's name.
    pub(crate) const fn suffix(self) -> &'static str {
        match self {
            Transport::Pci => "pci",
            Transport::Ccw => "ccw",
            Transport::Mmio => "device",
        }
    }
}

/// The machine of the guest to write.
#[derive(Clone, Debug)]
pub(crate) struct Machine {
    /// The value of `-machine`; `None` if it need not be written.
    pub(crate) name: Option<String>,
    /// Instruction set.
    pub(crate) architecture: Architecture,
    /// Kind.
    pub(crate) board: Board,
}

impl Machine {
    /// The machine of a guest: the configured one, otherwise the target's, otherwise libvirt's default.
    pub(crate) fn of(domain: &Domain, target: &Target) -> Self {
        let architecture = domain
            .architecture
            .or_else(|| Architecture::from_wire(target.arch.as_deref()?))
            .unwrap_or(Architecture::X86_64);
        let written = domain
            .machine
            .as_ref()
            .map(|machine| machine.0.as_str())
            .or(target.machine.as_deref());
        let (name, board) = match (written, domain.scope) {
            (Some(name), _) => (Some(name), Board::of(architecture, name)),
            (None, Scope::WholeGuest) => {
                let name = default_machine(architecture);
                (
                    name,
                    name.map_or(Board::OtherPci, |name| Board::of(architecture, name)),
                )
            }
            (None, Scope::DisksOnly) if architecture == Architecture::S390x => (None, Board::Ccw),
            (None, Scope::DisksOnly) => (None, Board::Unknown),
        };
        Machine {
            name: name.map(str::to_owned),
            architecture,
            board,
        }
    }

    /// True for the instruction sets of PCs.
    pub(crate) const fn is_x86(&self) -> bool {
        matches!(self.architecture, Architecture::X86_64 | Architecture::I686)
    }
}

/// libvirt's default machine; it is also QEMU's default if QEMU has one.
const fn default_machine(architecture: Architecture) -> Option<&'static str> {
    match architecture {
        Architecture::X86_64 | Architecture::I686 => Some("pc"),
        Architecture::Aarch64
        | Architecture::Armv7l
        | Architecture::Armv6l
        | Architecture::Riscv64
        | Architecture::Riscv32
        | Architecture::Loongarch64 => Some("virt"),
        Architecture::Ppc64 | Architecture::Ppc64le => Some("pseries"),
        Architecture::S390x => Some("s390-ccw-virtio"),
        _ => None,
    }
}

/// The program that emulates an instruction set, if QEMU has one.
pub(crate) const fn program(architecture: Architecture) -> Option<&'static str> {
    Some(match architecture {
        Architecture::X86_64 => "qemu-system-x86_64",
        Architecture::I686 => "qemu-system-i386",
        Architecture::Aarch64 => "qemu-system-aarch64",
        Architecture::Armv7l | Architecture::Armv6l => "qemu-system-arm",
        Architecture::Ppc64 | Architecture::Ppc64le => "qemu-system-ppc64",
        Architecture::Ppc => "qemu-system-ppc",
        Architecture::S390x => "qemu-system-s390x",
        Architecture::Riscv64 => "qemu-system-riscv64",
        Architecture::Riscv32 => "qemu-system-riscv32",
        Architecture::Loongarch64 => "qemu-system-loongarch64",
        Architecture::Mips64 => "qemu-system-mips64",
        Architecture::Mips => "qemu-system-mips",
        Architecture::Mipsel => "qemu-system-mipsel",
        Architecture::Sparc => "qemu-system-sparc",
        Architecture::Sparc64 => "qemu-system-sparc64",
        Architecture::Alpha => "qemu-system-alpha",
        Architecture::M68k => "qemu-system-m68k",
        Architecture::Itanium => return None,
    })
}

impl Board {
    /// The kind of a machine, by its name.
    pub(crate) fn of(architecture: Architecture, name: &str) -> Self {
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
        } else if is("microvm") {
            Board::Mmio
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

    /// The default transport of virtio devices.
    pub(crate) const fn transport(self) -> Transport {
        match self {
            Board::Ccw => Transport::Ccw,
            Board::Mmio => Transport::Mmio,
            Board::Q35
            | Board::I440fx
            | Board::PcieVirt
            | Board::Pseries
            | Board::OtherPci
            | Board::Unknown => Transport::Pci,
        }
    }

    /// Name of the root PCI bus, if it is known.
    pub(crate) const fn root_bus(self) -> Option<&'static str> {
        match self {
            Board::Q35 | Board::PcieVirt => Some("pcie.0"),
            Board::I440fx | Board::Pseries | Board::OtherPci => Some("pci.0"),
            Board::Ccw | Board::Mmio | Board::Unknown => None,
        }
    }

    /// Slots of the root PCI bus that the board itself uses: the host bridge and, on PCs, the chipset.
    pub(crate) const fn taken_slots(self) -> &'static [u32] {
        match self {
            Board::Q35 => &[0, 31],
            Board::I440fx => &[0, 1],
            Board::PcieVirt | Board::Pseries | Board::OtherPci => &[0],
            Board::Ccw | Board::Mmio | Board::Unknown => &[],
        }
    }

    /// True if additional PCI buses are ports with one slot each.
    pub(crate) const fn is_pci_express(self) -> bool {
        matches!(self, Board::Q35 | Board::PcieVirt)
    }

    /// The name in messages.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Board::Q35 => "q35",
            Board::I440fx => "pc",
            Board::PcieVirt => "virt",
            Board::Pseries => "pseries",
            Board::Ccw => "s390-ccw-virtio",
            Board::Mmio => "this board",
            Board::OtherPci => "this machine",
            Board::Unknown => "an unknown machine",
        }
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
            (Architecture::X86_64, "microvm", Board::Mmio),
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

    #[test]
    fn a_guest_without_a_machine_gets_libvirts_and_bare_disks_get_none() {
        let mut domain = Domain::default();
        let target = Target::default();
        let machine = Machine::of(&domain, &target);
        assert_eq!(machine.name.as_deref(), Some("pc"));
        domain.scope = Scope::DisksOnly;
        let machine = Machine::of(&domain, &target);
        assert_eq!((machine.name, machine.board), (None, Board::Unknown));
        let target = "machine=pc-q35-9.0".parse().unwrap();
        assert_eq!(Machine::of(&domain, &target).board, Board::Q35);
    }
}
