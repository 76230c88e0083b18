//! The file of a baseline: its entries, its reader and its writer.

use std::io::{self, Write};
use std::num::NonZeroU32;
use std::path::Path;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::de::{Error as _, IgnoredAny};
use serde::{Deserialize, Deserializer, Serialize};
use vmdisk_source::Span;

use crate::input::bounded;
use crate::render::message::{Message, MessagePlace, MessageText, SharedText};
use crate::stop::{Stop, plain};

/// Version of the format.
const SCHEMA_VERSION: &str = "1.0";

/// Findings that `vmdisk lint --baseline` does not count. `vmdisk lint --write-baseline` writes them, one per line.
#[derive(Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk baseline, version 1", rename = "Baseline")
)]
#[serde(expecting = "an object with `schema_version` and `findings`")]
struct Baseline {
    /// Version of the format; another first number is another format.
    #[serde(deserialize_with = "version")]
    #[allow(dead_code, reason = "checked when it is read")]
    schema_version: String,
    /// The known findings, in the order of the inputs.
    findings: Vec<Entry>,
    /// Keys that a later version adds. With them, a list is not a baseline.
    #[serde(flatten)]
    #[cfg_attr(feature = "schema", schemars(skip))]
    _later: IgnoredAny,
}

fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<String, D::Error> {
    let version = String::deserialize(deserializer)?;
    match version.split('.').next() {
        Some("1") => Ok(version),
        _ => Err(D::Error::custom(format!(
            "`schema_version` is `{version}`, and this vmdisk reads 1"
        ))),
    }
}

/// Known findings of one rule about one field. Lines and columns are not part of it, so that edits elsewhere in a file
/// change nothing.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Baseline)
}

/// Reads the entries of a file, in their order.
///
/// # Errors
/// If the file cannot be opened or is not a baseline, with the place of the mistake.
pub(crate) fn read(path: &Path) -> Result<Vec<Entry>, Stop> {
    let bytes = bounded::named(path).map_err(|error| {
        let stop = Stop::file("read the baseline", path, plain(&error));
        match error.kind() {
            io::ErrorKind::NotFound => stop.help("`vmdisk lint --write-baseline` writes one"),
            _ => stop,
        }
    })?;
    match serde_json::from_slice::<Baseline>(&bytes) {
        Ok(baseline) => Ok(baseline.findings),
        Err(error) => Err(mistake(path, bytes, &error)),
    }
}

/// Writes a file with these entries, one per line.
pub(crate) fn write<'e>(
    out: &mut dyn Write,
    entries: impl Iterator<Item = &'e Entry>,
) -> io::Result<()> {
    write!(
        out,
        "{{\n  \"schema_version\": \"{SCHEMA_VERSION}\",\n  \"findings\": ["
    )?;
    let mut separator = "\n    ";
    for entry in entries {
        out.write_all(separator.as_bytes())?;
        serde_json::to_writer(&mut *out, entry)?;
        separator = ",\n    ";
    }
    let is_empty = !separator.starts_with(',');
    out.write_all(if is_empty { b"]\n}\n" } else { b"\n  ]\n}\n" })
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
        MessageText::new(SharedText::new(text), span)
    });
    let message = Message::error(format!("not a baseline: {title}"));
    let place = MessagePlace::new(path.display().to_string(), quoted);
    Stop::from(message.at(place)).help(
        "correct it (`vmdisk print schema baseline` describes it), or write it anew with `vmdisk lint --write-baseline`",
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
        let mut out = Vec::new();
        write(&mut out, entries.iter()).unwrap();
        String::from_utf8(out).unwrap()
    }

    fn read_text(text: &str) -> Result<Vec<Entry>, Stop> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("b.json");
        std::fs::write(&path, text).unwrap();
        read(&path)
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
