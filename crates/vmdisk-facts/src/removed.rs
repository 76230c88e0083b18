//! Properties and options that QEMU removed before the oldest recording, or that recordings do not have.

use crate::version::Version;

/// A property or an option that QEMU removed.
#[derive(Debug)]
pub struct Removed {
    /// The device without its bus, `-drive`, or none for an option.
    pub device: &'static str,
    /// The property or the option.
    pub name: &'static str,
    /// The first release that is known to lack it.
    pub since: Version,
    /// The replacement.
    pub instead: &'static str,
    /// The source of the row.
    pub source: &'static str,
}

const fn row(
    device: &'static str,
    name: &'static str,
    since: (u32, u32),
    instead: &'static str,
    source: &'static str,
) -> Removed {
    Removed {
        device,
        name,
        since: Version(since.0, since.1, 0),
        instead,
        source,
    }
}

/// Where QEMU lists the keys that `-drive` lost in 3.0.
const OF_DRIVE: &str = "QEMU docs/about/removed-features, -drive geometry, serial and addr (3.0); tried: 5.2 refuses it";
const OF_FLOPPY: &str = "QEMU docs/about/removed-features, floppy controllers' drive properties (6.0); tried: 5.2 has it, 7.2 refuses it";

/// Every row. QEMU 5.2 refuses all but the last two.
pub const REMOVED: &[Removed] = &[
    row(
        "virtio-blk",
        "x-data-plane",
        (5, 2),
        "use an `-object iothread` and `iothread=`",
        "deprecated by `iothread` in QEMU 2.1; tried: 5.2 refuses it",
    ),
    row(
        "",
        "hdachs",
        (2, 12),
        "use `-device ide-hd` with `cyls=`, `heads=` and `secs=`",
        "QEMU docs/about/removed-features, -hdachs (2.12); tried: 5.2 refuses it",
    ),
    row("-drive", "addr", (3, 0), "-device", OF_DRIVE),
    row("-drive", "cyls", (3, 0), "-device", OF_DRIVE),
    row("-drive", "heads", (3, 0), "-device", OF_DRIVE),
    row("-drive", "secs", (3, 0), "-device", OF_DRIVE),
    row("-drive", "serial", (3, 0), "-device", OF_DRIVE),
    row("-drive", "trans", (3, 0), "-device", OF_DRIVE),
    row(
        "isa-fdc",
        "driveA",
        (6, 0),
        "use `-device floppy,unit=0,drive=…`",
        OF_FLOPPY,
    ),
    row(
        "isa-fdc",
        "driveB",
        (6, 0),
        "use `-device floppy,unit=1,drive=…`",
        OF_FLOPPY,
    ),
];
