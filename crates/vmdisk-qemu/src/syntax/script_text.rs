//! The text of a script, with its tokens.

use std::ops::Range;

use vmdisk_source::Span;

use super::shell_words::{Token, TokenKind, tokens};
use super::text::Text;
use crate::failure::ReadFailure;

/// Functions and scripts within each other, at most.
pub(super) const MAX_DEPTH: usize = 24;

/// A script, or a part of one that is run on its own.
pub(super) struct Script {
    pub(super) text: Text,
    pub(super) tokens: Vec<Token>,
}

impl Script {
    pub(super) fn new(text: Text) -> Result<Self, ReadFailure> {
        let tokens = tokens(&text)?;
        Ok(Script { text, tokens })
    }

    pub(super) fn word(&self, at: usize) -> Option<&str> {
        let token = self.tokens.get(at)?;
        (token.kind == TokenKind::Word).then(|| &self.text.as_str()[token.range.clone()])
    }

    pub(super) fn operator(&self, at: usize) -> Option<&'static str> {
        match self.tokens.get(at)?.kind {
            TokenKind::Operator(operator) => Some(operator),
            _ => None,
        }
    }

    pub(super) fn skip_lines(&self, at: &mut usize) {
        while matches!(self.operator(*at), Some("\n" | ";")) {
            *at += 1;
        }
    }

    /// The text that the token at `at` gives to a command as its input: its range, and whether it is quoted.
    pub(super) fn input(&self, at: usize) -> Option<(Range<usize>, TokenKind)> {
        match self.tokens.get(at)?.kind {
            TokenKind::InputWord => Some((self.tokens[at].range.clone(), TokenKind::InputWord)),
            TokenKind::InputScript => Some((self.tokens[at].range.clone(), TokenKind::InputScript)),
            TokenKind::Input(nth) => {
                let mut documents = self.tokens.iter().filter_map(|it| match it.kind {
                    TokenKind::Document { is_quoted } => Some((it.range.clone(), is_quoted)),
                    _ => None,
                });
                let (range, is_quoted) = documents.nth(nth)?;
                Some((range, TokenKind::Document { is_quoted }))
            }
            _ => None,
        }
    }

    /// True if a command of these tokens writes into a file or to another stream.
    pub(super) fn has_redirection(&self, tokens: Range<usize>) -> bool {
        let text = self.text.as_str();
        let start = self.tokens.get(tokens.start).map_or(0, |it| it.range.start);
        let end = self
            .tokens
            .get(tokens.end)
            .map_or(text.len(), |it| it.range.start);
        text[start..end.max(start)].contains('>')
    }

    /// The text of a span on one line, not too long.
    pub(super) fn quote(&self, span: Span) -> String {
        let is_inside = |token: &&Token| {
            let place = self.text.span(token.range.clone());
            span.start <= place.start && place.end <= span.end
        };
        let first = self
            .tokens
            .partition_point(|it| self.text.span(it.range.clone()).start < span.start);
        let words = self.tokens[first.min(self.tokens.len())..]
            .iter()
            .take_while(is_inside);
        let words = words.map(|it| self.text.as_str()[it.range.clone()].trim());
        let mut words: Vec<&str> = words.filter(|it| !it.is_empty()).take(12).collect();
        words.pop_if(|word| *word == ";");
        words.join(" ").chars().take(80).collect()
    }

    /// The span of the tokens in a range.
    pub(super) fn span(&self, tokens: Range<usize>) -> Span {
        let start = self.tokens.get(tokens.start).map_or(0, |it| it.range.start);
        let end = self.tokens.get(tokens.end.saturating_sub(1));
        self.text
            .span(start..end.map_or(start, |it| it.range.end.max(start)))
    }
}
