//! Where data goes: standard output, or a file that is whole or not there.

use std::io::{self, BufWriter, ErrorKind, Write};
use std::path::Path;

use serde::Serialize;
use vmdisk_source::secrets::mask_output;

use crate::atomic;
use crate::contents::Contents;
use crate::io::Io;
use crate::stop::{Stop, plain};

/// Writes a report to `file`, or to standard output, which is also the file `-`. Secrets in it are masked.
///
/// A closed reader (`vmdisk lint … | head`) is not a failure.
pub(crate) fn deliver(io: &mut Io<'_>, file: Option<&Path>, text: &str) -> Result<(), Stop> {
    deliver_exact(io, file, &mask_output(text))
}

/// As [`deliver`], for what is no report: a configuration, which keeps its secrets, facts, and texts of ours.
pub(crate) fn deliver_exact(io: &mut Io<'_>, file: Option<&Path>, text: &str) -> Result<(), Stop> {
    deliver_with(io, file, |out| out.write_all(text.as_bytes()))
}

/// As [`deliver_exact`], with data that is made while it is written: reports of `lint`, whose renderers mask what they are
/// given, because the edits of fixes are exact.
pub(crate) fn deliver_with(
    io: &mut Io<'_>,
    file: Option<&Path>,
    write: impl Contents,
) -> Result<(), Stop> {
    match file.filter(|path| path.as_os_str() != "-") {
        Some(path) => {
            atomic::write_with(path, write).map_err(|error| Stop::file("write", path, error))
        }
        None => {
            let mut stream = Stream::new(io);
            stream.write(write)?;
            stream.end()
        }
    }
}

/// A value as JSON with a line end, for values whose maps have texts as keys.
pub(crate) fn pretty_json(value: &impl Serialize) -> String {
    let mut text = serde_json::to_string_pretty(value).expect("its keys are texts");
    text.push('\n');
    text
}

/// Standard output, for data that is written in pieces.
pub(crate) struct Stream<'a> {
    out: BufWriter<&'a mut dyn Write>,
    /// True if the reader went away, which is not a failure.
    is_closed: bool,
}

impl<'a> Stream<'a> {
    pub(crate) fn new(io: &'a mut Io<'_>) -> Self {
        Stream {
            out: BufWriter::new(&mut *io.stdout),
            is_closed: false,
        }
    }

    /// Writes data.
    pub(crate) fn write(&mut self, write: impl Contents) -> Result<(), Stop> {
        if self.is_closed {
            return Ok(());
        }
        let result = write(&mut self.out);
        self.checked(result)
    }

    /// Writes what is still in memory.
    pub(crate) fn end(mut self) -> Result<(), Stop> {
        if self.is_closed {
            return Ok(());
        }
        let result = self.out.flush();
        self.checked(result)
    }

    fn checked(&mut self, result: io::Result<()>) -> Result<(), Stop> {
        match result {
            Err(error) if error.kind() == ErrorKind::BrokenPipe => {
                self.is_closed = true;
                Ok(())
            }
            Err(error) => Err(Stop::new(format!(
                "could not write to standard output: {}",
                plain(&error)
            ))),
            Ok(()) => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests;
