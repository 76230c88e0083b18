//! The header of QED, a format QEMU keeps for old images.
//!
//! The layout is QEMU's `docs/interop/qed_spec`. All fields are little endian.

use super::OtherHeader;
use crate::bytes::{le32, le64};
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};

pub(crate) const MAGIC: &[u8] = b"QED\0";

const FEATURE_BACKING_FILE: u64 = 1;
const FEATURE_BACKING_IS_RAW: u64 = 1 << 2;

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> OtherHeader {
    let mut header = OtherHeader::new(ImageFormat::Qed);
    let head = window.head();
    header.virtual_size = le64(head, 48);
    header.cluster_size = le32(head, 4).map(u64::from);
    let features = le64(head, 16).unwrap_or(0);
    let name = (le32(head, 56), le32(head, 60));
    if features & FEATURE_BACKING_FILE != 0
        && let (Some(offset), Some(length)) = name
    {
        if features & FEATURE_BACKING_IS_RAW != 0 {
            header.backing_format = Some(ImageFormat::Raw);
        }
        header.read_backing_name(window, u64::from(offset), u64::from(length));
    }
    header
}
