//! The descriptor of a VMDK: lines of `key=value` and lines that name extents.

use super::{VmdkHeader, VmdkKind};
use crate::bytes::until_nul;
use crate::defect::DefectKind;
use crate::name::Name;
use crate::reference::BackingReference;

/// A part of the disk, and the file that holds it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmdkExtent {
    /// `RW`, `RDONLY` or `NOACCESS`; QEMU takes `RW` only and leaves out others.
    pub access: Name,
    /// Its size in sectors of 512 bytes.
    pub sectors: u64,
    /// `FLAT`, `SPARSE`, `ZERO`, `VMFS`, …
    pub kind: Name,
    /// The file, by its name relative to the descriptor.
    pub file: Option<BackingReference>,
    /// Where the extent begins in its file, in sectors of 512 bytes.
    pub offset: u64,
}

/// The types of image QEMU opens by their descriptor.
const OPENED: [&[u8]; 7] = [
    b"monolithicFlat",
    b"vmfs",
    b"vmfsSparse",
    b"seSparse",
    b"twoGbMaxExtentSparse",
    b"twoGbMaxExtentFlat",
    b"monolithicSparse",
];

/// The disk's size in bytes by the extents that QEMU opens.
pub(super) fn sum_of_extents(extents: &[VmdkExtent]) -> Option<u64> {
    extents
        .iter()
        .filter(|extent| extent.access.as_bytes() == b"RW")
        .try_fold(0u64, |sum, extent| sum.checked_add(extent.sectors))?
        .checked_mul(512)
}

pub(super) fn read(header: &mut VmdkHeader, offset: u64, bytes: &[u8]) {
    let text = until_nul(bytes);
    let mut at = offset;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        read_line(header, at, line.trim_ascii());
        at = at.saturating_add(line.len() as u64);
    }
    // A descriptor within a sparse extent decides nothing of what QEMU opens but the parent.
    if header.kind != VmdkKind::Descriptor {
        return;
    }
    match &header.create_type {
        None => header.found(
            offset,
            DefectKind::Descriptor {
                problem: "has no createType",
            },
        ),
        Some(found) if !OPENED.contains(&found.as_bytes()) => {
            let found = found.clone();
            header.found(offset, DefectKind::UnsupportedType { found });
        }
        Some(_) => {}
    }
}

fn read_line(header: &mut VmdkHeader, at: u64, line: &[u8]) {
    if line.is_empty() || line.starts_with(b"#") {
        return;
    }
    if let Some(extent) = extent(line) {
        if extent.access.as_bytes() == b"RW"
            && extent.file.is_none()
            && extent.kind.as_bytes() != b"ZERO"
        {
            header.found(
                at,
                DefectKind::Descriptor {
                    problem: "has an extent without a file",
                },
            );
        }
        header.extents.push(extent);
        return;
    }
    let Some(equals) = line.iter().position(|byte| *byte == b'=') else {
        return;
    };
    let (key, value) = (
        line[..equals].trim_ascii(),
        unquoted(line[equals + 1..].trim_ascii()),
    );
    match key {
        b"version" if header.kind == VmdkKind::Descriptor => {
            header.version = number(value).unwrap_or(0) as u32
        }
        b"CID" => header.content_id = hexadecimal(value),
        b"parentCID" => header.parent_content_id = hexadecimal(value),
        b"createType" => header.create_type = Some(Name::from(value)),
        b"parentFileNameHint" if !value.is_empty() => {
            header.parent = Some(BackingReference::from_bytes(value));
        }
        // The rest describes geometry and VMware's own affairs.
        _ => {}
    }
}

/// `RW 204800 FLAT "disk-flat.vmdk" 0`: access, sectors, type, and for most types a file and an offset.
fn extent(line: &[u8]) -> Option<VmdkExtent> {
    let (access, rest) = word(line)?;
    if !matches!(access, b"RW" | b"RDONLY" | b"NOACCESS") {
        return None;
    }
    let (sectors, rest) = word(rest)?;
    let (kind, rest) = word(rest)?;
    let mut extent = VmdkExtent {
        access: Name::from(access),
        sectors: number(sectors)?,
        kind: Name::from(kind),
        file: None,
        offset: 0,
    };
    if let Some(quoted) = rest.trim_ascii_start().strip_prefix(b"\"")
        && let Some(end) = quoted.iter().position(|byte| *byte == b'"')
    {
        extent.file = Some(BackingReference::from_bytes(&quoted[..end]));
        extent.offset = word(&quoted[end + 1..])
            .and_then(|(offset, _)| number(offset))
            .unwrap_or(0);
    }
    Some(extent)
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}

fn unquoted(value: &[u8]) -> &[u8] {
    match value.strip_prefix(b"\"") {
        Some(rest) => rest.split(|byte| *byte == b'"').next().unwrap_or_default(),
        None => value,
    }
}

fn number(text: &[u8]) -> Option<u64> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

fn hexadecimal(text: &[u8]) -> Option<u32> {
    u32::from_str_radix(std::str::from_utf8(text).ok()?, 16).ok()
}
