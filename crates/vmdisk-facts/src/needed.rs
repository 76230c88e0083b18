//! The facts that a configuration needs.

use std::collections::BTreeSet;

/// The facts that configurations need. A document says what it needs, and a collector looks at nothing else.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FactsNeeded {
    /// Paths that the configurations name.
    pub paths: BTreeSet<String>,
    /// The images among them whose headers name their backing files. An image that is opened as raw is never one of them: the
    /// guest writes its header, and could name any file of the host.
    pub chains: BTreeSet<String>,
    /// True if one uses a block driver that a QEMU may lack, so that QEMU must be asked.
    pub block_drivers: bool,
    /// True for a question about the places where disks can live on the host.
    pub places: bool,
}

impl FactsNeeded {
    /// Adds the needs of another configuration.
    pub fn extend(&mut self, other: Self) {
        self.paths.extend(other.paths);
        self.chains.extend(other.chains);
        self.block_drivers |= other.block_drivers;
        self.places |= other.places;
    }
}
