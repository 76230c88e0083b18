//! The one document of a command, with what it names.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vmdisk::Document;

use super::config_files::{self, DocumentWithFiles};
use super::inputs::{Input, Origin};
use super::{bounded, read};
use crate::io::Io;
use crate::sanitize::line;
use crate::stop::{Stop, plain};
use crate::values::{ValueArgs, unknown_words};

/// The document with its configuration files, and with the volumes of `--storage` located.
pub(crate) fn read_document(
    file: &Path,
    values: &ValueArgs,
    storage: &[PathBuf],
    io: &mut Io<'_>,
) -> Result<(Input, Document), Stop> {
    let is_stdin = file.as_os_str() == "-";
    let (name, origin) = match is_stdin {
        true => ("<stdin>".into(), Origin::Stdin),
        false => (file.to_owned(), Origin::Named),
    };
    let input = Input::new(name, origin).with(values);
    let bytes = match is_stdin {
        true => bounded::stream(&mut *io.stdin).map_err(|error| {
            Stop::new(format!("could not read standard input: {}", plain(&error)))
        })?,
        false => read::file(file)?,
    };
    let document = read::document(&input, &bytes)?;
    let DocumentWithFiles {
        mut document,
        failed,
    } = config_files::joined(&input, document)
        .map_err(|failure| read::message(&input, &bytes, failure))?;
    if let Some(Err(message)) = failed.map(|checked| checked.outcome) {
        return Err(Stop::from(message));
    }
    if !storage.is_empty() {
        document.locate_volumes(&super::storage::of_files(storage)?);
    }
    Ok((input, document))
}

/// Says that the documents of an input have no disks, and which words of their command lines may be disks.
pub(crate) fn say_what_is_missing(name: &str, documents: &[Document], io: &mut Io<'_>) {
    if documents.iter().all(|it| it.domain().disks.is_empty()) {
        io.say(&format!("no disks in {}\n", line(name)));
    }
    let words = documents.iter().flat_map(Document::unknown_words);
    let words: BTreeSet<String> = words.map(|word| word.name.clone()).collect();
    io.say(&unknown_words(&words));
    let values = documents.iter().flat_map(Document::unknown_values);
    let values: BTreeSet<String> = values.map(|it| format!("`{}`", line(it))).collect();
    if !values.is_empty() {
        let values: Vec<String> = values.into_iter().take(8).collect();
        io.say(&format!("not known in full: {}\n", values.join(", ")));
    }
}

/// The numbers of the disks with a name, which is a target or the id of a device.
pub(crate) fn disks_called(document: &Document, name: &str) -> Result<Vec<usize>, Stop> {
    let disks = document.domain().disks.iter().enumerate();
    let is_called = |name: &str, called: &Option<String>| called.as_deref() == Some(name);
    let found: Vec<usize> = disks
        .filter(|(_, disk)| {
            is_called(name, &disk.frontend.target) || is_called(name, &disk.frontend.alias)
        })
        .map(|(index, _)| index)
        .collect();
    if found.is_empty() && document.empty_drives().contains(&name) {
        return Err(Stop::new(format!(
            "`{name}` is an empty drive that QEMU adds to the machine, and has no image to follow"
        ))
        .help("`-nodefaults` leaves it out"));
    }
    if found.is_empty() {
        return Err(Stop::new(format!("no disk has the name `{}`", line(name)))
            .help("use the target of a disk, such as vda, or the id of its device"));
    }
    Ok(found)
}
