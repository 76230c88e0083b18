//! The file of a baseline: its entries, its reader and its writer.

use std::fmt;
use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;

use schemars::JsonSchema;
use serde::de::{DeserializeSeed, Error as _, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use vmdisk_source::Span;

use crate::input::bounded;
use crate::render::message::{Message, MessagePlace, MessageText, SharedText};
use crate::stop::{Stop, plain};

/// Version of the format.
const SCHEMA_VERSION: &str = "1.0";

/// Findings that `vmdisk lint --baseline` does not count. `vmdisk baseline create` writes them, one per line.
#[derive(JsonSchema)]
#[schemars(title = "vmdisk baseline, version 1", rename = "Baseline")]
#[allow(
    dead_code,
    reason = "only its schema is used: entries are read one by one"
)]
struct Shape {
    /// Version of the format; another first number is another format.
    schema_version: String,
    /// The known findings, in the order of the inputs.
    findings: Vec<Entry>,
}

/// Known findings of one rule about one field. Lines and columns are not part of it, so that edits elsewhere in a file
/// change nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Entry {
    /// Path of the input from the directory of the baseline, with `/` between names.
    pub(crate) file: String,
    /// Name of the rule.
    pub(crate) rule: String,
    /// The disk that the findings are about: its target, or `#` and its number from 0 if it has none. Absent for the
    /// guest as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) disk: Option<String>,
    /// The field that they are about, such as `driver/@cache`.
    pub(crate) field: String,
    /// The number of such findings.
    pub(crate) count: NonZeroU32,
}

/// The JSON Schema of the file.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Shape)
}

/// Reads a file, and hands each of its entries to `take`, in their order.
///
/// # Errors
/// If the file cannot be opened or is not a baseline, with the place of the mistake.
pub(crate) fn read(path: &Path, take: &mut dyn FnMut(Entry)) -> Result<(), Stop> {
    let bytes = bounded::named(path).map_err(|error| {
        let stop = Stop::file("read the baseline", path, plain(&error));
        match error.kind() {
            io::ErrorKind::NotFound => stop.help("`vmdisk baseline create` writes one"),
            _ => stop,
        }
    })?;
    let mut deserializer = serde_json::Deserializer::from_slice(&bytes);
    let all = Whole(take).deserialize(&mut deserializer);
    all.and_then(|()| deserializer.end())
        .map_err(|error| mistake(path, bytes.clone(), &error))
}

/// Writes a file with these entries, of which each is one line that begins with a comma.
pub(crate) fn write(
    out: &mut dyn Write,
    entries: &mut dyn FnMut(&mut dyn Write) -> io::Result<bool>,
) -> io::Result<()> {
    write!(
        out,
        "{{\n  \"schema_version\": \"{SCHEMA_VERSION}\",\n  \"findings\": ["
    )?;
    let has_entries = entries(out)?;
    out.write_all(if has_entries {
        b"\n  ]\n}\n"
    } else {
        b"]\n}\n"
    })
}

/// Adds the line of an entry, with the comma after the entry before it.
pub(crate) fn push_line(out: &mut Vec<u8>, entry: &Entry) {
    out.extend_from_slice(b",\n    ");
    serde_json::to_writer(&mut *out, entry).expect("memory takes every byte, and keys are text");
}

/// A mistake in a file, at its place.
fn mistake(path: &Path, bytes: Vec<u8>, error: &serde_json::Error) -> Stop {
    let text = error.to_string();
    let title = match text.rfind(" at line ") {
        Some(at) => text[..at].to_owned(),
        None => text,
    };
    let text = String::from_utf8(bytes).ok();
    // A configuration may name any file, whose text does not belong into a log.
    let text = text.filter(|text| text.trim_start().starts_with(['{', '[']));
    let quoted = text.map(|text| {
        let span = span_at(&text, error.line(), error.column());
        MessageText {
            text: SharedText::new(text),
            span,
            label: None,
            related: Vec::new(),
        }
    });
    let message = Message::error(format!("not a baseline: {title}"));
    let place = MessagePlace {
        path: path.display().to_string(),
        quoted,
    };
    Stop::from(message.at(place)).help(
        "correct it (`vmdisk schema baseline` describes it), or write it anew with `vmdisk baseline create`",
    )
}

/// The byte before a position; lines and columns count from 1.
fn span_at(text: &str, line: usize, column: usize) -> Span {
    let lines = text.split_inclusive('\n').take(line.saturating_sub(1));
    let start: usize = lines.map(str::len).sum();
    let mut at = (start + column.saturating_sub(1)).min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let length = text[at..].chars().next().map_or(0, char::len_utf8);
    Span::new(at, at + length)
}

/// Hands over entries while the file is read.
struct Whole<'t>(&'t mut dyn FnMut(Entry));

impl<'de> DeserializeSeed<'de> for Whole<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_map(self)
    }
}

impl<'de> Visitor<'de> for Whole<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with `schema_version` and `findings`")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let (mut has_version, mut has_findings) = (false, false);
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "schema_version" => {
                    let version: String = map.next_value()?;
                    if version.split('.').next() != Some("1") {
                        let message =
                            format!("`schema_version` is `{version}`, and this vmdisk reads 1");
                        return Err(A::Error::custom(message));
                    }
                    has_version = true;
                }
                "findings" => {
                    map.next_value_seed(Entries(&mut *self.0))?;
                    has_findings = true;
                }
                // A key that a later version adds.
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        match (has_version, has_findings) {
            (true, true) => Ok(()),
            (false, _) => Err(A::Error::missing_field("schema_version")),
            (true, false) => Err(A::Error::missing_field("findings")),
        }
    }
}

struct Entries<'t>(&'t mut dyn FnMut(Entry));

impl<'de> DeserializeSeed<'de> for Entries<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for Entries<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of findings")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while let Some(entry) = list.next_element()? {
            (self.0)(entry);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(file: &str, count: u32) -> Entry {
        Entry {
            file: file.to_owned(),
            rule: "cache-unsafe".to_owned(),
            disk: (count > 1).then(|| "vda".to_owned()),
            field: "driver/@cache".to_owned(),
            count: NonZeroU32::new(count).unwrap(),
        }
    }

    fn written(entries: &[Entry]) -> String {
        let mut lines = Vec::new();
        entries
            .iter()
            .for_each(|entry| push_line(&mut lines, entry));
        let mut out = Vec::new();
        let write_lines = &mut |out: &mut dyn Write| {
            out.write_all(lines.get(1..).unwrap_or_default())?;
            Ok(!lines.is_empty())
        };
        write(&mut out, write_lines).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn read_text(text: &str) -> Result<Vec<Entry>, Stop> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b.json");
        std::fs::write(&path, text).unwrap();
        let mut entries = Vec::new();
        read(&path, &mut |entry| entries.push(entry))?;
        Ok(entries)
    }

    #[test]
    fn entries_are_read_as_they_were_written_one_line_each() {
        let entries = [entry("a \"b\"\n.xml", 1), entry("d/ü.xml", 3)];
        let text = written(&entries);
        assert_eq!(text.lines().count(), 5 + entries.len());
        assert_eq!(read_text(&text).unwrap(), entries);
        assert_eq!(read_text(&written(&[])).unwrap(), []);
    }

    #[test]
    fn a_mistake_has_its_place() {
        let good = written(&[entry("a.xml", 1)]);
        for (text, title, line) in [
            (good.replace("\"count\":1", "\"count\":0"), "zero", 4),
            (
                good.replace("\"rule\"", "\"rul\""),
                "unknown field `rul`",
                4,
            ),
            (good.replace("1.0", "2.0"), "this vmdisk reads 1", 2),
            (
                good.replace("findings", "finding"),
                "missing field `findings`",
                6,
            ),
            (good.replace("  ]\n}", "  ]"), "EOF", 6),
            (format!("{good}x"), "trailing characters", 7),
            ("[]".to_owned(), "an object with", 1),
        ] {
            let Stop(messages) = read_text(&text).unwrap_err();
            let place = messages[0].place.as_ref().unwrap();
            let quoted = place.quoted.as_ref().unwrap();
            let at = quoted.start().line;
            assert!(messages[0].title.contains(title), "{}", messages[0].title);
            assert_eq!((at, title), (line, title), "{text}");
        }
    }

    #[test]
    fn a_key_of_a_later_version_is_skipped() {
        let text = written(&[entry("a.xml", 1)]).replacen('{', "{\n\"more\": [{}],", 1);
        assert_eq!(read_text(&text).unwrap().len(), 1);
    }
}
