//! Files that a command line names with `-readconfig`: they are read with it, and their findings are reported there.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use vmdisk::{ConfigFilePart, Document, Folder, ReadFailure};

use crate::input::bounded;
use crate::input::inputs::{Input, Origin};
use crate::input::read;
use crate::render::message::Message;
use crate::report::input::InputReport;

/// A document with the files that it names, as far as they could be read.
#[derive(Debug)]
pub(crate) struct DocumentWithFiles {
    pub(crate) document: Document,
    /// The first unreadable file, which ends reading: the disks after it would have no correct place.
    pub(crate) failed: Option<InputReport>,
}

/// Reads the files that a command line names, relative to its own folder. Files that standard input, a process, or a script in
/// another folder names stay unread.
pub(crate) fn joined(input: &Input, document: Document) -> Result<DocumentWithFiles, ReadFailure> {
    let names = document.unread_config_files().to_vec();
    let is_stdin = matches!(input.origin, Origin::Stdin | Origin::Given(_));
    let is_elsewhere = *document.folder() != Folder::Unchanged;
    let mut joined = DocumentWithFiles {
        document,
        failed: None,
    };
    if names.is_empty() || is_stdin || is_elsewhere {
        return Ok(joined);
    }
    let mut files = Vec::with_capacity(names.len());
    for name in names {
        let path = path_of(input, &name);
        match text_of(&path) {
            Ok(text) => files.push((name, text)),
            Err(why) => {
                joined.failed = Some(failure(input, &path, &why));
                break;
            }
        }
    }
    if !files.is_empty() {
        joined.document =
            vmdisk::read_with_config_files(&joined.document.text, &files, &input.values)?;
    }
    Ok(joined)
}

/// The paths of files that the command lines among the inputs name, and that can be read with them.
pub(crate) fn named_by(
    inputs: &[Input],
    read_before: &BTreeMap<usize, Vec<u8>>,
) -> BTreeSet<String> {
    let mut named = BTreeSet::new();
    for (number, input) in inputs.iter().enumerate() {
        let Some(bytes) = read::again(number, input, read_before) else {
            continue;
        };
        let may_name = std::str::from_utf8(&bytes).is_ok_and(|text| text.contains("-readconfig"));
        if may_name
            && (!matches!(input.origin, Origin::Found(_)) || read::is_ours(&input.file, &bytes))
            && let Ok(document) = vmdisk::read_bytes_with_values(&bytes, &input.values)
            && let Ok(joined) = joined(input, document)
        {
            let parts = joined.document.config_files.iter();
            named.extend(parts.map(|part| path_of(input, &part.name).display().to_string()));
        }
    }
    named
}

/// The files that a document was read with, each with its name and its text.
pub(crate) fn texts(document: &Document) -> Vec<(String, String)> {
    let text = |part: &ConfigFilePart| part.span.slice(&document.text).unwrap_or_default();
    let parts = document.config_files.iter();
    parts
        .map(|part| (part.name.clone(), text(part).to_owned()))
        .collect()
}

/// Where a file is that a document names.
pub(crate) fn path_of(input: &Input, name: &str) -> PathBuf {
    match input.file.parent() {
        Some(folder) => folder.join(name),
        None => PathBuf::from(name),
    }
}

/// The text of a file that is one of QEMU's. Nothing else is opened or quoted, whatever a command line names.
fn text_of(path: &Path) -> Result<String, String> {
    let text = bounded::text(path).map_err(|error| crate::stop::plain(&error))?;
    if !vmdisk::begins_with_group(&text) {
        return Err("it does not begin with a group of options in brackets".to_owned());
    }
    Ok(text)
}

fn failure(input: &Input, path: &Path, why: &str) -> InputReport {
    let mut message = Message::error(format!("could not be read: {why}"));
    message.notes.push(format!(
        "{} names it with -readconfig, and disks in it are not checked",
        input.path()
    ));
    InputReport::failed(path, message)
}
