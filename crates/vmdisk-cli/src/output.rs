//! Where data goes: standard output, or a file that is whole or not there.

use std::io::ErrorKind;
use std::path::Path;

use crate::atomic;
use crate::io::Io;
use crate::stop::{Stop, plain};

/// Writes data to `file`, or to standard output.
///
/// A reader that went away (`vmdisk lint … | head`) wanted no more, which is no failure.
pub(crate) fn deliver(io: &mut Io<'_>, file: Option<&Path>, text: &str) -> Result<(), Stop> {
    match file {
        Some(path) => {
            atomic::write(path, text.as_bytes()).map_err(|error| Stop::file("write", path, error))
        }
        None => match io.data(text) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
            Err(error) => Err(Stop::new(format!(
                "could not write to standard output: {}",
                plain(&error)
            ))),
        },
    }
}
