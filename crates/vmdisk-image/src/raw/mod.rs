//! Images without a format header: guesses at their contents.

mod partition;
mod signature;

pub use partition::{MbrPartition, PartitionTable};
pub use signature::{MdMetadata, Signature, SignatureKind};

use crate::defect::Defect;
use crate::read::{RAW_READ, ReadAt, Window};

/// A guess at the contents of an image without a format header.
///
/// It cannot be certain: a raw image contains what the guest writes.
///
/// ```
/// use vmdisk_image::{Header, SignatureKind, probe};
///
/// let mut image = vec![0u8; 1 << 20];
/// image[0x438..0x43a].copy_from_slice(&[0x53, 0xef]);
/// let Header::Raw(guess) = probe(&mut image.as_slice()).unwrap() else { panic!() };
/// assert_eq!(guess.file_system(), Some(SignatureKind::Ext { version: 2 }));
/// assert_eq!(guess.partition_table, None);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawGuess {
    /// The kind of data in the inspected bytes.
    pub content: RawContent,
    /// The number of inspected bytes from the beginning, at most [`RAW_READ`].
    pub looked_at: u64,
    /// The length of the image, if known: the size of the disk.
    pub length: Option<u64>,
    /// The partition table.
    pub partition_table: Option<PartitionTable>,
    /// Signatures of file systems, volume manager and RAID members, and archives, by offset. There may be several: old
    /// signatures stay until they are overwritten.
    pub signatures: Vec<Signature>,
    /// Failures to read parts of the image.
    pub defects: Vec<Defect>,
}

impl RawGuess {
    /// Returns the first file system, except swap space.
    #[must_use]
    pub fn file_system(&self) -> Option<SignatureKind> {
        self.signatures
            .iter()
            .map(|signature| signature.kind)
            .find(|kind| kind.is_file_system())
    }
}

/// The kind of data in the inspected beginning of a raw image.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RawContent {
    /// The image is empty.
    Empty,
    /// All inspected bytes are zero.
    Zero,
    /// Some bytes are not zero.
    Data,
}

pub(crate) fn read<R: ReadAt + ?Sized>(window: &mut Window<'_, R>) -> RawGuess {
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
    let looked_at = head.len() as u64;
    let mut signatures = signature::in_head(head);
    let partition_table = partition::read(head, &signatures);
    signature::at_end(window, &mut signatures, &mut defects);
    RawGuess {
        content,
        looked_at,
        length: window.image_length(),
        partition_table,
        signatures,
        defects,
    }
}
