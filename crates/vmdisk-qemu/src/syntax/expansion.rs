//! The words that a word of a shell script expands to.

use std::ops::Range;

use super::ansi_quotes;
use super::hole::UNSET;
use super::shell_state::{Shell, Value, joined, literal};
use super::text::Text;

/// Variables that a shell sets itself, or with `[[ … =~ … ]]`, `select`, `getopts` and `read`.
const SET_BY_SHELL: [&str; 15] = [
    "BASHPID",
    "BASH_REMATCH",
    "BASH_VERSION",
    "EPOCHSECONDS",
    "EUID",
    "HOSTNAME",
    "HOSTTYPE",
    "LINENO",
    "MACHTYPE",
    "OSTYPE",
    "PIPESTATUS",
    "PPID",
    "RANDOM",
    "REPLY",
    "SECONDS",
];

/// How a text is expanded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mode {
    /// As arguments: an unquoted expansion is split.
    Words,
    /// As one word, such as the value of an assignment.
    One,
    /// As the rest of one word that begins between double quotes.
    Quoted,
    /// As the lines after `<<WORD`, in which quotes are not special.
    Document,
}

/// Expands a part of a script. `word` is the beginning of the first word.
pub(super) fn expand(
    shell: &mut Shell,
    source: &Text,
    range: Range<usize>,
    mode: Mode,
    word: Option<Text>,
) -> Vec<Text> {
    let mut expander = Expander {
        shell,
        source,
        at: range.start,
        end: range.end,
        mode,
        is_quoted: mode == Mode::Quoted,
        word,
        words: Vec::new(),
    };
    expander.run();
    expander.words
}

struct Expander<'a> {
    shell: &'a mut Shell,
    source: &'a Text,
    at: usize,
    end: usize,
    mode: Mode,
    is_quoted: bool,
    word: Option<Text>,
    words: Vec<Text>,
}

impl Expander<'_> {
    fn text(&self) -> &str {
        &self.source.as_str()[self.at..self.end]
    }

    fn word(&mut self) -> &mut Text {
        let start = self.source.span(self.at..self.at).start;
        self.word.get_or_insert_with(|| Text::empty(start))
    }

    fn take(&mut self, length: usize) {
        let (source, range) = (self.source, self.at..self.at + length);
        self.word().push_part(source, range);
        self.at += length;
    }

    /// A part that is unknown before the shell sees it.
    fn take_hole(&mut self) {
        if let Some((end, _)) = self.source.hole_at(self.at) {
            self.take(end.min(self.end) - self.at);
        }
    }

    fn splits(&self) -> bool {
        self.mode == Mode::Words && !self.is_quoted
    }

    fn end_word(&mut self) {
        self.words.extend(self.word.take());
    }

    fn run(&mut self) {
        let has_quotes = self.mode != Mode::Document;
        while let Some(first) = self.text().chars().next() {
            match first {
                '\'' if has_quotes && !self.is_quoted => {
                    self.word();
                    self.at += 1;
                    let length = self.text().find('\'').unwrap_or(self.text().len());
                    self.take(length);
                    self.at = (self.at + 1).min(self.end);
                }
                '$' if has_quotes && !self.is_quoted && self.text().starts_with("$'") => {
                    self.ansi_quoted();
                }
                // Text for translation.
                '$' if has_quotes && !self.is_quoted && self.text().starts_with("$\"") => {
                    self.at += 1;
                }
                '<' | '>' if has_quotes && !self.is_quoted && self.text()[1..].starts_with('(') => {
                    self.process();
                }
                '"' if has_quotes => {
                    self.word();
                    self.is_quoted = !self.is_quoted;
                    self.at += 1;
                }
                '\\' => self.backslash(),
                '$' | '`' => self.dollar(),
                _ if self.source.hole_at(self.at).is_some() => self.take_hole(),
                ' ' | '\t' | '\n' | '\r' if self.splits() => {
                    self.end_word();
                    self.at += 1;
                }
                _ => {
                    let special = |letter: char| "'\"\\$`<> \t\n\r".contains(letter);
                    let rest = &self.text()[first.len_utf8()..];
                    let length = rest.find(special).unwrap_or(rest.len());
                    self.take(first.len_utf8() + length);
                }
            }
        }
        self.end_word();
    }

    /// `$'…'`
    fn ansi_quoted(&mut self) {
        let start = self.at;
        let (value, length) = ansi_quotes::value(&self.text()[2..]);
        self.at = start + 2 + length;
        let span = self.source.span(start..self.at);
        match value {
            Some(value) => self.word().push_escape(&value, span),
            None => {
                let hole = self.shell.hole("$'…'", span, "its bytes are not UTF-8");
                self.word().push_part(&hole, 0..hole.as_str().len());
            }
        }
    }

    /// `<(…)` and `>(…)`: the name of a pipe.
    fn process(&mut self) {
        let start = self.at;
        let length = closed(&self.text()[1..], '(', ')');
        self.at = length.map_or(self.end, |length| start + 1 + length);
        let hole = joined(&self.hole(start, "the shell names a pipe here").words);
        self.word().push_part(&hole, 0..hole.as_str().len());
    }

    fn backslash(&mut self) {
        let Some(next) = self.text()[1..].chars().next() else {
            self.at += 1;
            return;
        };
        let is_plain = self.is_quoted || self.mode == Mode::Document;
        if self.text()[1..].starts_with("\r\n") {
            self.at += 3;
        } else if next == '\n' {
            self.at += 2;
        } else if is_plain && !("$`\\".contains(next) || next == '"' && self.mode != Mode::Document)
        {
            self.take(1);
        } else {
            let length = 1 + next.len_utf8();
            let span = self.source.span(self.at..self.at + length);
            self.word().push_escape(next.encode_utf8(&mut [0; 4]), span);
            self.at += length;
        }
    }

    /// An expansion, and how it joins the text around it.
    fn dollar(&mut self) {
        if self.source.hole_at(self.at).is_some() {
            return self.take_hole();
        }
        let start = self.at;
        let Some(value) = self.expansion() else {
            self.at = start;
            return self.take(1);
        };
        let next = self.at;
        let site = self.source.span(start..next);
        self.shell.out.note_use(site, &value.words);
        let rest = &self.source.as_str()[next..self.end];
        let is_end =
            |rest: &str| rest.is_empty() || rest.starts_with([' ', '\t', '\n', '\r', '\\']);
        let is_before_end = match rest.strip_prefix('"').filter(|_| self.is_quoted) {
            Some(after) => is_end(after),
            None => is_end(rest),
        };
        let before = self.word.as_ref().map_or("", Text::as_str);
        let is_whole = is_before_end && (before.is_empty() || before.ends_with([' ', '\t', '\n']));
        let is_list = value.is_list;
        let mut words = value.words;
        if self.mode != Mode::Words || !is_list && self.is_quoted {
            words = vec![joined(&words)];
        }
        if self.mode != Mode::Words || self.is_quoted {
            if words.is_empty() && before.is_empty() && rest.starts_with('"') {
                // `"$@"` without arguments is no word.
                self.word = None;
                self.is_quoted = false;
                self.at += 1;
            }
            for (nth, word) in words.iter().enumerate() {
                if nth > 0 {
                    self.end_word();
                }
                self.push(word, 0..word.as_str().len(), is_whole, site);
                self.word();
            }
            return;
        }
        let separators = self.shell.separators();
        let is_separator = |letter: char| separators.contains(letter);
        for (nth, word) in words.iter().enumerate() {
            if nth > 0 {
                self.end_word();
            }
            let text = word.as_str();
            let mut at = 0;
            for field in text.split_inclusive(is_separator) {
                let bare = field.strip_suffix(is_separator).unwrap_or(field);
                if !bare.is_empty() || !field.trim().is_empty() {
                    self.push(word, at..at + bare.len(), is_whole, site);
                }
                if bare.len() < field.len() {
                    self.end_word();
                }
                at += field.len();
            }
        }
    }

    /// Appends a part of a value: with its own places if it is a whole word, else with that of the expansion.
    fn push(
        &mut self,
        value: &Text,
        range: Range<usize>,
        is_whole: bool,
        site: vmdisk_source::Span,
    ) {
        self.shell.bytes += range.len();
        let own = value.span(range.clone());
        if is_whole && !own.is_empty() {
            self.word().push_part(value, range);
        } else {
            self.word().push_moved(value, range, site);
        }
    }

    /// The value of the expansion here, after which the reading goes on; `None` for a plain dollar sign.
    fn expansion(&mut self) -> Option<Value> {
        let start = self.at;
        let source = self.source;
        let text = &source.as_str()[start..self.end];
        if let Some(rest) = text.strip_prefix('`') {
            let length = rest.find('`').unwrap_or(rest.len());
            self.at = (start + length + 2).min(self.end);
            return Some(self.command(start, start + 1..start + 1 + length));
        }
        let rest = &text[1..];
        if rest.starts_with('(') {
            let Some(length) = closed(rest, '(', ')') else {
                self.at = self.end;
                return Some(self.hole(start, "it is not closed"));
            };
            self.at = start + 1 + length;
            let inner = start + 2..(start + length).max(start + 2);
            if let Some(expression) = rest[..length]
                .strip_prefix("((")
                .and_then(|it| it.strip_suffix("))"))
            {
                let expression = expression.to_owned();
                return Some(match self.shell.number(&expression) {
                    Some(number) => Value::word(literal(&number.to_string())),
                    None => self.hole(start, "it is computed from an unknown value"),
                });
            }
            return Some(self.command(start, inner));
        }
        if rest.starts_with('{') {
            let Some(length) = closed(rest, '{', '}') else {
                self.at = self.end;
                return Some(self.hole(start, "it is not closed"));
            };
            self.at = start + 1 + length;
            return Some(self.braces(start, start + 2..(start + length).max(start + 2)));
        }
        let first = rest.chars().next()?;
        let length = if is_start_of_name(first) {
            name_length(rest)
        } else if "@*#?$!-0123456789<".contains(first) {
            1
        } else {
            return None;
        };
        self.at = start + 1 + length;
        let name = rest[..length].to_owned();
        Some(match self.find(&name, "") {
            Ok(Some(value)) => value,
            Ok(None) => self.unset(start),
            Err(unknown) => self.unknown(start, unknown),
        })
    }

    /// The expansion of a variable that nothing sets.
    fn unset(&mut self, start: usize) -> Value {
        self.unknown(start, Value::unknown(UNSET))
    }

    /// The expansion from `start` to here as an unknown value.
    fn hole(&mut self, start: usize, reason: &str) -> Value {
        let text = &self.source.as_str()[start..self.at];
        let is_plain = |letter: char| !letter.is_whitespace() && !",=\"'".contains(letter);
        let length = text.find(|letter| !is_plain(letter));
        let name = match length {
            None => text.to_owned(),
            Some(length) => {
                let close = match text.get(..2) {
                    Some("$(" | "<(" | ">(") => ")",
                    Some("${") => "}",
                    _ => "`",
                };
                format!("{}…{close}", &text[..length])
            }
        };
        let span = self.source.span(start..self.at);
        Value::word(self.shell.hole(&name, span, reason))
    }

    fn unknown(&mut self, start: usize, unknown: Value) -> Value {
        let value = self.hole(start, &unknown.unknown.unwrap_or_default());
        if let Some(hole) = self.shell.last_hole() {
            (hole.values, hole.choice) = (unknown.may_be, unknown.choice);
            hole.assumed = match hole.reason.as_str() {
                UNSET | ARGUMENT => Some(""),
                COUNT => Some("0"),
                _ => None,
            };
        }
        value
    }

    /// The output of a command. Some people comment within a command line by substitutions without output.
    fn command(&mut self, start: usize, range: Range<usize>) -> Value {
        let inner = self.source.as_str()[range.clone()].trim();
        match inner.is_empty() || inner.starts_with('#') || inner == ":" || inner.starts_with(": ")
        {
            true => Value::word(Text::empty(0)),
            false => match self.shell.output(self.source.part(range)) {
                Some(output) => Value::word(output),
                None => self.hole(start, "it is the output of a command"),
            },
        }
    }

    /// The value of a parameter: `Ok(None)` if nothing sets it, and the reason if it is unknown.
    fn find(&mut self, name: &str, index: &str) -> Result<Option<Value>, Value> {
        let args = &self.shell.args;
        let rest = args.iter().position(|word| word.as_str() == "$@");
        match name {
            "@" | "*" => {
                let words = args.clone();
                self.shell.bytes += words.len();
                return Ok(Some(match name {
                    "@" => Value::list_of(words),
                    _ => Value::word(self.shell.starred(&words)),
                }));
            }
            "#" if rest.is_none() => {
                return Ok(Some(Value::word(literal(&args.len().to_string()))));
            }
            "#" => return Err(Value::unknown(COUNT)),
            "0" | "?" | "$" | "!" | "-" | "<" => return Err(Value::unknown("the shell sets it")),
            _ if SET_BY_SHELL.contains(&name) && !self.shell.variables.contains_key(name) => {
                return Err(Value::unknown("the shell sets it"));
            }
            _ => {}
        }
        if let Ok(number) = name.parse::<usize>() {
            return match args.get(number - 1) {
                _ if rest.is_some_and(|rest| rest < number) => Err(Value::unknown(ARGUMENT)),
                Some(word) => Ok(Some(Value::word(word.clone()))),
                None => Ok(Some(Value::word(Text::empty(0)))),
            };
        }
        let other = self.shell.references.get(name).cloned();
        let name = other.as_deref().unwrap_or(name);
        if !matches!(index, "" | "@" | "*") && self.shell.maps.contains(name) {
            return match self.shell.key(index) {
                None => Err(Value::unknown("its index is unknown")),
                Some(index) => Ok(self.shell.get(&format!("{name}[{index}]"))),
            };
        }
        let Some(mut value) = self.shell.get(name) else {
            if name == "IFS" {
                return Ok(Some(Value::word(literal(" \t\n"))));
            }
            if self.shell.skipped.contains(name) {
                return Ok(Some(Value::word(Text::empty(0))));
            }
            self.shell.of_caller.insert(name.to_owned());
            return Ok(None);
        };
        if value.unknown.is_some() {
            return Err(value);
        }
        value.is_list = matches!(index, "@" | "*");
        if !value.is_list {
            let nth = match index {
                "" => Some(0),
                index => super::arithmetic::evaluate(index, self.shell),
            };
            let nth = nth.and_then(|nth| match nth < 0 {
                true => value.words.len().checked_add_signed(nth as isize),
                false => usize::try_from(nth).ok(),
            });
            let nth = nth.ok_or_else(|| Value::unknown("its index is unknown"))?;
            value.words = value.words.get(nth).into_iter().cloned().collect();
        } else if index == "*" && self.is_quoted {
            value = Value::word(self.shell.starred(&value.words));
        }
        Ok(Some(value))
    }

    /// `${…}`
    fn braces(&mut self, start: usize, inner: Range<usize>) -> Value {
        let text = self.source.as_str()[inner.clone()].to_owned();
        let counts = text.len() > 1 && text.starts_with('#');
        let is_indirect = text.starts_with('!');
        let body = &text[usize::from(counts || is_indirect)..];
        let length = match body.chars().next() {
            Some(first) if is_start_of_name(first) => name_length(body),
            Some(first) if first.is_ascii_digit() => body
                .find(|letter: char| !letter.is_ascii_digit())
                .unwrap_or(body.len()),
            Some('@' | '*' | '#' | '?' | '$') => 1,
            _ => return self.hole(start, "its form is not known here"),
        };
        let (name, mut rest) = body.split_at(length);
        let mut index = "";
        if let Some(after) = rest.strip_prefix('[')
            && let Some(end) = after.find(']')
        {
            (index, rest) = (&after[..end], &after[end + 1..]);
        }
        if matches!(name, "0" | "BASH_SOURCE") && rest == "%/*" && self.shell.knows_its_folder() {
            return Value::word(literal("."));
        }
        // Arguments and members are counted and changed before they are joined.
        let changes = !rest.is_empty()
            && !rest
                .trim_start_matches(':')
                .starts_with(['-', '=', '+', '?']);
        let is_starred = (name == "*" || index == "*") && (counts || changes);
        let (name, index) = match (name, index) {
            ("*", _) if is_starred => ("@", index),
            (_, "*") if is_starred => (name, "@"),
            _ => (name, index),
        };
        let found = match is_indirect {
            true => self.indirect(name, index),
            false => self.find(name, index),
        };
        if counts {
            return match found {
                Ok(Some(value)) if rest.is_empty() => length_of(&value),
                _ => self.hole(start, UNSET),
            };
        }
        let has_colon = rest.starts_with(':');
        let (operator, operand) = match rest.strip_prefix(':').unwrap_or(rest) {
            it if it.starts_with(['-', '=', '+', '?']) => it.split_at(1),
            _ => ("", rest),
        };
        let operand = inner.end - operand.len()..inner.end;
        let has_value = match &found {
            Ok(Some(value)) if has_colon && self.shell.is_of_caller(value) => {
                if !matches!(operator, "-" | "=") {
                    return value.clone();
                }
                false
            }
            Ok(Some(value)) => {
                !has_colon || value.words.iter().any(|word| !word.as_str().is_empty())
            }
            Ok(None) => false,
            // Without arguments the default counts. `${1+"$@"}` is a spelling of `"$@"` for old shells.
            Err(_) if matches!(operator, "-" | "=") && name.parse::<usize>().is_ok() => {
                self.shell.has_assumed = true;
                return self.operand(operand);
            }
            Err(unknown) => {
                let unknown = unknown.clone();
                return self.unknown(start, unknown);
            }
        };
        let is_unset = matches!(found, Ok(None));
        let value = found.ok().flatten();
        match (operator, value) {
            ("", None) | ("?", None) => self.unset(start),
            ("", Some(value)) if rest.is_empty() => value,
            ("", Some(value)) => match self.part(name == "@", value, rest) {
                Some(value) if is_starred && self.is_quoted => {
                    Value::word(self.shell.starred(&value.words))
                }
                Some(value) => value,
                None => self.hole(start, "its form is not known here"),
            },
            ("+", _) if has_value => self.operand(operand),
            ("+", _) => {
                self.shell.has_assumed |= is_unset;
                Value::word(Text::empty(0))
            }
            (_, Some(value)) if has_value => value,
            ("?", _) => self.hole(start, "it is empty"),
            (operator, _) => {
                self.shell.has_assumed |= is_unset;
                let value = self.operand(operand);
                if operator == "=" {
                    self.shell.set_word(name, joined(&value.words));
                }
                value
            }
        }
    }

    /// `${!NAME}`, and the indices of an array.
    fn indirect(&mut self, name: &str, index: &str) -> Result<Option<Value>, Value> {
        match self.find(name, index)? {
            Some(value) if value.is_list && !self.shell.maps.contains(name) => {
                let indices = (0..value.words.len()).map(|it| literal(&it.to_string()));
                Ok(Some(Value::list_of(indices.collect())))
            }
            Some(value) if !value.is_list && !value.words.iter().any(Text::has_hole) => {
                self.find(joined(&value.words).as_str(), "")
            }
            _ => Err(Value::unknown("its form is not known here")),
        }
    }

    /// `${NAME%pattern}` and its like, and `${NAME:1:2}`, also of an array; the arguments begin with `$0`, which is not known.
    fn part(&mut self, is_arguments: bool, value: Value, rest: &str) -> Option<Value> {
        let Some(range) = rest.strip_prefix(':') else {
            return changed(value, rest);
        };
        let (start, length) = match range.split_once(':') {
            Some((start, length)) => (start, Some(self.shell.number(length)?)),
            None => (range, None),
        };
        let start = self.shell.number(start)?;
        let word = value.words.first()?;
        let (count, first) = match value.is_list {
            true => (value.words.len(), i64::from(is_arguments)),
            false if word.as_str().is_ascii() => (word.as_str().len(), 0),
            false => return None,
        };
        let count = i64::try_from(count).ok()?;
        let start = match start < 0 {
            true => count + start,
            false => start - first,
        };
        if start < 0 || length.is_some_and(i64::is_negative) {
            return None;
        }
        let end = length.map_or(count, |length| (start + length).min(count));
        let mut range = usize::try_from(start.min(end)).ok()?..usize::try_from(end).ok()?;
        // `"$@"` at the end may be any number of words.
        if value.words.last().is_some_and(Text::has_hole) && value.is_list && length.is_none() {
            range.start = range.start.min(range.end - 1);
        }
        let counted = match (value.is_list, length) {
            (true, None) => range.start,
            (true, Some(_)) => range.end,
            (false, _) => 1,
        };
        if value.words[..counted].iter().any(Text::has_hole) {
            return None;
        }
        Some(match value.is_list {
            true => Value::list_of(value.words[range].to_vec()),
            false => Value::word(word.part(range)),
        })
    }

    /// The text after an operator such as `:-`.
    fn operand(&mut self, range: Range<usize>) -> Value {
        let mode = if self.is_quoted {
            Mode::Quoted
        } else {
            Mode::One
        };
        Value::word(self.shell.one(self.source, range, mode))
    }
}

/// The reason for `$1`.
const ARGUMENT: &str = "it is an argument of the script";

/// The reason for `$#`.
const COUNT: &str = "it is the number of arguments";

fn is_start_of_name(letter: char) -> bool {
    letter.is_ascii_alphabetic() || letter == '_'
}

fn name_length(text: &str) -> usize {
    let is_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    text.find(|letter| !is_name(letter)).unwrap_or(text.len())
}

/// Length of a text from its opening to its closing bracket.
fn closed(text: &str, open: char, close: char) -> Option<usize> {
    let (mut depth, mut is_escaped) = (0_usize, false);
    for (at, letter) in text.char_indices() {
        match letter {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if letter == open => depth += 1,
            _ if letter == close && depth <= 1 => return Some(at + 1),
            _ if letter == close => depth -= 1,
            _ => {}
        }
    }
    None
}

/// The number of words of an array, or of characters.
fn length_of(value: &Value) -> Value {
    let first = value.words.first();
    let count = match value.is_list {
        true => value.words.len(),
        false => first.map_or(0, |it| it.as_str().chars().count()),
    };
    Value::word(literal(&count.to_string()))
}

/// `${NAME/#a/b}` and `${NAME/%a/b}`, which replace the beginning and the end; `Some(None)` if there is nothing to replace.
fn anchored(text: &str, from: &str, to: &str) -> Option<Option<String>> {
    match from.split_at_checked(1)? {
        ("#", from) => Some(text.strip_prefix(from).map(|rest| format!("{to}{rest}"))),
        ("%", from) => Some(text.strip_suffix(from).map(|rest| format!("{rest}{to}"))),
        _ => None,
    }
}

/// `${NAME%pattern}` and its like.
fn changed(value: Value, rest: &str) -> Option<Value> {
    if value.is_list {
        let word = |word: Text| changed(Value::word(word), rest)?.words.pop();
        let words: Option<Vec<Text>> = value.words.into_iter().map(word).collect();
        return words.map(Value::list_of);
    }
    let [word] = value.words.as_slice() else {
        return None;
    };
    let text = word.as_str();
    if word.has_hole() || rest.contains(['$', '`']) {
        return None;
    }
    let bare = |pattern: &str| pattern.replace(['"', '\''], "");
    let ends = || text.char_indices().map(|(at, _)| at).chain([text.len()]);
    let part = |range: Range<usize>| Some(Value::word(word.part(range)));
    let (operator, pattern) = rest.split_at(match rest.strip_prefix('/') {
        // `/#` and `/%` are an operator and an anchor.
        Some(after) => 1 + usize::from(after.starts_with('/')),
        // One sign, or the same twice.
        None => {
            let first = rest.chars().next().filter(|it| "%#^,".contains(*it))?;
            1 + usize::from(rest[1..].starts_with(first))
        }
    });
    let pattern = bare(pattern);
    match operator {
        "%" => part(
            0..ends()
                .rfind(|at| matches(&pattern, &text[*at..]))
                .unwrap_or(text.len()),
        ),
        "%%" => part(
            0..ends()
                .find(|at| matches(&pattern, &text[*at..]))
                .unwrap_or(text.len()),
        ),
        "#" => part(
            ends()
                .find(|at| matches(&pattern, &text[..*at]))
                .unwrap_or(0)..text.len(),
        ),
        "##" => part(
            ends()
                .rfind(|at| matches(&pattern, &text[..*at]))
                .unwrap_or(0)..text.len(),
        ),
        "/" | "//" => {
            let (from, to) = pattern.split_once('/').unwrap_or((&pattern, ""));
            if let Some(replaced) = anchored(text, from, to)
                && !from.contains(['*', '?', '[', '\\'])
            {
                return Some(match replaced {
                    Some(text) => Value::word(literal(&text)),
                    None => value,
                });
            }
            if from.is_empty() || from.contains(['*', '?', '[', '\\', '#', '%']) {
                return None;
            }
            let count = if operator == "/" { 1 } else { usize::MAX };
            Some(Value::word(literal(&text.replacen(from, to, count))))
        }
        "^^" if pattern.is_empty() => Some(Value::word(literal(&text.to_uppercase()))),
        ",," if pattern.is_empty() => Some(Value::word(literal(&text.to_lowercase()))),
        _ => None,
    }
}

/// True if a pattern with `*` and `?` fits the whole text.
pub(super) fn matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.as_bytes(), text.as_bytes());
    let mut retry: Option<(&[u8], &[u8])> = None;
    loop {
        match (pattern.first(), text.first()) {
            (Some(b'*'), _) => {
                pattern = &pattern[1..];
                retry = Some((pattern, text));
            }
            (Some(p), Some(t)) if *p == b'?' || p == t => {
                (pattern, text) = (&pattern[1..], &text[1..]);
            }
            (None, None) => return true,
            _ => match retry {
                Some((after, at)) if !at.is_empty() => {
                    (pattern, text) = (after, &at[1..]);
                    retry = Some((after, text));
                }
                _ => return false,
            },
        }
    }
}

/// The output of `printf` for a format of `%s`, `%d` and `%02d`.
pub(super) fn printf(format: &Text, values: &[Text]) -> Option<Text> {
    if let ("--", [format, values @ ..]) = (format.as_str(), values) {
        return printf(format, values);
    }
    let count = format.as_str().matches('%').count();
    if count > 0 && values.len() > count && values.len().is_multiple_of(count) {
        // The format is used again for further values.
        let mut all = Text::empty(format.whole().start);
        for values in values.chunks(count) {
            let part = printf(format, values)?;
            all.push_part(&part, 0..part.as_str().len());
        }
        return Some(all);
    }
    let mut values = values.iter();
    let plain = format.as_str().replace("\\n", "\n").replace("\\t", "\t");
    let mut pieces = plain.split('%');
    let mut text = pieces.next()?.to_owned();
    for piece in pieces {
        let at = piece.find(['s', 'd', 'q'])?;
        let value = values.next()?.as_str();
        match (&piece[..at], &piece[at..=at]) {
            ("", "q") => text.push_str(&quoted(value)?),
            ("", _) => text.push_str(value),
            (width, "d") if width.len() == 2 && width.starts_with('0') => {
                let width: usize = width.parse().ok()?;
                let number: u64 = value.parse().ok()?;
                text.push_str(&format!("{number:0width$}"));
            }
            _ => return None,
        }
        text.push_str(&piece[at + 1..]);
    }
    let is_whole = values.next().is_none() && !plain.contains('\\');
    let mut all = Text::empty(format.whole().start);
    all.push_escape(&text, format.whole());
    is_whole.then_some(all)
}

/// A word as `printf %q` quotes it; `None` for what bash writes otherwise.
fn quoted(word: &str) -> Option<String> {
    if word.is_empty() {
        return Some("''".to_owned());
    }
    let is_plain = word
        .bytes()
        .all(|byte| byte == b' ' || byte.is_ascii_graphic());
    let mut quoted = String::new();
    for (at, letter) in word.char_indices() {
        let is_special =
            " !\"$&'()*,;<>?[\\]^`{|}".contains(letter) || at == 0 && "#~".contains(letter);
        quoted.extend(is_special.then_some('\\'));
        quoted.push(letter);
    }
    is_plain.then_some(quoted)
}
