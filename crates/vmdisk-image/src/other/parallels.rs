//! The header of Parallels' expandable images, which libvirt calls ploop.
//!
//! The layout is QEMU's `docs/interop/parallels`. Little endian.

use super::OtherHeader;
use crate::bytes::{has, le32, le64};
use crate::format::ImageFormat;

/// The old signature: the size is a field of 32 bits.
pub(crate) const MAGIC_OLD: &[u8] = b"WithoutFreeSpace";
/// The extended signature: the size is a field of 64 bits.
pub(crate) const MAGIC: &[u8] = b"WithouFreSpacExt";

/// The only version that QEMU detects.
const VERSION: u32 = 2;

pub(crate) fn read(head: &[u8]) -> OtherHeader {
    let mut header = OtherHeader::new(ImageFormat::Parallels);
    header.is_probed_by_qemu = le32(head, 16) == Some(VERSION);
    let sectors = if has(head, 0, MAGIC) {
        le64(head, 36)
    } else {
        le32(head, 36).map(u64::from)
    };
    header.virtual_size = sectors.and_then(|sectors| sectors.checked_mul(512));
    header.cluster_size = le32(head, 28).map(|sectors| u64::from(sectors) * 512);
    header
}
