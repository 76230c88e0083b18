//! The commands of a batch file of Windows with the values of its variables.

use std::collections::{BTreeMap, HashMap};

use vmdisk_source::Span;

use super::folder::Folder;
use super::hole::{Command, Evaluated, UNSET};
use super::text::Text;

/// True for a batch file.
pub(super) fn is_batch(text: &str) -> bool {
    let is_own = |line: &str| {
        let line = line
            .trim_start()
            .trim_start_matches('@')
            .to_ascii_lowercase();
        let first = line.split([' ', '\t']).next().unwrap_or_default();
        line.starts_with("echo off")
            || matches!(first, "rem" | "setlocal" | "::")
            || first == "set" && line.contains('=') && !line.contains('$')
            || line.ends_with('^')
    };
    !text.starts_with("#!") && text.lines().any(is_own)
}

/// The commands of the lines, one after the other.
pub(super) fn evaluate(file: &str, given: &BTreeMap<String, String>) -> Evaluated {
    let mut batch = Batch {
        variables: HashMap::new(),
        folder: Folder::Unchanged,
        given,
        out: Evaluated::default(),
    };
    for line in lines(file) {
        batch.line(line);
    }
    batch.out
}

/// The lines, joined where they end in `^`.
fn lines(file: &str) -> Vec<Text> {
    let mut lines = Vec::new();
    let mut line: Option<Text> = None;
    let mut at = 0;
    for raw in file.split_inclusive('\n') {
        let bare = raw.trim_end_matches(['\r', '\n']);
        let joined = bare.trim_end().strip_suffix('^');
        let length = joined.map_or(bare.len(), str::len);
        let text = line.get_or_insert_with(|| Text::empty(at));
        text.push_verbatim(file, Span::new(at, at + length));
        if joined.is_some() {
            text.push_escape(" ", Span::new(at + length, at + raw.len()));
        } else {
            lines.extend(line.take());
        }
        at += raw.len();
    }
    lines.extend(line);
    lines
}

struct Batch<'g> {
    /// The values; `None` for those that a branch or a loop sets.
    variables: HashMap<String, Option<Text>>,
    folder: Folder,
    given: &'g BTreeMap<String, String>,
    out: Evaluated,
}

impl Batch<'_> {
    fn line(&mut self, line: Text) {
        let text = line.as_str();
        let bare = text.trim_start_matches([' ', '\t', '@', '(', ')']);
        let line = line.part(text.len() - bare.len()..text.len());
        let lower = bare.to_ascii_lowercase();
        let first = lower
            .split([' ', '\t', '"', '/'])
            .next()
            .unwrap_or_default();
        if bare.is_empty()
            || matches!(first, "rem" | "echo")
            || bare.starts_with(':') && !bare.contains(' ')
        {
            return;
        }
        let is_branch = matches!(first, "if" | "for" | "else");
        let set = match is_branch {
            true => lower.find("set ").map(|at| line.part(at..bare.len())),
            false => (first == "set").then(|| line.clone()),
        };
        if let Some(set) = set {
            return self.set(&set, is_branch);
        }
        if matches!(first, "cd" | "chdir" | "pushd") {
            let to = lower.split(['"', ' ', '\t']).rfind(|it| !it.is_empty());
            if to.is_none_or(|to| to.trim_end_matches('\\') != "%~dp0") {
                self.folder = Folder::Unknown;
            }
            return;
        }
        let expanded = self.expand(&line);
        let words = words(&expanded);
        if !words.is_empty() {
            self.out.commands.push(Command {
                site: words[0].whole().start,
                words,
                owner: None,
                folder: self.folder.clone(),
            });
        }
    }

    /// `set NAME=VALUE`, `set "NAME=VALUE"`; the result of `set /p` and in a branch is unknown.
    fn set(&mut self, line: &Text, is_branch: bool) {
        let text = line.as_str();
        let rest = text[3..].trim_start();
        let option = rest
            .split([' ', '\t'])
            .next()
            .filter(|it| it.starts_with('/'));
        let rest = rest[option.map_or(0, str::len)..].trim_start();
        let is_quoted = rest.starts_with('"');
        let rest = &rest[usize::from(is_quoted)..];
        let Some((name, value)) = rest.split_once('=') else {
            return;
        };
        let start = text.len() - value.len();
        let end = match value.rfind('"').filter(|_| is_quoted) {
            Some(quote) => start + quote,
            None => text.trim_end_matches(['\r', ')']).len(),
        };
        let value = self.expand(&line.part(start..end.max(start)));
        let name = name.trim().to_ascii_lowercase();
        let is_known = option.is_none() && !is_branch;
        self.variables.insert(name, is_known.then_some(value));
    }

    /// A text with the values of `%NAME%` and `!NAME!`.
    fn expand(&mut self, line: &Text) -> Text {
        let text = line.as_str();
        let mut out = Text::empty(line.whole().start);
        let mut at = 0;
        while let Some(found) = text[at..].find(['%', '!']) {
            let start = at + found;
            let rest = &text[start + 1..];
            let mark = &text[start..=start];
            out.push_part(line, at..start);
            let end = rest.find(|it: char| !it.is_ascii_alphanumeric() && !"_~-:,()".contains(it));
            let end = end.unwrap_or(rest.len());
            let is_closed = end > 0 && rest[end..].starts_with(mark);
            let is_argument = mark == "%"
                && rest.starts_with(|it: char| it.is_ascii_digit() || it == '~' || it == '*');
            at = match (is_closed, is_argument) {
                (_, true) => {
                    let digit = rest.find(|it: char| it.is_ascii_digit() || it == '*');
                    start + 2 + digit.unwrap_or(0)
                }
                (true, false) => start + end + 2,
                (false, false) => {
                    at = start + if rest.starts_with('%') { 2 } else { 1 };
                    out.push_escape(mark, line.span(start..at));
                    continue;
                }
            };
            let site = line.span(start..at);
            let value = self.value(&text[start..at], site);
            self.out.note_use(site, std::slice::from_ref(&value));
            out.push_moved(&value, 0..value.as_str().len(), site);
        }
        out.push_part(line, at..text.len());
        out
    }

    fn value(&mut self, written: &str, site: Span) -> Text {
        let name = written.trim_matches(['%', '!']);
        let given = self.given.get(name);
        if let Some(given) = given {
            let mut text = Text::empty(site.start);
            text.push_escape(given, site);
            return text;
        }
        match self.variables.get(&name.to_ascii_lowercase()) {
            Some(Some(value)) => value.clone(),
            Some(None) => self.out.hole(written, site, "a branch sets it"),
            None if name.starts_with('~') || name.len() < 2 => {
                self.out
                    .hole(written, site, "it is an argument of the script")
            }
            None => {
                let hole = self.out.hole(written, site, UNSET);
                if let Some(last) = self.out.holes.last_mut() {
                    last.assumed = Some("");
                }
                hole
            }
        }
    }
}

/// The words of a command: only double quotes keep blanks together, and `^` takes the meaning of the next character.
fn words(line: &Text) -> Vec<Text> {
    let text = line.as_str();
    let (mut words, mut word, mut is_quoted) = (Vec::new(), None::<Text>, false);
    let mut letters = text.char_indices();
    while let Some((at, letter)) = letters.next() {
        let start = line.span(at..at).start;
        match letter {
            ' ' | '\t' if !is_quoted => {
                words.extend(word.take());
                continue;
            }
            '&' | '|' | '>' | '<' if !is_quoted => break,
            _ => {}
        }
        let current = word.get_or_insert_with(|| Text::empty(start));
        let end = match (letter, line.hole_at(at)) {
            ('"', _) => {
                is_quoted = !is_quoted;
                continue;
            }
            ('^', _) if !is_quoted => match letters.next() {
                Some((next, letter)) => {
                    current.push_part(line, next..next + letter.len_utf8());
                    continue;
                }
                None => continue,
            },
            (_, Some((end, _))) => end,
            _ => at + letter.len_utf8(),
        };
        current.push_part(line, at..end);
        while letters.as_str().len() > text.len() - end {
            letters.next();
        }
    }
    words.extend(word);
    words
}
