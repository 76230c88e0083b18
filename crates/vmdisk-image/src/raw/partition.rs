//! Partition tables: MBR and GPT.

use super::signature::{Signature, SignatureKind};
use crate::bytes::{has, le32};

/// The partition type of a protective MBR, which protects a GPT.
const PROTECTIVE: u8 = 0xee;

/// The partition table of a raw image.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PartitionTable {
    /// A master boot record.
    Mbr {
        /// The used entries of the four, in order.
        partitions: Vec<MbrPartition>,
    },
    /// A GUID partition table.
    Gpt {
        /// The logical sector size of the table, 512 or 4096; a disk with another sector size does not show the table.
        sector_size: u32,
    },
    /// A protective MBR without a GPT.
    ProtectiveMbrOnly,
}

/// A used entry of a master boot record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct MbrPartition {
    /// The type, for example 0x83 for Linux.
    pub kind: u8,
    /// True if it is marked as bootable.
    pub bootable: bool,
    /// The first sector.
    pub first_sector: u32,
    /// Its size in sectors.
    pub sectors: u32,
}

pub(super) fn read(head: &[u8], signatures: &[Signature]) -> Option<PartitionTable> {
    for sector_size in [512, 4096] {
        if has(head, sector_size, b"EFI PART") {
            return Some(PartitionTable::Gpt {
                sector_size: sector_size as u32,
            });
        }
    }
    if !has(head, 510, &[0x55, 0xaa]) {
        return None;
    }
    let mut partitions = Vec::new();
    for entry in head[446..510].chunks_exact(16) {
        // The boot sector of a file system has the same last two bytes, but code in the place of the entries.
        if !matches!(entry[0], 0 | 0x80) {
            return None;
        }
        let (first_sector, sectors) = (le32(entry, 8)?, le32(entry, 12)?);
        if entry[4] != 0 && sectors != 0 {
            partitions.push(MbrPartition {
                kind: entry[4],
                bootable: entry[0] == 0x80,
                first_sector,
                sectors,
            });
        }
    }
    if partitions
        .iter()
        .any(|partition| partition.kind == PROTECTIVE)
    {
        return Some(PartitionTable::ProtectiveMbrOnly);
    }
    // Without used entries: a new table, or the boot sector of a file system on the whole disk.
    let boot_sector = signatures.iter().any(|signature| {
        matches!(
            signature.kind,
            SignatureKind::Fat
                | SignatureKind::ExFat
                | SignatureKind::Ntfs
                | SignatureKind::ReFs
                | SignatureKind::BitLocker
        )
    });
    (!partitions.is_empty() || !boot_sector).then_some(PartitionTable::Mbr { partitions })
}
