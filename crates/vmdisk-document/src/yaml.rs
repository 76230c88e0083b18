//! Reads YAML into nodes.

use std::borrow::Cow;
use std::collections::HashMap;

use granit_parser::{Event, Parser, ScalarStyle, ScanError, StrInput, StructureStyle, Tag};
use vmdisk_source::Span;

use crate::{Comment, Document, Entry, MAX_DEPTH, Node, SyntaxError, Value};

/// Reads one YAML document of at most `max_values` values; an alias counts as many values as it repeats.
///
/// Scalars have the types of YAML 1.2. Keys are text: `7:` and `on:` are the keys `7` and `on`.
///
/// # Errors
/// The first mistake of the syntax; also tags, keys that are lists or maps, more than one document, more values than
/// allowed, and nesting deeper than [`MAX_DEPTH`].
pub fn read_yaml(text: &str, max_values: usize) -> Result<Document, SyntaxError> {
    let options = granit_parser::options! {
        flow_nesting_limit: MAX_DEPTH,
        block_nesting_limit: MAX_DEPTH,
        max_buffered_comment_events: usize::MAX,
    };
    let mut reader = Reader {
        text,
        events: Parser::new_from_str_with_options(text, options),
        anchors: HashMap::new(),
        comments: Vec::new(),
        values: 0,
        max_values,
        bytes: 0,
        max_bytes: text.len().saturating_mul(2).saturating_add(1 << 20),
    };
    let root = reader.document()?;
    Ok(Document {
        root,
        comments: reader.comments,
        has_anchors: !reader.anchors.is_empty(),
    })
}

/// A value that has a name, and its size.
struct Anchored {
    value: Value,
    values: usize,
    bytes: usize,
}

struct Reader<'t> {
    text: &'t str,
    events: Parser<'t, StrInput<'t>>,
    /// Values by the number of their anchor; `None` while one is being read.
    anchors: HashMap<usize, Option<Anchored>>,
    comments: Vec<Comment>,
    /// Number of values so far, those of aliases included.
    values: usize,
    max_values: usize,
    /// Bytes of text so far, those of aliases included.
    bytes: usize,
    max_bytes: usize,
}

impl<'t> Reader<'t> {
    /// The next event that is not a comment.
    fn next(&mut self) -> Result<(Event<'t>, Span), SyntaxError> {
        loop {
            let (event, span) = match self.events.next() {
                Some(Ok((event, span))) => (event, span_of(span)),
                Some(Err(error)) => return Err(self.scan_error(&error)),
                None => (Event::StreamEnd, Span::empty(self.text.len())),
            };
            match event {
                Event::Comment(text, _) => self.comment(span, &text),
                other => return Ok((other, span)),
            }
        }
    }

    fn comment(&mut self, span: Span, text: &str) {
        let before = &self.text[..span.start];
        let line = before.rfind('\n').map_or(0, |end| end + 1);
        self.comments.push(Comment {
            span,
            text: text.to_owned(),
            is_alone: before[line..]
                .trim_start_matches('\u{feff}')
                .trim()
                .is_empty(),
        });
    }

    fn scan_error(&self, error: &ScanError) -> SyntaxError {
        let at = error.marker().byte_offset().unwrap_or_default();
        SyntaxError::new(Span::empty(at.min(self.text.len())), error.info())
    }

    fn document(&mut self) -> Result<Node, SyntaxError> {
        let mut root = None;
        loop {
            let (event, span) = self.next()?;
            match event {
                Event::StreamStart | Event::DocumentEnd => {}
                Event::StreamEnd => return Ok(root.unwrap_or_default()),
                Event::DocumentStart(..) if root.is_some() => {
                    return Err(SyntaxError::new(span, "more than one document"));
                }
                Event::DocumentStart(..) => {
                    let (event, span) = self.next()?;
                    root = Some(self.node(event, span, 0)?);
                }
                _ => return Err(SyntaxError::new(span, "a value outside of the document")),
            }
        }
    }

    fn node(&mut self, event: Event<'t>, span: Span, depth: usize) -> Result<Node, SyntaxError> {
        self.count(span, 1, 0)?;
        if depth > MAX_DEPTH {
            let message = format!("nested more than {MAX_DEPTH} levels deep");
            return Err(SyntaxError::new(span, message));
        }
        let (values, bytes) = (self.values - 1, self.bytes);
        let anchor = event.anchor_id().filter(|id| *id != 0);
        if let Some(anchor) = anchor {
            self.anchors.insert(anchor, None);
        }
        let node = match event {
            Event::Alias(anchor) => return self.alias(anchor, span),
            Event::Scalar(text, style, _, tag) => {
                self.count(span, 0, text.len())?;
                let is_text = self.is_text(tag.as_ref(), span)?;
                let value = if style == ScalarStyle::Plain && !is_text {
                    plain(text)
                } else {
                    Value::Text(text.into_owned())
                };
                Node { value, span }
            }
            Event::SequenceStart(style, _, tag) => {
                self.is_text(tag.as_ref(), span)?;
                let start = if style == StructureStyle::Block {
                    self.first_dash(span.start)
                } else {
                    span.start
                };
                self.list(Span { start, ..span }, depth)?
            }
            Event::MappingStart(_, _, tag) => {
                self.is_text(tag.as_ref(), span)?;
                self.map(span, depth)?
            }
            _ => return Err(SyntaxError::new(span, "expected a value")),
        };
        if let Some(anchor) = anchor {
            let (values, bytes) = (self.values - values, self.bytes - bytes);
            // The copy counts, so that anchors inside of anchors do not multiply.
            self.count(span, values, bytes)?;
            let value = node.value.clone();
            let done = Anchored {
                value,
                values,
                bytes,
            };
            self.anchors.insert(anchor, Some(done));
        }
        Ok(node)
    }

    /// Counts values and bytes of text, and stops where there are too many.
    fn count(&mut self, at: Span, values: usize, bytes: usize) -> Result<(), SyntaxError> {
        self.values = self.values.saturating_add(values);
        self.bytes = self.bytes.saturating_add(bytes);
        if self.values > self.max_values {
            let message = format!(
                "more than {} values, counting each use of an alias",
                self.max_values
            );
            return Err(SyntaxError::new(at, message));
        }
        if self.bytes > self.max_bytes {
            return Err(SyntaxError::new(at, "aliases repeat too much text"));
        }
        Ok(())
    }

    /// True if a tag says that a scalar is text; other tags than those of YAML itself are refused.
    fn is_text(&self, tag: Option<&Cow<'t, Tag>>, at: Span) -> Result<bool, SyntaxError> {
        let Some(tag) = tag else { return Ok(false) };
        match tag.core_suffix() {
            Some(suffix) => Ok(suffix == "str"),
            None => {
                let message = "a tag such as `!name` has no meaning here";
                Err(SyntaxError::new(at, message))
            }
        }
    }

    fn alias(&mut self, anchor: usize, span: Span) -> Result<Node, SyntaxError> {
        let Some(Some(anchored)) = self.anchors.get(&anchor) else {
            let message = "an alias inside the value that it names: endless recursion";
            return Err(SyntaxError::new(span, message));
        };
        let (values, bytes) = (anchored.values, anchored.bytes);
        self.count(span, values, bytes)?;
        let value = self.anchors[&anchor]
            .as_ref()
            .map(|done| done.value.clone());
        let value = value.unwrap_or_default();
        Ok(Node { value, span })
    }

    /// The dash of the first item: a list that is not indented begins after it for the parser.
    fn first_dash(&self, start: usize) -> usize {
        match self.text[..start].trim_end_matches([' ', '\t']) {
            before if before.ends_with('-') => before.len() - 1,
            _ => start,
        }
    }

    fn list(&mut self, start: Span, depth: usize) -> Result<Node, SyntaxError> {
        let mut items = Vec::new();
        let mut span = start;
        loop {
            let (event, at) = self.next()?;
            if let Event::SequenceEnd = event {
                span.end = end_of(span, at, items.last());
                return Ok(Node {
                    value: Value::List(items),
                    span,
                });
            }
            items.push(self.node(event, at, depth + 1)?);
        }
    }

    fn map(&mut self, start: Span, depth: usize) -> Result<Node, SyntaxError> {
        let mut members: Vec<Entry> = Vec::new();
        let mut span = start;
        loop {
            let (event, at) = self.next()?;
            let key = match event {
                Event::MappingEnd => {
                    span.end = end_of(span, at, members.last().map(|member| &member.node));
                    return Ok(Node {
                        value: Value::Map(members),
                        span,
                    });
                }
                Event::Scalar(text, _, 0, None) => text.into_owned(),
                _ => return Err(SyntaxError::new(at, "expected a key, which is plain text")),
            };
            self.count(at, 0, key.len())?;
            let (event, value_at) = self.next()?;
            let mut node = self.node(event, value_at, depth + 1)?;
            if node.value == Value::Null && node.span.is_empty() {
                // A value that is not written belongs to its key, not to what follows.
                node.span = Span::empty(after_colon(self.text, at.end));
            }
            members.push(Entry {
                key,
                key_span: at,
                node,
            });
        }
    }
}

/// The offset after the colon that follows a key.
fn after_colon(text: &str, key_end: usize) -> usize {
    let rest = &text[key_end..];
    let blanks = rest.len() - rest.trim_start_matches([' ', '\t']).len();
    match rest[blanks..].starts_with(':') {
        true => key_end + blanks + 1,
        false => key_end,
    }
}

/// The end of a list or map: its closing bracket, or the end of its last value in block style.
fn end_of(start: Span, closing: Span, last: Option<&Node>) -> usize {
    match last {
        Some(last) if closing.is_empty() => last.span.end.max(start.start),
        _ => closing.end.max(start.start),
    }
}

fn span_of(span: granit_parser::Span) -> Span {
    let offset = |marker: granit_parser::Marker| {
        marker
            .byte_offset()
            .expect("a parser of a string counts bytes")
    };
    Span::new(offset(span.start), offset(span.end))
}

/// The value of an unquoted scalar, by the core schema of YAML 1.2. A number with a leading zero is text: it names
/// something.
fn plain(text: Cow<'_, str>) -> Value {
    match text.as_ref() {
        "" | "~" | "null" | "Null" | "NULL" => return Value::Null,
        "true" | "True" | "TRUE" => return Value::Bool(true),
        "false" | "False" | "FALSE" => return Value::Bool(false),
        _ => {}
    }
    number(&text).unwrap_or_else(|| Value::Text(text.into_owned()))
}

/// True if unquoted text is read as that text.
pub(crate) fn is_text(text: &str) -> bool {
    matches!(plain(text.into()), Value::Text(_))
}

fn number(text: &str) -> Option<Value> {
    let (is_negative, digits) = match text.as_bytes().first()? {
        b'-' => (true, &text[1..]),
        b'+' => (false, &text[1..]),
        _ => (false, text),
    };
    for (prefix, radix) in [("0x", 16), ("0o", 8)] {
        if let Some(digits) = text.strip_prefix(prefix) {
            let is_number = !digits.is_empty() && digits.chars().all(|c| c.is_digit(radix));
            return is_number.then(|| match u64::from_str_radix(digits, radix) {
                Ok(value) => Value::Unsigned(value),
                Err(_) => Value::Float(f64::INFINITY),
            });
        }
    }
    match digits {
        ".inf" | ".Inf" | ".INF" if is_negative => return Some(Value::Float(f64::NEG_INFINITY)),
        ".inf" | ".Inf" | ".INF" => return Some(Value::Float(f64::INFINITY)),
        ".nan" | ".NaN" | ".NAN" if digits.len() == text.len() => {
            return Some(Value::Float(f64::NAN));
        }
        _ => {}
    }
    let whole = digits.len()
        - digits
            .trim_start_matches(|c: char| c.is_ascii_digit())
            .len();
    let has_leading_zero = whole > 1 && digits.starts_with('0');
    if has_leading_zero {
        return None;
    }
    if whole == digits.len() {
        return Some(if let Ok(value) = digits.parse::<u64>() {
            match is_negative {
                false => Value::Unsigned(value),
                true => text.parse().map_or_else(
                    |_| Value::Float(-(value as f64)),
                    |value: i64| u64::try_from(value).map_or(Value::Signed(value), Value::Unsigned),
                ),
            }
        } else {
            Value::Float(text.parse().ok()?)
        });
    }
    let is_float = digits
        .bytes()
        .all(|b| b.is_ascii_digit() || b".eE+-".contains(&b))
        && digits.bytes().any(|b| b.is_ascii_digit());
    is_float
        .then(|| text.parse().ok().map(Value::Float))
        .flatten()
}
