//! The descriptor of a VMDK: lines `key=value`, and lines with extents.

use super::{VmdkHeader, VmdkKind};
use crate::bytes::until_nul;
use crate::defect::DefectKind;
use crate::name::Name;
use crate::reference::BackingReference;

/// A part of the disk, with its file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VmdkExtent {
    /// `RW`, `RDONLY` or `NOACCESS`; QEMU uses only `RW` extents.
    pub access: Name,
    /// Its size in sectors of 512 bytes.
    pub sectors: u64,
    /// `FLAT`, `SPARSE`, `ZERO`, `VMFS`, …
    pub kind: Name,
    /// The file, relative to the descriptor.
    pub file: Option<BackingReference>,
    /// The offset of the extent in its file, in sectors of 512 bytes.
    pub offset: u64,
}

/// The image types that QEMU opens by descriptor.
const OPENED: [&[u8]; 6] = [
    b"monolithicFlat",
    b"vmfs",
    b"vmfsSparse",
    b"seSparse",
    b"twoGbMaxExtentSparse",
    b"twoGbMaxExtentFlat",
];

/// The extent types that QEMU opens.
const OPENED_EXTENTS: [&[u8]; 5] = [b"FLAT", b"SPARSE", b"VMFS", b"VMFSSPARSE", b"SESPARSE"];

impl VmdkExtent {
    /// Returns true if QEMU includes the extent in the disk; it silently ignores others.
    #[must_use]
    pub fn is_opened(&self) -> bool {
        self.access.as_bytes() == b"RW"
            && self.sectors > 0
            && self.file.is_some()
            && OPENED_EXTENTS.contains(&self.kind.as_bytes())
    }
}

/// Returns the disk's size in bytes, by the extents that QEMU opens.
pub(super) fn sum_of_extents(extents: &[VmdkExtent]) -> Option<u64> {
    extents
        .iter()
        .filter(|extent| extent.is_opened())
        .try_fold(0u64, |sum, extent| sum.checked_add(extent.sectors))?
        .checked_mul(512)
}

/// Problems that matter only if the descriptor is the image.
#[derive(Default)]
pub(super) struct Doubts {
    /// The offsets of invalid lines, with the reason.
    lines: Vec<(u64, &'static str)>,
}

pub(super) fn read(header: &mut VmdkHeader, offset: u64, bytes: &[u8]) -> Doubts {
    let text = until_nul(bytes);
    let mut doubts = Doubts::default();
    let mut at = offset;
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        if let Err(problem) = read_line(header, line.trim_ascii()) {
            doubts.lines.push((at, problem));
        }
        at = at.saturating_add(line.len() as u64);
    }
    doubts
}

/// True if QEMU finds both content ids; as in QEMU, the end of `parentCID=` also counts as `CID=`, and any byte may
/// take the place of the equals sign.
pub(super) fn has_ids(bytes: &[u8]) -> bool {
    let text = until_nul(bytes);
    [&b"CID"[..], b"parentCID"].into_iter().all(|key| {
        let at = text.windows(key.len()).position(|window| window == key);
        // C's `scanf` skips white space and accepts a sign.
        at.is_some_and(|at| {
            let value = text.get(at + key.len() + 1..).unwrap_or_default();
            let value = value.trim_ascii_start();
            let digits = value.strip_prefix(b"-").or(value.strip_prefix(b"+"));
            digits
                .unwrap_or(value)
                .first()
                .is_some_and(u8::is_ascii_hexdigit)
        })
    })
}

/// Checks an image that consists of a descriptor.
pub(super) fn check_image(header: &mut VmdkHeader, offset: u64, doubts: Doubts) {
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
    if !header.extents.iter().any(VmdkExtent::is_opened) {
        header.found(
            offset,
            DefectKind::Descriptor {
                problem: "has no extent that QEMU supports",
            },
        );
    }
    for (at, problem) in doubts.lines {
        header.found(at, DefectKind::Descriptor { problem });
    }
}

/// Parses a line; returns a problem as a clause.
fn read_line(header: &mut VmdkHeader, line: &[u8]) -> Result<(), &'static str> {
    if line.is_empty() || line.starts_with(b"#") {
        return Ok(());
    }
    if let Some((extent, rest)) = extent(line) {
        let offset = word(rest).map(|(offset, _)| number(offset));
        let in_order = match (extent.kind.as_bytes(), offset) {
            // QEMU ignores the extent, whatever else is on the line.
            _ if extent.access.as_bytes() != b"RW" || extent.file.is_none() => true,
            (b"FLAT", offset) => offset.flatten().is_some(),
            (_, offset) => offset.flatten().is_none(),
        };
        header.extents.push(extent);
        return if in_order {
            Ok(())
        } else {
            Err("has an extent with a missing or unexpected offset")
        };
    }
    let Some(equals) = line.iter().position(|byte| *byte == b'=') else {
        return Ok(());
    };
    let (key, value) = (line[..equals].trim_ascii(), line[equals + 1..].trim_ascii());
    let text = unquoted(value);
    match key {
        b"version" if header.kind == VmdkKind::Descriptor => {
            header.version = number(text)
                .and_then(|version| u32::try_from(version).ok())
                .unwrap_or(0);
        }
        b"CID" => {
            header.content_id = hexadecimal(text);
            return header
                .content_id
                .map(|_| ())
                .ok_or("has a CID that is not a number");
        }
        b"parentCID" => {
            header.parent_content_id = hexadecimal(text);
            return header
                .parent_content_id
                .map(|_| ())
                .ok_or("has a parentCID that is not a number");
        }
        b"createType" => {
            header.create_type = Some(Name::from(text));
            return if value.starts_with(b"\"") {
                Ok(())
            } else {
                Err("has a createType without quotes")
            };
        }
        b"parentFileNameHint" if !text.is_empty() => {
            header.parent = Some(BackingReference::from_bytes(text))
        }
        // Other lines contain the geometry and VMware's own settings.
        _ => {}
    }
    Ok(())
}

/// Parses `RW 204800 FLAT "disk-flat.vmdk" 0`: access, sectors, type, and for most types a file and an offset.
///
/// Also returns the rest of the line after the file name.
fn extent(line: &[u8]) -> Option<(VmdkExtent, &[u8])> {
    let (access, rest) = word(line)?;
    if !matches!(access, b"RW" | b"RDONLY" | b"NOACCESS") {
        return None;
    }
    let (sectors, rest) = word(rest)?;
    let (kind, mut rest) = word(rest)?;
    let mut extent = VmdkExtent {
        access: Name::from(access),
        sectors: number(sectors)?,
        kind: Name::from(kind),
        file: None,
        offset: 0,
    };
    if let Some(quoted) = rest.trim_ascii_start().strip_prefix(b"\"")
        && let Some(end) = quoted.iter().position(|byte| *byte == b'"')
        && end > 0
    {
        extent.file = Some(BackingReference::from_bytes(&quoted[..end]));
        rest = &quoted[end + 1..];
        extent.offset = word(rest)
            .and_then(|(offset, _)| number(offset))
            .unwrap_or(0);
    }
    Some((extent, rest))
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

/// Parses leading hexadecimal digits, like C's `scanf`.
fn hexadecimal(text: &[u8]) -> Option<u32> {
    let digits = text
        .iter()
        .take_while(|byte| byte.is_ascii_hexdigit())
        .count();
    u32::from_str_radix(std::str::from_utf8(&text[..digits]).ok()?, 16).ok()
}
