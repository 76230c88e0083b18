//! JSON whose strings can be shown: every character that a terminal or an editor acts upon is escaped.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::ser::{CharEscape, CompactFormatter, Formatter, PrettyFormatter};

use crate::sanitize::{is_hazard, is_plain};

/// Writes a value with line ends and indentation, and a line end after it.
pub(crate) fn pretty(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    write(out, value, PrettyFormatter::new())
}

/// Writes a value in one line.
pub(crate) fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    write(out, value, CompactFormatter)
}

fn write(out: &mut dyn Write, value: &impl Serialize, layout: impl Formatter) -> io::Result<()> {
    let mut serializer = serde_json::Serializer::with_formatter(&mut *out, Harmless(layout));
    value.serialize(&mut serializer)?;
    out.write_all(b"\n")
}

/// A layout whose strings are harmless. Programs read the same strings.
struct Harmless<F>(F);

impl<F: Formatter> Formatter for Harmless<F> {
    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if is_plain(fragment) {
            return writer.write_all(fragment.as_bytes());
        }
        let mut written = 0;
        for (at, character) in fragment.char_indices() {
            if is_hazard(character) {
                writer.write_all(&fragment.as_bytes()[written..at])?;
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
                written = at + character.len_utf8();
            }
        }
        writer.write_all(&fragment.as_bytes()[written..])
    }

    fn write_char_escape<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        escape: CharEscape,
    ) -> io::Result<()> {
        self.0.write_char_escape(writer, escape)
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_array(writer)
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array(writer)
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.0.begin_array_value(writer, is_first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_array_value(writer)
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object(writer)
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object(writer)
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.0.begin_object_key(writer, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.begin_object_value(writer)
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.0.end_object_value(writer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hazards_are_escaped_and_read_back() {
        let text = "a\u{202e}b\u{7f}\u{e0001}\u{2028}ü\n\"\u{1b}[2J";
        for write in [
            |out: &mut Vec<u8>, text: &&str| pretty(out, text),
            |out: &mut Vec<u8>, text: &&str| line(out, text),
        ] {
            let mut out = Vec::new();
            write(&mut out, &text).unwrap();
            let json = String::from_utf8(out).unwrap();
            assert_eq!(json.lines().count(), 1, "{json}");
            assert!(!json.trim_end().chars().any(is_hazard), "{json}");
            assert!(json.contains('ü'), "{json}");
            assert_eq!(serde_json::from_str::<String>(&json).unwrap(), text);
        }
    }
}
