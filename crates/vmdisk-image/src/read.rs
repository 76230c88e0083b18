//! Where the bytes come from: a trait the caller implements, and the bounds this crate keeps to.

/// A place image bytes can be read from, without saying what it is.
///
/// Implemented here for byte slices; a caller with IO implements it for its files and devices.
///
/// ```
/// use vmdisk_image::ReadAt;
///
/// let mut bytes: &[u8] = b"0123456789";
/// let mut buffer = [0; 4];
/// assert_eq!(bytes.read_at(8, &mut buffer).unwrap(), 2);
/// assert_eq!(&buffer[..2], b"89");
/// assert_eq!(ReadAt::len(&bytes), Some(10));
/// ```
#[expect(
    clippy::len_without_is_empty,
    reason = "the length may be unknown, so that emptiness is not a yes or no"
)]
pub trait ReadAt {
    /// Reads at most `buffer.len()` bytes from `offset` and returns how many were read.
    ///
    /// Fewer than asked is allowed at any time; zero means that nothing follows `offset`.
    ///
    /// # Errors
    ///
    /// When the bytes exist and cannot be had: an IO error, a lost connection, a revoked permission.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError>;

    /// The length in bytes, where it is known without reading everything.
    ///
    /// `None` turns off whatever needs the end of the image: the footer of a fixed VHD, md metadata 0.90 and 1.0,
    /// and checks that a table lies within the file.
    fn len(&self) -> Option<u64>;
}

impl ReadAt for &[u8] {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        let rest = usize::try_from(offset)
            .ok()
            .and_then(|offset| self.get(offset..))
            .unwrap_or_default();
        let count = rest.len().min(buffer.len());
        buffer[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn len(&self) -> Option<u64> {
        u64::try_from(<[u8]>::len(self)).ok()
    }
}

impl<R: ReadAt + ?Sized> ReadAt for &mut R {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        (**self).read_at(offset, buffer)
    }

    fn len(&self) -> Option<u64> {
        (**self).len()
    }
}

/// Bytes that exist and could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {length} bytes at offset {offset}: {reason}")]
pub struct ReadError {
    /// The first byte that was asked for.
    pub offset: u64,
    /// How many bytes were asked for.
    pub length: usize,
    /// Why, in the words of whoever refused; lower case, without a full stop.
    pub reason: String,
}

impl ReadError {
    /// An error with the reason as text, so that any error type can be handed over.
    pub fn new(offset: u64, length: usize, reason: impl std::fmt::Display) -> Self {
        Self {
            offset,
            length,
            reason: reason.to_string(),
        }
    }
}

/// What is read first of every image: one page, which decides the format.
///
/// All signatures that QEMU probes for lie in its first 512 bytes (`BLOCK_PROBE_BUF_SIZE`), and a qcow2 header with its
/// extensions and its backing file name rarely needs more than this page.
pub const FIRST_READ: usize = 4096;

/// What is read of an image that has no image format's signature, to guess what a guest put on it.
///
/// The farthest signature looked for is btrfs: a superblock of 4 KiB at 64 KiB.
pub const RAW_READ: usize = 64 * 1024 + 4096;

/// The most bytes that are ever read of one image, whatever its header says.
///
/// VHDX needs the most: the first page, two headers of 4 KiB, two tables of 64 KiB and a parent locator of at most
/// 17 KiB, which is 157 KiB; the next power of two leaves room. The reader enforces it.
pub const MAX_BYTES_READ: u64 = 256 * 1024;

/// Why a part of an image was not had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("not read: an image's headers should not need more than {MAX_BYTES_READ} bytes")]
    Limit,
}

/// Reads with a cache of the image's beginning, and with the bound of [`MAX_BYTES_READ`].
pub(crate) struct Window<'a, R: ReadAt + ?Sized> {
    input: &'a mut R,
    head: Vec<u8>,
    bytes_read: u64,
}

impl<'a, R: ReadAt + ?Sized> Window<'a, R> {
    /// Reads the first page; an image that does not even give that has no header to speak of.
    pub(crate) fn open(input: &'a mut R) -> Result<Self, ReadError> {
        let mut window = Self {
            input,
            head: Vec::new(),
            bytes_read: 0,
        };
        match window.extend_head(FIRST_READ) {
            Ok(()) => Ok(window),
            Err(FetchError::Read(error)) => Err(error),
            Err(FetchError::Limit) => Ok(window),
        }
    }

    /// The beginning of the image as far as it was read; short when the image is.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// The image's length in bytes, where known.
    pub(crate) fn image_length(&self) -> Option<u64> {
        self.input.len()
    }

    /// Makes the cached beginning at least `length` long, or as long as the image is.
    pub(crate) fn extend_head(&mut self, length: usize) -> Result<(), FetchError> {
        let have = self.head.len();
        if have >= length {
            return Ok(());
        }
        let more = self.read_directly(have as u64, length - have)?;
        self.head.extend_from_slice(&more);
        Ok(())
    }

    /// Up to `length` bytes from `offset`; fewer only where the image ends.
    ///
    /// `length` is the caller's constant or was held against one: it sizes an allocation.
    pub(crate) fn fetch(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, FetchError> {
        if let Ok(start) = usize::try_from(offset)
            && let Some(end) = start.checked_add(length)
            && let Some(cached) = self.head.get(start..end)
        {
            return Ok(cached.to_vec());
        }
        self.read_directly(offset, length)
    }

    fn read_directly(&mut self, offset: u64, length: usize) -> Result<Vec<u8>, FetchError> {
        if self.bytes_read.saturating_add(length as u64) > MAX_BYTES_READ {
            return Err(FetchError::Limit);
        }
        // Nothing lies beyond the last offset that fits, and a sum that wraps would read the beginning again.
        let reachable = usize::try_from(u64::MAX - offset).unwrap_or(usize::MAX);
        let mut buffer = vec![0; length.min(reachable)];
        let mut filled = 0;
        while filled < buffer.len() {
            let rest = &mut buffer[filled..];
            // An implementation that claims more than it was given room for is held to the room.
            let count = self
                .input
                .read_at(offset + filled as u64, rest)?
                .min(rest.len());
            if count == 0 {
                break;
            }
            filled += count;
        }
        self.bytes_read += filled as u64;
        buffer.truncate(filled);
        Ok(buffer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Never ends, and says how much was read.
    struct Endless(u64);

    impl ReadAt for Endless {
        fn read_at(&mut self, _: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
            self.0 += buffer.len() as u64;
            // More than there is room for: nobody believes it.
            Ok(buffer.len() + 1)
        }

        fn len(&self) -> Option<u64> {
            None
        }
    }

    #[test]
    fn no_more_is_read_than_the_bound_whatever_is_asked_for() {
        let mut input = Endless(0);
        let mut window = Window::open(&mut input).unwrap();
        assert_eq!(window.head().len(), FIRST_READ);
        let mut refusals = 0;
        for piece in 0..100 {
            match window.fetch(1 << 40, 4096 + piece) {
                Ok(bytes) => assert_eq!(bytes.len(), 4096 + piece),
                Err(error) => {
                    assert_eq!(error, FetchError::Limit);
                    refusals += 1;
                }
            }
        }
        assert!(refusals > 30);
        // What was read already is still there.
        assert_eq!(window.fetch(0, FIRST_READ).unwrap().len(), FIRST_READ);
        assert!(
            input.0 <= MAX_BYTES_READ && input.0 > MAX_BYTES_READ - 8192,
            "{}",
            input.0
        );
    }

    #[test]
    fn nothing_lies_beyond_the_last_offset() {
        let mut bytes: &[u8] = &[7; 100];
        let mut window = Window::open(&mut bytes).unwrap();
        assert_eq!(window.fetch(u64::MAX, 16).unwrap(), []);
        assert_eq!(window.fetch(u64::MAX - 3, 16).unwrap(), []);
        assert_eq!(window.fetch(96, 16).unwrap(), [7; 4]);
    }
}
