//! Options of writing a command line.

use vmdisk_facts::Target;

/// Options of writing a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The QEMU that will read it. Without a version a recent one is assumed.
    pub target: Target,
    /// Names and order of nodes and devices.
    pub style: Style,
}

/// The output format, which is not always a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// The arguments of QEMU.
    CommandLine,
    /// The monitor of a running QEMU.
    Monitor,
}

/// Names and order of nodes and devices; the guest is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// For people: nodes are named after the disk and their role, such as `vda-format`.
    #[default]
    Readable,
    /// Like libvirt: numbered nodes, libvirt's aliases, no format node for raw images if libvirt omits it. For
    /// comparison with the command line of a running guest; settings that libvirt makes over QMP after the start
    /// (limits) or generates itself (PCI addresses) are omitted.
    Libvirt,
}
