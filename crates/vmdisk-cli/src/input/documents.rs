//! The documents of all inputs, before they are checked.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use vmdisk::Document;
use vmdisk::facts::FactsNeeded;

use crate::input::inputs::{Input, Inputs, Origin};
use crate::input::{bounded, config_files, read, storage};
use crate::io::Io;
use crate::stop::{Stop, plain};

/// The bytes of inputs that are not files, by their numbers: standard input is read.
pub(crate) fn read_stdin(
    inputs: &Inputs,
    io: &mut Io<'_>,
) -> Result<BTreeMap<usize, Vec<u8>>, Stop> {
    let mut read_before = BTreeMap::new();
    for (number, input) in inputs.files.iter().enumerate() {
        let bytes = match &input.origin {
            Origin::Named | Origin::Found(_) => continue,
            Origin::Given(bytes) => bytes.clone(),
            Origin::Host => Vec::new(),
            Origin::Stdin => bounded::stream(&mut *io.stdin).map_err(|error| {
                Stop::new(format!("could not read standard input: {}", plain(&error)))
            })?,
        };
        read_before.insert(number, bytes);
    }
    Ok(read_before)
}

/// The paths of the host that the documents name. Text that was read from a pipe for this is kept.
pub(crate) fn wanted_facts(
    inputs: &Inputs,
    read_before: &mut BTreeMap<usize, Vec<u8>>,
) -> FactsNeeded {
    let mut wanted = FactsNeeded::default();
    let mut on_volumes = Vec::new();
    for (number, input) in inputs.files.iter().enumerate() {
        wanted.places |= input.origin == Origin::Host;
        if !input.file.is_file()
            && let Entry::Vacant(slot) = read_before.entry(number)
            && let Ok(bytes) = read::input(input)
        {
            slot.insert(bytes);
        }
        match joined(number, input, read_before) {
            Some(document) if document.has_volumes() => on_volumes.push(document),
            Some(document) => wanted.extend(document.facts_needed()),
            None => {}
        }
    }
    if !on_volumes.is_empty() {
        let storage = storage::among(&inputs.files, read_before);
        for mut document in on_volumes {
            document.locate_volumes(&storage);
            wanted.extend(document.facts_needed());
        }
    }
    wanted
}

/// The document of an input with the files that it names. What cannot be read is complained about when it is checked.
fn joined(
    number: usize,
    input: &Input,
    read_before: &BTreeMap<usize, Vec<u8>>,
) -> Option<Document> {
    let bytes = read::again(number, input, read_before)?;
    let document = vmdisk::read_bytes_with_values(&bytes, &input.values).ok()?;
    let document = read::with_formats(input, document).ok()?;
    let joined = config_files::joined(input, document).ok()?;
    Some(joined.document)
}
