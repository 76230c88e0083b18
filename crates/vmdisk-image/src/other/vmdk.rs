//! The headers of VMDK: sparse extents, and the descriptor of an image.
//!
//! The layout follows VMware's *Virtual Disk Format* specification, the choice of files `block/vmdk.c` of QEMU.
//! Binary fields are little endian.

use super::OtherHeader;
use crate::bytes::{has, le32, le64, until_nul};
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// A hosted sparse extent.
pub(crate) const MAGIC_SPARSE: &[u8] = b"KDMV";
/// An ESX Server sparse extent.
pub(crate) const MAGIC_COWD: &[u8] = b"COWD";

/// Size of the binary headers: one sector. QEMU's probe for a descriptor is limited to it, too.
const HEADER_LENGTH: usize = 512;
/// Maximum size of a descriptor: QEMU writes at most 20 sectors, and an extent's line takes about 50 bytes, so
/// a descriptor of this size has a thousand extents.
const MAX_DESCRIPTOR: u64 = 64 * 1024;
/// The offset of a grain directory at the end of the image, which then has a footer.
const AT_END: u64 = u64::MAX;
/// The extent types that QEMU opens.
const OPENED_EXTENTS: [&[u8]; 5] = [b"FLAT", b"SPARSE", b"VMFS", b"VMFSSPARSE", b"SESPARSE"];

/// Returns true if QEMU considers `head` a descriptor: comments and blank lines, then a line `version=1`, 2 or 3.
pub(crate) fn is_descriptor(head: &[u8]) -> bool {
    let head = &head[..head.len().min(HEADER_LENGTH)];
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let Some(line) = line.strip_suffix(b"\n") else {
            return false;
        };
        match line.first() {
            Some(b'#') => {}
            Some(b' ') => {
                let rest = line
                    .iter()
                    .position(|byte| *byte != b' ')
                    .map_or(&line[..0], |at| &line[at..]);
                if !matches!(rest, [] | [b'\r']) {
                    return false;
                }
            }
            Some(_) | None => {
                let line = line.strip_suffix(b"\r").unwrap_or(line);
                return matches!(line, b"version=1" | b"version=2" | b"version=3");
            }
        }
    }
    false
}

/// Reads an image that begins with a signature or is a descriptor.
pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> OtherHeader {
    let mut header = OtherHeader::new(ImageFormat::Vmdk);
    if has(window.head(), 0, MAGIC_SPARSE) {
        read_sparse(&mut header, window);
    } else if has(window.head(), 0, MAGIC_COWD) {
        let sectors = |at| le32(window.head(), at).map(|sectors| u64::from(sectors) * 512);
        header.virtual_size = sectors(12);
        header.cluster_size = sectors(16);
    } else {
        let length = window.image_length().unwrap_or(u64::MAX);
        header.virtual_size = read_descriptor(&mut header, window, 0, length);
    }
    // QEMU (5.1) and libvirt open the parent of a VMDK as VMDK.
    header.backing_format = header.backing_file.as_ref().map(|_| ImageFormat::Vmdk);
    header
}

fn read_sparse<R: ReadAt + ?Sized>(header: &mut OtherHeader, window: &mut Window<'_, R>) {
    let Some(mut fields) = window.head().get(..HEADER_LENGTH).map(<[u8]>::to_vec) else {
        return;
    };
    let sectors = |fields: &[u8], at| le64(fields, at).map_or(0, |count| count.saturating_mul(512));
    let (offset, length) = (sectors(&fields, 28), sectors(&fields, 36));
    if offset != 0 {
        let size = read_descriptor(header, window, offset, length);
        if sectors(&fields, 12) == 0 {
            // Without a capacity, QEMU treats the descriptor as the whole image.
            header.virtual_size = size;
            return;
        }
    }
    if le64(&fields, 56) == Some(AT_END) {
        // The end of the image: the footer, and the sector that marks the end of the stream.
        let footer = window
            .image_length()
            .and_then(|length| length.checked_sub(1024))
            .and_then(|offset| window.fetch(offset, HEADER_LENGTH).ok());
        if let Some(footer) = footer
            && has(&footer, 0, MAGIC_SPARSE)
            && footer.len() == HEADER_LENGTH
        {
            fields = footer;
        }
    }
    let bytes = |at| le64(&fields, at).and_then(|sectors| sectors.checked_mul(512));
    header.virtual_size = bytes(12);
    header.cluster_size = bytes(20);
}

/// Reads the parent in a descriptor; returns the size of the extents that QEMU opens.
fn read_descriptor<R: ReadAt + ?Sized>(
    header: &mut OtherHeader,
    window: &mut Window<'_, R>,
    offset: u64,
    length: u64,
) -> Option<u64> {
    let bytes = window
        .fetch(offset, length.min(MAX_DESCRIPTOR) as usize)
        .ok()?;
    let mut sectors = 0u64;
    for line in until_nul(&bytes).split(|byte| *byte == b'\n') {
        if let Some(size) = opened_extent(line) {
            sectors = sectors.saturating_add(size);
        } else if let Some(name) = parent(line) {
            header.backing_file = Some(BackingReference::from_bytes(name));
        }
    }
    sectors.checked_mul(512)
}

/// Returns the size in sectors of an extent that QEMU includes in the disk; it ignores others.
///
/// A line is `RW 204800 FLAT "disk-flat.vmdk" 0`: access, sectors, type, file, and the offset in it.
fn opened_extent(line: &[u8]) -> Option<u64> {
    let (access, rest) = word(line)?;
    let (sectors, rest) = word(rest)?;
    let (kind, rest) = word(rest)?;
    let sectors = std::str::from_utf8(sectors).ok()?.parse().ok()?;
    quoted(rest.trim_ascii_start())?;
    let is_opened = access == b"RW" && sectors > 0 && OPENED_EXTENTS.contains(&kind);
    is_opened.then_some(sectors)
}

/// Returns the value of `parentFileNameHint`.
fn parent(line: &[u8]) -> Option<&[u8]> {
    let value = line.trim_ascii().strip_prefix(b"parentFileNameHint")?;
    let value = value.trim_ascii_start().strip_prefix(b"=")?;
    let value = value.trim_ascii_start();
    quoted(value).or((!value.is_empty() && value[0] != b'"').then_some(value))
}

/// Returns a text in quotation marks that is not empty.
fn quoted(text: &[u8]) -> Option<&[u8]> {
    let text = text.strip_prefix(b"\"")?;
    let end = text.iter().position(|byte| *byte == b'"')?;
    (end > 0).then(|| &text[..end])
}

fn word(text: &[u8]) -> Option<(&[u8], &[u8])> {
    let text = text.trim_ascii_start();
    let end = text
        .iter()
        .position(u8::is_ascii_whitespace)
        .unwrap_or(text.len());
    (end > 0).then(|| text.split_at(end))
}
