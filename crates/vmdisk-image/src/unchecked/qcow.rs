//! The header of qcow version 1, the predecessor of qcow2.
//!
//! The layout follows `block/qcow.c` of QEMU. All fields are big endian.

use super::UncheckedHeader;
use crate::bytes::{be32, be64};
use crate::defect::DefectKind;
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};

const LENGTH: usize = 48;
/// The cluster sizes that QEMU supports: 512 bytes to 64 KiB.
const CLUSTER_BITS: std::ops::RangeInclusive<u8> = 9..=16;
/// The only encryption method, the insecure AES scheme.
const AES: u32 = 1;

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Qcow);
    let Some(fields) = header.whole(window.head(), 0, LENGTH) else {
        return header;
    };
    let long = |at| be64(fields, at).unwrap_or(0);
    let (name_offset, name_length) = (long(8), be32(fields, 16).unwrap_or(0));
    let bits = fields[32];
    let method = be32(fields, 36).unwrap_or(0);
    header.virtual_size = Some(long(24) / 512 * 512);
    header.cluster_size = CLUSTER_BITS.contains(&bits).then(|| 1 << bits);
    header.is_encrypted = method != 0;
    if method == AES {
        header.found(36, DefectKind::LegacyEncryption);
    }
    if name_offset != 0 {
        header.read_backing_name(window, name_offset, u64::from(name_length));
    }
    header
}
