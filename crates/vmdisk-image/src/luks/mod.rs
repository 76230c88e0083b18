//! The headers of LUKS, versions 1 and 2.
//!
//! Version 1 is supported by QEMU's `luks` driver and the kernel; version 2 only by the kernel, so QEMU probes it
//! as raw. Fields are big endian.

mod one;

use crate::bytes::{be16, be64, has};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;

pub(crate) use one::V1_LENGTH;
pub use one::{KeySlot, Luks1Header};
use one::{read_one, text};

pub(crate) const MAGIC: &[u8] = b"LUKS\xba\xbe";

/// Size of the binary part of a version 2 header; the JSON part after it is not read.
const V2_LENGTH: usize = 4096;

/// The binary part of a LUKS version 2 header.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Luks2Header {
    /// The size of the header with its JSON part, in bytes.
    pub header_size: u64,
    /// The number of updates of the header.
    pub sequence: u64,
    /// The label.
    pub label: Name,
    /// A second label, for udev.
    pub subsystem: Name,
    /// The hash of the header's checksum, for example `sha256`.
    pub checksum_algorithm: Name,
    /// The volume's UUID, as text.
    pub uuid: Name,
    /// The defects, in the order of detection.
    pub defects: Vec<Defect>,
}

/// A LUKS header of either version.
pub(crate) enum Luks {
    One(Luks1Header),
    Two(Luks2Header),
}

/// Reads a header that begins with [`MAGIC`]; `None` if the version is neither 1 nor 2.
pub(crate) fn read(head: &[u8], image_length: Option<u64>) -> Option<Luks> {
    match be16(head, MAGIC.len())? {
        1 => Some(Luks::One(read_one(head, image_length))),
        2 => Some(Luks::Two(read_two(head))),
        _ => None,
    }
}

/// Returns the defects of a header inside an image of another format, with offsets in the header.
pub(crate) fn check_embedded(head: &[u8]) -> Vec<Defect> {
    if !has(head, 0, MAGIC) {
        let part = "LUKS header";
        return vec![Defect::at(0, DefectKind::Signature { part })];
    }
    let version = be16(head, MAGIC.len()).unwrap_or(0);
    if version != 1 {
        let kind = DefectKind::field("version of the LUKS header", u64::from(version), "not 1");
        return vec![Defect::at(MAGIC.len() as u64, kind)];
    }
    read_one(head, None).defects
}

fn read_two(head: &[u8]) -> Luks2Header {
    let mut header = Luks2Header {
        header_size: be64(head, 8).unwrap_or(0),
        sequence: be64(head, 16).unwrap_or(0),
        label: text(head, 24, 48),
        checksum_algorithm: text(head, 72, 32),
        uuid: text(head, 168, 40),
        subsystem: text(head, 208, 48),
        defects: Vec::new(),
    };
    if head.len() < V2_LENGTH {
        let kind = DefectKind::truncated(V2_LENGTH as u64, head.len() as u64);
        header.defects.push(Defect::at(head.len() as u64, kind));
    }
    header
}
