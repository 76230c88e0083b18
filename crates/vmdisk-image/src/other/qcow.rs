//! The header of qcow version 1, the predecessor of qcow2.
//!
//! The layout follows `block/qcow.c` of QEMU. All fields are big endian.

use super::OtherHeader;
use crate::bytes::{be32, be64};
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};

/// The cluster sizes that QEMU supports: 512 bytes to 64 KiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u8> = 9..=16;

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> OtherHeader {
    let mut header = OtherHeader::new(ImageFormat::Qcow);
    let head = window.head();
    header.virtual_size = be64(head, 24).map(|size| size / 512 * 512);
    let bits = head.get(32).filter(|bits| CLUSTER_BITS.contains(bits));
    header.cluster_size = bits.map(|bits| 1 << bits);
    header.is_encrypted = be32(head, 36).is_some_and(|method| method != 0);
    let name = be64(head, 8).filter(|offset| *offset != 0);
    if let (Some(offset), Some(length)) = (name, be32(head, 16)) {
        header.read_backing_name(window, offset, u64::from(length));
    }
    header
}
