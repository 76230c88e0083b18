//! The words of a shell script or of a systemd unit, with the span of every byte.

use std::ops::Range;

use vmdisk_source::Span;

use super::ansi_quotes;
use super::placeholders::configured;
use super::text::Text;
use crate::failure::ReadFailure;
use crate::limits::Counted;

/// The applicable quoting rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Quoting {
    /// POSIX shell: commands end at a line end, `;`, `&` and `|`.
    Shell,
    /// One value of a systemd unit: escapes as in C, also between quotes, and no operators.
    Unit,
}

/// The commands of a script, each as its words.
pub(crate) fn commands(
    file: &str,
    range: Span,
    quoting: Quoting,
) -> Result<Vec<Vec<Text>>, ReadFailure> {
    let mut source = Text::empty(range.start);
    source.push_verbatim(file, range);
    let mut splitter = Splitter::new(&source, quoting);
    splitter.run()?;
    Ok(splitter.commands)
}

/// A part of a script, with its range there.
#[derive(Debug)]
pub(crate) struct Token {
    pub(crate) kind: TokenKind,
    pub(crate) range: Range<usize>,
}

/// The kinds of parts of a script.
#[derive(Debug, PartialEq)]
pub(crate) enum TokenKind {
    Word,
    /// A control operator, a line end as `\n`, or the parentheses of an array as `=(` and `=)`.
    Operator(&'static str),
    /// The text between the parentheses of `((…))`.
    Arithmetic,
    /// The lines after a command with `<<WORD`; they have no expansions if the word is quoted.
    Document {
        is_quoted: bool,
    },
    /// A redirection of the output into a file.
    Output,
    /// The place of `<<WORD`, whose lines are the document with this number.
    Input(usize),
    /// The word after `<<<`.
    InputWord,
    /// The script in `< <(…)`.
    InputScript,
}

/// The parts of a script, for an evaluation that follows its structure.
pub(crate) fn tokens(source: &Text) -> Result<Vec<Token>, ReadFailure> {
    let mut splitter = Splitter::new(source, Quoting::Shell);
    splitter.tokens = Some(Vec::new());
    splitter.run()?;
    Ok(splitter.tokens.unwrap_or_default())
}

struct Splitter<'t> {
    source: &'t Text,
    bytes: &'t [u8],
    at: usize,
    end: usize,
    quoting: Quoting,
    word: Option<Text>,
    /// True for the word after `>` or `<`, which is not an argument.
    drops_word: bool,
    /// True between the parentheses of `NAME=(…)`, whose words make one command after `NAME=`.
    is_array: bool,
    words: Vec<Text>,
    commands: Vec<Vec<Text>>,
    counted: Counted,
    /// The parts in order, instead of the commands.
    tokens: Option<Vec<Token>>,
    word_start: usize,
    /// The words that end the documents which start on the next line, each with whether it is quoted.
    documents: Vec<(String, bool)>,
    /// The number of documents so far.
    inputs: usize,
    /// True for the word after `<<<`.
    is_input: bool,
}

impl<'t> Splitter<'t> {
    fn new(source: &'t Text, quoting: Quoting) -> Self {
        Splitter {
            source,
            bytes: source.as_str().as_bytes(),
            at: 0,
            end: source.as_str().len(),
            quoting,
            word: None,
            drops_word: false,
            is_array: false,
            words: Vec::new(),
            commands: Vec::new(),
            counted: Counted::default(),
            tokens: None,
            word_start: 0,
            documents: Vec::new(),
            inputs: 0,
            is_input: false,
        }
    }

    fn token(&mut self, kind: TokenKind, range: Range<usize>) {
        if let Some(tokens) = &mut self.tokens {
            tokens.push(Token { kind, range });
        }
    }

    fn operator(&mut self, operator: &'static str) {
        let range = self.at..self.at + operator.trim_start_matches('=').len();
        self.at = range.end;
        self.token(TokenKind::Operator(operator), range);
    }

    fn peek(&self, ahead: usize) -> Option<u8> {
        let at = self.at + ahead;
        (at < self.end).then(|| self.bytes[at])
    }

    fn word(&mut self) -> &mut Text {
        let at = self.at;
        let source = self.source;
        if self.word.is_none() {
            self.word_start = at;
        }
        self.word
            .get_or_insert_with(|| Text::empty(source.span(at..at).start))
    }

    /// Appends `length` bytes to the word unchanged.
    fn take(&mut self, length: usize) {
        let (start, end) = (self.at, (self.at + length).min(self.end));
        let source = self.source;
        self.word().push_part(source, start..end);
        self.at = end;
    }

    /// Appends `value` for an escape of `length` bytes.
    fn escape(&mut self, value: &str, length: usize) {
        let (start, end) = (self.at, (self.at + length).min(self.end));
        let span = self.source.span(start..end);
        self.word().push_escape(value, span);
        self.at = end;
    }

    fn end_word(&mut self) -> Result<(), ReadFailure> {
        if let Some(word) = self.word.take() {
            if self.drops_word {
                self.drops_word = false;
                if std::mem::take(&mut self.is_input) {
                    self.token(TokenKind::InputWord, self.word_start..self.at);
                }
            } else {
                let at = self.source.span(self.at..self.at).start;
                self.counted.word(at)?;
                self.token(TokenKind::Word, self.word_start..self.at);
                self.words.push(word);
            }
        }
        Ok(())
    }

    fn end_command(&mut self) -> Result<(), ReadFailure> {
        self.end_word()?;
        self.drops_word = false;
        if !self.words.is_empty() {
            self.commands.push(std::mem::take(&mut self.words));
        }
        Ok(())
    }

    fn run(&mut self) -> Result<(), ReadFailure> {
        while let Some(byte) = self.peek(0) {
            match (byte, self.quoting) {
                (b' ' | b'\t' | b'\r', _) => {
                    self.end_word()?;
                    self.at += 1;
                }
                (b'(', Quoting::Shell) if self.is_assigned() => {
                    // `declare -a` and the like.
                    self.words.clear();
                    self.end_word()?;
                    self.is_array = true;
                    self.operator("=(");
                }
                (b'(', Quoting::Shell) if self.is_arithmetic() => {
                    self.end_command()?;
                    let length = self.length_of_parentheses(0);
                    let inner = self.at + 2..(self.at + length - 2).max(self.at + 2);
                    self.token(TokenKind::Arithmetic, inner);
                    self.at += length;
                }
                (b'\n', Quoting::Shell) if self.is_array => {
                    self.end_word()?;
                    self.at += 1;
                }
                (b'\n' | b';' | b'&' | b'|' | b'(' | b')', Quoting::Shell) => {
                    let was_array = std::mem::take(&mut self.is_array);
                    self.end_command()?;
                    self.operator(match (byte, self.peek(1)) {
                        (b';', Some(b';')) => ";;",
                        (b'&', Some(b'&')) => "&&",
                        (b'|', Some(b'|')) => "||",
                        (b'\n', _) => "\n",
                        (b';', _) => ";",
                        (b'&', _) => "&",
                        (b'|', _) => "|",
                        (b'(', _) => "(",
                        _ if was_array => "=)",
                        _ => ")",
                    });
                    if byte == b'\n' {
                        self.skip_documents();
                    }
                }
                (b'\n', Quoting::Unit) => {
                    self.end_word()?;
                    self.at += 1;
                }
                (b'#', Quoting::Shell) if self.word.is_none() => self.skip_line(),
                // A makefile and a batch file do not print such a command.
                (b'@', Quoting::Shell)
                    if self.starts_command()
                        && configured(&self.source.as_str()[self.at..self.end]).is_none() =>
                {
                    self.at += 1;
                }
                _ if self.is_batch_comment() => self.skip_line(),
                (b'^', Quoting::Shell) if self.continues_batch() => {}
                // The first prerequisite in a makefile.
                (b'$', Quoting::Shell) if self.peek(1) == Some(b'<') => self.take(2),
                // Process substitution is a part of a word.
                (b'<' | b'>', Quoting::Shell) if self.peek(1) == Some(b'(') => self.substitution(),
                (b'<' | b'>', Quoting::Shell) => self.redirection()?,
                (b'$', Quoting::Shell) if self.peek(1) == Some(b'\'') => self.ansi_quoted(),
                (b'\'', _) => self.quoted(b'\''),
                (b'"', _) => self.quoted(b'"'),
                (b'\\', _) => self.backslash()?,
                (b'$', Quoting::Shell) if self.peek(1) == Some(b'(') => self.substitution(),
                (b'`', Quoting::Shell) if self.tokens.is_some() => self.backquoted(),
                (b'$', Quoting::Shell) if self.peek(1) == Some(b'{') && self.tokens.is_some() => {
                    self.braces();
                }
                (b'%', Quoting::Unit) if self.peek(1) == Some(b'%') => self.escape("%", 2),
                _ => self.plain(),
            }
        }
        self.end_command()
    }

    fn starts_command(&self) -> bool {
        self.word.is_none() && self.words.is_empty()
    }

    fn skip_line(&mut self) {
        while self.peek(0).is_some_and(|byte| byte != b'\n') {
            self.at += 1;
        }
    }

    /// True at `rem` and `::`, which start a comment in a batch file of Windows.
    fn is_batch_comment(&self) -> bool {
        if self.quoting != Quoting::Shell || !self.starts_command() {
            return false;
        }
        let rest = &self.bytes[self.at..self.end];
        let is_rem = rest.split_at_checked(3).is_some_and(|(word, after)| {
            word.eq_ignore_ascii_case(b"rem") && after.first().is_none_or(u8::is_ascii_whitespace)
        });
        is_rem || rest.starts_with(b"::")
    }

    /// Skips the line end after `^`, which continues a line of a batch file of Windows.
    fn continues_batch(&mut self) -> bool {
        let length = match (self.peek(1), self.peek(2)) {
            (Some(b'\n'), _) => 2,
            (Some(b'\r'), Some(b'\n')) => 3,
            _ => return false,
        };
        self.at += length;
        true
    }

    /// True after `NAME=`.
    fn is_assigned(&self) -> bool {
        let word = self.word.as_ref();
        word.is_some_and(|word| word.as_str().ends_with('='))
    }

    /// A run of unquoted bytes without special meaning.
    fn plain(&mut self) {
        let mut length = 1;
        while let Some(byte) = self.peek(length) {
            if b" \t\r\n;&|()<>'\"\\$%`".contains(&byte) {
                break;
            }
            length += 1;
        }
        self.take(length);
    }

    /// `2>&1`, `>file`: the number before and the name after are not arguments.
    fn redirection(&mut self) -> Result<(), ReadFailure> {
        let is_number = |word: &Text| word.as_str().bytes().all(|byte| byte.is_ascii_digit());
        if self.word.as_ref().is_some_and(is_number) {
            self.word = None;
        }
        self.end_word()?;
        let start = self.at;
        while self
            .peek(0)
            .is_some_and(|byte| matches!(byte, b'<' | b'>' | b'&'))
        {
            self.at += 1;
        }
        let source = self.source.as_str();
        let rest = source[self.at..self.end].trim_start_matches(' ');
        if &source[start..self.at] == "<" && rest.starts_with("<(") {
            self.at = self.end - rest.len() + 1;
            let length = self.length_of_parentheses(0);
            let inner = self.at + 1..self.at + length.saturating_sub(1).max(1);
            self.token(TokenKind::InputScript, inner);
            self.at += length;
            return Ok(());
        }
        match &source[start..self.at] {
            "<<" if self.tokens.is_some() => {
                let rest = source[self.at..].trim_start_matches(['-', ' ']);
                let word = rest.split([' ', '\t', '\r', '\n', ';', '|', '&', '>', '<', ')']);
                let word = word.into_iter().next().unwrap_or_default();
                let bare = word.replace(['\'', '"', '\\'], "");
                self.documents.push((bare.clone(), bare != word));
                self.token(TokenKind::Input(self.inputs), start..self.at);
                self.inputs += 1;
                self.at = source.len() - rest.len();
            }
            "<<<" => self.is_input = true,
            ">" | ">>" => self.token(TokenKind::Output, start..self.at),
            _ => {}
        }
        self.drops_word = true;
        Ok(())
    }

    /// Passes the lines of the documents that start here.
    fn skip_documents(&mut self) {
        for (word, is_quoted) in std::mem::take(&mut self.documents) {
            let start = self.at;
            let mut end = self.end;
            let lines = self.source.as_str()[start..self.end].split_inclusive('\n');
            for line in lines {
                let line_start = self.at;
                self.at += line.len();
                if line.trim_matches(['\t', '\r', '\n']) == word {
                    end = line_start;
                    break;
                }
            }
            self.token(TokenKind::Document { is_quoted }, start..end);
        }
    }

    /// True at `((` of a command or after `for`.
    fn is_arithmetic(&self) -> bool {
        let keywords = [
            "!", "do", "elif", "else", "for", "if", "then", "until", "while",
        ];
        let is_keyword =
            || matches!(self.words.as_slice(), [.., word] if keywords.contains(&word.as_str()));
        self.tokens.is_some()
            && self.peek(1) == Some(b'(')
            && self.word.is_none()
            && (self.words.is_empty() || is_keyword())
    }

    /// Length of parentheses that open `ahead` bytes from here, with those within.
    fn length_of_parentheses(&self, ahead: usize) -> usize {
        let (mut depth, mut length) = (0_usize, ahead);
        while let Some(byte) = self.peek(length) {
            length += 1;
            match byte {
                b'(' => depth += 1,
                b')' if depth <= 1 => break,
                b')' => depth -= 1,
                _ => {}
            }
        }
        length
    }

    fn backslash(&mut self) -> Result<(), ReadFailure> {
        match (self.peek(1), self.quoting) {
            (None, Quoting::Unit) => self.take(1),
            // A shell drops a backslash at the end of a script.
            (None, Quoting::Shell) => self.at += 1,
            // A continued line; in a unit the two bytes mean a space.
            (Some(b'\n'), Quoting::Shell) => self.at += 2,
            (Some(b'\r'), Quoting::Shell) if self.peek(2) == Some(b'\n') => self.at += 3,
            (Some(b'\n'), Quoting::Unit) => {
                self.end_word()?;
                self.at += 2;
                self.skip_comments();
            }
            (Some(_), Quoting::Shell) => {
                let length = self.character_length(1);
                let source = self.source;
                let text = &source.as_str()[self.at + 1..self.at + 1 + length];
                self.escape(text, 1 + length);
            }
            (Some(_), Quoting::Unit) => self.c_escape(),
        }
        Ok(())
    }

    /// Comments between the lines of a continued value.
    fn skip_comments(&mut self) {
        loop {
            let rest = &self.source.as_str()[self.at..self.end];
            let blank = rest.len() - rest.trim_start_matches([' ', '\t']).len();
            if !rest[blank..].starts_with(['#', ';']) {
                return;
            }
            self.at += rest.find('\n').map_or(rest.len(), |end| end + 1);
        }
    }

    /// Length of the character `ahead` bytes from here.
    fn character_length(&self, ahead: usize) -> usize {
        self.source.as_str()[self.at + ahead..self.end]
            .chars()
            .next()
            .map_or(1, char::len_utf8)
    }

    fn c_escape(&mut self) {
        let value = match self.peek(1) {
            Some(b'n') => "\n",
            Some(b't') => "\t",
            Some(b'r') => "\r",
            Some(b's') => " ",
            Some(b'\\') => "\\",
            Some(b'"') => "\"",
            Some(b'\'') => "'",
            Some(b'x') => {
                let digits = self.source.as_str().get(self.at + 2..self.at + 4);
                let code = digits.and_then(|digits| u8::from_str_radix(digits, 16).ok());
                match code.filter(u8::is_ascii) {
                    Some(code) => {
                        let text = char::from(code).to_string();
                        return self.escape(&text, 4);
                    }
                    None => return self.take(2),
                }
            }
            // Unknown escapes do not change.
            Some(_) | None => return self.take(1),
        };
        self.escape(value, 2);
    }

    fn quoted(&mut self, quote: u8) {
        // Two adjacent quotes are an empty word.
        self.word();
        self.at += 1;
        while let Some(byte) = self.peek(0) {
            if byte == quote {
                self.at += 1;
                return;
            }
            match (byte, quote, self.quoting) {
                (b'\\', b'"', Quoting::Shell) => match self.peek(1) {
                    Some(b'\n') => self.at += 2,
                    Some(escaped @ (b'"' | b'\\' | b'$' | b'`')) => {
                        let text = char::from(escaped).to_string();
                        self.escape(&text, 2);
                    }
                    Some(_) | None => self.take(1),
                },
                (b'\\', _, Quoting::Unit) => self.c_escape(),
                (b'%', _, Quoting::Unit) if self.peek(1) == Some(b'%') => self.escape("%", 2),
                (b'$', b'"', Quoting::Shell) if self.peek(1) == Some(b'(') => self.substitution(),
                (b'$', b'"', Quoting::Shell)
                    if self.peek(1) == Some(b'{') && self.tokens.is_some() =>
                {
                    self.braces();
                }
                (b'`', b'"', Quoting::Shell) if self.tokens.is_some() => self.backquoted(),
                _ => {
                    let is_plain = |byte: u8| byte != quote && !b"\\%$`".contains(&byte);
                    let length = (1..).find(|length| !self.peek(*length).is_some_and(is_plain));
                    self.take(length.unwrap_or(1));
                }
            }
        }
        self.word().mark_unclosed();
    }

    /// `` `…` `` with its spaces.
    fn backquoted(&mut self) {
        let rest = &self.bytes[self.at + 1..self.end];
        let length = rest.iter().position(|byte| *byte == b'`');
        self.take(length.map_or(rest.len() + 1, |length| length + 2));
    }

    /// `${…}` with its spaces and quotes.
    fn braces(&mut self) {
        let (mut depth, mut length) = (0_usize, 1);
        while let Some(byte) = self.peek(length) {
            length += 1;
            match byte {
                b'{' => depth += 1,
                b'}' if depth <= 1 => break,
                b'}' => depth -= 1,
                _ => {}
            }
        }
        self.take(length);
    }

    /// `$'…'`
    fn ansi_quoted(&mut self) {
        let source = self.source;
        let (value, length) = ansi_quotes::value(&source.as_str()[self.at + 2..self.end]);
        match value {
            Some(value) => self.escape(&value, 2 + length),
            None => self.take(2 + length),
        }
    }

    /// `$(…)`, `<(…)` and `>(…)` are kept unchanged: the result is unknown.
    fn substitution(&mut self) {
        self.take(self.length_of_parentheses(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(file: &str, quoting: Quoting) -> Vec<Vec<String>> {
        commands(file, Span::new(0, file.len()), quoting)
            .unwrap()
            .iter()
            .map(|words| words.iter().map(|word| word.as_str().to_owned()).collect())
            .collect()
    }

    #[test]
    fn a_shell_splits_its_words_so() {
        for (file, expected) in [
            ("a b\nc", vec![vec!["a", "b"], vec!["c"]]),
            ("a \\\n  b # c d\n", vec![vec!["a", "b"]]),
            ("'a b'\"c\\\"d\"e", vec![vec!["a bc\"de"]]),
            ("a '' b", vec![vec!["a", "", "b"]]),
            ("x >/dev/null 2>&1 y", vec![vec!["x", "y"]]),
            (
                "a && b; c | d &",
                vec![vec!["a"], vec!["b"], vec!["c"], vec!["d"]],
            ),
            (
                "a $(b c) \"$(d \"e\")\"",
                vec![vec!["a", "$(b c)", "$(d \"e\")"]],
            ),
            ("a\\ b \\'", vec![vec!["a b", "'"]]),
            ("'never closed", vec![vec!["never closed"]]),
            ("a#b", vec![vec!["a#b"]]),
            (
                "a f=$< -b $@ <c\nd",
                vec![vec!["a", "f=$<", "-b", "$@"], vec!["d"]],
            ),
            (
                "REM a\r\n::b\r\n@rem c\r\nremove ^\r\n  -d^e\r\n",
                vec![vec!["remove", "-d^e"]],
            ),
            (
                "declare -a a=(\n -b c # d\n -e\n)\nf",
                vec![vec!["a=", "-b", "c", "-e"], vec!["f"]],
            ),
        ] {
            assert_eq!(words(file, Quoting::Shell), expected, "{file:?}");
        }
    }

    #[test]
    fn a_unit_splits_its_words_so() {
        for (file, expected) in [
            ("a \\\n# comment\n; another\n b", vec![vec!["a", "b"]]),
            ("'a\\x20b' c\\sd 50%%", vec![vec!["a b", "c d", "50%"]]),
            ("a;b &", vec![vec!["a;b", "&"]]),
        ] {
            assert_eq!(words(file, Quoting::Unit), expected, "{file:?}");
        }
    }
}
