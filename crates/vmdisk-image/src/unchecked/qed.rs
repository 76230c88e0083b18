//! The header of QED, a format QEMU keeps for old images.
//!
//! The layout is QEMU's `docs/interop/qed_spec`. All fields are little endian.

use super::UncheckedHeader;
use crate::bytes::{le32, le64};
use crate::format::ImageFormat;
use crate::read::{ReadAt, Window};

pub(crate) const MAGIC: &[u8] = b"QED\0";

const LENGTH: usize = 64;
const FEATURE_BACKING_FILE: u64 = 1;
const FEATURE_BACKING_IS_RAW: u64 = 1 << 2;

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> UncheckedHeader {
    let mut header = UncheckedHeader::new(ImageFormat::Qed);
    let Some(fields) = header.whole(window.head(), 0, LENGTH) else {
        return header;
    };
    let word = |at| u64::from(le32(fields, at).unwrap_or(0));
    let long = |at| le64(fields, at).unwrap_or(0);
    let (cluster_size, header_clusters, features) = (word(4), word(12), long(16));
    let (name_offset, name_length) = (word(56), word(60));
    header.virtual_size = Some(long(48));
    header.cluster_size = Some(cluster_size);
    if features & FEATURE_BACKING_FILE != 0 {
        header.backing_is_raw = features & FEATURE_BACKING_IS_RAW != 0;
        let room = (cluster_size * header_clusters).saturating_sub(name_offset);
        header.read_backing_name(window, name_offset, name_length.min(room));
    }
    header
}
