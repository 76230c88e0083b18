//! The headers of VHDX, Hyper-V's format.
//!
//! The layout is Microsoft's *VHDX Format Specification* (MS-VHDX); what is opened is what `block/vhdx.c` of QEMU opens.
//! All fields are little endian. Two headers of the same content take turns, the valid one of the higher sequence
//! number counts; a region table leads to the metadata, and a metadata table to the values.

mod checksum;
mod metadata;
mod region;

use crate::bytes::{has, le16, le32, le64, slice, utf16};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

pub(crate) const MAGIC: &[u8] = b"vhdxfile";

const HEADER_OFFSETS: [u64; 2] = [0x1_0000, 0x2_0000];
/// The checksum covers this much of each header.
const HEADER_LENGTH: usize = 4096;

/// What a VHDX says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VhdxHeader {
    /// The program that wrote the image, of no meaning.
    pub creator: Name,
    /// The sequence number of the header that counts; `None` where none is valid.
    pub sequence: Option<u64>,
    /// The disk's size as the guest sees it, in bytes.
    pub virtual_size: Option<u64>,
    /// The size of a block in bytes.
    pub block_size: Option<u32>,
    /// Whether blocks stay allocated: a fixed image.
    pub fixed: bool,
    /// Whether the image holds the differences to a parent, which QEMU refuses.
    pub has_parent: bool,
    /// The parent's name, as the parent locator has it.
    pub parent: Option<BackingReference>,
    /// The logical sector size in bytes: 512 or 4096.
    pub logical_sector_size: Option<u32>,
    /// The physical sector size in bytes.
    pub physical_sector_size: Option<u32>,
    /// What is wrong, in the order it was found.
    pub defects: Vec<Defect>,
}

impl VhdxHeader {
    fn found(&mut self, offset: u64, kind: DefectKind) {
        self.defects.push(Defect::at(offset, kind));
    }
}

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> VhdxHeader {
    let creator = slice(window.head(), 8, 512).unwrap_or_default();
    let mut header = VhdxHeader {
        creator: Name::new(utf16(
            creator
                .chunks_exact(2)
                .map(|unit| u16::from_le_bytes([unit[0], unit[1]])),
        )),
        sequence: None,
        virtual_size: None,
        block_size: None,
        fixed: false,
        has_parent: false,
        parent: None,
        logical_sector_size: None,
        physical_sector_size: None,
        defects: Vec::new(),
    };
    read_headers(&mut header, window);
    if let Some(regions) = region::read(&mut header, window) {
        metadata::read(&mut header, window, &regions);
    }
    header
}

/// A header whose signature, version and checksum are right.
struct ValidHeader {
    bytes: Vec<u8>,
    offset: u64,
    sequence: u64,
}

fn read_headers<R: ReadAt + ?Sized>(header: &mut VhdxHeader, window: &mut Window<'_, R>) {
    let mut valid: Option<ValidHeader> = None;
    for offset in HEADER_OFFSETS {
        let bytes = match window.fetch(offset, HEADER_LENGTH) {
            Ok(bytes) => bytes,
            Err(error) => {
                header
                    .defects
                    .push(Defect::unreadable(offset, "header", &error));
                continue;
            }
        };
        if !has(&bytes, 0, b"head")
            || le16(&bytes, 66) != Some(1)
            || !checksum::fits(&bytes, HEADER_LENGTH)
        {
            continue;
        }
        let Some(sequence) = le64(&bytes, 8) else {
            continue;
        };
        match &valid {
            Some(other) if other.sequence > sequence => {}
            // Microsoft's Disk2VHD writes the same header twice; two of one number that differ are none.
            Some(other) if other.sequence == sequence && other.bytes != bytes => {
                header.found(
                    offset + 8,
                    DefectKind::PartRepeated {
                        part: "header of one sequence number",
                    },
                );
            }
            Some(_) | None => {
                valid = Some(ValidHeader {
                    bytes,
                    offset,
                    sequence,
                })
            }
        }
    }
    let Some(ValidHeader {
        bytes,
        offset,
        sequence,
    }) = valid
    else {
        header.found(
            HEADER_OFFSETS[0],
            DefectKind::PartMissing {
                part: "valid header",
            },
        );
        return;
    };
    header.sequence = Some(sequence);
    // A log that is empty has no identity.
    if slice(&bytes, 48, 16) != Some(&[0; 16]) {
        header.found(offset + 48, DefectKind::LogNotReplayed);
    }
    let (log_length, log_offset) = (le32(&bytes, 68).unwrap_or(0), le64(&bytes, 72).unwrap_or(0));
    if log_offset < 1 << 20 || !log_offset.is_multiple_of(1 << 20) {
        let kind = DefectKind::TableUnaligned {
            table: "log",
            offset: log_offset,
            alignment: 1 << 20,
        };
        header.found(offset + 72, kind);
    }
    if log_length == 0 || !log_length.is_multiple_of(1 << 20) {
        let kind = DefectKind::UnitSize {
            part: "log size",
            bytes: u64::from(log_length),
            expected: "a multiple of 1 MiB",
        };
        header.found(offset + 68, kind);
    }
}
