//! Images without an image format's header: what a guest, or nobody, put on them.

use crate::bytes::has;
use crate::defect::Defect;
use crate::read::{RAW_READ, ReadAt, ReadError, Window};

/// What the beginning of an image without a format header looks like.
///
/// All of it is a guess in the format's sense: a raw image is whatever the guest writes, and only its owner knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawGuess {
    /// Whether there is anything at all in the bytes that were looked at.
    pub content: RawContent,
    /// How many bytes from the beginning were looked at, at most [`RAW_READ`].
    pub looked_at: u64,
    /// A partition table.
    pub partition_table: Option<PartitionTable>,
    /// What could not be read on the way.
    pub defects: Vec<Defect>,
}

/// Whether the looked-at beginning of a raw image holds anything.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RawContent {
    /// The image has no bytes.
    Empty,
    /// All bytes looked at are zero.
    Zero,
    /// There is something.
    Data,
}

/// The partition table of a raw image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PartitionTable {
    /// A master boot record.
    Mbr,
    /// A GUID partition table.
    Gpt,
}

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> Result<RawGuess, ReadError> {
    let mut defects = Vec::new();
    if let Err(error) = window.extend_head(RAW_READ) {
        defects.push(Defect::unreadable(
            window.head().len() as u64,
            "beginning of the image",
            &error,
        ));
    }
    let head = window.head();
    let content = match head {
        [] => RawContent::Empty,
        bytes if bytes.iter().all(|byte| *byte == 0) => RawContent::Zero,
        _ => RawContent::Data,
    };
    let partition_table = if has(head, 512, b"EFI PART") || has(head, 4096, b"EFI PART") {
        Some(PartitionTable::Gpt)
    } else if has(head, 510, &[0x55, 0xaa]) {
        Some(PartitionTable::Mbr)
    } else {
        None
    };
    Ok(RawGuess {
        content,
        looked_at: head.len() as u64,
        partition_table,
        defects,
    })
}
