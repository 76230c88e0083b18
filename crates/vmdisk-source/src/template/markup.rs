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
    is_in_metadata: bool,
}

impl Markup {
    pub(super) const fn new(syntax: Syntax) -> Self {
        Markup {
            state: State::Text,
            syntax,
            is_in_metadata: false,
        }
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

    /// True for a token in `<metadata>` that is text to every reader: other programs keep their own texts there.
    pub(super) fn is_text_of_metadata(&self, token: &str) -> bool {
        let is_markup = |c: char| match self.state {
            State::Quoted(quote) => c == char::from(quote) || matches!(c, '<' | '&'),
            State::Text => matches!(c, '<' | '&'),
            State::Comment | State::Other(_) => false,
            State::Tag => true,
        };
        self.is_in_metadata && !token.contains(is_markup)
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
        if self.state == State::Text
            && let Some(is_in_metadata) = metadata_tag(rest)
        {
            self.is_in_metadata = is_in_metadata;
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

/// True for a start tag of `<metadata>`, false for its end tag or an empty element, and `None` for all else.
fn metadata_tag(rest: &str) -> Option<bool> {
    let tag = rest.strip_prefix('<')?;
    let name = tag.strip_prefix('/').unwrap_or(tag);
    let attributes = name.strip_prefix("metadata")?;
    let (attributes, _) = attributes.split_once('>')?;
    let is_name = attributes.is_empty() || attributes.starts_with(['/', ' ', '\t', '\r', '\n']);
    is_name.then(|| !tag.starts_with('/') && !attributes.ends_with('/'))
}
