//! The output of `vmdisk capture`: one JSON object for each start of QEMU.

use vmdisk_source::Span;

use super::folder::Folder;
use super::json_text::{self, Fault};
use super::program::is_storage_daemon;
use super::properties::{Kind, Property};
use super::start::{CommandLineForm, Words};
use crate::failure::ReadFailure;
use crate::limits::Counted;

/// Starts of a capture, at most: each is a guest of its own, and has the whole text.
const MAX_STARTS: usize = 256;

/// True for the output of a capture.
pub(crate) fn is_capture(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    let first = text.strip_prefix('{').map(str::trim_start);
    first.is_some_and(|first| {
        let key = first.strip_prefix('"').unwrap_or_default();
        let keys = ["version\"", "program\"", "argv\"", "folder\""];
        keys.iter().any(|it| key.starts_with(it)) && first.contains("\"argv\"")
    })
}

/// The starts of a capture. Storage daemons belong to each guest, as in a script.
pub(crate) fn starts(file: &str) -> Result<Vec<Words>, ReadFailure> {
    let not_a_capture = |fault: Fault| {
        let message = format!("not the output of `vmdisk capture`: {}", fault.message);
        ReadFailure::new(fault.span, message)
    };
    let mut counted = Counted::default();
    let (mut guests, mut daemons) = (Vec::new(), Vec::new());
    for (offset, members) in json_text::objects(file).map_err(not_a_capture)? {
        let words = words(offset, members, &mut counted)?;
        match words
            .program
            .as_ref()
            .is_some_and(|it| is_storage_daemon(it.as_str()))
        {
            true => daemons.push(words.arguments),
            false => guests.push(words),
        }
        if guests.len() > MAX_STARTS {
            let message = format!("more than {MAX_STARTS} starts of QEMU");
            return Err(ReadFailure::new(Span::empty(offset), message)
                .help("put some of them into another file"));
        }
    }
    for guest in &mut guests {
        guest.daemons.clone_from(&daemons);
    }
    match guests.is_empty() {
        true => Err(ReadFailure::new(Span::empty(0), "no start of QEMU")),
        false => Ok(guests),
    }
}

/// One start.
fn words(
    offset: usize,
    members: Vec<Property>,
    counted: &mut Counted,
) -> Result<Words, ReadFailure> {
    let mut words = Words::new(CommandLineForm::Json, None, Vec::new());
    words.start.offset = offset;
    for Property {
        key,
        value,
        kind,
        span,
        ..
    } in members
    {
        if key.ends_with(".hex") {
            let message = "an argument that is not UTF-8";
            return Err(ReadFailure::new(span, message)
                .help("vmdisk reads arguments that are text: rename what it names"));
        }
        let is_argument = key.starts_with("argv.") && kind == Kind::Text;
        match key.as_str() {
            "program" => words.program = Some(value),
            "folder" => words.start.folder = Folder::Known(value.as_str().to_owned()),
            _ if is_argument => {
                counted.word(span.end)?;
                words.arguments.push(value);
            }
            _ => {}
        }
    }
    Ok(words)
}
