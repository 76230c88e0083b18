//! The footer and header of VHD, the format QEMU and libvirt call `vpc`.
//!
//! The layout is Microsoft's *Virtual Hard Disk Image Format Specification*; the rule for the disk's size follows
//! `block/vpc.c` of QEMU. All fields are big endian.

use super::UncheckedHeader;
use crate::bytes::{be16, be32, be64, has, utf16};
use crate::defect::DefectKind;
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};
use crate::reference::BackingReference;

/// The footer's signature; dynamic images have a copy of the footer at their beginning.
pub(crate) const MAGIC: &[u8] = b"conectix";
pub(crate) const FOOTER_LENGTH: usize = 512;

/// The header of dynamic and differencing images, at an offset in the footer.
const DYNAMIC_MAGIC: &[u8] = b"cxsparse";
const DYNAMIC_LENGTH: usize = 1024;
/// The disk type of an image that depends on a parent.
const DIFFERENCING: u32 = 4;
/// The geometry that means "too large for a geometry": 65535 cylinders, 16 heads, 255 sectors.
const MAX_GEOMETRY_SECTORS: u64 = 65535 * 16 * 255;
/// Creators that store the size in the footer; for all others QEMU uses the geometry's product. `wa` is Azure's, which
/// QEMU knows since 10.0; its images have the largest geometry or a matching one.
const SIZE_BY_FOOTER: [&[u8]; 5] = [b"win ", b"qem2", b"d2v ", b"tap\0", b"CTXS"];

/// Reads an image whose footer, or its copy, begins at `offset`.
pub(crate) fn read<R: ReadAt + ?Sized>(
    window: &mut Window<'_, R>,
    offset: u64,
    footer: &[u8],
) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Vpc);
    header.is_probed_by_qemu = offset == 0;
    let Some(footer) = header.whole(footer, offset, FOOTER_LENGTH) else {
        return header;
    };
    header.virtual_size = Some(virtual_size(footer));
    let is_differencing = be32(footer, 60) == Some(DIFFERENCING);
    // QEMU decides by the footer's location, not by the type: at the beginning, a dynamic header must follow.
    if offset == 0 {
        read_dynamic(
            &mut header,
            window,
            be64(footer, 16).unwrap_or(0),
            is_differencing,
        );
    }
    if is_differencing {
        header.found(offset + 60, DefectKind::ParentIgnored);
    }
    header
}

/// The disk's size in QEMU: the footer's size for the creators that write it and for the largest geometry, else the
/// product of the geometry, which may be a little smaller.
fn virtual_size(footer: &[u8]) -> u64 {
    let byte = |at: usize| u64::from(footer[at]);
    let by_geometry = u64::from(be16(footer, 56).unwrap_or(0)) * byte(58) * byte(59);
    if SIZE_BY_FOOTER.contains(&&footer[28..32]) || by_geometry == MAX_GEOMETRY_SECTORS {
        be64(footer, 48).unwrap_or(0) / 512 * 512
    } else {
        by_geometry * 512
    }
}

fn read_dynamic<R: ReadAt + ?Sized>(
    header: &mut UncheckedHeader,
    window: &mut Window<'_, R>,
    offset: u64,
    is_differencing: bool,
) {
    let bytes = match window.fetch(offset, DYNAMIC_LENGTH) {
        Ok(bytes) => bytes,
        Err(error) => return header.unreadable(offset, "dynamic disk header", &error),
    };
    if !has(&bytes, 0, DYNAMIC_MAGIC) {
        return;
    }
    let Some(bytes) = header.whole(&bytes, offset, DYNAMIC_LENGTH) else {
        return;
    };
    header.cluster_size = be32(bytes, 32).map(u64::from);
    if is_differencing {
        let units = bytes[64..576]
            .chunks_exact(2)
            .map(|unit| u16::from_be_bytes([unit[0], unit[1]]));
        let name = utf16(units);
        header.backing_file =
            (!name.is_empty()).then(|| BackingReference::from_bytes(name.as_bytes()));
    }
}
