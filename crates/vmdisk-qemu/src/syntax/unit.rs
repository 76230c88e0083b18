//! The commands of a systemd unit: their words, and the literal values of `Environment=`.

use std::collections::HashMap;

use vmdisk_source::Span;

use super::expand::Splitting;
use super::folder::Folder;
use super::hole::{Fields, Hole, UNSET};
use super::script::{Shell, Site};
use super::text::Text;
use crate::failure::ReadFailure;
use crate::limits::Counted;

/// Reads the commands of `ExecStart=`.
pub(super) fn read(file: &str, shell: &mut Shell<'_>) -> Result<(), ReadFailure> {
    // Without `WorkingDirectory=`, a service runs in `/`, and that of a user in the user's home.
    let mut unit = Unit {
        folder: Folder::Unknown,
        ..Unit::default()
    };
    let mut commands: Vec<Vec<Text>> = Vec::new();
    let settings = settings(file);
    for (key, value) in &settings {
        match *key {
            "Environment" => {
                for word in words(file, *value)? {
                    if let Some((name, _)) = word.as_str().split_once('=') {
                        let value = word.part(name.len() + 1..word.as_str().len());
                        unit.variables.insert(name.to_owned(), value);
                    }
                }
            }
            "EnvironmentFile" => unit.file = value.slice(file).map(str::to_owned),
            "WorkingDirectory" => {
                let path = value
                    .slice(file)
                    .unwrap_or_default()
                    .trim_start_matches('-');
                unit.folder = match path.starts_with('/') && !path.contains('%') {
                    true => Folder::Known(path.to_owned()),
                    false => Folder::Unknown,
                };
            }
            _ => {}
        }
    }
    for (_, value) in settings.iter().filter(|(key, _)| *key == "ExecStart") {
        // An empty value takes back those before it.
        if value.is_empty() {
            commands.clear();
        }
        let is_separator = |word: &Text| word.as_str() == ";" && word.whole().len() == 1;
        let words = words(file, *value)?;
        commands.extend(words.split(is_separator).map(<[Text]>::to_vec));
    }
    for written in commands.iter().filter(|it| !it.is_empty()) {
        let words = unit.command(shell, written);
        let site = Site {
            at: written[0].whole().start,
            folder: unit.folder.clone(),
            ..Site::default()
        };
        shell.reason = Some("systemd or its environment sets it");
        shell.command(&site, &HashMap::new(), words)?;
    }
    Ok(())
}

/// The settings with their values, which may continue on further lines.
fn settings(file: &str) -> Vec<(&str, Span)> {
    let mut found = Vec::new();
    let (mut start, mut end) = (0, 0);
    for line in file.split_inclusive('\n') {
        if start >= end
            && let Some((key, value)) = line.split_once('=')
            && !key.trim_start().starts_with(['#', ';', '['])
        {
            let at = start + line.len() - value.len();
            end = at + value_length(&file[at..]);
            let span = Span::new(at, at + file[at..end].trim_end().len());
            found.push((key.trim(), span));
        }
        start += line.len();
    }
    found
}

/// Length of a value: to the end of its line, including lines joined by a backslash.
fn value_length(text: &str) -> usize {
    let mut length = 0;
    let mut goes_on = true;
    for line in text.split_inclusive('\n') {
        let is_comment = length > 0 && line.trim_start().starts_with(['#', ';']);
        if !goes_on {
            break;
        }
        length += line.len();
        goes_on = is_comment || line.trim_end().ends_with('\\');
    }
    length
}

/// The words of a value: quotes, and escapes as in C.
fn words(file: &str, value: Span) -> Result<Vec<Text>, ReadFailure> {
    let mut found = Vec::new();
    let mut counted = Counted::default();
    let (mut word, mut quote): (Option<Text>, Option<char>) = (None, None);
    let mut at = value.start;
    while let Some(letter) = file[at..value.end].chars().next() {
        let rest = &file[at..value.end];
        let mut length = letter.len_utf8();
        let escaped = escape(rest);
        if quote == Some(letter) {
            quote = None;
        } else if let Some((text, size)) = &escaped {
            length = *size;
            let place = Span::new(at, at + length);
            word.get_or_insert_with(|| Text::empty(at))
                .push_escape(text, place);
        } else if quote.is_none() && (letter.is_whitespace() || rest.starts_with("\\\n")) {
            if letter == '\\' {
                length = 2 + comments_length(&rest[2..]);
            }
            counted.word(at)?;
            found.extend(word.take());
        } else if quote.is_none() && matches!(letter, '\'' | '"') {
            word.get_or_insert_with(|| Text::empty(at));
            quote = Some(letter);
        } else {
            let place = Span::new(at, at + length);
            word.get_or_insert_with(|| Text::empty(at))
                .push_verbatim(file, place);
        }
        at += length;
    }
    if let Some(word) = word.as_mut().filter(|_| quote.is_some()) {
        word.mark_unclosed();
    }
    found.extend(word);
    Ok(found)
}

/// The length of comments between the lines of a value.
fn comments_length(text: &str) -> usize {
    let is_comment = |line: &&str| line.trim_start().starts_with(['#', ';']);
    text.split_inclusive('\n')
        .take_while(is_comment)
        .map(str::len)
        .sum()
}

/// The text of an escape, and its length.
fn escape(text: &str) -> Option<(String, usize)> {
    if text.starts_with("%%") {
        return Some(("%".to_owned(), 2));
    }
    let value = match text.strip_prefix('\\')?.chars().next()? {
        'n' => "\n",
        't' => "\t",
        'r' => "\r",
        's' => " ",
        '\\' => "\\",
        '"' => "\"",
        '\'' => "'",
        'x' => {
            let code = u8::from_str_radix(text.get(2..4)?, 16)
                .ok()
                .filter(u8::is_ascii)?;
            return Some((char::from(code).to_string(), 4));
        }
        _ => return None,
    };
    Some((value.to_owned(), 2))
}

#[derive(Default)]
struct Unit {
    variables: HashMap<String, Text>,
    /// The file of variables.
    file: Option<String>,
    folder: Folder,
}

impl Unit {
    /// The words of a command without the marks of systemd.
    fn command(&self, shell: &mut Shell<'_>, written: &[Text]) -> Vec<Text> {
        let text = written[0].as_str();
        let marks = text.len() - text.trim_start_matches(['-', '@', ':', '+', '!']).len();
        let has_mark = |mark: char| text[..marks].contains(mark);
        let mut words = Vec::new();
        for (nth, word) in written.iter().enumerate() {
            match nth {
                0 => words.extend(self.expand(shell, &word.part(marks..text.len()))),
                // The name that the program sees itself by.
                1 if has_mark('@') => {}
                _ if word.as_str() == "\\;" => words.push(word.part(1..2)),
                _ if has_mark(':') => words.push(word.clone()),
                _ => words.extend(self.expand(shell, word)),
            }
        }
        words
    }

    /// A word with the values of `${NAME}`, which are one word, and of `$NAME`, which may be several.
    fn expand(&self, shell: &mut Shell<'_>, word: &Text) -> Vec<Text> {
        let text = word.as_str();
        let mut out = Text::empty(word.whole().start);
        let mut at = 0;
        while let Some(found) = text[at..].find(['$', '%']) {
            let start = at + found;
            let rest = &text[start..];
            out.push_part(word, at..start);
            let is_name = |it: char| it.is_ascii_alphanumeric() || it == '_';
            let length = rest[1..]
                .find(|it| !is_name(it))
                .map_or(rest.len(), |it| it + 1);
            // A percent sign that was written as two is text.
            let is_specifier =
                rest.starts_with('%') && length > 1 && word.span(start..start + 1).len() == 1;
            let close = rest.find('}').filter(|_| rest.starts_with("${"));
            at = start + close.map_or(1, |close| close + 1);
            if let Some(close) = close {
                let value = self.value(shell, &rest[2..close], word, start..at);
                out.push_part(&value, 0..value.as_str().len());
            } else if rest.starts_with("$$") {
                at = start + 2;
                out.push_escape("$", word.span(start..at));
            } else if rest.starts_with('$') && start == 0 && length > 1 && length == text.len() {
                let value = self.value(shell, &rest[1..], word, 0..text.len());
                return value_words(value);
            } else if is_specifier {
                at = start + 2;
                push_hole(shell, &mut out, word, start..at, "systemd sets it");
            } else {
                out.push_part(word, start..at);
            }
        }
        out.push_part(word, at..text.len());
        vec![out]
    }

    fn value(
        &self,
        shell: &mut Shell<'_>,
        name: &str,
        word: &Text,
        range: std::ops::Range<usize>,
    ) -> Text {
        let place = word.span(range.clone());
        let known = self
            .variables
            .get(name)
            .filter(|it| !it.as_str().contains(['$', '%']));
        let given = || {
            let mut value = Text::empty(place.start);
            value.push_escape(shell.given(name)?, place);
            Some(value)
        };
        if let Some(value) = known
            .filter(|_| self.file.is_none())
            .cloned()
            .or_else(given)
        {
            shell.note_use(place, Ok(value.as_str().to_owned()));
            return value;
        }
        let reason = match &self.file {
            Some(file) => format!("`{file}`, which is not read, may set it"),
            None => UNSET.to_owned(),
        };
        shell.note_use(place, Err(reason.clone()));
        let mut out = Text::empty(place.start);
        push_hole(shell, &mut out, word, range, &reason);
        if let Some(hole) = shell.holes.last_mut() {
            (hole.is_of_caller, hole.is_stable, hole.fields) =
                (self.file.is_none(), true, Fields::Split);
        }
        out
    }
}

fn push_hole(
    shell: &mut Shell<'_>,
    out: &mut Text,
    word: &Text,
    range: std::ops::Range<usize>,
    reason: &str,
) {
    let name = &word.as_str()[range.clone()];
    let place = word.span(range);
    let number = u32::try_from(shell.holes.len()).unwrap_or(u32::MAX);
    shell.holes.push(Hole::new(name, place, reason));
    out.push_hole(name, place, number);
}

/// The words of a value without quotes.
fn value_words(value: Text) -> Vec<Text> {
    if value.has_hole() {
        return vec![value];
    }
    let mut fields = Splitting::default();
    fields.split(&value);
    fields.end();
    fields.words
}
