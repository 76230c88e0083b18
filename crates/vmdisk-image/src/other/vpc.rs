//! The footer and header of VHD, the format QEMU and libvirt call `vpc`.
//!
//! The layout is Microsoft's *Virtual Hard Disk Image Format Specification*; the rule for the disk's size follows
//! `block/vpc.c` of QEMU. All fields are big endian.

use super::OtherHeader;
use crate::bytes::{be16, be32, be64, has};
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};

/// The footer's signature; dynamic images have a copy of the footer at their beginning.
pub(crate) const MAGIC: &[u8] = b"conectix";
pub(crate) const FOOTER_LENGTH: usize = 512;

/// The header of dynamic and differencing images, at an offset in the footer.
const DYNAMIC_MAGIC: &[u8] = b"cxsparse";
const DYNAMIC_LENGTH: usize = 1024;
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
) -> OtherHeader {
    let mut header = OtherHeader::new(ImageFormat::Vpc);
    // QEMU decides by the footer's location, not by the type: at the beginning, a dynamic header must follow.
    header.is_probed_by_qemu = offset == 0;
    header.virtual_size = virtual_size(footer);
    let dynamic = be64(footer, 16)
        .filter(|_| offset == 0)
        .and_then(|at| window.fetch(at, DYNAMIC_LENGTH).ok())
        .filter(|bytes| bytes.len() == DYNAMIC_LENGTH && has(bytes, 0, DYNAMIC_MAGIC));
    if let Some(bytes) = dynamic {
        header.cluster_size = be32(&bytes, 32).map(u64::from);
    }
    header
}

fn virtual_size(footer: &[u8]) -> Option<u64> {
    let (cylinders, heads, sectors) = (be16(footer, 56)?, footer.get(58)?, footer.get(59)?);
    let by_geometry = u64::from(cylinders) * u64::from(*heads) * u64::from(*sectors);
    if SIZE_BY_FOOTER.contains(&&footer[28..32]) || by_geometry == MAX_GEOMETRY_SECTORS {
        be64(footer, 48).map(|size| size / 512 * 512)
    } else {
        Some(by_geometry * 512)
    }
}
