//! Reads `-readconfig` files.

use std::ops::Range;

use vmdisk_source::Span;

use super::{GROUPS, MAX_LINE, MAX_NAME, option_of};
use crate::failure::ReadFailure;
use crate::limits::{MAX_OPTIONS, MAX_PROPERTIES_OF_OPTION, Suggestions, exceeded};
use crate::syntax::option::{Fault, OptionList, WrittenOption};
use crate::syntax::properties::{Kind, Properties, Property, Syntax};
use crate::syntax::text::Text;

/// Groups that identify a text as such a file, each with its required keys.
const TELLING: &[(&str, &[&str])] = &[
    ("device", &["driver"]),
    (
        "drive",
        &[
            "file",
            "file.driver",
            "file.filename",
            "driver",
            "format",
            "if",
        ],
    ),
    ("machine", &["type"]),
    ("object", &["qom-type"]),
    ("chardev", &["backend"]),
];

/// True if a text is such a file: it has a known group with one of its keys.
pub(crate) fn is_config_file(text: &str) -> bool {
    let mut keys: &[&str] = &[];
    let mut has_group = false;
    for line in text.trim_start_matches('\u{feff}').lines() {
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        match (header(line), pair(line)) {
            (Some(header), _) => {
                has_group = true;
                let group = &line[header.group];
                let telling = TELLING.iter().find(|(name, _)| *name == group);
                keys = telling.map_or(&[], |(_, keys)| *keys);
            }
            (None, Some(pair)) if keys.contains(&&line[pair.key.clone()]) => return true,
            // An invalid line does not make the file something else.
            (None, None) if !has_group => return false,
            (None, Some(_) | None) => {}
        }
    }
    false
}

/// True if a text begins with a group of some QEMU, like a `-readconfig` file.
pub fn begins_with_group(text: &str) -> bool {
    let is_content = |line: &&str| !line.starts_with('#') && !line.trim().is_empty();
    let first = text.trim_start_matches('\u{feff}').lines().find(is_content);
    first.is_some_and(|line| {
        header(line).is_some_and(|header| GROUPS.contains(&&line[header.group]))
    })
}

/// The spans of the parts of a line in brackets.
struct Header {
    group: Range<usize>,
    id: Option<Range<usize>>,
}

/// The text between two positions, and its maximum length.
fn run(text: &str, from: usize, is_in: impl Fn(char) -> bool) -> Range<usize> {
    let rest = &text[from..];
    let length = rest.find(|letter| !is_in(letter)).unwrap_or(rest.len());
    from..from + length
}

/// A group with or without an id; `None` if QEMU does not parse it as a group.
fn header(line: &str) -> Option<Header> {
    let rest = line.strip_prefix('[')?;
    let start = 1 + rest.len() - rest.trim_start().len();
    let group = run(line, start, |letter| !letter.is_ascii_whitespace());
    let space = run(line, group.end, |letter| letter.is_ascii_whitespace());
    if !group.is_empty() && line[space.end..].starts_with('"') {
        let id = run(line, space.end + 1, |letter| letter != '"');
        if !id.is_empty() {
            let id = Some(id);
            return Some(Header { group, id });
        }
    }
    let group = run(line, 1, |letter| letter != ']');
    (!group.is_empty() && group.end < line.len()).then_some(Header { group, id: None })
}

/// The spans of the parts of a line with a value.
struct Pair {
    key: Range<usize>,
    value: Range<usize>,
    is_closed: bool,
}

/// A key with its value; `None` if QEMU does not parse it as a setting.
fn pair(line: &str) -> Option<Pair> {
    let start = line.len() - line.trim_start().len();
    let key = run(line, start, |letter| !letter.is_ascii_whitespace());
    let equals = run(line, key.end, |letter| letter.is_ascii_whitespace()).end;
    let rest = line[equals..].strip_prefix('=')?;
    let quote = equals + 1 + rest.len() - rest.trim_start().len();
    line[quote..].strip_prefix('"')?;
    let value = run(line, quote + 1, |letter| letter != '"');
    let is_closed = value.end < line.len();
    (!key.is_empty()).then_some(Pair {
        key,
        value,
        is_closed,
    })
}

/// A group that is being read.
struct Group {
    name: String,
    span: Span,
    list: Vec<Property>,
    /// The position where another value would be added.
    end: usize,
    /// True if this group has the last line of the file, and that line has no line end.
    is_cut: bool,
}

/// The groups of a file as options, and the lines that QEMU refuses.
pub(crate) fn options(
    file: &str,
    range: Span,
) -> Result<(Vec<WrittenOption>, Vec<Fault>), ReadFailure> {
    let mut reader = GroupReader {
        file,
        options: OptionList::default(),
        faults: Vec::new(),
        suggestions: Suggestions::default(),
        group: None,
    };
    let mut start = range.start;
    for line in file[range.start..range.end].split_inclusive('\n') {
        reader.line(start, line)?;
        start += line.len();
    }
    reader.finish_group()?;
    Ok((reader.options.into_options(), reader.faults))
}

struct GroupReader<'f> {
    file: &'f str,
    options: OptionList,
    faults: Vec<Fault>,
    suggestions: Suggestions,
    group: Option<Group>,
}

impl GroupReader<'_> {
    fn fault(&mut self, span: Span, message: impl Into<String>, help: impl Into<String>) {
        self.faults.push(Fault {
            span,
            message: message.into(),
            help: help.into(),
        });
    }

    fn text(&self, span: Span) -> Text {
        let mut text = Text::empty(span.start);
        text.push_verbatim(self.file, span);
        text
    }

    fn line(&mut self, start: usize, whole: &str) -> Result<(), ReadFailure> {
        let line = whole.strip_suffix('\n').unwrap_or(whole);
        let at = |range: &Range<usize>| Span::new(start + range.start, start + range.end);
        let body = Span::new(start, start + line.trim_end_matches('\r').len());
        if whole.len() > MAX_LINE {
            let message = format!(
                "the line has {} bytes, but QEMU reads only 1022",
                line.len()
            );
            self.fault(
                body,
                message,
                "use a shorter value, or a command line instead of this file",
            );
        }
        if self.faults.len() > MAX_OPTIONS {
            return Err(exceeded(body, "the file", "mistakes", MAX_OPTIONS));
        }
        // A program fills `{NAME}` in.
        let is_filled_in = line.starts_with('{') && line.ends_with('}');
        if line.is_empty() || line.starts_with('#') || is_filled_in {
            return Ok(());
        }
        if let Some(header) = header(line) {
            self.finish_group()?;
            self.begin_group(body, header.id.as_ref().map(at), at(&header.group));
            return Ok(());
        }
        let Some(pair) = pair(line) else {
            // QEMU reads the first word as a key, whatever follows it.
            let message = match line.split_whitespace().next() {
                Some(word) => format!("QEMU reads `{word}` as a key with an empty value"),
                None => "QEMU exits with `parse error`: only a line without any byte is empty"
                    .to_owned(),
            };
            let help = "write `key = \"value\"` with spaces around the sign, a group in brackets, or a comment from the first column on";
            self.fault(body, message, help);
            return Ok(());
        };
        if !pair.is_closed {
            let help = "close the quote; a value cannot contain a quote or a line end";
            self.fault(body, "the quote is not closed", help);
        }
        let (key, value) = (at(&pair.key), at(&pair.value));
        if key.len() > MAX_NAME {
            let message = format!(
                "the key has {} bytes, but QEMU reads only {MAX_NAME}",
                key.len()
            );
            self.fault(key, message, "write the option on the command line");
        }
        let property = Property {
            key: line[pair.key].to_owned(),
            value: self.text(value),
            kind: Kind::Plain,
            span: value,
            key_span: key,
            has_open_key: false,
            whole: Span::new(start, start + whole.len()),
            number: 0,
        };
        let Some(group) = &mut self.group else {
            let help = "write the group in brackets before it";
            self.fault(body, "QEMU exits with `no group defined`", help);
            return Ok(());
        };
        if group.list.len() == MAX_PROPERTIES_OF_OPTION {
            let limit = MAX_PROPERTIES_OF_OPTION;
            return Err(exceeded(key, "a group", "keys", limit));
        }
        group.list.push(property);
        group.span.end = body.end;
        group.end = start + whole.len();
        group.is_cut = !whole.ends_with('\n');
        Ok(())
    }

    fn begin_group(&mut self, line: Span, id: Option<Span>, name: Span) {
        let text = self.text(name);
        if !GROUPS.contains(&text.as_str()) {
            let message = format!(
                "QEMU exits with `There is no option group '{}'`",
                text.as_str()
            );
            let near = self
                .suggestions
                .nearest(text.as_str(), GROUPS.iter().copied());
            let help = match (text.as_str(), near) {
                ("blockdev", _) => {
                    "write the nodes as one [drive] with keys such as `file.filename`".to_owned()
                }
                (_, Some(near)) => format!("did you mean `{near}`?"),
                (_, None) => "remove it, or write the option on the command line".to_owned(),
            };
            self.fault(name, message, help);
        }
        // The end of the line, if it has one.
        let has_end = self.file[line.end..].starts_with(['\r', '\n']);
        let rest = &self.file[line.end..];
        let end = rest
            .find('\n')
            .map_or(self.file.len(), |at| line.end + at + 1);
        let id = id.map(|id| Property {
            key: "id".to_owned(),
            value: self.text(id),
            kind: Kind::Plain,
            span: id,
            key_span: id,
            has_open_key: false,
            whole: id,
            number: 0,
        });
        self.group = Some(Group {
            name: option_of(text.as_str()).to_owned(),
            span: line,
            list: id.into_iter().collect(),
            end,
            is_cut: !has_end,
        });
    }

    fn finish_group(&mut self) -> Result<(), ReadFailure> {
        let Some(group) = self.group.take() else {
            return Ok(());
        };
        let Group {
            name,
            span,
            list,
            end,
            is_cut,
        } = group;
        self.options.push(WrittenOption {
            name,
            span,
            properties: Some(Properties::new(list, Syntax::Lines { end, is_cut })),
            text: None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GUEST: &str = "# a guest\n[machine]\n  type = \"q35\"\n\n[drive \"d0\"]\n  if = \"none\"\n  file.filename = \"/a b\"\n";

    #[test]
    fn groups_become_options_with_their_places() {
        let (options, faults) = options(GUEST, Span::new(0, GUEST.len())).unwrap();
        assert_eq!(faults, []);
        let names: Vec<&str> = options.iter().map(|option| option.name.as_str()).collect();
        assert_eq!(names, ["machine", "drive"]);
        let drive = options[1].properties.as_ref().unwrap();
        assert_eq!(drive.value("id"), Some("d0"));
        let path = drive.get("file.filename").unwrap();
        assert_eq!(path.span.slice(GUEST), Some("/a b"));
        assert_eq!(
            path.whole.slice(GUEST),
            Some("  file.filename = \"/a b\"\n")
        );
        assert!(is_config_file(GUEST));
    }

    #[test]
    fn what_qemu_refuses_is_told_with_its_place_and_reading_goes_on() {
        let long = format!("  serial = \"{}\"\n", "x".repeat(1020));
        for (text, fault) in [
            ("[device \"a\"]\n driver=\"x\"\n", "an empty value"),
            ("[device \"a\"]\n  # no comment\n", "an empty value"),
            ("[device \"a\"]\r\n driver = \"x\"\r\n \r\n", "parse error"),
            ("driver = \"x\"\n", "no group defined"),
            ("[devices]\n", "no option group 'devices'"),
            ("[device]\n driver = \"x\n", "not closed"),
            (&format!("[device]\n{long}"), "but QEMU reads only"),
        ] {
            let (_, faults) = options(text, Span::new(0, text.len())).unwrap();
            assert_eq!(faults.len(), 1, "{text}: {faults:?}");
            assert!(faults[0].message.contains(fault), "{text}: {faults:?}");
        }
    }

    #[test]
    fn other_files_with_brackets_are_none_of_these() {
        for text in [
            "[\"qemu-system-x86_64\", \"-S\"]",
            "[Unit]\nDescription=\"x\"\n",
            "[remote \"origin\"]\n\turl = \"x\"\n",
            "[device]\nname = \"x\"\n",
            "[package]\nname = \"driver\"\n",
            "",
        ] {
            assert!(!is_config_file(text), "{text}");
        }
    }
}
