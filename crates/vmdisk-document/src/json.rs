//! Reads JSON into nodes.
//!
//! `serde_json` reads each string and each number. Lists and maps are read here, because `serde_json` reports no places.

use vmdisk_source::Span;

use crate::{Document, Entry, MAX_DEPTH, Node, SyntaxError, Value};

/// Reads a JSON text of at most `max_values` values.
///
/// # Errors
/// The first mistake of the syntax; also a key that occurs twice in one map, text after the value, more values than
/// allowed, and nesting deeper than [`MAX_DEPTH`].
pub fn read_json(text: &str, max_values: usize) -> Result<Document, SyntaxError> {
    let mut reader = Reader {
        text,
        at: 0,
        values_left: max_values,
    };
    reader.skip_space();
    let root = reader.node(0)?;
    reader.skip_space();
    if reader.at < text.len() {
        return Err(reader.error("text after the end of the value"));
    }
    if let Some(member) = root.duplicate_key() {
        // Facts of a file that is not ours end here, too: its keys are not repeated.
        return Err(SyntaxError::new(member.key_span, "a key is written twice"));
    }
    Ok(Document {
        root,
        comments: Vec::new(),
        has_anchors: false,
    })
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
    values_left: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|byte| b" \t\r\n".contains(&byte)) {
            self.at += 1;
        }
    }

    fn error(&self, message: impl Into<String>) -> SyntaxError {
        SyntaxError::new(Span::empty(self.at), message)
    }

    fn node(&mut self, depth: usize) -> Result<Node, SyntaxError> {
        if depth > MAX_DEPTH {
            return Err(self.error(format!("nested more than {MAX_DEPTH} levels deep")));
        }
        let Some(left) = self.values_left.checked_sub(1) else {
            return Err(self.error("too many values"));
        };
        self.values_left = left;
        let start = self.at;
        let value = match self.peek() {
            Some(b'{') => Value::Map(self.map(depth)?),
            Some(b'[') => Value::List(self.list(depth)?),
            Some(b'"') => Value::Text(self.string()?),
            Some(_) => self.word()?,
            None => return Err(self.error("expected a value, found the end of the text")),
        };
        Ok(Node {
            value,
            span: Span::new(start, self.at),
        })
    }

    fn list(&mut self, depth: usize) -> Result<Vec<Node>, SyntaxError> {
        let mut items = Vec::new();
        while self.goes_on(b']', items.is_empty())? {
            items.push(self.node(depth + 1)?);
        }
        Ok(items)
    }

    fn map(&mut self, depth: usize) -> Result<Vec<Entry>, SyntaxError> {
        let mut members = Vec::new();
        while self.goes_on(b'}', members.is_empty())? {
            let start = self.at;
            if self.peek() != Some(b'"') {
                return Err(self.error("expected a key in quotes"));
            }
            let key = self.string()?;
            let key_span = Span::new(start, self.at);
            self.skip_space();
            if self.peek() != Some(b':') {
                return Err(self.error("expected `:`"));
            }
            self.at += 1;
            self.skip_space();
            members.push(Entry {
                key,
                key_span,
                node: self.node(depth + 1)?,
            });
        }
        Ok(members)
    }

    /// Steps over an opening bracket or a comma; false after the closing bracket.
    fn goes_on(&mut self, closing: u8, is_first: bool) -> Result<bool, SyntaxError> {
        if is_first {
            self.at += 1;
        }
        self.skip_space();
        match self.peek() {
            Some(byte) if byte == closing => {
                self.at += 1;
                return Ok(false);
            }
            Some(b',') if !is_first => {
                self.at += 1;
                self.skip_space();
            }
            _ if is_first => {}
            _ => {
                let message = format!("expected `,` or `{}`", char::from(closing));
                return Err(self.error(message));
            }
        }
        Ok(true)
    }

    fn string(&mut self) -> Result<String, SyntaxError> {
        let start = self.at;
        let bytes = self.text.as_bytes();
        let mut end = start + 1;
        loop {
            match bytes.get(end) {
                Some(b'"') => break,
                Some(b'\\') => end += 2,
                Some(_) => end += 1,
                None => return Err(self.error("a string without an end")),
            }
        }
        self.at = end + 1;
        self.leaf(start, "not a JSON string")
    }

    /// A number, `true`, `false` or `null`.
    fn word(&mut self) -> Result<Value, SyntaxError> {
        let start = self.at;
        let rest = &self.text[start..];
        let is_part = |c: char| c.is_ascii_alphanumeric() || "+-.".contains(c);
        self.at += rest.len() - rest.trim_start_matches(is_part).len();
        self.leaf(start, "expected a value")
    }

    /// What `serde_json` makes of the text from `start` to here.
    fn leaf<T: serde::de::DeserializeOwned>(
        &self,
        start: usize,
        message: &str,
    ) -> Result<T, SyntaxError> {
        let span = Span::new(start, self.at);
        let leaf = span.slice(self.text).unwrap_or_default();
        serde_json::from_str(leaf).map_err(|_| SyntaxError::new(span, message))
    }
}
