//! From an input to a document, or to a message that says why not.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

use vmdisk::{Document, ReadFailure};

use crate::input::bounded::{self, MAX_BYTES};
use crate::input::inputs::{Input, Origin};
use crate::input::walk::{extension_of, is_script, may_be_script, names_qemu};
use crate::input::{hints, used};
use crate::render::message::{Message, MessagePlace, MessageText, SharedText};
use crate::stop::plain;

/// The bytes of a file that the caller named.
pub(crate) fn file(path: &Path) -> Result<Vec<u8>, Box<Message>> {
    bounded::named(path).map_err(|error| unreadable(path, &error))
}

/// The bytes of an input that is a file. Only the caller chooses a pipe or a device: nobody puts one into a directory.
pub(crate) fn input(input: &Input) -> Result<Vec<u8>, Box<Message>> {
    match input.origin {
        Origin::Found(_) => bounded::regular(&input.file, MAX_BYTES)
            .map_err(|error| unreadable(&input.file, &error)),
        Origin::Named | Origin::Stdin | Origin::Given(_) | Origin::Host => file(&input.file),
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Box<Message> {
    let help = match error.kind() {
        io::ErrorKind::NotFound => hints::of_missing(path),
        _ => None,
    };
    let title = format!("could not be read: {}", plain(error));
    let message = Message::error(title).help(help);
    Box::new(message.at(MessagePlace::new(path.display().to_string(), None)))
}

/// The bytes of an input that is read more than once; none if that fails, which is reported when the input is checked. A
/// pipe can be read only once, and that is when it is checked.
pub(crate) fn again<'a>(
    number: usize,
    input: &Input,
    read_before: &'a BTreeMap<usize, Vec<u8>>,
) -> Option<Cow<'a, [u8]>> {
    match read_before.get(&number) {
        Some(bytes) => Some(Cow::Borrowed(bytes)),
        None => bounded::regular(&input.file, MAX_BYTES)
            .ok()
            .map(Cow::Owned),
    }
}

/// Refuses a command line in a language that is not read, by the name of its file.
fn check_name(input: &Input, bytes: &[u8]) -> Result<(), Box<Message>> {
    let end = extension_of(&input.file).and_then(|it| it.to_str());
    end.map_or(Ok(()), |end| vmdisk::check_name(bytes, end))
        .map_err(|failure| message(input, bytes, failure))
}

/// The document that the bytes hold. No output replaces a disk of its guest.
pub(crate) fn document(input: &Input, bytes: &[u8]) -> Result<Document, Box<Message>> {
    check_name(input, bytes)?;
    let document = vmdisk::read_bytes_with_values(bytes, &input.values);
    document
        .and_then(|document| with_formats(input, document))
        .inspect(|document| document.starts().for_each(|it| used::disks(it.domain())))
        .map_err(|failure| message(input, bytes, failure))
}

/// As [`document`], for a document that is not written, and without a note of its disks: that takes 5 % of a run.
pub(crate) fn document_to_lint(input: &Input, bytes: &[u8]) -> Result<Document, Box<Message>> {
    check_name(input, bytes)?;
    let document = vmdisk::read_to_lint(bytes, &input.values);
    let document = document.and_then(|document| with_formats(input, document));
    document.map_err(|failure| message(input, bytes, failure))
}

/// The document with the formats of `--disk-format` and the paths of `--base`.
pub(crate) fn with_formats(input: &Input, mut document: Document) -> Result<Document, ReadFailure> {
    for (disk, format) in &input.disk_formats {
        document.set_format(disk.as_deref(), *format)?;
    }
    if let Some(base) = &input.base {
        vmdisk::resolve_paths(&mut document, &absolute(base));
    }
    Ok(document)
}

/// The directory as an absolute path; an empty one is the current directory.
pub(crate) fn absolute(directory: &Path) -> PathBuf {
    let here = Path::new(".").join(directory);
    std::path::absolute(&here).unwrap_or(here)
}

/// A failure to read, with its place.
pub(crate) fn message(input: &Input, bytes: &[u8], failure: ReadFailure) -> Box<Message> {
    // An unreadable input has no text to quote.
    let text = std::str::from_utf8(bytes).ok();
    let place = text.and_then(|text| Some((text, failure.place_in(text)?)));
    let ReadFailure {
        kind: _,
        span: _, // It is the place.
        message,
        help,
        related,
        ..
    } = failure;
    if let Some(hint) = hints::of(bytes) {
        let place = MessagePlace::new(input.path(), None);
        return Box::new(hint.at(place));
    }
    let quoted = place.map(|(text, span)| MessageText {
        text: SharedText::new(text),
        span,
        label: None,
        related,
    });
    Box::new(
        Message::error(message)
            .at(MessagePlace::new(input.path(), quoted))
            .help(help),
    )
}

/// True if the bytes of a file found in a directory hold a domain, a disk, a command line or a spec, or look
/// as if they were meant to: a file that is broken before its first element must not pass for one
/// without disks.
pub(crate) fn is_ours(path: &Path, bytes: &[u8]) -> bool {
    what_is(path, bytes) == Content::Ours
}

/// What a file that was found in a directory holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Ours,
    /// A text that names QEMU or makes guests, and has none that is read.
    Unread,
    Foreign,
}

impl Content {
    const fn of(is_ours: bool) -> Self {
        if is_ours {
            Content::Ours
        } else {
            Content::Foreign
        }
    }
}

/// Words of files from which other programs make guests.
const MAKERS: [&str; 3] = [
    "virt-install ",
    "\"libvirt_domain\"",
    "kind: VirtualMachine",
];

/// What a file that was found in a directory holds; see [`is_ours`].
pub(crate) fn what_is(path: &Path, bytes: &[u8]) -> Content {
    let text = match (wide(bytes), std::str::from_utf8(bytes)) {
        (Some(text), _) => text.into(),
        (None, Ok(text)) => Cow::Borrowed(text),
        // This takes ten times as long.
        (None, Err(_)) => String::from_utf8_lossy(bytes),
    };
    let has_extension = |name: &str| {
        extension_of(path).is_some_and(|extension| extension.eq_ignore_ascii_case(name))
    };
    let is_yaml = has_extension("yaml") || has_extension("yml");
    if is_yaml && vmdisk::is_spec(&text) {
        return Content::Ours;
    }
    if may_be_script(path) {
        let names_qemu = names_qemu(&text);
        let may_start = names_qemu || !is_yaml && text.contains("kvm");
        let is_read = may_start && is_script(path, &text) && vmdisk::is_command_line(&text);
        let makes_guest = || MAKERS.iter().any(|word| text.contains(word));
        return match is_read {
            true if vmdisk::read(&text).is_ok() => Content::Ours,
            _ if names_qemu || makes_guest() => Content::Unread,
            _ => Content::Foreign,
        };
    }
    if !has_extension("xml") {
        return Content::of(vmdisk::is_command_line(&text));
    }
    Content::of(match vmdisk::sniff(&text) {
        kind if kind.is_readable() => true,
        vmdisk::RootKind::NotXml => text.contains("<domain") || text.contains("<disk"),
        vmdisk::RootKind::Domain
        | vmdisk::RootKind::DomainStatus
        | vmdisk::RootKind::Devices
        | vmdisk::RootKind::Disk
        | vmdisk::RootKind::Pool
        | vmdisk::RootKind::Volume
        | vmdisk::RootKind::DomainSnapshot
        | vmdisk::RootKind::DomainCheckpoint
        | vmdisk::RootKind::DomainBackup
        | vmdisk::RootKind::OtherLibvirt(_)
        | vmdisk::RootKind::Foreign => false,
    })
}

/// The text of a file in UTF-16, recognised by its mark or its first characters.
fn wide(bytes: &[u8]) -> Option<String> {
    let big_endian = match bytes {
        [0xfe, 0xff, ..] | [0, b'<', ..] => true,
        [0xff, 0xfe, ..] | [b'<', 0, ..] => false,
        _ => return None,
    };
    let units = bytes.chunks_exact(2).map(|pair| match big_endian {
        true => u16::from_be_bytes([pair[0], pair[1]]),
        false => u16::from_le_bytes([pair[0], pair[1]]),
    });
    let text: String = char::decode_utf16(units)
        .map(|unit| unit.unwrap_or(char::REPLACEMENT_CHARACTER))
        .collect();
    Some(text.trim_start_matches('\u{feff}').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_found_file_is_ours_if_it_is_or_was_meant_to_be_a_domain() {
        let utf16 =
            |text: &str| -> Vec<u8> { text.encode_utf16().flat_map(u16::to_le_bytes).collect() };
        for (bytes, ours) in [
            (b"<domain>".to_vec(), true),
            (b"<?xml version='1.0'?>\n<disk/>".to_vec(), true),
            (b"<<<<<<< HEAD\n<domain type='kvm'>".to_vec(), true),
            (b"<domain>\xff".to_vec(), true),
            (utf16("<domain/>"), true),
            (utf16("\u{feff}<domain/>"), true),
            (utf16("<network/>"), false),
            (b"<network/>".to_vec(), false),
            (b"<pool type='dir'/>".to_vec(), true),
            (b"<html><disk/></html>".to_vec(), false),
            (b"".to_vec(), false),
            (b"{{ template }}".to_vec(), false),
            (vec![0xff, 0xfe, 0x00], false),
        ] {
            assert_eq!(is_ours(Path::new("a.xml"), &bytes), ours, "{bytes:?}");
        }
    }

    #[test]
    fn a_found_file_of_arguments_is_ours_if_it_starts_qemu() {
        let path = Path::new("web1.args");
        assert!(is_ours(path, b"qemu-system-x86_64 -S"));
        assert!(is_ours(
            path,
            b"/usr/bin/qemu-system-x86_64\0-drive\0file=/a\0"
        ));
        assert!(!is_ours(path, b"--verbose input.c"));
        assert!(!is_ours(path, b"<domain/>"));
    }

    #[test]
    fn a_found_yaml_file_is_ours_if_it_is_a_spec() {
        for (text, ours) in [
            ("version: 1\ndisks: [\n", true),
            ("# web1\ndisks:\n- raw: {path: /a}\nguest: {}\n", true),
            ("services:\n  web1:\n    disks: []\nversion: '3'\n", false),
            ("<domain/>", false),
        ] {
            assert_eq!(
                is_ours(Path::new("a.yaml"), text.as_bytes()),
                ours,
                "{text}"
            );
        }
    }
}
