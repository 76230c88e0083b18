//! The one entry: which format an image is in, and what its header says.

use crate::bytes::{be32, has};
use crate::defect::Defect;
use crate::qcow2::{self, Qcow2Header};
use crate::raw::{self, RawGuess};
use crate::read::{ReadAt, ReadError, Window};

/// An image's header, by its format.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(
    clippy::large_enum_variant,
    reason = "there is one per image, and matching it beats the bytes"
)]
pub enum Header {
    /// qcow2, versions 2 and 3.
    Qcow2(Qcow2Header),
    /// No header of an image format: raw, as far as one can know.
    Raw(RawGuess),
}

impl Header {
    /// What is wrong with the header.
    #[must_use]
    pub fn defects(&self) -> &[Defect] {
        match self {
            Self::Qcow2(header) => &header.defects,
            Self::Raw(guess) => &guess.defects,
        }
    }
}

/// Reads an image's header, whatever format it is in.
///
/// # Errors
///
/// Only when the first page cannot be read. Whatever else is wrong is in the header's defects.
pub fn probe<R: ReadAt + ?Sized>(input: &mut R) -> Result<Header, ReadError> {
    let mut window = Window::open(input)?;
    let head = window.head();
    if has(head, 0, qcow2::MAGIC) && be32(head, 4) != Some(1) {
        return Ok(Header::Qcow2(qcow2::read(&mut window)));
    }
    Ok(Header::Raw(raw::read(&mut window)?))
}
