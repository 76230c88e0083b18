//! The commands of a systemd unit with the values of its variables.

use std::collections::{BTreeMap, HashMap};

use vmdisk_source::Span;

use super::folder::Folder;
use super::hole::{Decisions, Evaluated, UNSET};
use super::shell_state::{PLACE, Shell, Value, literal};
use super::shell_words::{Quoting, commands};
use super::text::Text;
use crate::failure::ReadFailure;

/// The commands of `ExecStart=`.
pub(super) fn evaluate(
    file: &str,
    given: &BTreeMap<String, String>,
    decisions: &Decisions,
) -> Result<Evaluated, ReadFailure> {
    let mut unit = Unit {
        variables: HashMap::new(),
        file_of_variables: None,
        given,
        folder: Folder::Unknown,
        out: Evaluated::default(),
    };
    let settings = settings(file);
    for (key, value) in &settings {
        match *key {
            "Environment" => unit.environment(file, *value)?,
            "EnvironmentFile" => unit.file_of_variables = value.slice(file).map(str::to_owned),
            // Without it, a service runs in `/`, and that of a user in the user's home.
            "WorkingDirectory" => unit.folder = folder(value.slice(file).unwrap_or_default()),
            _ => {}
        }
    }
    let mut commands = Vec::new();
    for (_, value) in settings.iter().filter(|(key, _)| *key == "ExecStart") {
        // An empty value takes back those before it.
        if value.is_empty() {
            commands.clear();
        }
        commands.extend(unit.commands(file, *value)?);
    }
    Ok(unit.run(commands, decisions))
}

/// The folder of `WorkingDirectory=`, which may have a mark and specifiers.
fn folder(value: &str) -> Folder {
    let path = value.trim_start_matches('-');
    match path.starts_with('/') && !path.contains('%') {
        true => Folder::Known(path.to_owned()),
        false => Folder::Unknown,
    }
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
            found.push((
                key.trim(),
                Span::new(at, at + file[at..end].trim_end().len()),
            ));
        }
        start += line.len();
    }
    found
}

/// Length of a unit's value: to the end of its line, including lines joined by a backslash.
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

struct Unit<'g> {
    variables: HashMap<String, Text>,
    file_of_variables: Option<String>,
    given: &'g BTreeMap<String, String>,
    folder: Folder,
    out: Evaluated,
}

impl Unit<'_> {
    fn environment(&mut self, file: &str, value: Span) -> Result<(), ReadFailure> {
        for word in commands(file, value, Quoting::Unit)?.into_iter().flatten() {
            if let Some((name, _)) = word.as_str().split_once('=') {
                let value = word.part(name.len() + 1..word.as_str().len());
                let value = self.expand(&value);
                self.variables.insert(name.to_owned(), value);
            }
        }
        Ok(())
    }

    /// The commands of a value of `ExecStart=`, which a word `;` separates.
    fn commands(&mut self, file: &str, value: Span) -> Result<Vec<Vec<Text>>, ReadFailure> {
        let mut found = Vec::new();
        let words = commands(file, value, Quoting::Unit)?;
        let words: Vec<Text> = words.into_iter().flatten().collect();
        let is_separator = |word: &Text| word.as_str() == ";" && word.whole().len() == 1;
        for written in words.split(is_separator) {
            let Some(first) = written.first() else {
                continue;
            };
            let text = first.as_str();
            let program = text.trim_start_matches(['-', '@', ':', '+', '!']);
            let marks = &text[..text.len() - program.len()];
            let mut words = Vec::new();
            for (nth, word) in written.iter().enumerate() {
                match nth {
                    0 => words.push(self.expand(&word.part(marks.len()..text.len()))),
                    // The name that the program sees itself by.
                    1 if marks.contains('@') => {}
                    _ if word.as_str() == "\\;" => words.push(word.part(1..2)),
                    _ if marks.contains(':') => words.push(word.clone()),
                    _ => words.extend(self.words(word)),
                }
            }
            found.push(words);
        }
        Ok(found)
    }

    /// Runs commands as a shell does, so that `sh -c` is a script, with the variables of the unit.
    fn run(mut self, commands: Vec<Vec<Text>>, decisions: &Decisions) -> Evaluated {
        let mut shell = Shell {
            decisions: decisions.clone(),
            given: self.given.clone(),
            out: std::mem::take(&mut self.out),
            stays: self.folder == Folder::Unchanged,
            read_file: self.file_of_variables,
            exported: self.variables.keys().cloned().collect(),
            ..Shell::default()
        };
        for (name, value) in self.variables {
            shell.variables.insert(name, Value::word(value));
        }
        for words in commands {
            match &self.folder {
                Folder::Unchanged => {}
                Folder::Known(folder) => shell.set_word(PLACE, literal(folder)),
                Folder::Unknown => shell.lose_folder(),
            }
            shell.run(words);
        }
        shell.out
    }

    /// The words of one word: `$NAME` alone stands for any number of them.
    fn words(&mut self, word: &Text) -> Vec<Text> {
        let text = word.as_str();
        let name = text.strip_prefix('$').unwrap_or_default();
        let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
        if name.is_empty() || !name.chars().all(is_name) {
            return vec![self.expand(word)];
        }
        let value = self.value(name, text, word.whole());
        if value.has_hole() {
            return vec![value];
        }
        let mut words = Vec::new();
        let mut at = 0;
        for part in value.as_str().split_inclusive(char::is_whitespace) {
            let length = part.trim_end().len();
            if length > 0 {
                words.push(value.part(at..at + length));
            }
            at += part.len();
        }
        words
    }

    /// A word with the values of `${NAME}`; what systemd fills in is unknown.
    fn expand(&mut self, word: &Text) -> Text {
        let text = word.as_str();
        let mut out = Text::empty(word.whole().start);
        let mut at = 0;
        while let Some(found) = text[at..].find(['$', '%']) {
            let start = at + found;
            let rest = &text[start..];
            out.push_part(word, at..start);
            let close = rest.find('}').filter(|_| rest.starts_with("${"));
            let letter = rest[1..].chars().next().filter(char::is_ascii_alphabetic);
            at = start + close.map_or(1, |close| close + 1);
            if let Some(close) = close {
                let site = word.span(start..at);
                let value = self.value(&rest[2..close], &rest[..=close], site);
                out.push_moved(&value, 0..value.as_str().len(), site);
            } else if rest.starts_with("$$") {
                at = start + 2;
                out.push_escape("$", word.span(start..at));
            } else if rest.starts_with('%') && letter.is_some() && is_written(word, start) {
                at = start + 2;
                let hole = self
                    .out
                    .hole(&rest[..2], word.span(start..at), "systemd sets it");
                out.push_part(&hole, 0..2);
            } else {
                out.push_part(word, start..at);
            }
        }
        out.push_part(word, at..text.len());
        out
    }

    fn value(&mut self, name: &str, written: &str, site: Span) -> Text {
        let value = self.find(name, written, site);
        self.out.note_use(site, std::slice::from_ref(&value));
        value
    }

    fn find(&mut self, name: &str, written: &str, site: Span) -> Text {
        if let Some(given) = self.given.get(name) {
            let mut text = Text::empty(site.start);
            text.push_escape(given, site);
            return text;
        }
        if let Some(value) = self.variables.get(name) {
            return value.clone();
        }
        let (reason, assumed) = match &self.file_of_variables {
            Some(file) => (format!("`{file}`, which is not read, may set it"), None),
            None => (UNSET.to_owned(), Some("")),
        };
        let hole = self.out.hole(written, site, reason);
        if let Some(last) = self.out.holes.last_mut() {
            last.assumed = assumed;
        }
        hole
    }
}

/// True for a percent sign that is not written as two.
fn is_written(word: &Text, at: usize) -> bool {
    word.span(at..at + 1).len() == 1
}
