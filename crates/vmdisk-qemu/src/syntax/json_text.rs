//! JSON with spans. The parser is serde's; its raw values keep their places.

use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;
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
    let text = whole(file);
    let mut json = Json::new(&text);
    let raw = json.only_value().map_err(not_strings)?;
    json.commands(raw)
}

/// As [`commands`], for the array that a text begins with.
pub(crate) fn first_commands(text: &Text) -> Result<Vec<Vec<Text>>, ReadFailure> {
    let mut json = Json::new(text);
    let first = json.values().next();
    let raw = first.unwrap_or_else(|| json.only_value());
    json.commands(raw.map_err(not_strings)?)
}

fn whole(file: &str) -> Text {
    let mut text = Text::empty(0);
    text.push_verbatim(file, Span::new(0, file.len()));
    text
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
    let mut json = Json::new(text);
    let raw = json.only_value()?;
    json.object(raw, "", 0)?;
    let end_of = |key: &str| {
        let (_, end) = json.ends.iter().rev().find(|it| it.0 == key)?;
        Some(text.span(*end..*end + 1).start)
    };
    let end = end_of("").unwrap_or_default();
    let quote = text
        .as_str()
        .find('"')
        .and_then(|at| text.span(at..at + 1).slice(file))
        .unwrap_or("\"")
        .to_owned();
    let inner_end = end_of(inner);
    let members = Properties::new(json.found, Syntax::Json { end, quote });
    Ok((members, inner_end))
}

/// The members of the objects that follow one another, each with its place.
pub(crate) fn objects(file: &str) -> Result<Vec<(usize, Vec<Property>)>, Fault> {
    let text = whole(file);
    let mut json = Json::new(&text);
    let mut objects = Vec::new();
    for raw in json.values() {
        let raw = raw?;
        json.object(raw, "", 0)?;
        objects.push((json.at(raw), std::mem::take(&mut json.found)));
    }
    Ok(objects)
}

/// The members of an object, in order.
struct Members<'t>(Vec<(&'t RawValue, &'t RawValue)>);

impl<'t> Deserialize<'t> for Members<'t> {
    fn deserialize<D: Deserializer<'t>>(deserializer: D) -> Result<Self, D::Error> {
        struct InOrder;

        impl<'t> Visitor<'t> for InOrder {
            type Value = Members<'t>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'t>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(InOrder)
    }
}

struct Json<'t> {
    text: &'t Text,
    found: Vec<Property>,
    /// The end of each object, by its key with a trailing dot.
    ends: Vec<(String, usize)>,
}

impl<'t> Json<'t> {
    const fn new(text: &'t Text) -> Self {
        Json {
            text,
            found: Vec::new(),
            ends: Vec::new(),
        }
    }

    /// The values that follow one another.
    fn values(&self) -> impl Iterator<Item = Result<&'t RawValue, Fault>> + use<'t> {
        let text = self.text;
        let all = serde_json::Deserializer::from_str(text.as_str()).into_iter();
        all.map(move |it| it.map_err(|error| fault(text, text.as_str(), 0, &error)))
    }

    fn only_value(&self) -> Result<&'t RawValue, Fault> {
        self.parsed(self.text.as_str(), 0)
    }

    /// The place of a value in the text.
    fn at(&self, raw: &RawValue) -> usize {
        raw.get().as_ptr().addr() - self.text.as_str().as_ptr().addr()
    }

    /// The parts of a value that begins at a place.
    fn parsed<T: Deserialize<'t>>(&self, value: &'t str, at: usize) -> Result<T, Fault> {
        serde_json::from_str(value).map_err(|error| fault(self.text, value, at, &error))
    }

    fn fault(&self, at: usize, message: &str) -> Fault {
        let rest = self.text.as_str().get(at..).unwrap_or_default();
        let length = rest.chars().next().map_or(0, char::len_utf8);
        Fault {
            span: self.text.span(at..at + length),
            message: message.to_owned(),
        }
    }

    fn commands(&mut self, raw: &'t RawValue) -> Result<Vec<Vec<Text>>, ReadFailure> {
        let mut counted = Counted::default();
        let mut strings = |raw: &'t RawValue| {
            let all: Vec<&RawValue> = self.parsed(raw.get(), self.at(raw)).map_err(not_strings)?;
            let mut words = Vec::new();
            for raw in all {
                counted.word(self.at(raw))?;
                words.push(self.string(raw).map_err(not_strings)?.0);
            }
            Ok(words)
        };
        let inner = raw.get().strip_prefix('[').map(str::trim_start);
        if !inner.is_some_and(|inner| inner.starts_with('[')) {
            return Ok(vec![strings(raw)?]);
        }
        let all: Vec<&RawValue> = self.parsed(raw.get(), self.at(raw)).map_err(not_strings)?;
        all.into_iter().map(strings).collect()
    }

    fn object(&mut self, raw: &'t RawValue, prefix: &str, depth: usize) -> Result<(), Fault> {
        let text = self.text.as_str();
        let Members(members) = self.parsed(raw.get(), self.at(raw))?;
        let count = members.len();
        for (nth, (key, value)) in members.into_iter().enumerate() {
            let (start, end) = (self.at(key), self.at(value) + value.get().len());
            let (name, key_span) = self.string(key)?;
            let first = self.found.len();
            let name = format!("{prefix}{}", name.as_str());
            self.value(value, name, key_span, depth)?;
            if self.found.len() == first + 1 {
                let whole = match nth {
                    0 if count == 1 => start..end,
                    0 => start..end + text[end..].find(',').map_or(0, |at| at + 1),
                    _ => text[..start].rfind(',').unwrap_or(start)..end,
                };
                self.found[first].whole = self.text.span(whole);
            }
        }
        let end = self.at(raw) + raw.get().len() - 1;
        self.ends.push((prefix.to_owned(), end));
        Ok(())
    }

    fn value(
        &mut self,
        raw: &'t RawValue,
        key: String,
        key_span: Span,
        depth: usize,
    ) -> Result<(), Fault> {
        let at = self.at(raw);
        let range = at..at + raw.get().len();
        if depth > DEEPEST {
            return Err(self.fault(at, "nested too deeply"));
        }
        let (value, span, kind) = match raw.get().as_bytes().first() {
            Some(b'{') => return self.object(raw, &format!("{key}."), depth + 1),
            Some(b'"') => {
                let (value, span) = self.string(raw)?;
                (value, span, Kind::Text)
            }
            first => {
                let kind = match first {
                    Some(b'[') => Kind::EmptyArray,
                    Some(b't' | b'f') => Kind::Bool,
                    Some(b'n') => Kind::Null,
                    _ => Kind::Number,
                };
                let span = self.text.span(range.clone());
                (self.text.part(range), span, kind)
            }
        };
        if kind == Kind::EmptyArray {
            let items: Vec<&RawValue> = self.parsed(raw.get(), at)?;
            for (nth, item) in items.iter().enumerate() {
                self.value(item, format!("{key}.{nth}"), key_span, depth + 1)?;
            }
            if !items.is_empty() {
                return Ok(());
            }
        }
        if self.found.len() == MAX_PROPERTIES_OF_OPTION {
            let message = format!("more than {MAX_PROPERTIES_OF_OPTION} members");
            return Err(self.fault(at, &message));
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
    fn string(&self, raw: &'t RawValue) -> Result<(Text, Span), Fault> {
        let content = raw.get().strip_prefix('"');
        let Some(content) = content.and_then(|it| it.strip_suffix('"')) else {
            return Err(self.fault(self.at(raw), "expected a string"));
        };
        let start = self.at(raw) + 1;
        let end = start + content.len();
        let mut value = Text::empty(self.text.span(start..start).start);
        let mut at = 0;
        while let Some(found) = content[at..].find('\\') {
            let escape = at + found;
            value.push_part(self.text, start + at..start + escape);
            let decoded = |length: usize| {
                let written = content.get(escape..escape + length)?;
                let letter: String = serde_json::from_str(&format!("\"{written}\"")).ok()?;
                Some((letter, length))
            };
            let place = start + escape;
            // The longest has both halves of a character.
            let found = [2, 6, 12].into_iter().find_map(decoded);
            let (letter, length) = found.ok_or_else(|| self.fault(place, "half a character"))?;
            value.push_escape(&letter, self.text.span(place..place + length));
            at = escape + length;
        }
        value.push_part(self.text, start + at..end);
        Ok((value, self.text.span(start..end)))
    }
}

/// The fault that the parser found in the value at a place of the text.
fn fault(text: &Text, value: &str, at: usize, error: &serde_json::Error) -> Fault {
    let lines = value.split_inclusive('\n').take(error.line() - 1);
    let start = at + lines.map(str::len).sum::<usize>();
    let found = match error.is_eof() {
        true => at + value.len(),
        false => start + error.column().saturating_sub(1),
    };
    let message = error.to_string();
    let message = message.split(" at line ").next().unwrap_or_default();
    Json::new(text).fault(found, message)
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
            ("{\"a\":\"\\q\"}", 7),
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
