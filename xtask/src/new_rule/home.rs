//! The crates that have rules.

/// A crate that has rules, by the input of their checks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Home {
    /// The model of a guest, with host facts and the target: vmdisk-rules
    Rules,
    /// The options of a command line: vmdisk-qemu
    Qemu,
    /// The elements of an XML document: vmdisk-libvirt
    Libvirt,
}

impl Home {
    /// The directory of the rules, from the root of the repository.
    pub(crate) const fn folder(self) -> &'static str {
        match self {
            Home::Rules => "crates/vmdisk-rules/src/rules",
            Home::Qemu => "crates/vmdisk-qemu/src/rules",
            Home::Libvirt => "crates/vmdisk-libvirt/src/rules",
        }
    }

    /// The first line of the list in its `mod.rs`.
    pub(crate) const fn list(self) -> &'static str {
        match self {
            Home::Rules => "pub static RULES: &[&Rule] = &[",
            Home::Qemu => "static TEXT_RULES: &[&LineRule] = &[",
            Home::Libvirt => "static TEXT_RULES: &[&XmlRule] = &[",
        }
    }
}
