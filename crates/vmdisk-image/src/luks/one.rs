//! The header of LUKS version 1, with QEMU's checks (`crypto/block-luks.c`).

use crate::bytes::{be32, slice, until_nul};
use crate::defect::{Defect, DefectKind};
use crate::name::Name;

/// Size of a version 1 header, without the key material.
pub(crate) const V1_LENGTH: usize = 592;
const KEY_SLOTS: usize = 8;
const SLOTS_OFFSET: usize = 208;
const KEY_SLOT_BYTES: usize = 48;
const SLOT_ENABLED: u32 = 0x00ac_71f3;
const SLOT_DISABLED: u32 = 0x0000_dead;
/// The size of the header in sectors of 512 bytes, and the alignment of key material.
const HEADER_SECTORS: u64 = 8;
/// The only supported number of anti-forensic stripes.
const STRIPES: u32 = 4000;

/// The ciphers that QEMU supports, with their key sizes in bytes.
const CIPHERS: [(&[u8], &[u32]); 5] = [
    (b"aes", &[16, 24, 32]),
    (b"cast5", &[16]),
    (b"serpent", &[16, 24, 32]),
    (b"twofish", &[16, 24, 32]),
    // Since QEMU 9.0.
    (b"sm4", &[16]),
];
/// The cipher modes that QEMU supports, and the methods for a sector's initialization vector.
const MODES: [&[u8]; 4] = [b"ecb", b"cbc", b"xts", b"ctr"];
const VECTORS: [&[u8]; 3] = [b"plain", b"plain64", b"essiv"];
/// The hashes that QEMU supports.
const HASHES: [&[u8]; 8] = [
    b"md5",
    b"sha1",
    b"sha224",
    b"sha256",
    b"sha384",
    b"sha512",
    b"ripemd160",
    b"sm3",
];

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

/// A text that ends in zeros.
pub(super) fn text(head: &[u8], at: usize, length: usize) -> Name {
    slice(head, at, length)
        .map(|field| Name::from(until_nul(field)))
        .unwrap_or_default()
}

/// Reads a header, and checks it.
pub(super) fn read_one(head: &[u8], image_length: Option<u64>) -> Luks1Header {
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
        let kind = DefectKind::truncated(V1_LENGTH as u64, head.len() as u64);
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
    check(&mut header, head);
    header
}

fn check(header: &mut Luks1Header, head: &[u8]) {
    let mut defects = Vec::new();
    let mut found = |offset, kind| defects.push(Defect::at(offset, kind));
    names(header, head, &mut found);
    if header.payload_offset < HEADER_SECTORS * 512 {
        let (name, offset) = ("offset of the encrypted disk", header.payload_offset);
        found(104, DefectKind::field(name, offset, "within the header"));
    }
    if be32(head, 164) == Some(0) {
        let name = "iteration count of the volume key";
        found(164, DefectKind::field(name, 0, "which derives no key"));
    }
    slots(header, &mut found);
    if !header.key_slots.iter().any(KeySlot::is_active) {
        found(208, DefectKind::NoKey);
    }
    if let Some(length) = header.image_length
        && header.payload_offset > length
    {
        let kind = DefectKind::TableEndsImage {
            table: "encrypted disk",
            offset: header.payload_offset,
            bytes: 0,
            length,
        };
        found(104, kind);
    }
    header.defects.append(&mut defects);
}

fn unknown(part: &'static str, name: &Name) -> DefectKind {
    let name = name.clone();
    DefectKind::UnknownAlgorithm { part, name }
}

fn names(header: &Luks1Header, head: &[u8], found: &mut impl FnMut(u64, DefectKind)) {
    for (at, part) in [(8, "cipher"), (40, "cipher mode"), (72, "hash")] {
        if slice(head, at, 32).is_none_or(|field| !field.contains(&0)) {
            found(at as u64, DefectKind::NameUnterminated { part });
        }
    }
    let mode = header.mode.as_bytes();
    let (mode, vector) = match mode.iter().position(|byte| *byte == b'-') {
        Some(at) => (&mode[..at], &mode[at + 1..]),
        None => (mode, &b""[..]),
    };
    let (vector, vector_hash) = match vector.iter().position(|byte| *byte == b':') {
        Some(at) => (&vector[..at], Some(&vector[at + 1..])),
        None => (vector, None),
    };
    let hash_is_known = vector_hash.map_or(vector != b"essiv", |hash| HASHES.contains(&hash));
    if !MODES.contains(&mode) || !VECTORS.contains(&vector) || !hash_is_known {
        found(40, unknown("cipher mode", &header.mode));
    }
    // XTS needs two keys.
    let key_bytes = if mode == b"xts" {
        header.key_bytes / 2
    } else {
        header.key_bytes
    };
    match CIPHERS
        .iter()
        .find(|(name, _)| *name == header.cipher.as_bytes())
    {
        None => found(8, unknown("cipher", &header.cipher)),
        Some((_, sizes)) if !sizes.contains(&key_bytes) => {
            let (name, bytes) = ("volume key's length in bytes", header.key_bytes.into());
            let wrong = "which the cipher does not support";
            found(108, DefectKind::field(name, bytes, wrong));
        }
        Some(_) => {}
    }
    if !HASHES.contains(&header.hash.as_bytes()) {
        found(72, unknown("hash", &header.hash));
    }
}

fn slots(header: &Luks1Header, found: &mut impl FnMut(u64, DefectKind)) {
    let place = |slot: usize| (SLOTS_OFFSET + slot * KEY_SLOT_BYTES) as u64;
    let sectors = |slot: &KeySlot| {
        let bytes = u64::from(header.key_bytes) * u64::from(slot.stripes);
        bytes.div_ceil(512).next_multiple_of(HEADER_SECTORS)
    };
    for (index, slot) in header.key_slots.iter().enumerate() {
        let at = place(index);
        let first = u64::from(slot.first_sector);
        let end = first + sectors(slot);
        if slot.stripes != STRIPES {
            let (name, stripes) = ("number of stripes of a key slot", slot.stripes.into());
            found(at + 44, DefectKind::field(name, stripes, "not 4000"));
        }
        if !matches!(slot.state, SLOT_ENABLED | SLOT_DISABLED) {
            let (name, state) = ("state of a key slot", slot.state.into());
            found(
                at,
                DefectKind::field(name, state, "neither enabled nor disabled"),
            );
        }
        if slot.is_active() && slot.iterations == 0 {
            found(
                at + 4,
                DefectKind::field("iteration count of a key slot", 0, "which derives no key"),
            );
        }
        let overlaps = header.key_slots[..index].iter().any(|other| {
            let begin = u64::from(other.first_sector);
            first < begin + sectors(other) && begin < end
        });
        for (is_there, other) in [
            (first < HEADER_SECTORS, "header"),
            // Divided to avoid an overflow, because the number of stripes is arbitrary.
            (end > header.payload_offset / 512, "encrypted disk"),
            (overlaps, "key slot before it"),
        ] {
            let one = "key slot";
            if is_there {
                found(at + 40, DefectKind::Overlap { one, other });
            }
        }
    }
}
