//! Options of writing a command line.

use vmdisk_facts::Target;

/// Options of writing a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The QEMU that will read it. Without a version a recent one is assumed.
    pub target: Target,
}

/// The output format, which is not always a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// The arguments of QEMU.
    CommandLine,
    /// The monitor of a running QEMU.
    Monitor,
}
