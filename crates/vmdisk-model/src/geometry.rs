//! The cylinders, heads and sectors that a guest sees.

use vmdisk_source::words;

words! {
    /// How the firmware translates sectors into cylinders, heads and sectors; libvirt
    /// `geometry/@trans`, QEMU `bios-chs-trans` of `ide-hd`. Default: QEMU guesses from the partition table.
    pub enum GeometryTranslation as as_str {
        /// QEMU guesses.
        Auto = "auto",
        /// The geometry unchanged.
        None = "none",
        /// Logical block addressing.
        Lba = "lba",
    }
}

/// The cylinders, heads and sectors that a guest sees; libvirt `<geometry>` (0.10.0), QEMU `cyls`,
/// `heads` and `secs`. Unset, QEMU guesses.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Geometry {
    /// Cylinders.
    pub cylinders: Option<u32>,
    /// Heads.
    pub heads: Option<u32>,
    /// Sectors of a track.
    pub sectors: Option<u32>,
    /// Translation by the firmware; IDE only.
    pub translation: Option<GeometryTranslation>,
}
