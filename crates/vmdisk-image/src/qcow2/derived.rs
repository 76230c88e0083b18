//! Values computed from a qcow2 header: sizes of tables and caches.

use super::header::Qcow2Header;

/// The cluster sizes that QEMU supports: 512 bytes to 2 MiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;

impl Qcow2Header {
    /// Returns the cluster size in bytes; `None` if QEMU does not support it.
    #[must_use]
    pub fn cluster_size(&self) -> Option<u64> {
        CLUSTER_BITS
            .contains(&self.cluster_bits)
            .then(|| 1 << self.cluster_bits)
    }

    /// Returns the size of an L2 entry in bytes: 8, or 16 with extended L2 entries.
    #[must_use]
    pub fn l2_entry_size(&self) -> u64 {
        if self.incompatible.extended_l2() {
            16
        } else {
            8
        }
    }

    /// Returns the number of entries in an L2 table, which is one cluster; each entry maps one cluster of the disk.
    #[must_use]
    pub fn l2_entries_per_table(&self) -> Option<u64> {
        Some(self.cluster_size()? / self.l2_entry_size())
    }

    /// Returns the number of L1 entries, and thus L2 tables, for the virtual size.
    #[must_use]
    pub fn l1_entries_needed(&self) -> Option<u64> {
        let mapped_by_table = self.cluster_size()? * self.l2_entries_per_table()?;
        Some(self.virtual_size.div_ceil(mapped_by_table))
    }

    /// Returns the size of the L2 tables for the whole disk, the cache size that avoids reading a table twice.
    ///
    /// QEMU's cache is limited to this and to `l2-cache-size` (32 MiB on Linux since 3.1), which libvirt sets with
    /// `<metadata_cache>` (7.0). Rounded up to a whole cluster, like in QEMU.
    #[must_use]
    pub fn l2_bytes_for_whole_disk(&self) -> Option<u64> {
        let cluster_size = self.cluster_size()?;
        let entries = self.virtual_size.div_ceil(cluster_size);
        // At most 2^55 clusters of 512 bytes with 16 bytes each, so the product cannot overflow.
        Some((entries * self.l2_entry_size()).next_multiple_of(cluster_size))
    }
}
