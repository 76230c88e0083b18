//! The device that QEMU makes for a `-drive` without `if`, and the empty drives that it adds.

use vmdisk_model::{Board, Domain, MachineType};

use crate::board::program;

/// For each set of programs, an interface, the empty drives that have a device, or `-`, and the machines with both, without
/// their versions; `*` marks a default machine. Measured with `cargo xtask interfaces` on QEMU 7.2.
static RECORDED: &str = include_str!("interfaces.txt");

/// The interface of a `-drive` without `if`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DefaultInterface {
    /// IDE, or AHCI on boards that have it instead.
    Ide,
    /// The board's SCSI controller.
    Scsi,
    /// A virtio device.
    Virtio,
    /// An SD card.
    Sd,
    /// No device: the drive is for a `-device`.
    None,
    /// The machine is not recorded.
    Unknown,
}

impl DefaultInterface {
    /// The word of `if=`; empty if there is none.
    pub(crate) const fn word(self) -> &'static str {
        match self {
            DefaultInterface::Ide => "ide",
            DefaultInterface::Scsi => "scsi",
            DefaultInterface::Virtio => "virtio",
            DefaultInterface::Sd => "sd",
            DefaultInterface::None | DefaultInterface::Unknown => "",
        }
    }
}

/// The defaults of a machine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Defaults {
    pub(crate) interface: DefaultInterface,
    /// Names of the empty drives that QEMU adds; `None` if the machine is not recorded.
    pub(crate) drives: Option<&'static str>,
}

impl Defaults {
    /// The defaults of a guest's machine; `written` is the program on the command line.
    pub(crate) fn of(written: Option<&str>, domain: &Domain, board: Board) -> Self {
        let written = written.and_then(|it| it.rsplit('/').next());
        let known = domain.architecture.and_then(program);
        let own = written
            .filter(|it| it.starts_with("qemu-system-"))
            .or(known);
        let own = own.and_then(|it| it.strip_prefix("qemu-system-"));
        // Vendors have other names for these.
        let (own, machine) = match board {
            Board::Q35 => (Some("x86_64"), Some("q35")),
            Board::I440fx => (Some("x86_64"), Some("pc")),
            Board::Pseries => (Some("ppc64"), Some("pseries")),
            Board::Ccw => (Some("s390x"), Some("s390-ccw-virtio")),
            _ => {
                let machine = domain.machine.as_ref().map(MachineType::without_vendor);
                (own, machine)
            }
        };
        let has_own =
            |programs: &str| own.is_none_or(|own| programs.split(',').any(|it| it == own));
        let has_machine = |names: &str| {
            names.split(' ').any(|name| match machine {
                Some(machine) => {
                    let name = name.trim_end_matches('*');
                    let version = machine
                        .strip_prefix(name)
                        .and_then(|rest| rest.strip_prefix('-'));
                    let is_version =
                        |it: &str| it.bytes().all(|it| it.is_ascii_digit() || it == b'.');
                    name == machine || version.is_some_and(is_version)
                }
                None => own.is_some() && name.ends_with('*'),
            })
        };
        let rows = RECORDED.lines().filter_map(|line| {
            let mut words = line.splitn(4, ' ');
            let [programs, interface, drives, machines] = [(); 4].map(|()| words.next());
            (has_own(programs?) && has_machine(machines?)).then_some((interface?, drives?))
        });
        let rows: Vec<(&str, &str)> = rows.collect();
        // Without a program, all that have the machine must agree.
        let agreed = |word: fn(&(&'static str, &'static str)) -> &'static str| {
            let first = rows.first().map(word);
            first.filter(|first| rows.iter().all(|row| word(row) == *first))
        };
        Defaults {
            interface: match agreed(|row| row.0) {
                Some("ide") => DefaultInterface::Ide,
                Some("scsi") => DefaultInterface::Scsi,
                Some("virtio") => DefaultInterface::Virtio,
                Some("sd") => DefaultInterface::Sd,
                Some("none") => DefaultInterface::None,
                _ => DefaultInterface::Unknown,
            },
            drives: agreed(|row| row.1),
        }
    }
}
