//! Facts files.

use std::path::Path;

use vmdisk::Facts;
use vmdisk::facts::Warning;

use crate::color::Colors;
use crate::input::read;
use crate::io::Io;
use crate::render::message::Message;
use crate::stop::Stop;

/// Reads a facts file, with what in it nobody understood.
pub(crate) fn from_file(path: &Path) -> Result<(Facts, Vec<Warning>), Stop> {
    let bytes = read::file(path).map_err(Stop::from)?;
    let text = String::from_utf8(bytes)
        .map_err(|_| Stop::file("read", path, "a facts file is UTF-8 text"))?;
    let read = Facts::parse(&text).map_err(|error| {
        Stop::file("read", path, error).help("`vmdisk facts` writes such a file")
    })?;
    Ok((read.facts, read.warnings))
}

/// Reads a facts file, and warns of what in it nobody understood.
pub(crate) fn read_facts(path: &Path, io: &mut Io<'_>, colors: Colors) -> Result<Facts, Stop> {
    let (facts, warnings) = from_file(path)?;
    warn(path, warnings, io, colors);
    Ok(facts)
}

/// Warns of what in a facts file nobody understood.
pub(crate) fn warn(path: &Path, warnings: Vec<Warning>, io: &mut Io<'_>, colors: Colors) {
    for warning in warnings {
        let message = Message::warning(format!("{}: {warning}", path.display()));
        io.say(&message.render(colors.stderr));
    }
}
