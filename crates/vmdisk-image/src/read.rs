//! The source of image bytes: a trait for callers to implement, and limits on reading.

/// A source of image bytes.
///
/// Implemented here for byte slices; callers with IO implement it for files and devices.
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
#[expect(clippy::len_without_is_empty, reason = "the length may be unknown")]
pub trait ReadAt {
    /// Reads at most `buffer.len()` bytes at `offset` and returns the number of bytes read.
    ///
    /// A short read is always allowed; zero means that `offset` is at or after the end.
    ///
    /// # Errors
    ///
    /// If existing bytes cannot be read: an IO error, a lost connection, a revoked permission.
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError>;

    /// Returns the length in bytes, if it is known without reading everything.
    ///
    /// `None` disables what needs the end of an image: the footer of a fixed VHD, and the size of a raw or LUKS image.
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

/// A failure to read existing bytes.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("cannot read {length} bytes at offset {offset}: {reason}")]
pub struct ReadError {
    /// The first requested byte.
    pub offset: u64,
    /// The number of requested bytes.
    pub length: usize,
    /// The reason; lower case, without a full stop.
    pub reason: String,
}

impl ReadError {
    /// Creates an error with the reason as text, to accept any error type.
    pub fn new(offset: u64, length: usize, reason: impl std::fmt::Display) -> Self {
        Self {
            offset,
            length,
            reason: reason.to_string(),
        }
    }
}

/// Size of the first read of every image: one page, which determines the format.
///
/// All signatures that QEMU probes are in the first 512 bytes (`BLOCK_PROBE_BUF_SIZE`), and a qcow2 header with its
/// extensions and backing file name rarely exceeds a page.
pub const FIRST_READ: usize = 4096;

/// Maximum number of bytes to read of one image, whatever its header contains.
///
/// VHDX needs the most: the first page and two tables of 64 KiB, which is 132 KiB; the next power of two leaves room. The
/// reader enforces it.
pub const MAX_BYTES_READ: u64 = 256 * 1024;

/// The reason why a part of an image could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("not read: an image's headers should not need more than {MAX_BYTES_READ} bytes")]
    Limit,
}

/// A reader with a cache of the image's beginning, limited to [`MAX_BYTES_READ`].
pub(crate) struct Window<'a, R: ReadAt + ?Sized> {
    input: &'a mut R,
    head: Vec<u8>,
    bytes_read: u64,
}

impl<'a, R: ReadAt + ?Sized> Window<'a, R> {
    /// Reads the first page; an image that cannot be read has no header.
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

    /// Returns the part of the image's beginning that was read; short if the image is.
    pub(crate) fn head(&self) -> &[u8] {
        &self.head
    }

    /// Returns the image's length in bytes, if known.
    pub(crate) fn image_length(&self) -> Option<u64> {
        self.input.len()
    }

    /// Extends the cached beginning to `length` bytes, or to the length of the image.
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

    /// A source without an end, which counts the bytes read.
    struct Endless(u64);

    impl ReadAt for Endless {
        fn read_at(&mut self, _: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
            self.0 += buffer.len() as u64;
            // A wrong result, larger than the buffer, which must be ignored.
            Ok(buffer.len() + 1)
        }

        fn len(&self) -> Option<u64> {
            None
        }
    }

    #[test]
    fn reading_never_exceeds_the_limit() {
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
        // Cached bytes are still available.
        assert_eq!(window.fetch(0, FIRST_READ).unwrap().len(), FIRST_READ);
        assert!(
            input.0 <= MAX_BYTES_READ && input.0 > MAX_BYTES_READ - 8192,
            "{}",
            input.0
        );
    }

    #[test]
    fn reading_after_the_last_offset_returns_nothing() {
        let mut bytes: &[u8] = &[7; 100];
        let mut window = Window::open(&mut bytes).unwrap();
        assert_eq!(window.fetch(u64::MAX, 16).unwrap(), []);
        assert_eq!(window.fetch(u64::MAX - 3, 16).unwrap(), []);
        assert_eq!(window.fetch(96, 16).unwrap(), [7; 4]);
    }
}
