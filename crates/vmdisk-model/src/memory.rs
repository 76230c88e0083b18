//! How guest memory is backed, as far as disks depend on it.

use crate::Bytes;
use vmdisk_source::words;

words! {
    /// Where guest memory comes from; libvirt `memoryBacking/source/@type`.
    pub enum MemorySource as as_str {
        /// Anonymous memory of the QEMU process.
        Anonymous = "anonymous",
        /// A file in a directory of the host.
        File = "file",
        /// A memfd (libvirt 4.10).
        Memfd = "memfd",
    }
}

words! {
    /// Whether other processes may map guest memory; libvirt `memoryBacking/access/@mode`, QEMU `share`.
    pub enum MemoryAccess as as_str {
        /// Only QEMU; the default.
        Private = "private",
        /// Others may map it, which a `VhostUserBackend` needs.
        Shared = "shared",
    }
}

/// Request for huge pages; libvirt `memoryBacking/hugepages`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct HugePages {
    /// Page sizes asked for, in the order written; empty means the host's default size.
    pub page_sizes: Vec<Bytes>,
}

/// How guest memory is backed; libvirt `<memoryBacking>`, QEMU `-object memory-backend-*`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MemoryBacking {
    /// Huge pages, if asked for.
    pub huge_pages: Option<HugePages>,
    /// Kind of memory.
    pub source: Option<MemorySource>,
    /// Default access of all guest memory.
    pub access: Option<MemoryAccess>,
    /// Access of each NUMA cell, `cpu/numa/cell/@memAccess`; empty without NUMA cells.
    pub cell_access: Vec<Option<MemoryAccess>>,
}

impl MemoryBacking {
    /// True if a `VhostUserBackend` can map all guest memory.
    ///
    /// libvirt's condition (`src/qemu/qemu_validate.c`,
    /// `qemuValidateDomainDefVhostUserRequireSharedMemory`): shared by default, or each cell shared.
    pub fn is_shared(&self) -> bool {
        let by_default = self.access == Some(MemoryAccess::Shared);
        let of_cell = |cell: &Option<MemoryAccess>| {
            cell.map_or(by_default, |access| access == MemoryAccess::Shared)
        };
        if self.cell_access.is_empty() {
            by_default
        } else {
            self.cell_access.iter().all(of_cell)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_shared_if_each_cell_is() {
        let (shared, private) = (Some(MemoryAccess::Shared), Some(MemoryAccess::Private));
        for (access, cells, is_shared) in [
            (shared, vec![], true),
            (private, vec![], false),
            (None, vec![], false),
            (None, vec![shared, shared], true),
            (None, vec![shared, None], false),
            (shared, vec![None, None], true),
            (shared, vec![None, private], false),
        ] {
            let backing = MemoryBacking {
                access,
                cell_access: cells.clone(),
                ..MemoryBacking::default()
            };
            assert_eq!(backing.is_shared(), is_shared, "{access:?} {cells:?}");
        }
    }
}
