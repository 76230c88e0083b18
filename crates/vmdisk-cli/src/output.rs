//! Where data goes: standard output, or a file that is whole or not there.

use std::io::ErrorKind;
use std::path::Path;

use crate::atomic;
use crate::contents::Contents;
use crate::io::Io;
use crate::stop::{Stop, plain};

/// Writes data to `file`, or to standard output.
///
/// A closed reader (`vmdisk lint … | head`) is not a failure.
pub(crate) fn deliver(io: &mut Io<'_>, file: Option<&Path>, text: &str) -> Result<(), Stop> {
    deliver_with(io, file, |out| out.write_all(text.as_bytes()))
}

/// As [`deliver`], with data that is made while it is written.
pub(crate) fn deliver_with(
    io: &mut Io<'_>,
    file: Option<&Path>,
    write: impl Contents,
) -> Result<(), Stop> {
    match file {
        Some(path) => {
            atomic::write_with(path, write).map_err(|error| Stop::file("write", path, error))
        }
        None => match io.data(write) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Stop::new(format!(
                "could not write to standard output: {}",
                plain(&error)
            ))),
        },
    }
}
