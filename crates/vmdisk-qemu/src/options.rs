//! Options of writing a command line.

use vmdisk_facts::Target;

/// Options of writing a command line.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// The QEMU that will read it. Where it does not say which, a recent one is assumed.
    pub target: Target,
    /// How nodes and devices are named and ordered.
    pub style: Style,
}

/// The output format, which is not always a command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Medium {
    /// The words that QEMU is started with.
    CommandLine,
    /// A file of `-readconfig`, which has no JSON.
    ConfigFile,
    /// The monitor of a QEMU that runs, which has nothing else.
    Monitor,
}

/// How nodes and devices are named and ordered; the guest is the same.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Style {
    /// For people: nodes are named after the disk and their role, such as `vda-format`.
    #[default]
    Readable,
    /// As libvirt has them: nodes are numbered, devices bear its aliases, raw images have no format
    /// node where libvirt writes none. For reading beside the command line of a running guest; what
    /// libvirt sets over QMP after the start (limits) or makes itself (PCI addresses) is left out.
    Libvirt,
}
