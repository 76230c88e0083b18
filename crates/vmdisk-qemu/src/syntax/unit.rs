//! The settings of a systemd unit as commands of a script: `Environment=` assigns, `ExecStart=` runs.

use vmdisk_source::Span;

use super::folder::Folder;
use super::hole::{Fields, Hole};
use super::lexer::Word;
use super::script::{Shell, Site};
use super::steps::Step;
use super::text::Text;
use crate::failure::ReadFailure;
use crate::limits::Counted;
use crate::runners::is_name;

/// Reads the commands of `ExecStart=`.
pub(super) fn read(file: &str, shell: &mut Shell<'_>) -> Result<(), ReadFailure> {
    // Without `WorkingDirectory=`, a service runs in `/`, and that of a user in the user's home.
    let mut site = Site {
        folder: Folder::Unknown,
        ..Site::default()
    };
    let (mut steps, mut sources, mut commands) = (Vec::new(), Vec::new(), Vec::new());
    for (key, value) in settings(file) {
        let text = value.slice(file).unwrap_or_default();
        match key {
            "Environment" => {
                let words = words(file, value, false, &mut shell.holes)?;
                steps.extend(words.iter().filter_map(|it| assignment(&it.text)));
            }
            // What the file sets replaces what the unit does.
            "EnvironmentFile" => {
                let word = |text: &str| {
                    let mut word = Text::empty(value.start);
                    word.push_escape(text, value);
                    Word {
                        text: word,
                        bare: 0,
                    }
                };
                shell.reason =
                    Some("the file of `EnvironmentFile=`, which is not read, may set it");
                sources.push(Step::command(value.start, vec![word("."), word(text)]));
            }
            "WorkingDirectory" => {
                let path = text.trim_start_matches('-');
                site.folder = match path.starts_with('/') && !path.contains('%') {
                    true => Folder::Known(path.to_owned()),
                    false => Folder::Unknown,
                };
            }
            // An empty value takes back those before it.
            "ExecStart" if value.is_empty() => commands.clear(),
            "ExecStart" => {
                let marks = text.len() - text.trim_start_matches(['-', '@', ':', '+', '!']).len();
                let has_mark = |mark: char| text[..marks].contains(mark);
                let start = value.start + marks;
                let value = Span::new(start, value.end);
                let words = words(file, value, !has_mark(':'), &mut shell.holes)?;
                let is_separator =
                    |it: &Word| it.text.as_str() == ";" && it.text.whole().len() == 1;
                for words in words.split(is_separator).filter(|it| !it.is_empty()) {
                    let mut words = words.to_vec();
                    for word in words.iter_mut().filter(|it| it.text.as_str() == "\\;") {
                        word.text = word.text.part(1..2);
                    }
                    if has_mark('@') && words.len() > 1 {
                        // The name that the program sees itself by.
                        words.remove(1);
                    }
                    commands.push(Step::command(words[0].text.whole().start, words));
                }
            }
            _ => {}
        }
    }
    steps.append(&mut sources);
    steps.append(&mut commands);
    shell.follow(steps.into(), &site, false)
}

/// The step of `NAME=VALUE`.
fn assignment(text: &Text) -> Option<Step> {
    let (name, _) = text.as_str().split_once('=').filter(|it| is_name(it.0))?;
    let value = text.part(name.len() + 1..text.as_str().len());
    Some(Step::assigning(name, value, text.whole().start))
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

/// The words of a value: quotes, escapes as in C, and holes for specifiers and, in commands, variables.
fn words(
    file: &str,
    value: Span,
    has_variables: bool,
    holes: &mut Vec<Hole>,
) -> Result<Vec<Word>, ReadFailure> {
    let mut found = Vec::new();
    let mut counted = Counted::default();
    let (mut word, mut quote): (Option<Word>, Option<char>) = (None, None);
    let new = |at: usize| Word {
        text: Text::empty(at),
        bare: 0,
    };
    let mut at = value.start;
    while let Some(letter) = file[at..value.end].chars().next() {
        let rest = &file[at..value.end];
        let mut length = letter.len_utf8();
        if quote == Some(letter) {
            quote = None;
        } else if let Some((text, size)) = escape(rest, has_variables) {
            length = size;
            let place = Span::new(at, at + length);
            let word = word.get_or_insert_with(|| new(at));
            word.text.push_escape(&text, place);
        } else if quote.is_none() && (letter.is_whitespace() || rest.starts_with("\\\n")) {
            if letter == '\\' {
                length = 2 + comments_length(&rest[2..]);
            }
            counted.word(at)?;
            found.extend(word.take());
        } else if quote.is_none() && matches!(letter, '\'' | '"') {
            word.get_or_insert_with(|| new(at));
            quote = Some(letter);
        } else if let Some((name, size, fields)) = expansion(rest, word.is_none(), has_variables) {
            length = size;
            let place = Span::new(at, at + length);
            let reason = if letter == '%' { "systemd sets it" } else { "" };
            let hole = Hole {
                variable: name.to_owned(),
                fields,
                ..Hole::new(&rest[..length], place, reason)
            };
            let word = word.get_or_insert_with(|| new(at));
            word.text.push_new(hole, holes);
            if fields == Fields::Split {
                word.bare = usize::MAX;
            }
        } else {
            let place = Span::new(at, at + length);
            let word = word.get_or_insert_with(|| new(at));
            word.text.push_verbatim(file, place);
        }
        at += length;
    }
    if let Some(word) = word.as_mut().filter(|_| quote.is_some()) {
        word.text.mark_unclosed();
    }
    found.extend(word);
    Ok(found)
}

/// The variable, the length and the words of `${NAME}`, of `$NAME` as a word, and of a specifier.
fn expansion(text: &str, is_start: bool, has_variables: bool) -> Option<(&str, usize, Fields)> {
    if let Some(rest) = text.strip_prefix('%') {
        let is_specifier = rest.starts_with(|it: char| it.is_ascii_alphabetic());
        return is_specifier.then_some(("", 2, Fields::One));
    }
    let rest = text.strip_prefix('$').filter(|_| has_variables)?;
    if let Some((name, _)) = rest.strip_prefix('{').and_then(|it| it.split_once('}')) {
        return is_name(name).then_some((name, name.len() + 3, Fields::One));
    }
    let name = rest.split(char::is_whitespace).next().unwrap_or_default();
    (is_start && is_name(name)).then_some((name, name.len() + 1, Fields::Split))
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
fn escape(text: &str, has_variables: bool) -> Option<(String, usize)> {
    if text.starts_with("%%") {
        return Some(("%".to_owned(), 2));
    }
    if text.starts_with("$$") && has_variables {
        return Some(("$".to_owned(), 2));
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
