//! The device that QEMU makes for a `-drive` without `if`.

use vmdisk_model::{Board, Domain, MachineType};

use crate::board::program;

/// For each set of programs and each interface, the machines that have it, without their versions; `*` marks a default
/// machine. Measured with `cargo xtask interfaces` on QEMU 7.2.
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
    /// The interface of a guest's machine; `written` is the program on the command line.
    pub(crate) fn of(written: Option<&str>, domain: &Domain, board: Board) -> Self {
        match board {
            Board::Q35 | Board::I440fx => return DefaultInterface::Ide,
            Board::Pseries => return DefaultInterface::Scsi,
            Board::Ccw => return DefaultInterface::Virtio,
            _ => {}
        }
        let written = written.and_then(|it| it.rsplit('/').next());
        let known = domain.architecture.and_then(program);
        let own = written
            .filter(|it| it.starts_with("qemu-system-"))
            .or(known);
        let own = own.and_then(|it| it.strip_prefix("qemu-system-"));
        let machine = domain.machine.as_ref().map(MachineType::without_vendor);
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
        let mut found = RECORDED.lines().filter_map(|line| {
            let (programs, rest) = line.split_once(' ')?;
            let (interface, machines) = rest.split_once(' ')?;
            (has_own(programs) && has_machine(machines)).then_some(interface)
        });
        let first = found.next();
        // Without a program, all that have the machine must agree.
        match first.filter(|first| found.all(|other| other == *first)) {
            Some("ide") => DefaultInterface::Ide,
            Some("scsi") => DefaultInterface::Scsi,
            Some("virtio") => DefaultInterface::Virtio,
            Some("sd") => DefaultInterface::Sd,
            Some("none") => DefaultInterface::None,
            _ => DefaultInterface::Unknown,
        }
    }
}
