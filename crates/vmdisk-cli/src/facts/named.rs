//! The configurations whose disks `vmdisk facts --for` looks at.

use std::io::Read;
use std::path::{Path, PathBuf};

use vmdisk::facts::FactsNeeded;

use crate::input::complaints::complaints;
use crate::input::inputs::{self, Origin};
use crate::input::{bounded, documents, read};
use crate::io::Io;
use crate::render::message::Message;
use crate::stop::Stop;
use crate::values::ValueArgs;

/// The host paths named by the configurations in these files, directories and patterns, with a warning for each file of a
/// directory or pattern that cannot be read.
pub(super) fn wanted(
    domains: &[PathBuf],
    values: &ValueArgs,
    io: &mut Io<'_>,
) -> Result<(FactsNeeded, Vec<Message>), Stop> {
    let mut inputs = inputs::find(domains, None, false);
    inputs.set(values);
    let mut contents = documents::read_stdin(&inputs, io)?;
    let (mut messages, mut warnings) = (Vec::new(), Vec::new());
    let mut holds_ours = vec![false; inputs.searches.len()];
    for (number, input) in inputs.files.iter().enumerate() {
        if input.origin != Origin::Stdin {
            match read::input(input) {
                Ok(bytes) => {
                    contents.insert(number, bytes);
                }
                Err(message) => {
                    messages.push(*message);
                    continue;
                }
            }
        }
        let bytes = &contents[&number];
        if let Origin::Found(search) = input.origin {
            if !read::is_ours(&input.file, bytes) {
                continue;
            }
            holds_ours[search] = true;
        }
        match (read::document(input, bytes), &input.origin) {
            (Ok(_), _) => {}
            (Err(message), Origin::Found(_)) => warnings.push(Message {
                is_error: false,
                ..*message
            }),
            (Err(message), _) => messages.push(*message),
        }
    }
    for (search, holds_ours) in inputs.searches.iter().zip(holds_ours) {
        let failed = complaints(search, holds_ours).into_iter();
        messages.extend(failed.filter_map(|one| one.outcome.err().map(|message| *message)));
    }
    if !messages.is_empty() {
        return Err(Stop(messages));
    }
    Ok((documents::wanted_facts(&inputs, &mut contents), warnings))
}

/// True if the file at a path is libvirt XML: a shell expands `--for *.xml` so that only the first
/// file belongs to the option.
pub(super) fn is_configuration(path: &Path) -> bool {
    /// The root element is within so many bytes, whatever comments come before it.
    const HEAD: u64 = 64 * 1024;
    let mut head = Vec::new();
    let is_read =
        bounded::regular_file(path).and_then(|file| file.take(HEAD).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    is_read.is_ok() && text.trim_start().starts_with('<') && vmdisk::sniff(&text).is_readable()
}
