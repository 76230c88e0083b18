//! JSON with spans.

use vmdisk_source::Span;

use super::properties::{Kind, Properties, Property, Syntax};
use super::text::Text;
use crate::failure::ReadFailure;
use crate::limits::{Counted, MAX_PROPERTIES_OF_OPTION};

/// Options of QEMU are never nested deeper.
const DEEPEST: usize = 32;

/// The reason why a text is not JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) span: Span,
    pub(crate) message: String,
}

/// The commands of an array, which is the whole text: its strings are one, or those of each array in it.
pub(crate) fn commands(file: &str) -> Result<Vec<Vec<Text>>, ReadFailure> {
    let mut text = Text::empty(0);
    text.push_verbatim(file, Span::new(0, file.len()));
    commands_of(&text)
}

/// As [`commands`], for a part of a text.
pub(crate) fn commands_of(text: &Text) -> Result<Vec<Vec<Text>>, ReadFailure> {
    let mut parser = Parser {
        text,
        at: 0,
        found: Vec::new(),
        ends: Vec::new(),
    };
    let mut commands = Vec::new();
    let mut counted = Counted::default();
    parser.space();
    let begin = parser.at;
    parser.expect(b'[').map_err(not_strings)?;
    parser.space();
    if parser.peek() == Some(b'[') {
        while parser.peek() != Some(b']') {
            commands.push(parser.strings(&mut counted)?);
            parser.next_item()?;
        }
        parser.at += 1;
    } else {
        parser.at = begin;
        commands.push(parser.strings(&mut counted)?);
    }
    parser.end().map_err(not_strings)?;
    Ok(commands)
}

fn not_strings(fault: Fault) -> ReadFailure {
    let message = format!("not a JSON array of strings: {}", fault.message);
    ReadFailure::new(fault.span, message)
}

/// The members of an object, which is the whole text.
pub(crate) fn object(text: &Text, file: &str) -> Result<Properties, Fault> {
    object_with(text, file, "").map(|(members, _)| members)
}

/// The members of an object, which is the whole text, and the end of the last object of each key; the keys end in a
/// dot.
pub(crate) fn object_with(
    text: &Text,
    file: &str,
    inner: &str,
) -> Result<(Properties, Option<usize>), Fault> {
    let mut parser = Parser {
        text,
        at: 0,
        found: Vec::new(),
        ends: Vec::new(),
    };
    parser.space();
    let end = parser.object("", 0)?;
    parser.end()?;
    let end = text.span(end..end + 1).start;
    let quote = text
        .as_str()
        .find('"')
        .and_then(|at| text.span(at..at + 1).slice(file))
        .unwrap_or("\"")
        .to_owned();
    let of_inner = parser.ends.iter().rev().find(|(key, _)| key == inner);
    let inner_end = of_inner.map(|(_, end)| text.span(*end..*end + 1).start);
    let members = Properties::new(parser.found, Syntax::Json { end, quote });
    Ok((members, inner_end))
}

/// The members of the objects that follow one another, each with its place.
pub(crate) fn objects(file: &str) -> Result<Vec<(usize, Vec<Property>)>, Fault> {
    let mut text = Text::empty(0);
    text.push_verbatim(file, Span::new(0, file.len()));
    let mut parser = Parser {
        text: &text,
        at: 0,
        found: Vec::new(),
        ends: Vec::new(),
    };
    let mut objects = Vec::new();
    parser.space();
    while parser.peek().is_some() {
        let start = parser.at;
        parser.object("", 0)?;
        objects.push((start, std::mem::take(&mut parser.found)));
        parser.space();
    }
    Ok(objects)
}

struct Parser<'t> {
    text: &'t Text,
    at: usize,
    found: Vec<Property>,
    /// The end of each nested object, by its key with a trailing dot.
    ends: Vec<(String, usize)>,
}

impl Parser<'_> {
    /// The strings of an array.
    fn strings(&mut self, counted: &mut Counted) -> Result<Vec<Text>, ReadFailure> {
        let mut words = Vec::new();
        self.expect(b'[').map_err(not_strings)?;
        self.space();
        while self.peek() != Some(b']') {
            words.push(self.string().map_err(not_strings)?.0);
            counted.word(self.at)?;
            self.next_item()?;
        }
        self.at += 1;
        Ok(words)
    }

    /// Skips to the next item of an array, or to its end.
    fn next_item(&mut self) -> Result<(), ReadFailure> {
        self.space();
        if self.peek() == Some(b',') {
            self.at += 1;
            self.space();
        } else if self.peek() != Some(b']') {
            return Err(not_strings(self.fault("expected `,` or `]`")));
        }
        Ok(())
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_str().as_bytes().get(self.at).copied()
    }

    fn space(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn fault(&self, message: &str) -> Fault {
        let bytes = self.text.as_str();
        let length = bytes
            .get(self.at..)
            .and_then(|rest| rest.chars().next())
            .map_or(0, char::len_utf8);
        Fault {
            span: self.text.span(self.at.min(bytes.len())..self.at + length),
            message: message.to_owned(),
        }
    }

    fn expect(&mut self, byte: u8) -> Result<(), Fault> {
        if self.peek() == Some(byte) {
            self.at += 1;
            return Ok(());
        }
        Err(self.fault(&format!("expected `{}`", char::from(byte))))
    }

    fn end(&mut self) -> Result<(), Fault> {
        self.space();
        if self.at < self.text.as_str().len() {
            return Err(self.fault("something follows the end"));
        }
        Ok(())
    }

    /// An object; returns the position of its closing brace.
    fn object(&mut self, prefix: &str, depth: usize) -> Result<usize, Fault> {
        if depth > DEEPEST {
            return Err(self.fault("nested too deeply"));
        }
        self.expect(b'{')?;
        self.space();
        let mut comma: Option<usize> = None;
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(self.at - 1);
        }
        loop {
            let start = self.at;
            let (key, key_span) = self.string()?;
            let key = format!("{prefix}{}", key.as_str());
            self.space();
            self.expect(b':')?;
            self.space();
            let first = self.found.len();
            self.value(key, key_span, depth)?;
            let end = self.at;
            self.space();
            let next = self.peek();
            let whole = match (comma, next) {
                (Some(comma), _) => comma..end,
                (None, Some(b',')) => start..self.at + 1,
                (None, _) => start..end,
            };
            if self.found.len() == first + 1 {
                self.found[first].whole = self.text.span(whole);
            }
            match next {
                Some(b',') => {
                    comma = Some(self.at);
                    self.at += 1;
                    self.space();
                }
                Some(b'}') => {
                    self.at += 1;
                    return Ok(self.at - 1);
                }
                _ => return Err(self.fault("expected `,` or `}`")),
            }
        }
    }

    fn value(&mut self, key: String, key_span: Span, depth: usize) -> Result<(), Fault> {
        let start = self.at;
        match self.peek() {
            Some(b'{') => {
                let inner = format!("{key}.");
                let end = self.object(&inner, depth + 1)?;
                self.ends.push((inner, end));
            }
            Some(b'[') => self.array(&key, key_span, depth + 1)?,
            Some(b'"') => {
                let (value, span) = self.string()?;
                self.note(key, key_span, value, Kind::Text, span)?;
            }
            _ => {
                while self
                    .peek()
                    .is_some_and(|byte| !b",]} \t\r\n".contains(&byte))
                {
                    self.at += 1;
                }
                let range = start..self.at;
                let word = &self.text.as_str()[range.clone()];
                let kind = match word {
                    "true" | "false" => Kind::Bool,
                    "null" => Kind::Null,
                    number if number.parse::<f64>().is_ok() => Kind::Number,
                    _ => {
                        self.at = start;
                        return Err(self.fault("expected a value"));
                    }
                };
                let span = self.text.span(range.clone());
                self.note(key, key_span, self.text.part(range), kind, span)?;
            }
        }
        Ok(())
    }

    fn array(&mut self, key: &str, key_span: Span, depth: usize) -> Result<(), Fault> {
        if depth > DEEPEST {
            return Err(self.fault("nested too deeply"));
        }
        let start = self.at;
        self.at += 1;
        self.space();
        let mut nth = 0_usize;
        while self.peek() != Some(b']') {
            self.value(format!("{key}.{nth}"), key_span, depth)?;
            nth += 1;
            self.space();
            match self.peek() {
                Some(b',') => {
                    self.at += 1;
                    self.space();
                }
                Some(b']') => {}
                _ => return Err(self.fault("expected `,` or `]`")),
            }
        }
        self.at += 1;
        if nth == 0 {
            let range = start..self.at;
            let span = self.text.span(range.clone());
            let value = self.text.part(range);
            self.note(key.to_owned(), key_span, value, Kind::EmptyArray, span)?;
        }
        Ok(())
    }

    fn note(
        &mut self,
        key: String,
        key_span: Span,
        value: Text,
        kind: Kind,
        span: Span,
    ) -> Result<(), Fault> {
        if self.found.len() == MAX_PROPERTIES_OF_OPTION {
            let message = format!("more than {MAX_PROPERTIES_OF_OPTION} members");
            return Err(self.fault(&message));
        }
        self.found.push(Property {
            key,
            value,
            kind,
            span,
            key_span,
            has_open_key: false,
            whole: Span::new(key_span.start, span.end),
            number: 0,
        });
        Ok(())
    }

    /// A string, with the span of its content.
    fn string(&mut self) -> Result<(Text, Span), Fault> {
        self.expect(b'"')?;
        let start = self.at;
        let mut value = Text::empty(self.text.span(start..start).start);
        loop {
            let plain = self.at;
            while self
                .peek()
                .is_some_and(|byte| byte != b'"' && byte != b'\\')
            {
                self.at += 1;
            }
            value.push_part(self.text, plain..self.at);
            match self.peek() {
                Some(b'"') => {
                    let span = self.text.span(start..self.at);
                    self.at += 1;
                    return Ok((value, span));
                }
                Some(_) => self.escape(&mut value)?,
                None => return Err(self.fault("a string that does not end")),
            }
        }
    }

    fn escape(&mut self, value: &mut Text) -> Result<(), Fault> {
        let start = self.at;
        let bytes = self.text.as_str().as_bytes();
        let mut length = 2;
        let character = match bytes.get(start + 1) {
            Some(b'n') => '\n',
            Some(b't') => '\t',
            Some(b'r') => '\r',
            Some(b'b') => '\u{8}',
            Some(b'f') => '\u{c}',
            // The single quote is an extension of QEMU.
            Some(plain @ (b'"' | b'\\' | b'/' | b'\'')) => char::from(*plain),
            Some(b'u') => {
                let unit = |at: usize| {
                    let digits = self.text.as_str().get(at + 2..at + 6)?;
                    let is_unit = bytes[at] == b'\\' && bytes[at + 1] == b'u';
                    u16::from_str_radix(digits, 16).ok().filter(|_| is_unit)
                };
                let first = unit(start).ok_or_else(|| self.fault("an unknown escape"))?;
                length = 6;
                let is_high = (0xd800..0xdc00).contains(&first);
                let second = (is_high && start + 8 <= bytes.len())
                    .then(|| unit(start + 6))
                    .flatten();
                length += if second.is_some() { 6 } else { 0 };
                char::decode_utf16([first].into_iter().chain(second))
                    .next()
                    .and_then(Result::ok)
                    .ok_or_else(|| self.fault("half a character"))?
            }
            Some(_) | None => return Err(self.fault("an unknown escape")),
        };
        let span = self.text.span(start..start + length);
        value.push_escape(character.encode_utf8(&mut [0; 4]), span);
        self.at += length;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(file: &str) -> Result<Properties, Fault> {
        let mut text = Text::empty(0);
        text.push_verbatim(file, Span::new(0, file.len()));
        object(&text, file)
    }

    #[test]
    fn members_are_found_by_dotted_keys_with_their_places() {
        let file = r#"{"driver":"file", "filename":"\u00e9\n\ud83d\udcbe","cache":{"direct":true},"vqs":[1,{"a":null}]}"#;
        let properties = read(file).unwrap();
        assert_eq!(properties.value("filename"), Some("\u{e9}\n\u{1f4be}"));
        assert_eq!(properties.value("cache.direct"), Some("true"));
        assert_eq!(properties.value("vqs.0"), Some("1"));
        assert_eq!(properties.get("vqs.1.a").unwrap().kind, Kind::Null);
        let file_name = properties.get("filename").unwrap();
        assert_eq!(file_name.span.slice(file), Some(r"\u00e9\n\ud83d\udcbe"));
        let driver = properties.get("driver").unwrap();
        assert_eq!(driver.whole.slice(file), Some(r#""driver":"file","#));
    }

    #[test]
    fn what_is_no_json_is_told_with_its_place() {
        for (file, place) in [
            ("{\"a\":1", 6),
            ("{\"a\" 1}", 5),
            ("{\"a\":x}", 5),
            ("{\"a\":\"\\q\"}", 6),
            ("{\"a\":\"\\ud800\"}", 6),
            ("{} x", 3),
            ("[]", 0),
        ] {
            assert_eq!(read(file).unwrap_err().span.start, place, "{file}");
        }
        let deep = format!("{}1{}", "{\"a\":".repeat(99), "}".repeat(99));
        assert_eq!(read(&deep).unwrap_err().message, "nested too deeply");
    }

    #[test]
    fn an_array_of_strings_is_an_argv() {
        let words = commands("[\"qemu-system-x86_64\", \"-S\"]\n")
            .unwrap()
            .remove(0);
        let words: Vec<&str> = words.iter().map(Text::as_str).collect();
        assert_eq!(words, ["qemu-system-x86_64", "-S"]);
        assert!(
            ["[1]", "[[1]]", "[[]", "[[] []]"]
                .iter()
                .all(|text| commands(text).is_err())
        );
        let two = commands("[[\"a\", \"b\"], [\"c\"]]").unwrap();
        assert_eq!(two.iter().map(Vec::len).collect::<Vec<_>>(), [2, 1]);
    }
}
