//! JSON whose strings can be shown: every character that a terminal or an editor acts upon is escaped.

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;
use serde_json::ser::Formatter;
use vmdisk_source::sanitize::{is_hazard, is_plain, is_plain_in_json};

/// Writes a value with line ends and indentation, and a line end after it.
pub fn pretty(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    write(&mut *out, value, Layout::new(Some(0)))?;
    out.write_all(b"\n")
}

/// A value with line ends and indentation, and a line end after it.
pub fn text(value: &impl Serialize) -> String {
    let mut out = Vec::new();
    pretty(&mut out, value).expect("writing to a Vec cannot fail");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// Writes a value in one line, with a line end after it.
pub fn line(out: &mut dyn Write, value: &impl Serialize) -> io::Result<()> {
    write(&mut *out, value, Layout::new(None))?;
    out.write_all(b"\n")
}

fn write(mut out: impl Write, value: &impl Serialize, layout: Layout) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(&mut out, layout);
    Ok(value.serialize(&mut serializer)?)
}

/// A list whose items are made while it is written.
#[allow(missing_debug_implementations)]
pub struct Each<'a, T>(Box<dyn Fn() -> Box<dyn Iterator<Item = T> + 'a> + 'a>);

impl<'a, T: 'a> Each<'a, T> {
    /// The list of the items that a function makes.
    pub fn new<I: Iterator<Item = T> + 'a>(items: impl Fn() -> I + 'a) -> Self {
        Each(Box::new(move || Box::new(items())))
    }
}

impl<T: Serialize> Serialize for Each<'_, T> {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq((self.0)())
    }
}

/// An object that is written member by member, with the indentation of [`pretty`].
pub struct Members<'o> {
    out: &'o mut dyn Write,
    separator: &'static str,
}

impl<'o> Members<'o> {
    /// Begins an object.
    pub fn new(out: &'o mut dyn Write) -> Self {
        Members {
            out,
            separator: "{\n",
        }
    }

    fn name(&mut self, name: &str) -> io::Result<()> {
        write!(self.out, "{}  \"{name}\": ", self.separator)?;
        self.separator = ",\n";
        Ok(())
    }

    /// Writes a member.
    pub fn member(&mut self, name: &str, value: &impl Serialize) -> io::Result<()> {
        self.name(name)?;
        write(&mut *self.out, value, Layout::new(Some(1)))
    }

    /// Writes a member that is a list with a line for each item. `add` adds the items of an owner by [`add_line`].
    pub fn lines<T>(
        &mut self,
        name: &str,
        owners: &[T],
        mut add: impl FnMut(&mut Vec<u8>, &T),
    ) -> io::Result<()> {
        self.name(name)?;
        let (mut items, mut is_empty) = (Vec::with_capacity(4096), true);
        self.out.write_all(b"[")?;
        for owner in owners {
            items.clear();
            add(&mut items, owner);
            // Each item begins with the comma after the one before it.
            let first = usize::from(is_empty && !items.is_empty());
            self.out.write_all(&items[first..])?;
            is_empty &= items.is_empty();
        }
        self.out.write_all(if is_empty { b"]" } else { b"\n  ]" })
    }

    /// Ends the object, with a line end after it.
    pub fn end(self) -> io::Result<()> {
        self.out.write_all(b"\n}\n")
    }
}

/// Begins an item of [`Members::lines`].
pub const LINE: &[u8] = b",\n    ";

/// Adds an item of [`Members::lines`], with a blank after each comma and colon.
pub fn add_line(items: &mut Vec<u8>, item: &impl Serialize) {
    items.extend_from_slice(LINE);
    let layout = Layout {
        is_spaced: true,
        ..Layout::new(None)
    };
    write(items, item, layout).expect("the values of reports have names for keys");
}

/// Adds a string.
pub fn string(out: &mut Vec<u8>, text: &str) {
    // Most texts are ASCII.
    if is_plain_in_json(text) || needs_no_escape(text) {
        out.reserve(text.len() + 2);
        out.push(b'"');
        out.extend_from_slice(text.as_bytes());
        out.push(b'"');
        return;
    }
    write(out, &text, Layout::new(None)).expect("writing to a Vec cannot fail");
}

/// True for a text that is written unchanged.
fn needs_no_escape(text: &str) -> bool {
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

/// A layout whose strings can be shown. Programs read the same strings.
struct Layout {
    /// The number of lists and objects around the next value; `None` if everything is in one line.
    depth: Option<usize>,
    /// True if a blank follows each comma and colon.
    is_spaced: bool,
    /// True if the innermost list or object has a value.
    has_value: bool,
}

impl Layout {
    const fn new(depth: Option<usize>) -> Self {
        Layout {
            depth,
            is_spaced: depth.is_some(),
            has_value: false,
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

impl Formatter for Layout {
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

    #[test]
    fn an_object_that_is_written_by_members_is_that_of_serde() {
        let value = serde_json::json!({"a": [], "b": {"c": [1]}, "d": [[1, 2], [{}]], "e": []});
        let list = |name: &str| value[name].as_array().unwrap().as_slice();
        let mut out = Vec::new();
        let mut members = Members::new(&mut out);
        members.member("a", &value["a"]).unwrap();
        members.member("b", &value["b"]).unwrap();
        for name in ["d", "e"] {
            members.lines(name, list(name), add_line).unwrap();
        }
        members.end().unwrap();
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&text).unwrap(),
            value
        );
        let whole = serde_json::to_string_pretty(&value).unwrap();
        let (head, _) = whole.split_once("  \"d\"").unwrap();
        let lines = "  \"d\": [\n    [1, 2],\n    [{}]\n  ],\n  \"e\": []\n}\n";
        assert_eq!(text, format!("{head}{lines}"));
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
}
