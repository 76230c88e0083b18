//! Images without an image format's header: what a guest, or nobody, put on them.

mod partition;
mod signature;

pub use partition::{MbrPartition, PartitionTable};
pub use signature::{MdMetadata, Signature, SignatureKind};

use crate::defect::Defect;
use crate::read::{RAW_READ, ReadAt, Window};

/// What an image without a format header looks like.
///
/// All of it is a guess: a raw image is whatever the guest writes, and only its owner knows what that is.
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
    /// Whether there is anything at all in the bytes that were looked at.
    pub content: RawContent,
    /// How many bytes from the beginning were looked at, at most [`RAW_READ`].
    pub looked_at: u64,
    /// The length of the image, where known: the size of the disk.
    pub length: Option<u64>,
    /// A partition table.
    pub partition_table: Option<PartitionTable>,
    /// File systems, volume manager and RAID members, archives: whatever has a signature, in the order of its offset.
    /// More than one is possible: old signatures stay where nothing overwrote them.
    pub signatures: Vec<Signature>,
    /// What could not be read on the way.
    pub defects: Vec<Defect>,
}

impl RawGuess {
    /// The first file system found, swap space not counted.
    #[must_use]
    pub fn file_system(&self) -> Option<SignatureKind> {
        self.signatures
            .iter()
            .map(|signature| signature.kind)
            .find(|kind| kind.is_file_system())
    }

    /// Whether the disk is an LVM2 physical volume.
    #[must_use]
    pub fn is_lvm2(&self) -> bool {
        self.signatures
            .iter()
            .any(|signature| signature.kind == SignatureKind::Lvm2)
    }

    /// Whether the disk is a member of a Linux software RAID.
    #[must_use]
    pub fn is_md(&self) -> bool {
        self.signatures
            .iter()
            .any(|signature| matches!(signature.kind, SignatureKind::Md { .. }))
    }
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
