//! The machine of a guest to write, and its virtio transport.

use vmdisk_facts::Target;
use vmdisk_model::{Architecture, Board, Domain, Scope};

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
    /// The default transport of virtio devices.
    pub(crate) const fn of(board: Board) -> Transport {
        match board {
            Board::Ccw => Transport::Ccw,
            Board::Microvm | Board::Mmio => Transport::Mmio,
            Board::Q35
            | Board::I440fx
            | Board::PcieVirt
            | Board::Pseries
            | Board::Isa
            | Board::OtherPci
            | Board::Unknown => Transport::Pci,
        }
    }

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
            .or_else(|| Architecture::from_word(target.arch.as_deref()?))
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

#[cfg(test)]
mod tests {
    use super::*;

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
