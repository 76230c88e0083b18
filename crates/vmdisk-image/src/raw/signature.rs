//! Signatures of file systems, volume managers, RAID members and archives.
//!
//! libblkid of util-linux checks the same offsets; each is part of the format.

use crate::bytes::{be32, has, le32};
use crate::defect::Defect;
use crate::read::{ReadAt, Window};

/// A signature and its offset.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature {
    /// The kind of contents.
    pub kind: SignatureKind,
    /// The offset of the signature, in bytes from the beginning of the image.
    pub offset: u64,
}

/// The kind of contents with a signature.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SignatureKind {
    /// ext2, ext3 or ext4.
    Ext {
        /// 2, 3 or 4, by the features in use: 3 has a journal, 4 has features unknown to ext3.
        version: u8,
    },
    /// XFS.
    Xfs,
    /// Btrfs.
    Btrfs,
    /// bcachefs.
    Bcachefs,
    /// F2FS.
    F2fs,
    /// ReiserFS.
    ReiserFs,
    /// JFS.
    Jfs,
    /// GFS2, a cluster file system.
    Gfs2,
    /// OCFS2, a cluster file system.
    Ocfs2,
    /// FAT12, FAT16 or FAT32.
    Fat,
    /// exFAT.
    ExFat,
    /// NTFS.
    Ntfs,
    /// `ReFS`.
    ReFs,
    /// A file system under BitLocker.
    BitLocker,
    /// HFS+ or HFSX.
    HfsPlus,
    /// APFS.
    Apfs,
    /// UFS2, the file system of FreeBSD.
    Ufs2,
    /// ISO 9660: an installation medium or another optical image.
    Iso9660,
    /// UDF.
    Udf,
    /// `SquashFS`.
    Squashfs,
    /// EROFS.
    Erofs,
    /// Swap space.
    Swap {
        /// Its page size in bytes.
        page_size: u32,
    },
    /// An LVM2 physical volume.
    Lvm2,
    /// A member of a Linux software RAID.
    Md {
        /// Its metadata version, which determines the offset.
        metadata: MdMetadata,
    },
    /// A bcache device.
    Bcache,
    /// A Ceph BlueStore device.
    BlueStore,
    /// A gzip archive: a compressed image.
    Gzip,
    /// An xz archive: a compressed image.
    Xz,
    /// A zstd archive: a compressed image.
    Zstd,
    /// A bzip2 archive: a compressed image.
    Bzip2,
    /// A tar archive, for example an OVA.
    Tar,
}

/// The metadata versions of Linux software RAID.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MdMetadata {
    /// 0.90: in the last 128 KiB.
    V0_90,
    /// 1.0: in the last 12 KiB.
    V1_0,
    /// 1.1: at the beginning.
    V1_1,
    /// 1.2: 4 KiB from the beginning.
    V1_2,
}

impl SignatureKind {
    /// Returns true for file systems, but not for swap, members and archives.
    #[must_use]
    pub fn is_file_system(self) -> bool {
        !matches!(
            self,
            Self::Swap { .. }
                | Self::Lvm2
                | Self::Md { .. }
                | Self::Bcache
                | Self::BlueStore
                | Self::Gzip
                | Self::Xz
                | Self::Zstd
                | Self::Bzip2
                | Self::Tar
        )
    }
}

impl std::fmt::Display for SignatureKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Ext { version } => return write!(f, "ext{version}"),
            Self::Swap { page_size } => return write!(f, "swap space, pages of {page_size} bytes"),
            Self::Md { metadata } => {
                return write!(f, "Linux software RAID, metadata {metadata}");
            }
            Self::Xfs => "XFS",
            Self::Btrfs => "btrfs",
            Self::Bcachefs => "bcachefs",
            Self::F2fs => "F2FS",
            Self::ReiserFs => "ReiserFS",
            Self::Jfs => "JFS",
            Self::Gfs2 => "GFS2",
            Self::Ocfs2 => "OCFS2",
            Self::Fat => "FAT",
            Self::ExFat => "exFAT",
            Self::Ntfs => "NTFS",
            Self::ReFs => "ReFS",
            Self::BitLocker => "BitLocker",
            Self::HfsPlus => "HFS+",
            Self::Apfs => "APFS",
            Self::Ufs2 => "UFS2",
            Self::Iso9660 => "ISO 9660",
            Self::Udf => "UDF",
            Self::Squashfs => "SquashFS",
            Self::Erofs => "EROFS",
            Self::Lvm2 => "LVM2 physical volume",
            Self::Bcache => "bcache device",
            Self::BlueStore => "Ceph BlueStore device",
            Self::Gzip => "gzip archive",
            Self::Xz => "xz archive",
            Self::Zstd => "zstd archive",
            Self::Bzip2 => "bzip2 archive",
            Self::Tar => "tar archive",
        })
    }
}

impl std::fmt::Display for MdMetadata {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V0_90 => "0.90",
            Self::V1_0 => "1.0",
            Self::V1_1 => "1.1",
            Self::V1_2 => "1.2",
        })
    }
}

/// Signatures that are fixed bytes at an offset.
const FIXED: &[(SignatureKind, usize, &[u8])] = &[
    (SignatureKind::Xfs, 0, b"XFSB"),
    (SignatureKind::Squashfs, 0, b"hsqs"),
    (SignatureKind::BlueStore, 0, b"bluestore block device"),
    (SignatureKind::Gzip, 0, &[0x1f, 0x8b, 0x08]),
    (SignatureKind::Xz, 0, b"\xfd7zXZ\0"),
    (SignatureKind::Zstd, 0, &[0x28, 0xb5, 0x2f, 0xfd]),
    (SignatureKind::Ntfs, 3, b"NTFS    "),
    (SignatureKind::ExFat, 3, b"EXFAT   "),
    (SignatureKind::ReFs, 3, b"ReFS\0\0\0\0"),
    (SignatureKind::BitLocker, 3, b"-FVE-FS-"),
    (SignatureKind::Apfs, 32, b"NXSB"),
    (SignatureKind::Tar, 257, b"ustar"),
    (SignatureKind::F2fs, 1024, &[0x10, 0x20, 0xf5, 0xf2]),
    (SignatureKind::Erofs, 1024, &[0xe2, 0xe1, 0xf5, 0xe0]),
    (SignatureKind::HfsPlus, 1024, b"H+\0\x04"),
    (SignatureKind::HfsPlus, 1024, b"HX\0\x05"),
    (
        SignatureKind::Bcache,
        4120,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    (
        SignatureKind::Bcachefs,
        4120,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    (SignatureKind::Ocfs2, 0x2000, b"OCFSV2"),
    (SignatureKind::Jfs, 0x8000, b"JFS1"),
    (SignatureKind::Iso9660, 0x8001, b"CD001"),
    (SignatureKind::Gfs2, 0x1_0000, &[0x01, 0x16, 0x19, 0x70]),
    (SignatureKind::ReiserFs, 0x1_0034, b"ReIsErFs"),
    (SignatureKind::ReiserFs, 0x1_0034, b"ReIsEr2Fs"),
    (SignatureKind::ReiserFs, 0x1_0034, b"ReIsEr3Fs"),
    (SignatureKind::Btrfs, 0x1_0040, b"_BHRfS_M"),
    (SignatureKind::Ufs2, 0x1_055c, &[0x19, 0x01, 0x54, 0x19]),
];

/// The signature of `md`: in version 0.90 in the machine's byte order, in 1.x little endian.
const MD_MAGIC: u32 = 0xa92b_4efc;
const EXT_MAGIC: &[u8] = &[0x53, 0xef];

/// Finds all signatures in the beginning of an image.
pub(super) fn in_head(head: &[u8]) -> Vec<Signature> {
    let mut found = Vec::new();
    let mut add = |kind, offset: usize| {
        found.push(Signature {
            kind,
            offset: offset as u64,
        })
    };
    for (kind, offset, magic) in FIXED {
        if has(head, *offset, magic) {
            add(*kind, *offset);
        }
    }
    if has(head, 0, b"BZh") && has(head, 4, b"1AY&SY") {
        add(SignatureKind::Bzip2, 0);
    }
    if is_fat(head) {
        add(SignatureKind::Fat, 0);
    }
    if has(head, 0x438, EXT_MAGIC) {
        add(
            SignatureKind::Ext {
                version: ext_version(head),
            },
            0x438,
        );
    }
    for sector in 0..4 {
        if has(head, sector * 512, b"LABELONE") && has(head, sector * 512 + 24, b"LVM2 001") {
            add(SignatureKind::Lvm2, sector * 512);
        }
    }
    for (metadata, offset) in [(MdMetadata::V1_1, 0), (MdMetadata::V1_2, 4096)] {
        if is_md_1(head.get(offset..).unwrap_or_default()) {
            add(SignatureKind::Md { metadata }, offset);
        }
    }
    for page_size in [4096, 8192, 16384, 32768, 65536] {
        let offset = page_size - 10;
        if has(head, offset, b"SWAPSPACE2") || has(head, offset, b"SWAP-SPACE") {
            add(
                SignatureKind::Swap {
                    page_size: page_size as u32,
                },
                offset,
            );
        }
    }
    // The volume recognition sequence of UDF: descriptors of 2 KiB after the first 32 KiB.
    let mut volume_descriptors = (0..16).map(|index| 0x8001 + index * 2048);
    if let Some(offset) = volume_descriptors
        .find(|offset| has(head, *offset, b"NSR02") || has(head, *offset, b"NSR03"))
    {
        add(SignatureKind::Udf, offset);
    }
    found.sort_by_key(|signature| signature.offset);
    found
}

/// Recognizes a boot sector with one of FAT's texts and a valid sector size.
fn is_fat(head: &[u8]) -> bool {
    let text = has(head, 54, b"FAT12   ")
        || has(head, 54, b"FAT16   ")
        || has(head, 54, b"FAT     ")
        || has(head, 82, b"FAT32   ");
    let sector_size = crate::bytes::le16(head, 11);
    text && has(head, 510, &[0x55, 0xaa]) && matches!(sector_size, Some(512 | 1024 | 2048 | 4096))
}

fn ext_version(head: &[u8]) -> u8 {
    let word = |at: usize| le32(head, 0x400 + at).unwrap_or(0);
    let (compatible, incompatible, read_only) = (word(0x5c), word(0x60), word(0x64));
    // All features of ext3: file types, recovery, a separate journal, meta block groups; sparse superblocks, large files.
    let beyond_ext3 = incompatible & !0x1e != 0 || read_only & !0b111 != 0;
    match (beyond_ext3, compatible & 4 != 0) {
        (true, _) => 4,
        (false, true) => 3,
        (false, false) => 2,
    }
}

fn is_md_1(superblock: &[u8]) -> bool {
    le32(superblock, 0) == Some(MD_MAGIC) && le32(superblock, 4) == Some(1)
}

/// Finds signatures at the end of an image of known length: md metadata 1.0 and 0.90.
pub(super) fn at_end<R: ReadAt + ?Sized>(
    window: &mut Window<'_, R>,
    found: &mut Vec<Signature>,
    defects: &mut Vec<Defect>,
) {
    let Some(length) = window.image_length() else {
        return;
    };
    let sectors = length / 512;
    // 1.0: at least 8 KiB before the end, at a multiple of 4 KiB. 0.90: in the last complete 64 KiB.
    let places = [
        (
            MdMetadata::V1_0,
            sectors.checked_sub(16).map(|sector| (sector & !7) * 512),
        ),
        (MdMetadata::V0_90, (length & !0xffff).checked_sub(0x1_0000)),
    ];
    for (metadata, place) in places {
        // The beginning of the image has already been checked.
        let Some(offset) = place.filter(|offset| *offset > 4096) else {
            continue;
        };
        match window.fetch(offset, 8) {
            Ok(bytes) => {
                let is_member = match metadata {
                    MdMetadata::V0_90 => {
                        [le32(&bytes, 0), be32(&bytes, 0)].contains(&Some(MD_MAGIC))
                    }
                    MdMetadata::V1_0 | MdMetadata::V1_1 | MdMetadata::V1_2 => is_md_1(&bytes),
                };
                if is_member {
                    found.push(Signature {
                        kind: SignatureKind::Md { metadata },
                        offset,
                    });
                }
            }
            Err(error) => defects.push(Defect::unreadable(offset, "end of the image", &error)),
        }
    }
}
