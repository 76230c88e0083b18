//! The words and operators of a shell script, with the place of every byte. Nothing here calls itself: text that is nested
//! deeply costs memory, and no stack.

use std::ops::Range;

use vmdisk_source::Span;

use super::hole::{Fields, Hole};
use super::nesting::closing;
use super::placeholders::configured;
use super::text::{Text, floor_char_boundary};
use crate::failure::ReadFailure;
use crate::limits::Counted;
use crate::runners::is_name;

/// A word of a script, in which each expansion is a hole.
#[derive(Clone, Debug)]
pub(super) struct Word {
    pub(super) text: Text,
    /// The bytes of its text before the first quote; all if it has none.
    pub(super) bare: usize,
}

impl Word {
    /// The text, if no byte of it is quoted.
    pub(super) fn bare(&self) -> Option<&str> {
        (self.bare == usize::MAX && !self.text.has_hole()).then(|| self.text.as_str())
    }
}

/// A part of a script.
#[derive(Debug)]
pub(super) enum Token {
    Word(Word),
    /// A control operator, a line end as `\n`, `()` after the name of a function, or the parentheses of an array: `=(`, `=)`.
    Operator(&'static str),
    /// The variable in `{NAME}>file`.
    Descriptor(String),
}

/// A token with its place in the file.
pub(super) struct Placed {
    pub(super) token: Token,
    pub(super) at: usize,
}

/// Words after which a command begins.
const BEFORE_COMMANDS: [&str; 11] = [
    "!", "{", "do", "elif", "else", "for", "if", "then", "time", "until", "while",
];

/// Bytes of the text that stands for a hole, at most.
const MAX_NAME: usize = 80;

/// Bytes of a `<NAME>` in documentation before its end, at most.
const MAX_PLACEHOLDER: usize = 64;

/// Bytes of a pattern that are looked at, at most.
const MAX_PATTERN: usize = 512;

/// The parts of a script. In documentation, `<NAME>` is a placeholder.
pub(super) fn tokens(
    source: &Text,
    is_documentation: bool,
    holes: &mut Vec<Hole>,
) -> Result<Vec<Placed>, ReadFailure> {
    let mut lexer = Lexer {
        source,
        bytes: source.as_str().as_bytes(),
        at: 0,
        holes,
        given: source.holes().collect(),
        is_documentation,
        word: None,
        bare: usize::MAX,
        drops_word: false,
        is_array: false,
        is_test: false,
        documents: Vec::new(),
        counted: Counted::default(),
        found: Vec::new(),
    };
    lexer.given.reverse();
    while lexer.at < lexer.bytes.len() {
        lexer.step()?;
    }
    lexer.end_word()?;
    Ok(lexer.found)
}

struct Lexer<'t> {
    source: &'t Text,
    bytes: &'t [u8],
    at: usize,
    holes: &'t mut Vec<Hole>,
    /// The holes that the source has already, the first last.
    given: Vec<(Range<usize>, u32)>,
    is_documentation: bool,
    word: Option<Text>,
    bare: usize,
    /// True for the word after `>` or `<`, which is no argument.
    drops_word: bool,
    is_array: bool,
    is_test: bool,
    /// The words that end the documents which start on the next line.
    documents: Vec<String>,
    counted: Counted,
    found: Vec<Placed>,
}

impl Lexer<'_> {
    fn peek(&self, ahead: usize) -> Option<u8> {
        self.bytes.get(self.at + ahead).copied()
    }

    fn rest(&self) -> &str {
        self.source.as_str().get(self.at..).unwrap_or_default()
    }

    fn push(&mut self, token: Token, at: usize) {
        let at = self.source.span(at..at).start;
        self.found.push(Placed { token, at });
    }

    fn operator(&mut self, operator: &'static str, length: usize) -> Result<(), ReadFailure> {
        self.end_word()?;
        self.drops_word = false;
        self.push(Token::Operator(operator), self.at);
        self.at += length;
        Ok(())
    }

    fn word(&mut self) -> &mut Text {
        let (source, at) = (self.source, self.at);
        self.word
            .get_or_insert_with(|| Text::empty(source.span(at..at).start))
    }

    /// Appends `length` bytes to the word unchanged.
    fn take(&mut self, length: usize) {
        let (start, end) = (self.at, (self.at + length).min(self.bytes.len()));
        let source = self.source;
        self.word().push_part(source, start..end);
        self.at = end;
    }

    /// Appends `value` for an escape of `length` bytes.
    fn escape(&mut self, value: &str, length: usize) {
        let span = self.source.span(self.at..self.at + length);
        self.word().push_escape(value, span);
        self.at += length;
    }

    /// From here on, the word is quoted.
    fn quote(&mut self) {
        let length = self.word().as_str().len();
        self.bare = self.bare.min(length);
    }

    fn end_word(&mut self) -> Result<(), ReadFailure> {
        let bare = std::mem::replace(&mut self.bare, usize::MAX);
        let Some(text) = self.word.take() else {
            return Ok(());
        };
        if std::mem::take(&mut self.drops_word) {
            return Ok(());
        }
        let word = Word { text, bare };
        self.counted
            .word(self.source.span(self.at..self.at).start)?;
        match word.bare() {
            Some("[[") if self.starts_command() => self.is_test = true,
            Some("]]") => self.is_test = false,
            _ => {}
        }
        let at = word.text.whole().start;
        self.found.push(Placed {
            token: Token::Word(word),
            at,
        });
        Ok(())
    }

    /// True if a command may begin after the last token.
    fn starts_command(&self) -> bool {
        match self.found.last().map(|it| &it.token) {
            None => true,
            Some(Token::Operator(_)) => !self.is_array,
            Some(Token::Word(word)) => word.bare().is_some_and(|it| BEFORE_COMMANDS.contains(&it)),
            Some(Token::Descriptor(_)) => false,
        }
    }

    fn step(&mut self) -> Result<(), ReadFailure> {
        if self.passes_hole() {
            return Ok(());
        }
        let is_start = self.word.is_none();
        match self.bytes[self.at] {
            b' ' | b'\t' | b'\r' => {
                self.end_word()?;
                self.at += 1;
            }
            b'\n' if self.is_array || self.is_test => {
                self.end_word()?;
                // `]]` ends the test, and the line ends the command.
                self.at += usize::from(self.is_array || self.is_test);
            }
            b'\n' => {
                self.operator("\n", 1)?;
                self.skip_documents();
            }
            b'#' if is_start => self.at += self.rest().find('\n').unwrap_or(self.rest().len()),
            // A makefile does not print such a command.
            b'@' if is_start && self.starts_command() && configured(self.rest()).is_none() => {
                self.at += 1;
            }
            b'\'' => self.single_quoted(),
            b'"' => self.double_quoted(),
            b'\\' => self.backslash(),
            b'$' if self.peek(1) == Some(b'\'') => self.ansi_quoted(),
            b'$' if self.peek(1) == Some(b'"') => self.at += 1,
            b'`' if self.comment().is_some() => self.at += self.comment().unwrap_or(1),
            b'$' | b'`' => self.expansion(false),
            b'<' | b'>' if self.peek(1) == Some(b'(') => {
                self.nested(1, "it is the output of a command")
            }
            b'<' | b'[' if self.placeholder().is_some() => {
                let fields = match self.bytes[self.at] {
                    b'<' => Fields::One,
                    _ => Fields::Split,
                };
                let length = self.placeholder().unwrap_or(1);
                self.hole(length, "it is a placeholder", "", fields);
            }
            b'(' if !is_start && self.ends_in_pattern() => self.nested(0, "it is a pattern"),
            b'<' | b'>' | b';' | b'&' | b'|' | b'(' | b')' if self.is_test => {
                self.end_word()?;
                self.at += usize::from(self.is_test);
            }
            b'<' | b'>' => self.redirection()?,
            b'&' if self.peek(1) == Some(b'>') => self.redirection()?,
            b';' | b'&' | b'|' | b'(' | b')' => self.control()?,
            _ => self.plain(),
        }
        Ok(())
    }

    /// Takes a hole of the source as it is.
    fn passes_hole(&mut self) -> bool {
        while self
            .given
            .last()
            .is_some_and(|(range, _)| range.end <= self.at)
        {
            self.given.pop();
        }
        let Some((range, _)) = self
            .given
            .last()
            .filter(|it| it.0.start <= self.at)
            .cloned()
        else {
            return false;
        };
        self.take(range.end - self.at);
        true
    }

    fn control(&mut self) -> Result<(), ReadFailure> {
        let rest = self.rest();
        if rest.starts_with('(') {
            return self.parenthesis();
        }
        if rest.starts_with(')') && self.is_array {
            self.operator("=)", 1)?;
            self.is_array = false;
            return Ok(());
        }
        let all = [";;&", ";;", ";&", ";", "&&", "&", "||", "|&", "|", ")"];
        let found = all.into_iter().find(|it| rest.starts_with(it));
        let operator = found.unwrap_or(")");
        self.operator(operator, operator.len())
    }

    fn parenthesis(&mut self) -> Result<(), ReadFailure> {
        let is_assigned = self
            .word
            .as_ref()
            .is_some_and(|it| it.as_str().ends_with('='));
        if is_assigned && self.bare == usize::MAX {
            self.operator("=(", 1)?;
            self.is_array = true;
            return Ok(());
        }
        let inner = self.rest()[1..].trim_start_matches([' ', '\t']);
        if inner.starts_with(')') {
            let length = self.rest().len() - inner.len() + 1;
            return self.operator("()", length);
        }
        self.end_word()?;
        if self.peek(1) == Some(b'(') && self.starts_command() {
            let end = closing(self.bytes, self.at + 1, b')');
            if let Some(end) = end.filter(|end| self.bytes[..*end].ends_with(b"))")) {
                self.hole(end - self.at, "it is computed", "", Fields::Split);
                return self.end_word();
            }
        }
        self.operator("(", 1)
    }

    /// A run of bytes, of which none has a meaning; or one of a pattern, a brace expansion or a home directory.
    fn plain(&mut self) {
        let before = self.word.as_ref().map_or("", |it| it.as_str());
        let may_be_home = before.is_empty() || before.ends_with(['=', ':']);
        match self.bytes[self.at] {
            b'~' if may_be_home => {
                let is_end = |byte: char| " \t\r\n/:;&|()<>'\"\\$`,".contains(byte);
                let length = self.rest().find(is_end).unwrap_or(self.rest().len());
                return self.hole(length, "it is a home directory", "", Fields::One);
            }
            b'*' | b'?' => return self.hole(1, "it is a pattern of file names", "", Fields::Split),
            b'[' if !before.is_empty() || !self.starts_command() => {
                if let Some(length) = self.length_to(b']').filter(|it| *it > 2) {
                    return self.hole(length, "it is a pattern of file names", "", Fields::Split);
                }
            }
            b'{' if self.peek(1) != Some(b'{') => {
                let length = self.length_to(b'}');
                let is_list = |it: &usize| {
                    let inner = &self.rest()[..*it];
                    inner.contains(',') || inner.contains("..")
                };
                if let Some(length) = length.filter(is_list) {
                    return self.hole(length, "a shell expands its braces", "", Fields::Split);
                }
            }
            _ => {}
        }
        let is_special = |byte: &u8| b" \t\r\n;&|()<>'\"\\$`*?[{~".contains(byte);
        let length = self.bytes[self.at + 1..].iter().position(is_special);
        let length = length.map_or(self.bytes.len() - self.at, |it| it + 1);
        let next = self.given.last().map_or(usize::MAX, |it| it.0.start);
        self.take(length.min(next.saturating_sub(self.at)).max(1));
    }

    /// The length of what begins here and ends in a byte within the word; or of what is looked at, if it is more.
    fn length_to(&self, end: u8) -> Option<usize> {
        let rest = &self.bytes[self.at..];
        let mut depth = 0_usize;
        for (at, byte) in rest.iter().enumerate().take(MAX_PATTERN) {
            match *byte {
                b' ' | b'\t' | b'\n' | b';' | b'&' | b'|' => return None,
                byte if byte == rest[0] => depth += 1,
                byte if byte == end && depth == 1 => return Some(at + 1),
                byte if byte == end => depth -= 1,
                _ => {}
            }
        }
        let most = floor_char_boundary(self.source.as_str(), self.at + MAX_PATTERN);
        (rest.len() > MAX_PATTERN).then_some(most - self.at)
    }

    /// The length of a comment between backquotes, which is no word.
    fn comment(&self) -> Option<usize> {
        let inner = self.rest()[1..].trim_start_matches(' ');
        let line = inner.strip_prefix('#')?.split('\n').next()?;
        let end = line.find('`').filter(|_| !line.contains('\\'))?;
        Some(self.rest().len() - inner.len() + 1 + end + 1)
    }

    /// True after the first letter of `@(…)`.
    fn ends_in_pattern(&self) -> bool {
        let before = self.at.checked_sub(1).map(|it| self.bytes[it]);
        before.is_some_and(|it| b"@?*+!".contains(&it))
    }

    /// The length of `<NAME>` and of `[other options]` in documentation.
    fn placeholder(&self) -> Option<usize> {
        let rest = self.rest();
        let is_words = self.word.is_none() && !self.starts_command();
        let close = match self.bytes[self.at] {
            b'<' => '>',
            b'[' if is_words => ']',
            _ => return None,
        };
        let rest = rest.get(1..).filter(|_| self.is_documentation)?;
        // A name is shorter: a search to the end of the line, for each of many, takes quadratic time.
        let start = &rest[..floor_char_boundary(rest, MAX_PLACEHOLDER)];
        let end = start.find([close, '\n', '|', ';', '&', '"', '\'', '$'])?;
        let is_name = |it: char| match close {
            '>' => it.is_alphabetic() || it == '/',
            _ => it.is_alphabetic() || it == ' ' || it == '.',
        };
        let after = rest[end..].strip_prefix(close)?.chars().next();
        let is_end = after.is_none_or(|it| match close {
            '>' => !it.is_alphanumeric() && !">&".contains(it),
            _ => it.is_whitespace(),
        });
        (rest.starts_with(is_name) && is_end).then_some(end + 2)
    }

    /// Appends a hole for the next bytes. `variable` is the name of the variable that it expands.
    fn hole(&mut self, length: usize, reason: &str, variable: &str, fields: Fields) {
        let end = (self.at + length).min(self.bytes.len());
        let text = &self.source.as_str()[self.at..end];
        // The text stands for the value, and the structure of what is around it stays.
        let cut = text.find([',', '=', '"', '\'', ' ', '\t', '\n', '\r']);
        let cut = cut.unwrap_or(text.len()).max(1).min(text.len());
        let name = &text[..floor_char_boundary(text, cut.min(MAX_NAME))];
        let span = self.source.span(self.at..end);
        let hole = Hole {
            variable: variable.to_owned(),
            fields,
            whole: text.chars().take(200).collect(),
            ..Hole::new(name, span, reason)
        };
        self.word();
        if let Some(word) = &mut self.word {
            word.push_new(hole, self.holes);
        }
        self.at = end;
    }

    /// A hole for the parentheses that open `ahead` bytes from here.
    fn nested(&mut self, ahead: usize, reason: &str) {
        let end = closing(self.bytes, self.at + ahead + 1, b')');
        let length = end.unwrap_or(self.bytes.len()) - self.at;
        self.hole(length, reason, "", Fields::Split);
        if end.is_none() {
            self.word().mark_unclosed();
        }
    }

    /// `$…` and `` `…` ``.
    fn expansion(&mut self, is_quoted: bool) {
        let fields = if is_quoted {
            Fields::One
        } else {
            Fields::Split
        };
        let rest = self.rest();
        let output = "it is the output of a command";
        let (length, reason) = match (self.bytes[self.at], self.peek(1)) {
            (b'`', _) => (closing(self.bytes, self.at + 1, b'`'), output),
            (_, Some(b'(')) if self.peek(2) == Some(b'(') => {
                (closing(self.bytes, self.at + 2, b')'), "it is computed")
            }
            (_, Some(b'(')) => (closing(self.bytes, self.at + 2, b')'), output),
            (_, Some(b'[')) => (closing(self.bytes, self.at + 2, b']'), "it is computed"),
            (_, Some(b'{')) => {
                let kind = if is_quoted { b'|' } else { b'}' };
                match closing(self.bytes, self.at + 2, kind) {
                    Some(end) => return self.parameter(end, fields),
                    None => (None, ""),
                }
            }
            (_, Some(first)) if first == b'_' || first.is_ascii_alphabetic() => {
                let is_name = |it: char| it == '_' || it.is_ascii_alphanumeric();
                let length = rest[1..]
                    .find(|it| !is_name(it))
                    .map_or(rest.len(), |it| it + 1);
                let name = rest[1..length].to_owned();
                return self.hole(length, "", &name, fields);
            }
            (_, Some(first)) if first.is_ascii_digit() || b"@*#?$!-".contains(&first) => {
                let name = char::from(first).to_string();
                let fields = fields.of(&name);
                // The first prerequisite of make has no letter either.
                return self.hole(2, "", &name, fields);
            }
            (_, Some(b'<')) => return self.hole(2, "make sets it", "", fields),
            _ => return self.take(1),
        };
        let end = length.unwrap_or(self.bytes.len());
        self.hole(end - self.at, reason, "", fields);
        if length.is_none() {
            self.word().mark_unclosed();
        }
    }

    /// `${…}`, which ends at `end`.
    fn parameter(&mut self, end: usize, fields: Fields) {
        let inner = self.source.as_str()[self.at + 2..end - 1].to_owned();
        let is_name = |it: char| it == '_' || it.is_ascii_alphanumeric();
        let length = inner.find(|it| !is_name(it)).unwrap_or(inner.len());
        let (name, rest) = inner.split_at(length);
        let is_all = matches!(inner.as_str(), "@" | "*");
        let added = rest.strip_prefix(":+").or(rest.strip_prefix('+'));
        let in_assignment = self.is_in_assignment();
        let splits = in_assignment || fields == Fields::Split;
        let added = added.filter(|_| splits && !name.is_empty());
        let is_own = |it: &str| {
            let own = it.trim_matches(' ').strip_prefix('$');
            own.is_some_and(|it| it == name || it.strip_prefix('{') == Some(&format!("{name}}}")))
        };
        let place = self.source.span(self.at..end);
        if added.is_some_and(|it| it.starts_with(' ')) {
            self.split_here(in_assignment, place);
        }
        let (variable, fields) = match (rest, fields) {
            // Its words, or none.
            _ if added.is_some_and(is_own) => (name, fields),
            ("", _) => (name, fields),
            ("[@]", Fields::One) => (name, Fields::Members),
            ("[*]", Fields::One) => (name, Fields::Joined),
            ("[@]" | "[*]", _) => (name, Fields::SplitMembers),
            _ if is_all => (inner.as_str(), fields.of(&inner)),
            _ => ("", fields),
        };
        let reason = "the expansion is not evaluated";
        self.hole(end - self.at, reason, variable, fields);
        if let Some(hole) = self.holes.last_mut()
            && let Some(default) = rest.strip_prefix(":-").or(rest.strip_prefix('-'))
            && !default.contains(['$', '`', '\\', '"', '\''])
            && !name.is_empty()
        {
            hole.reason = format!("`{name}` may be set outside of the file");
            hole.default_of = name.to_owned();
            let end = hole.span.end.saturating_sub(1);
            let mut text = Text::empty(end);
            text.push_escape(default, Span::new(end.saturating_sub(default.len()), end));
            let condition = format!("unless {name} is set");
            hole.alternatives = vec![(text, condition)];
        }
        if added.is_some_and(|it| it.ends_with(' ')) {
            self.split_here(in_assignment, place);
        }
    }

    /// True in the value of an assignment, which no shell splits.
    fn is_in_assignment(&self) -> bool {
        let text = self.word.as_ref().map_or("", |it| it.as_str());
        // A name is shorter: a search through the word, for each of many expansions, takes quadratic time.
        let start = &text[..floor_char_boundary(text, text.len().min(MAX_NAME))];
        let name = start.split_once('=').map(|(name, _)| name);
        name.is_some_and(|name| is_name(name.trim_end_matches('+')))
    }

    /// Separates words where the text that a condition adds has a blank: a shell does it here, or where a value is used.
    fn split_here(&mut self, in_assignment: bool, place: Span) {
        match in_assignment {
            true => self.word().push_escape(" ", place),
            // Too many words are too many at the next end, too.
            false => drop(self.end_word()),
        }
    }

    fn single_quoted(&mut self) {
        self.quote();
        let start = self.at + 1;
        let end = self.bytes[start..].iter().position(|byte| *byte == b'\'');
        self.at = start;
        match end {
            Some(length) => {
                if length > 0 {
                    self.take(length);
                }
                self.at = start + length + 1;
            }
            None => {
                self.take(self.bytes.len() - start);
                self.word().mark_unclosed();
            }
        }
    }

    fn double_quoted(&mut self) {
        self.quote();
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            if self.passes_hole() {
                continue;
            }
            match (byte, self.peek(1)) {
                (b'"', _) => {
                    self.at += 1;
                    return;
                }
                (b'\\', Some(b'\n')) => self.at += 2,
                (b'\\', Some(escaped @ (b'"' | b'\\' | b'$' | b'`'))) => {
                    self.escape(&char::from(escaped).to_string(), 2);
                }
                (b'$' | b'`', _) => self.expansion(true),
                _ => {
                    let is_special = |byte: &u8| b"\"\\$`".contains(byte);
                    let rest = &self.bytes[self.at + 1..];
                    let length = rest
                        .iter()
                        .position(is_special)
                        .map_or(rest.len() + 1, |it| it + 1);
                    let next = self.given.last().map_or(usize::MAX, |it| it.0.start);
                    self.take(length.min(next.saturating_sub(self.at)).max(1));
                }
            }
        }
        self.word().mark_unclosed();
    }

    /// `$'…'`
    fn ansi_quoted(&mut self) {
        self.quote();
        let mut is_escaped = false;
        let ends = |letter| {
            let ends = letter == '\'' && !is_escaped;
            is_escaped = letter == '\\' && !is_escaped;
            ends
        };
        let rest = &self.rest()[2..];
        let end = rest.find(ends);
        let text = rest[..end.unwrap_or(rest.len())].to_owned();
        let length = 2 + text.len() + usize::from(end.is_some());
        match text.contains('\\') {
            true => self.hole(length, "a shell reads its escapes", "", Fields::One),
            false => self.escape(&text, length),
        }
    }

    fn backslash(&mut self) {
        match self.peek(1) {
            // A shell drops it at the end of a script.
            None => self.at += 1,
            Some(b'\n') => self.at += 2,
            Some(b'\r') if self.peek(2) == Some(b'\n') => self.at += 3,
            Some(_) => {
                self.quote();
                let letter = self.rest()[1..].chars().next().unwrap_or_default();
                self.escape(&letter.to_string(), 1 + letter.len_utf8());
            }
        }
    }

    /// `2>&1`, `>file`: the number before and the name after are no arguments.
    fn redirection(&mut self) -> Result<(), ReadFailure> {
        let before = self.word.as_ref().map_or("", |it| it.as_str()).to_owned();
        if before.bytes().all(|byte| byte.is_ascii_digit()) && self.bare == usize::MAX {
            self.word = None;
        } else if let Some(name) = before.strip_prefix('{').and_then(|it| it.strip_suffix('}')) {
            self.word = None;
            self.push(Token::Descriptor(name.to_owned()), self.at);
        }
        self.end_word()?;
        let all = [
            "<<<", "<<-", "<<", "<&", "<>", "<", "&>>", "&>", ">>", ">&", ">|", ">",
        ];
        let found = all.into_iter().find(|it| self.rest().starts_with(it));
        let operator = found.unwrap_or("<");
        self.at += operator.len();
        if matches!(operator, "<<" | "<<-") {
            let rest = self.rest();
            let word = rest.trim_start_matches([' ', '\t']);
            let blank = rest.len() - word.len();
            let end = word.find([' ', '\t', '\r', '\n', ';', '|', '&', '>', '<', ')']);
            let word = &word[..end.unwrap_or(word.len())];
            let length = blank + word.len();
            self.documents.push(word.replace(['\'', '"', '\\'], ""));
            self.at += length;
        } else {
            self.drops_word = true;
        }
        Ok(())
    }

    /// Passes the lines of the documents that start here.
    fn skip_documents(&mut self) {
        for end in std::mem::take(&mut self.documents) {
            while self.at < self.bytes.len() {
                let rest = self.rest();
                let line = rest.split_inclusive('\n').next().unwrap_or(rest);
                let is_end = line.trim_start_matches('\t').trim_end_matches(['\r', '\n']) == end;
                self.at += line.len();
                if is_end {
                    break;
                }
            }
        }
    }
}
