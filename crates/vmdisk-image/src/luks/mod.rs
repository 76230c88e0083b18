//! The headers of LUKS, versions 1 and 2.
//!
//! Version 1 is supported by QEMU's `luks` driver and the kernel; version 2 only by the kernel, so QEMU probes it
//! as raw. Fields are big endian.

mod check;

use crate::bytes::{be16, be32, be64, has, slice, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;

pub(crate) const MAGIC: &[u8] = b"LUKS\xba\xbe";

/// Size of a version 1 header, without the key material.
pub(crate) const V1_LENGTH: usize = 592;
/// Size of the binary part of a version 2 header; the JSON part after it is not read.
const V2_LENGTH: usize = 4096;
const KEY_SLOTS: usize = 8;
const SLOTS_OFFSET: usize = 208;
const KEY_SLOT_BYTES: usize = 48;
const SLOT_ENABLED: u32 = 0x00ac_71f3;
const SLOT_DISABLED: u32 = 0x0000_dead;

/// A LUKS version 1 header; it contains no secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Luks1Header {
    /// The cipher, for example `aes`.
    pub cipher: Name,
    /// Its mode, for example `xts-plain64`.
    pub mode: Name,
    /// The hash for key derivation, for example `sha256`.
    pub hash: Name,
    /// The length of the volume key in bytes; XTS uses two keys.
    pub key_bytes: u32,
    /// The offset of the encrypted disk, in bytes.
    pub payload_offset: u64,
    /// The volume's UUID, as text.
    pub uuid: Name,
    /// The eight key slots.
    pub key_slots: [KeySlot; KEY_SLOTS],
    /// The length of the image, if known.
    image_length: Option<u64>,
    /// The defects, in the order of detection.
    pub defects: Vec<Defect>,
}

/// A key slot: the volume key, encrypted with the key of one user.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct KeySlot {
    /// The state, unchanged; see [`KeySlot::is_active`].
    pub state: u32,
    /// The number of iterations for key derivation.
    pub iterations: u32,
    /// The first sector of its key material, in sectors of 512 bytes.
    pub first_sector: u32,
    /// The number of stripes of the key material.
    pub stripes: u32,
}

impl KeySlot {
    /// Returns true if the slot holds a key.
    #[must_use]
    pub fn is_active(&self) -> bool {
        self.state == SLOT_ENABLED
    }
}

impl Luks1Header {
    /// Returns the disk's size as the guest sees it, in bytes: everything after the payload offset.
    #[must_use]
    pub fn virtual_size(&self) -> Option<u64> {
        self.image_length
            .map(|length| length.saturating_sub(self.payload_offset))
    }
}

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
        let (field, expected) = ("version of the LUKS header", "not 1");
        let found = u64::from(version);
        let kind = DefectKind::Field {
            field,
            found,
            expected,
        };
        return vec![Defect::at(MAGIC.len() as u64, kind)];
    }
    read_one(head, None).defects
}

fn text(head: &[u8], at: usize, length: usize) -> Name {
    slice(head, at, length)
        .map(|field| Name::from(until_nul(field)))
        .unwrap_or_default()
}

fn read_one(head: &[u8], image_length: Option<u64>) -> Luks1Header {
    let word = |at| be32(head, at).unwrap_or(0);
    let mut header = Luks1Header {
        cipher: text(head, 8, 32),
        mode: text(head, 40, 32),
        hash: text(head, 72, 32),
        key_bytes: word(108),
        payload_offset: u64::from(word(104)) * 512,
        uuid: text(head, 168, 40),
        key_slots: [KeySlot::default(); KEY_SLOTS],
        image_length,
        defects: Vec::new(),
    };
    if head.len() < V1_LENGTH {
        let kind = DefectKind::TruncatedHeader {
            needed: V1_LENGTH as u64,
            found: head.len() as u64,
        };
        header.defects.push(Defect::at(head.len() as u64, kind));
        return header;
    }
    for (index, slot) in header.key_slots.iter_mut().enumerate() {
        let at = SLOTS_OFFSET + index * KEY_SLOT_BYTES;
        *slot = KeySlot {
            state: word(at),
            iterations: word(at + 4),
            first_sector: word(at + 40),
            stripes: word(at + 44),
        };
    }
    check::check(&mut header, head);
    header
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
        let kind = DefectKind::TruncatedHeader {
            needed: V2_LENGTH as u64,
            found: head.len() as u64,
        };
        header.defects.push(Defect::at(head.len() as u64, kind));
    }
    header
}
