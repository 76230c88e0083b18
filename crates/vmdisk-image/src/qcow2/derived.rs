//! Values computed from a qcow2 header: sizes of caches and metadata.

use super::Qcow2Header;

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

    /// Returns the size of the metadata when every cluster of the disk is written.
    ///
    /// Includes header, L1 and L2 tables and all reference counts; excludes snapshots, bitmaps and a LUKS header. Equals
    /// `fully-allocated` of `qemu-img measure` minus the disk size. `None` if a field is out of bounds.
    #[must_use]
    pub fn metadata_bytes_when_full(&self) -> Option<u64> {
        let cluster = u128::from(self.cluster_size()?);
        if self.refcount_order > 6 {
            return None;
        }
        let data_clusters = u128::from(self.virtual_size).div_ceil(cluster);
        let l2_clusters = data_clusters.div_ceil(u128::from(self.l2_entries_per_table()?));
        let l1_clusters = (l2_clusters * 8).div_ceil(cluster);
        let counted = 1 + l1_clusters + l2_clusters + data_clusters;
        let refcounts_per_block = (cluster * 8) >> self.refcount_order;
        // Reference count blocks count themselves, so the number is found by iteration. A block covers at least
        // 64 clusters (512 bytes of 64 bits), so each round adds at most 1/63 of the previous one and the loop ends.
        let mut refcount_clusters = 0;
        loop {
            let blocks = (counted + refcount_clusters).div_ceil(refcounts_per_block);
            let again = blocks + (blocks * 8).div_ceil(cluster);
            if again == refcount_clusters {
                break;
            }
            refcount_clusters = again;
        }
        u64::try_from((1 + l1_clusters + l2_clusters + refcount_clusters) * cluster).ok()
    }
}
