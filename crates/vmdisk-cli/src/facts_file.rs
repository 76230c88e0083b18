//! Facts files.

use std::path::Path;

use vmdisk::Facts;
use vmdisk::facts::Warning;
use vmdisk::plan::shell_word;

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

/// Unknown keys of a facts file that each have a line of their own.
const MAX_KEYS: usize = 3;

/// Warns of what in a facts file nobody understood; many unknown keys are one line.
pub(crate) fn warn(path: &Path, warnings: Vec<Warning>, io: &mut Io<'_>, colors: Colors) {
    let is_key = |warning: &Warning| warning.message == Warning::UNKNOWN_KEY;
    let (keys, mut others): (Vec<_>, Vec<_>) = warnings.into_iter().partition(is_key);
    let summed = keys.len() > MAX_KEYS;
    let file = path.display();
    let mut lines = Vec::new();
    if summed {
        let first = keys[..MAX_KEYS].iter().map(|it| format!("`{}`", it.path));
        let first = first.collect::<Vec<_>>().join(", ");
        let (all, more) = (keys.len(), keys.len() - MAX_KEYS);
        let title =
            format!("{file}: {all} keys are not known and were not read: {first} and {more} more");
        let every = shell_word(&file.to_string());
        lines
            .push(Message::warning(title).help(format!("`vmdisk facts check {every}` lists them")));
    } else {
        others.extend(keys);
    }
    lines.extend(
        others
            .iter()
            .map(|warning| Message::warning(format!("{file}: {warning}"))),
    );
    for message in lines {
        io.say(&message.render(colors.stderr));
    }
}
