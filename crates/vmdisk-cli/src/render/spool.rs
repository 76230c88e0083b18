//! Bytes that wait until the end of a run, in little memory.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _, Write};
use std::path::{Path, PathBuf};

use crate::stop::{Stop, plain};

/// The number of bytes that stay in memory.
const MAX_IN_MEMORY: usize = 256 * 1024;

/// The number of bytes that are read from the file at once.
const CHUNK: usize = 64 * 1024;

/// Bytes that are written in pieces and read at the end of a run.
///
/// Beyond [`MAX_IN_MEMORY`] they are stored in a temporary file without a name, which ends with the process however the
/// process ends.
#[derive(Debug, Default)]
pub(crate) struct Spool {
    file: Option<File>,
    /// The bytes after those in the file.
    tail: Vec<u8>,
}

impl Spool {
    /// Adds bytes.
    ///
    /// # Errors
    /// If the temporary file cannot be created or written.
    pub(crate) fn push(&mut self, bytes: &[u8]) -> Result<(), Stop> {
        if self.tail.len() + bytes.len() > MAX_IN_MEMORY {
            let folder = folder();
            self.store(&folder)
                .map_err(|error| failure(&folder, &error))?;
        }
        self.tail.extend_from_slice(bytes);
        Ok(())
    }

    fn store(&mut self, folder: &Path) -> io::Result<()> {
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(tempfile::tempfile_in(folder)?),
        };
        file.write_all(&self.tail)?;
        self.tail.clear();
        Ok(())
    }

    /// All bytes, from the first.
    pub(crate) fn reader(&mut self) -> io::Result<impl BufRead + '_> {
        let stored: Box<dyn io::Read + '_> = match &mut self.file {
            Some(file) => {
                file.rewind()?;
                Box::new(file)
            }
            None => Box::new(io::empty()),
        };
        let stored = BufReader::with_capacity(CHUNK, stored);
        Ok(stored.chain(self.tail.as_slice()))
    }

    /// Writes all bytes.
    pub(crate) fn copy(&mut self, out: &mut dyn Write) -> io::Result<()> {
        copy(self.reader()?, out)
    }

    /// Writes the items of a list, each of which begins with a comma, without the first comma. Returns false if there
    /// are none.
    pub(crate) fn copy_items(&mut self, out: &mut dyn Write) -> io::Result<bool> {
        let mut reader = self.reader()?;
        let has_items = reader.read(&mut [0])? > 0;
        copy(reader, out)?;
        Ok(has_items)
    }
}

/// As [`io::copy`], whose own buffer is small and one more copy.
fn copy(mut from: impl BufRead, out: &mut dyn Write) -> io::Result<()> {
    loop {
        let bytes = from.fill_buf()?;
        if bytes.is_empty() {
            return Ok(());
        }
        out.write_all(bytes)?;
        let length = bytes.len();
        from.consume(length);
    }
}

/// The folder of temporary files that may be large: `/tmp` may be in memory.
fn folder() -> PathBuf {
    let large = Path::new("/var/tmp");
    match std::env::var_os("TMPDIR") {
        None if large.is_dir() => large.to_owned(),
        Some(_) | None => std::env::temp_dir(),
    }
}

fn failure(folder: &Path, error: &io::Error) -> Stop {
    let folder = folder.display();
    Stop::new(format!(
        "could not write a temporary file in {folder}: {}",
        plain(error)
    ))
    .help("set TMPDIR to a folder with enough free space")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn many_bytes_are_read_as_they_were_written_and_few_of_them_are_in_memory() {
        let mut spool = Spool::default();
        let mut expected = Vec::new();
        for number in 0..100_000_u32 {
            let piece = format!(",{number}");
            spool.push(piece.as_bytes()).unwrap();
            expected.extend(piece.bytes());
            assert!(spool.tail.capacity() <= 2 * MAX_IN_MEMORY);
        }
        assert!(spool.file.is_some());
        for _ in 0..2 {
            let mut read = Vec::new();
            spool.copy(&mut read).unwrap();
            assert!(read == expected);
        }
        let mut items = Vec::new();
        assert!(spool.copy_items(&mut items).unwrap());
        assert!(items == expected[1..]);
        assert!(!Spool::default().copy_items(&mut items).unwrap());
    }

    #[test]
    fn a_folder_without_space_is_named_with_the_remedy() {
        let mut spool = Spool {
            file: Some(File::options().write(true).open("/dev/full").unwrap()),
            tail: vec![b'x'],
        };
        let folder = Path::new("/var/tmp");
        let error = spool.store(folder).unwrap_err();
        let Stop(messages) = failure(folder, &error);
        assert_eq!(
            messages[0].title,
            "could not write a temporary file in /var/tmp: no space left on device"
        );
        assert!(messages[0].help.as_ref().unwrap().contains("TMPDIR"));
    }
}
