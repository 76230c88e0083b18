//! What follows from a qcow2 header's fields: sizes that decide on caches and free space.

use super::Qcow2Header;

/// The cluster sizes QEMU opens: 512 bytes to 2 MiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u32> = 9..=21;

impl Qcow2Header {
    /// The cluster size in bytes; `None` where the field is outside of what QEMU opens.
    #[must_use]
    pub fn cluster_size(&self) -> Option<u64> {
        CLUSTER_BITS
            .contains(&self.cluster_bits)
            .then(|| 1 << self.cluster_bits)
    }

    /// The size of an L2 entry in bytes: 8, or 16 with extended L2 entries.
    #[must_use]
    pub fn l2_entry_size(&self) -> u64 {
        if self.incompatible.extended_l2() {
            16
        } else {
            8
        }
    }

    /// The entries of one L2 table, which is one cluster; each maps one cluster of the disk.
    #[must_use]
    pub fn l2_entries_per_table(&self) -> Option<u64> {
        Some(self.cluster_size()? / self.l2_entry_size())
    }

    /// The L1 entries, and with them L2 tables, that the virtual size asks for.
    #[must_use]
    pub fn l1_entries_needed(&self) -> Option<u64> {
        let mapped_by_table = self.cluster_size()? * self.l2_entries_per_table()?;
        Some(self.virtual_size.div_ceil(mapped_by_table))
    }

    /// The bytes of L2 tables that map the whole disk, which an L2 cache must hold to never read one twice.
    ///
    /// QEMU's own cache is the smaller of this and `l2-cache-size` (32 MiB on Linux since 3.1); libvirt sets it with
    /// `<metadata_cache>` (7.0). Rounded up to a whole cluster, as QEMU does.
    #[must_use]
    pub fn l2_bytes_for_whole_disk(&self) -> Option<u64> {
        let cluster_size = self.cluster_size()?;
        let entries = self.virtual_size.div_ceil(cluster_size);
        // At most 2^55 clusters of 512 bytes with 16 bytes each: far from the end of 64 bits.
        Some((entries * self.l2_entry_size()).next_multiple_of(cluster_size))
    }

    /// The bytes the image takes beyond the guest's data once every cluster of the disk is written.
    ///
    /// Header, L1 and L2 tables, reference counts of all that; no snapshots, bitmaps or LUKS header. Equals what
    /// `qemu-img measure` calls `fully-allocated`, less the disk. `None` where a field is out of bounds.
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
        // Reference count blocks are counted themselves, so the number feeds back into itself. A block counts at least
        // 64 clusters (512 bytes of 64 bits), so each round adds at most a 63rd of the round before and it ends.
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
