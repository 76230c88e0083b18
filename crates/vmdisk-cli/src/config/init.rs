//! `vmdisk lint --write-config`.

use std::io::ErrorKind;
use std::path::Path;

use crate::atomic::{self, ReplaceError};
use crate::config::NAME;
use crate::exit::Exit;
use crate::io::Io;
use crate::sanitize::line;
use crate::stop::Stop;

/// A file in which every key is a comment.
const TEMPLATE: &str = include_str!("template.toml");

/// Writes the file into a directory.
pub(crate) fn run(directory: &Path, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let path = directory.join(NAME);
    match atomic::create(&path, TEMPLATE.as_bytes()) {
        Ok(()) => {
            io.say(&format!("wrote {}\n", line(&path.display().to_string())));
            Ok(Exit::Clean)
        }
        Err(ReplaceError::Io(error)) if error.kind() == ErrorKind::AlreadyExists => {
            Err(Stop::new(format!("{} exists", path.display())).help("edit it, or remove it first"))
        }
        Err(error) => Err(Stop::file("write", &path, error)),
    }
}
