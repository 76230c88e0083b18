//! XML for other programs: what all its formats share.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::{BytesDecl, Event};

use crate::render::View;
use crate::render::message::Message;
use crate::report::input::{confidence_note, unwritten_note};
use crate::sanitize;

/// Writes a document, with the contents of its root and a line end after it.
pub(crate) fn document(
    out: &mut dyn Write,
    root: &str,
    attributes: &[(&str, &str)],
    contents: impl FnOnce(&mut Writer<&mut dyn Write>) -> io::Result<()>,
) -> io::Result<()> {
    let mut writer = Writer::new_with_indent(out, b' ', 2);
    writer.write_event(Event::Decl(BytesDecl::new("1.0", Some("UTF-8"), None)))?;
    writer
        .create_element(root)
        .with_attributes(attributes.iter().copied())
        .write_inner_content(contents)?;
    writer.get_mut().write_all(b"\n")
}

/// A text of one line that XML can hold.
pub(crate) fn line(text: &str) -> String {
    representable(&sanitize::line(text))
}

/// A text of several lines that XML can hold.
pub(crate) fn lines(text: &str) -> String {
    representable(&sanitize::lines(text))
}

/// XML 1.0 has no way to write these two characters. It has none for control characters either, but those are hazards.
fn representable(text: &str) -> String {
    text.replace('\u{fffe}', "\\u{fffe}")
        .replace('\u{ffff}', "\\u{ffff}")
}

/// The text of a finding: its title, notes and help, one per line.
pub(crate) fn explanation(finding: &vmdisk::Diagnostic, view: &View<'_>) -> String {
    let mut said = vec![finding.title.clone()];
    said.extend(finding.label.clone());
    said.extend(finding.notes.iter().cloned());
    said.extend(unwritten_note(&finding.place, finding.label.as_deref()));
    said.extend(view.hosts_note(finding));
    said.extend(confidence_note(finding.confidence).map(str::to_owned));
    said.extend(finding.help.iter().map(|help| format!("help: {help}")));
    one_per_line(&said)
}

/// The text about an input that could not be read.
pub(crate) fn failure(message: &Message) -> String {
    let mut said = vec![message.title.clone()];
    said.extend(message.notes.iter().cloned());
    said.extend(message.help.iter().map(|help| format!("help: {help}")));
    one_per_line(&said)
}

/// Texts of which none begins a line with words of somebody else.
fn one_per_line(texts: &[String]) -> String {
    let lines: Vec<_> = texts.iter().map(|text| sanitize::line(text)).collect();
    lines.join("\n")
}

/// The line and column of a message, if it has a place in a text.
pub(crate) fn position(message: &Message) -> Option<vmdisk_source::Position> {
    let quoted = message.place.as_ref()?.quoted.as_ref()?;
    Some(quoted.start())
}
