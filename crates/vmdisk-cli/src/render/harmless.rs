//! JSON whose strings can be shown: every character that a terminal or an editor acts upon is escaped.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;

use crate::sanitize::{is_hazard, is_plain, is_plain_in_json};

/// Writes a value with line ends and indentation, and a line end after it.
pub(crate) fn pretty(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    write(out, value, Harmless::new(Some(0), Later::Marks))
}

/// As [`pretty`], with a value in which each [`Spliced`] is a list whose items `lists` writes.
pub(crate) fn pretty_with(
    out: &mut dyn Write,
    value: &impl Serialize,
    lists: &mut WriteItems<'_>,
) -> io::Result<()> {
    write(out, value, Harmless::new(Some(0), Later::Lists(lists)))
}

/// Writes a value in one line.
pub(crate) fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    write(out, value, Harmless::new(None, Later::Marks))
}

fn write(out: &mut dyn Write, value: &impl Serialize, layout: Harmless<'_, '_>) -> io::Result<()> {
    value.serialize(&mut Serializer::with_formatter(&mut *out, layout))?;
    out.write_all(b"\n")
}

/// Adds an item of a list that is inside of `depth` lists and objects, itself included. It begins with a comma.
pub(crate) fn item(out: &mut Vec<u8>, depth: usize, value: &impl Serialize) {
    let layout = Harmless::new(Some(depth), Later::Marks);
    add_item(out, depth, value, layout);
}

/// As [`item`], with the whole value in one line, and a blank after each comma and colon.
pub(crate) fn line_item(out: &mut Vec<u8>, depth: usize, value: &impl Serialize) {
    let layout = Harmless {
        is_spaced: true,
        ..Harmless::new(None, Later::Marks)
    };
    add_item(out, depth, value, layout);
}

fn add_item(out: &mut Vec<u8>, depth: usize, value: &impl Serialize, layout: Harmless<'_, '_>) {
    let before = Harmless::new(Some(depth), Later::Marks).separate(out, false);
    let written = before.and_then(|()| {
        let mut serializer = Serializer::with_formatter(&mut *out, layout);
        value.serialize(&mut serializer).map_err(io::Error::from)
    });
    written.expect("the values of reports have names for keys, and memory takes every byte");
}

/// Adds a string, as [`item`] has it.
pub(crate) fn string(out: &mut Vec<u8>, text: &str) {
    // Most texts are ASCII.
    if is_plain_in_json(text) || is_itself_in_json(text) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    let layout = Harmless::new(None, Later::Marks);
    let mut serializer = Serializer::with_formatter(&mut *out, layout);
    text.serialize(&mut serializer)
        .expect("memory takes every byte");
}

/// True for a text that is written unchanged.
fn is_itself_in_json(text: &str) -> bool {
    let mut rest = text;
    loop {
        let end = rest.bytes().position(|byte| !byte.is_ascii());
        let (plain, after) = rest.split_at(end.unwrap_or(rest.len()));
        if !is_plain_in_json(plain) {
            return false;
        }
        let mut characters = after.chars();
        match characters.next() {
            None => return true,
            Some(character) if is_hazard(character) => return false,
            Some(_) => rest = characters.as_str(),
        }
    }
}

/// Writes the items of the list with a number, and returns false if there are none.
pub(crate) type WriteItems<'a> = dyn FnMut(usize, &mut dyn Write) -> io::Result<bool> + 'a;

/// A list whose items were written before, by its number.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spliced(pub(crate) usize);

impl Serialize for Spliced {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // No report has other numbers of this width.
        serializer.serialize_u128(self.0 as u128)
    }
}

/// A byte that no JSON text has, for a value that is known later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mark {
    /// The number of an input.
    Input = 1,
    /// The number of a rule.
    Rule = 2,
    /// The fingerprint of a finding.
    Fingerprint = 3,
}

impl Mark {
    /// Writes a text in which `fill` writes the values of the marks.
    pub(crate) fn fill(
        text: &[u8],
        out: &mut dyn Write,
        mut fill: impl FnMut(Mark, &mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        let mut rest = text;
        while let Some(at) = rest.iter().position(|byte| (1..=3).contains(byte)) {
            out.write_all(&rest[..at])?;
            fill(
                match rest[at] {
                    1 => Mark::Input,
                    2 => Mark::Rule,
                    _ => Mark::Fingerprint,
                },
                out,
            )?;
            rest = &rest[at + 1..];
        }
        out.write_all(rest)
    }
}

impl Serialize for Mark {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u128(*self as u128)
    }
}

/// How a [`Spliced`] or a [`Mark`] is written.
enum Later<'l, 'f> {
    /// As the byte of a mark.
    Marks,
    /// As a list.
    Lists(&'l mut WriteItems<'f>),
}

/// A layout whose strings are harmless. Programs read the same strings.
struct Harmless<'l, 'f> {
    /// The number of lists and objects around the next value; `None` if everything is in one line.
    depth: Option<usize>,
    /// True if a blank follows each comma and colon.
    is_spaced: bool,
    /// True if the innermost list or object has a value.
    has_value: bool,
    later: Later<'l, 'f>,
}

impl<'l, 'f> Harmless<'l, 'f> {
    const fn new(depth: Option<usize>, later: Later<'l, 'f>) -> Self {
        Harmless {
            depth,
            is_spaced: depth.is_some(),
            has_value: false,
            later,
        }
    }

    fn begin<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth = self.depth.map(|depth| depth + 1);
        self.has_value = false;
        writer.write_all(bracket)
    }

    fn end<W: ?Sized + Write>(&mut self, writer: &mut W, bracket: &[u8]) -> io::Result<()> {
        self.depth = self.depth.map(|depth| depth - 1);
        if self.has_value {
            self.separate(writer, true)?;
        }
        writer.write_all(bracket)
    }

    /// Writes what is between two values, or before the first or after the last one.
    fn separate<W: ?Sized + Write>(&self, writer: &mut W, has_no_comma: bool) -> io::Result<()> {
        // As long as no report is deeper, this is one write instead of one for each level.
        const SEPARATOR: &str = ",\n                                ";
        let from = usize::from(has_no_comma);
        let Some(depth) = self.depth else {
            let separator: &[u8] = if self.is_spaced { b", " } else { b"," };
            return match has_no_comma {
                true => Ok(()),
                false => writer.write_all(separator),
            };
        };
        let most = (SEPARATOR.len() - 2) / 2;
        writer.write_all(&SEPARATOR.as_bytes()[from..2 + 2 * depth.min(most)])?;
        (most..depth).try_for_each(|_| writer.write_all(b"  "))
    }
}

impl Formatter for Harmless<'_, '_> {
    fn write_u128<W: ?Sized + Write>(&mut self, mut writer: &mut W, value: u128) -> io::Result<()> {
        let number = usize::try_from(value).map_err(io::Error::other)?;
        if let Later::Lists(write_items) = &mut self.later {
            writer.write_all(b"[")?;
            if write_items(number, &mut writer)? {
                self.separate(writer, true)?;
            }
            return writer.write_all(b"]");
        }
        writer.write_all(&[u8::try_from(number).map_err(io::Error::other)?])
    }

    fn write_string_fragment<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        fragment: &str,
    ) -> io::Result<()> {
        if is_plain(fragment) {
            return writer.write_all(fragment.as_bytes());
        }
        let is_rare = |byte: &u8| !matches!(byte, b' '..=b'~');
        let bytes = fragment.as_bytes();
        let (mut written, mut at) = (0, 0);
        while let Some(next) = bytes[at..].iter().position(is_rare) {
            at += next;
            let character = fragment[at..].chars().next().unwrap_or_default();
            if is_hazard(character) {
                writer.write_all(&bytes[written..at])?;
                let mut units = [0; 2];
                for unit in character.encode_utf16(&mut units) {
                    write!(writer, "\\u{unit:04x}")?;
                }
                written = at + character.len_utf8();
            }
            at += character.len_utf8();
        }
        writer.write_all(&bytes[written..])
    }

    fn begin_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"[")
    }

    fn end_array<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"]")
    }

    fn begin_array_value<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.separate(writer, is_first)
    }

    fn end_array_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }

    fn begin_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.begin(writer, b"{")
    }

    fn end_object<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        self.end(writer, b"}")
    }

    fn begin_object_key<W: ?Sized + Write>(
        &mut self,
        writer: &mut W,
        is_first: bool,
    ) -> io::Result<()> {
        self.separate(writer, is_first)
    }

    fn begin_object_value<W: ?Sized + Write>(&mut self, writer: &mut W) -> io::Result<()> {
        writer.write_all(if self.is_spaced { b": " } else { b":" })
    }

    fn end_object_value<W: ?Sized + Write>(&mut self, _: &mut W) -> io::Result<()> {
        self.has_value = true;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hazards_are_escaped_and_read_back() {
        for plain in [
            "",
            "/srv/web1.img",
            "disk vda › driver/@cache",
            "a \\ \"b\"",
        ] {
            let mut out = Vec::new();
            string(&mut out, plain);
            assert_eq!(
                String::from_utf8(out).unwrap(),
                serde_json::to_string(plain).unwrap()
            );
        }
        let text = "a\u{202e}b\u{7f}\u{e0001}\u{2028}ü\n\"\u{1b}[2J";
        for write in [
            |out: &mut Vec<u8>, text: &&str| pretty(out, text),
            |out: &mut Vec<u8>, text: &&str| line(out, text),
            |out: &mut Vec<u8>, text: &&str| {
                string(out, text);
                Ok(())
            },
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

    #[derive(serde::Serialize)]
    struct Outer<T> {
        first: T,
        second: T,
    }

    #[test]
    fn a_spliced_list_is_written_as_a_list() {
        let whole = Outer {
            first: vec![
                Outer {
                    first: 1,
                    second: 2,
                },
                Outer {
                    first: 3,
                    second: 4,
                },
            ],
            second: Vec::new(),
        };
        let mut expected = Vec::new();
        pretty(&mut expected, &whole).unwrap();
        let mut items = Vec::new();
        for one in &whole.first {
            item(&mut items, 2, one);
        }
        let spliced = Outer {
            first: Spliced(0),
            second: Spliced(1),
        };
        let mut out = Vec::new();
        let mut lists = |number: usize, out: &mut dyn Write| -> io::Result<bool> {
            out.write_all(if number == 0 { &items[1..] } else { &[] })?;
            Ok(number == 0)
        };
        pretty_with(&mut out, &spliced, &mut lists).unwrap();
        assert_eq!(String::from_utf8(out), String::from_utf8(expected));
    }

    #[test]
    fn the_layout_is_that_of_serde_json() {
        let mut value =
            serde_json::json!({"empty": [{}, []], "text": "plain", "list": [1, [true, null]]});
        for depth in 0..20 {
            value = serde_json::json!([{ "deeper": value, "depth": depth }, []]);
        }
        let (mut whole, mut compact) = (Vec::new(), Vec::new());
        pretty(&mut whole, &value).unwrap();
        line(&mut compact, &value).unwrap();
        let expected = serde_json::to_string_pretty(&value).unwrap();
        assert_eq!(String::from_utf8(whole).unwrap(), expected + "\n");
        assert_eq!(String::from_utf8(compact).unwrap(), format!("{value}\n"));
    }

    #[test]
    fn a_mark_is_filled_and_no_text_has_one() {
        let value = (Mark::Rule, "\u{1}\u{2}", Mark::Fingerprint);
        let mut text = Vec::new();
        line(&mut text, &value).unwrap();
        let mut out = Vec::new();
        Mark::fill(&text, &mut out, |mark, out| write!(out, "{}", mark as u8)).unwrap();
        let out = String::from_utf8(out).unwrap();
        assert_eq!(out, "[2,\"\\u0001\\u0002\",3]\n");
    }
}
