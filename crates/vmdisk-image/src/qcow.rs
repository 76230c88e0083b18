//! The header of qcow version 1, the format before qcow2.
//!
//! The layout and the bounds are those of `block/qcow.c` of QEMU. All fields are big endian.

use crate::bytes::{be32, be64, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// The length of the header, which has no field to say so.
const LENGTH: usize = 48;
/// QEMU's bound on a backing file name.
const MAX_BACKING_NAME: u32 = 1023;

/// What a qcow version 1 header says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QcowHeader {
    /// The disk's size as the guest sees it, in bytes.
    pub virtual_size: u64,
    /// The cluster size as a power of two.
    pub cluster_bits: u8,
    /// The entries of an L2 table as a power of two.
    pub l2_bits: u8,
    /// Where the L1 table begins, in bytes.
    pub l1_table_offset: u64,
    /// 0 for none, 1 for the broken AES scheme; nothing else exists.
    pub encryption_method: u32,
    /// The backing file as QEMU would open it. The format has no place for the backing file's format.
    pub backing_file: Option<BackingReference>,
    /// What is wrong, in the order it was found.
    pub defects: Vec<Defect>,
}

impl QcowHeader {
    /// The cluster size in bytes; `None` outside of the 512 bytes to 64 KiB that QEMU opens.
    #[must_use]
    pub fn cluster_size(&self) -> Option<u64> {
        (9..=16)
            .contains(&self.cluster_bits)
            .then(|| 1 << self.cluster_bits)
    }
}

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> QcowHeader {
    let mut fields = [0; LENGTH];
    let have = window.head().len().min(LENGTH);
    fields[..have].copy_from_slice(&window.head()[..have]);
    let word = |at| be32(&fields, at).unwrap_or(0);
    let long = |at| be64(&fields, at).unwrap_or(0);
    let mut header = QcowHeader {
        virtual_size: long(24),
        cluster_bits: fields[32],
        l2_bits: fields[33],
        l1_table_offset: long(40),
        encryption_method: word(36),
        backing_file: None,
        defects: Vec::new(),
    };
    if have < LENGTH {
        let kind = DefectKind::TruncatedHeader {
            needed: LENGTH as u64,
            found: have as u64,
        };
        header.defects.push(Defect::at(have as u64, kind));
        return header;
    }
    check(&mut header);
    let (name_offset, name_length) = (long(8), word(16));
    if name_offset != 0 {
        read_backing_name(&mut header, window, name_offset, name_length);
    }
    header
}

fn check(header: &mut QcowHeader) {
    let mut found = |offset, kind| header.defects.push(Defect::at(offset, kind));
    if header.virtual_size <= 1 {
        found(
            24,
            DefectKind::Field {
                field: "virtual size",
                found: header.virtual_size,
                expected: "not at least 2",
            },
        );
    } else if !header.virtual_size.is_multiple_of(512) {
        found(
            24,
            DefectKind::VirtualSizeUnaligned {
                size: header.virtual_size,
            },
        );
    }
    let cluster_is_sound = (9..=16).contains(&header.cluster_bits);
    if !cluster_is_sound {
        let bits = u64::from(header.cluster_bits);
        found(
            32,
            DefectKind::Field {
                field: "number of cluster bits",
                found: bits,
                expected: "not between 9 and 16",
            },
        );
    }
    let table_is_sound = (6..=13).contains(&header.l2_bits);
    if !table_is_sound {
        let bits = u64::from(header.l2_bits);
        found(
            33,
            DefectKind::Field {
                field: "number of L2 bits",
                found: bits,
                expected: "not between 6 and 13",
            },
        );
    }
    match header.encryption_method {
        0 => {}
        1 => found(36, DefectKind::LegacyEncryption),
        method => found(36, DefectKind::UnknownEncryption { found: method }),
    }
    if cluster_is_sound && table_is_sound {
        let mapped_by_table = 1u64 << (header.cluster_bits + header.l2_bits);
        // QEMU holds the L1 table's size in bytes in a C int.
        if header.virtual_size.div_ceil(mapped_by_table) > i32::MAX as u64 / 8 {
            found(
                24,
                DefectKind::VirtualSizeTooLarge {
                    size: header.virtual_size,
                },
            );
        }
    }
}

fn read_backing_name<R: ReadAt + ?Sized>(
    header: &mut QcowHeader,
    window: &mut Window<'_, R>,
    offset: u64,
    length: u32,
) {
    if length > MAX_BACKING_NAME {
        let kind = DefectKind::BackingNameTooLong {
            length: u64::from(length),
            maximum: u64::from(MAX_BACKING_NAME),
        };
        header.defects.push(Defect::at(16, kind));
    }
    let part = "backing file name";
    match window.fetch(offset, length.min(MAX_BACKING_NAME) as usize) {
        Ok(bytes) => {
            let opened = until_nul(&bytes);
            if opened.len() < bytes.len() {
                let kind = DefectKind::NameWithNul {
                    part,
                    name: Name::from(bytes.as_slice()),
                };
                header.defects.push(Defect::at(offset, kind));
            }
            if opened.is_empty() {
                header
                    .defects
                    .push(Defect::at(16, DefectKind::BackingNameEmpty));
            } else {
                header.backing_file = Some(BackingReference::from_bytes(opened));
            }
        }
        Err(error) => header
            .defects
            .push(Defect::unreadable(offset, part, &error)),
    }
}
