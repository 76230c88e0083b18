//! The header of VDI, VirtualBox's format.
//!
//! The layout follows `block/vdi.c` of QEMU. All fields are little endian.

use super::UncheckedHeader;
use crate::bytes::{le32, le64, slice};
use crate::defect::DefectKind;
use crate::format::ImageFormat;

/// The signature at byte 64, after a text without meaning.
pub(crate) const MAGIC: &[u8] = &[0x7f, 0x10, 0xda, 0xbe];
/// The offset of the signature.
pub(crate) const MAGIC_OFFSET: usize = 64;

/// The fields up to the UUIDs; QEMU's probe needs a whole sector.
const LENGTH: usize = 512;
/// The UUIDs of a parent and of its last modification.
const PARENT: [usize; 2] = [424, 440];

pub(crate) fn read(head: &[u8]) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Vdi);
    let Some(fields) = header.whole(head, 0, LENGTH) else {
        return header;
    };
    header.virtual_size = le64(fields, 368).and_then(|size| size.checked_next_multiple_of(512));
    header.cluster_size = le32(fields, 376).map(u64::from);
    if PARENT
        .iter()
        .any(|at| slice(fields, *at, 16) != Some(&[0; 16]))
    {
        header.found(424, DefectKind::ParentUnsupported);
    }
    header
}
