//! The header of VDI, VirtualBox's format.
//!
//! The layout follows `block/vdi.c` of QEMU. All fields are little endian.

use super::OtherHeader;
use crate::bytes::{le32, le64};
use crate::format::ImageFormat;

/// The signature at byte 64, after a text without meaning.
pub(crate) const MAGIC: &[u8] = &[0x7f, 0x10, 0xda, 0xbe];
/// The offset of the signature.
pub(crate) const MAGIC_OFFSET: usize = 64;

pub(crate) fn read(head: &[u8]) -> OtherHeader {
    let mut header = OtherHeader::new(ImageFormat::Vdi);
    header.virtual_size = le64(head, 368).and_then(|size| size.checked_next_multiple_of(512));
    header.cluster_size = le32(head, 376).map(u64::from);
    header
}
