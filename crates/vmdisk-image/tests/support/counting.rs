//! A reader that counts what is asked of it and can be made to fail, and one of a file.

use std::os::unix::fs::FileExt;

use vmdisk_image::{ReadAt, ReadError};

/// Counts bytes and calls, and can hide the length or fail from an offset on.
pub(crate) struct Counting<R> {
    pub(crate) input: R,
    pub(crate) bytes_read: u64,
    pub(crate) calls: u64,
    pub(crate) farthest: u64,
    pub(crate) tell_length: bool,
    pub(crate) fails_from: Option<u64>,
    /// The most that one call gives.
    pub(crate) at_once: usize,
}

impl<R> Counting<R> {
    pub(crate) fn new(input: R) -> Self {
        Self {
            input,
            bytes_read: 0,
            calls: 0,
            farthest: 0,
            tell_length: true,
            fails_from: None,
            at_once: usize::MAX,
        }
    }
}

impl<R: ReadAt> ReadAt for Counting<R> {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.calls += 1;
        if self.fails_from.is_some_and(|from| offset >= from) {
            return Err(ReadError::new(offset, buffer.len(), "input/output error"));
        }
        let room = buffer.len().min(self.at_once);
        let count = self.input.read_at(offset, &mut buffer[..room])?;
        self.bytes_read += count as u64;
        self.farthest = self.farthest.max(offset + count as u64);
        Ok(count)
    }

    fn len(&self) -> Option<u64> {
        self.input.len().filter(|_| self.tell_length)
    }
}

/// A file, read where it is asked to be, so that a sparse image of gigabytes costs nothing.
pub(crate) struct File(pub(crate) std::fs::File);

impl ReadAt for File {
    fn read_at(&mut self, offset: u64, buffer: &mut [u8]) -> Result<usize, ReadError> {
        self.0
            .read_at(buffer, offset)
            .map_err(|error| ReadError::new(offset, buffer.len(), error))
    }

    fn len(&self) -> Option<u64> {
        self.0.metadata().ok().map(|metadata| metadata.len())
    }
}
