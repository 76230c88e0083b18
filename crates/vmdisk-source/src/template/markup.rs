//! The part of XML that a place of a template is in.

use super::syntax::{PlaceholderKind, Syntax};
use crate::Span;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Text,
    Tag,
    Quoted(u8),
    Comment,
    /// A CDATA section, a processing instruction or a declaration, with its end.
    Other(&'static str),
}

/// Follows the markup of a text between its tokens.
pub(super) struct Markup {
    state: State,
    syntax: Syntax,
}

impl Markup {
    pub(super) const fn new(syntax: Syntax) -> Self {
        let state = State::Text;
        Markup { state, syntax }
    }

    /// True where a token may start: braces and brackets are YAML's own.
    pub(super) fn may_start(&self, rest: &str) -> bool {
        let is_own = match rest.strip_prefix('{') {
            Some(inner) => !inner.starts_with(['{', '%', '#']),
            None => rest.starts_with('['),
        };
        self.state != State::Other("?>") && (self.syntax != Syntax::Yaml || !is_own)
    }

    /// True between tags of XML.
    pub(super) fn is_text(&self) -> bool {
        self.state == State::Text && self.syntax == Syntax::Xml
    }

    /// What a token at a place stands for; `None` in a comment.
    pub(super) fn position(&self, text: &str, span: Span) -> Option<PlaceholderKind> {
        let before = text[..span.start].chars().next_back().unwrap_or(' ');
        let after = text[span.end..].chars().next().unwrap_or(' ');
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_-:.".contains(c);
        match self.state {
            State::Comment => None,
            State::Tag if before == '=' => Some(PlaceholderKind::Unquoted),
            State::Tag
                if matches!(before, '<' | '/')
                    || is_name(before)
                    || is_name(after)
                    || after == '=' =>
            {
                Some(PlaceholderKind::Name)
            }
            State::Tag => Some(PlaceholderKind::Attributes),
            State::Text | State::Quoted(_) | State::Other(_) => Some(PlaceholderKind::Value),
        }
    }

    /// Passes one step of text, and returns its length.
    pub(super) fn advance(&mut self, rest: &str) -> usize {
        let first = rest.chars().next().map_or(1, char::len_utf8);
        if self.syntax == Syntax::Script {
            return first;
        }
        if self.syntax == Syntax::Yaml {
            self.state = match (self.state, rest.as_bytes()) {
                (State::Text, [b'\n' | b' ', b'#', ..]) => State::Comment,
                (State::Comment, [b'\n', ..]) => State::Text,
                (state, _) => state,
            };
            return first;
        }
        let byte = rest.as_bytes()[0];
        let (state, length) = match (self.state, byte) {
            (State::Text, b'<') if rest.starts_with("<!--") => (State::Comment, 4),
            (State::Text, b'<') if rest.starts_with("<![CDATA[") => (State::Other("]]>"), 9),
            (State::Text, b'<') if rest.starts_with("<?") => (State::Other("?>"), 2),
            (State::Text, b'<') if rest.starts_with("<!") => (State::Other(">"), 2),
            (State::Text, b'<') => (State::Tag, 1),
            (State::Tag, b'>') => (State::Text, 1),
            (State::Tag, b'\'' | b'"') => (State::Quoted(byte), 1),
            (State::Quoted(quote), _) if byte == quote => (State::Tag, 1),
            (State::Comment, b'-') if rest.starts_with("-->") => (State::Text, 3),
            (State::Other(end), _) if rest.starts_with(end) => (State::Text, end.len()),
            (state, _) => (state, first),
        };
        self.state = state;
        length
    }
}
