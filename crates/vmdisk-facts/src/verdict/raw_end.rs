//! Whether direct I/O can write a raw file to its end: QEMU up to 10.0 refuses a file that it cannot write so.

use crate::known_bad::Bug;
use crate::missing::Missing;
use crate::path::File;
use crate::target::Target;

/// The alignment that QEMU uses if it cannot detect one.
pub const SAFE_ALIGNMENT: u64 = 4096;

/// A raw file whose last bytes direct I/O cannot write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnreachableEnd {
    /// The size of the file in bytes.
    pub size: u64,
    /// The alignment that QEMU uses.
    pub alignment: u64,
    /// True if no block is allocated, so that QEMU cannot detect an alignment.
    pub is_hole: bool,
}

impl UnreachableEnd {
    /// True unless the target's QEMU is known to write such a file.
    pub fn is_refused_by(target: &Target) -> bool {
        !target.has_bug(Bug::RawEndUnaligned).is_no()
    }

    /// The verdict about a file that exists.
    ///
    /// # Errors
    /// Fails if the facts do not show the size or the alignment.
    pub fn of(file: &File, path: &str, target: &Target) -> Result<Option<Self>, Missing> {
        if !Self::is_refused_by(target) || file.is_missing() {
            return Ok(None);
        }
        let size = file.size.clone().needed(|| format!("the size of {path}"))?;
        let Some(end) = size.and_then(|size| Self::with(size, SAFE_ALIGNMENT, true)) else {
            return Ok(None);
        };
        if file.alloc.value() == Some(&0) {
            return Ok(Some(end));
        }
        let what = || format!("the alignment of direct I/O on {path}");
        let alignment = file.dio.off.clone().needed(what)?;
        Ok(alignment.and_then(|alignment| Self::with(end.size, alignment, false)))
    }

    /// The verdict about a file of this size that is to be made.
    pub fn of_new(size: u64, target: &Target) -> Option<Self> {
        let end = Self::with(size, SAFE_ALIGNMENT, true);
        end.filter(|_| Self::is_refused_by(target))
    }

    /// QEMU rounds sizes up to sectors.
    fn with(size: u64, alignment: u64, is_hole: bool) -> Option<Self> {
        let sectors = size.checked_next_multiple_of(512).unwrap_or(size);
        (alignment > 0 && !sectors.is_multiple_of(alignment)).then_some(UnreachableEnd {
            size,
            alignment,
            is_hole,
        })
    }

    /// Why QEMU uses the alignment.
    pub fn reason(&self, path: &str) -> String {
        match self.is_hole {
            true => {
                "no block is allocated, so QEMU cannot detect the alignment and uses 4096 bytes"
                    .to_owned()
            }
            false => format!(
                "direct I/O on {path} needs an alignment of {} bytes",
                self.alignment
            ),
        }
    }
}
