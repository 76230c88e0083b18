//! What a command reads: the lines of `<<WORD`, or the word after `<<<`, where their text is known.

use super::expansion::Mode;
use super::script_text::Script;
use super::shell_state::{Shell, Value};
use super::shell_words::TokenKind;
use super::text::Text;
use vmdisk_source::Span;

impl Shell {
    /// The input that the token at `at` gives to a command.
    pub(super) fn input_of(&mut self, script: &Script, at: usize, live: bool) -> Option<Text> {
        let (range, kind) = script.input(at).filter(|_| live)?;
        Some(match kind {
            TokenKind::Document { is_quoted: true } => script.text.part(range),
            TokenKind::Document { .. } => self.one(&script.text, range, Mode::Document),
            kind => {
                let mut word = match kind {
                    TokenKind::InputScript => self.output(script.text.part(range))?,
                    _ => self.one(&script.text, range, Mode::One),
                };
                word.push_escape("\n", Span::empty(word.whole().end));
                word
            }
        })
    }

    /// `read` and `mapfile`: sets variables to parts of the input. True if there was a whole line.
    pub(super) fn reads(&mut self, name: &str, words: &[Text]) -> Option<bool> {
        let (mut is_list, mut is_all, mut is_known) = (name != "read", name != "read", true);
        let mut words = words.iter().map(Text::as_str).peekable();
        while let Some(options) = words.next_if(|it| it.starts_with('-')) {
            let mut letters = options[1..].chars();
            while let Some(letter) = letters.next() {
                match letter {
                    'r' | 's' | 'e' => {}
                    't' if name != "read" => {}
                    'a' => is_list = true,
                    'd' | 'p' => {
                        let value = match letters.as_str() {
                            "" => words.next().unwrap_or_default(),
                            rest => rest,
                        };
                        letters = "".chars();
                        is_all |= letter == 'd';
                        is_known &= letter == 'p' || value.is_empty();
                    }
                    _ => is_known = false,
                }
            }
        }
        let names: Vec<&str> = words.collect();
        let input = self.input.as_ref().filter(|_| is_known);
        let line = input.map(|input| {
            let text = input.as_str();
            let end = text.find('\n').filter(|_| !is_all);
            (input.part(0..end.unwrap_or(text.len())), end)
        });
        let Some((line, end)) = line.filter(|(line, _)| !line.has_hole()) else {
            for it in names {
                self.set_unknown(it, &format!("`{name}` sets it"));
            }
            return None;
        };
        if let Some(input) = &mut self.input {
            *input =
                input.part(end.map_or(input.as_str().len(), |it| it + 1)..input.as_str().len());
        }
        let separators = match name {
            "read" => self.separators(),
            _ => "\n".into(),
        };
        let most = if is_list {
            usize::MAX
        } else {
            names.len().max(1)
        };
        let fields = fields(line.as_str(), &separators, most);
        let fields = fields.into_iter().map(|it| line.part(it));
        match (names.as_slice(), is_list) {
            ([name], true) => self.set(name, Value::list_of(fields.collect())),
            _ => {
                let mut fields = fields;
                for name in names {
                    let word = fields
                        .next()
                        .unwrap_or_else(|| Text::empty(line.whole().end));
                    self.has_assumed = false;
                    self.set_word(name, word);
                }
            }
        }
        Some(end.is_some() || name != "read")
    }
}

/// The fields of a line, of which the last has the rest.
fn fields(line: &str, separators: &str, most: usize) -> Vec<std::ops::Range<usize>> {
    let is_separator = |letter: char| separators.contains(letter);
    let is_blank = |letter: char| is_separator(letter) && letter.is_whitespace();
    let end = line.trim_end_matches(is_blank).len();
    let skip = |at: usize| end - line[at.min(end)..end].trim_start_matches(is_blank).len();
    let mut at = skip(0);
    let mut all = Vec::new();
    while at < end {
        let length = line[at..end].find(is_separator);
        let length = length.filter(|_| all.len() + 1 < most).unwrap_or(end - at);
        all.push(at..at + length);
        at = skip(at + length);
        if line[at..end].starts_with(is_separator) {
            at = skip(at + 1);
        }
    }
    all
}
