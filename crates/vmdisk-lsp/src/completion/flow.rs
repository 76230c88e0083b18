//! Where in JSON, or in a flow collection of YAML, a place is, also in one that is being written.

use vmdisk_source::Span;

/// A collection around a place.
#[derive(Clone, Debug, Default)]
pub(crate) struct Frame<'t> {
    is_map: bool,
    /// The key whose value is being written.
    pub(crate) key: Option<&'t str>,
    is_value: bool,
    /// Keys with their plain values, as far as they are written before the place.
    pub(crate) pairs: Vec<(&'t str, &'t str)>,
}

/// The collections around a place, the outermost first, and its role.
#[derive(Clone, Debug)]
pub(crate) struct Flow<'t> {
    pub(crate) frames: Vec<Frame<'t>>,
    /// The scalar at the place, without quotes.
    pub(crate) span: Span,
    /// True if the scalar is a key.
    pub(crate) is_key: bool,
    /// True if it is in quotes.
    pub(crate) is_quoted: bool,
}

/// The result of a scan.
#[derive(Clone, Debug)]
pub(crate) enum Scan<'t> {
    /// The collection ends here, before the place.
    Ended(usize),
    /// The place is in it.
    In(Flow<'t>),
}

/// Scans the collection that starts at `start` up to the place. Text behind `end` is not looked at.
pub(crate) fn scan(text: &str, start: usize, end: usize, offset: usize) -> Scan<'_> {
    let bytes = &text.as_bytes()[..end];
    let mut frames: Vec<Frame<'_>> = Vec::new();
    let mut at = start;
    while at < offset {
        let Some(byte) = bytes.get(at) else { break };
        match byte {
            b'{' | b'[' => frames.push(Frame {
                is_map: *byte == b'{',
                ..Frame::default()
            }),
            b'}' | b']' => {
                frames.pop();
                if frames.is_empty() {
                    return Scan::Ended(at + 1);
                }
            }
            b',' => {
                if let Some(top) = frames.last_mut() {
                    (top.key, top.is_value) = (None, false);
                }
            }
            b':' => {
                if let Some(top) = frames.last_mut() {
                    top.is_value = top.is_map;
                }
            }
            byte if byte.is_ascii_whitespace() => {}
            _ => {
                let (span, next) = scalar(bytes, at);
                if offset <= span.end {
                    return found(frames, span, next > span.end || span.start > at);
                }
                take(text, &mut frames, span);
                at = next;
                continue;
            }
        }
        at += 1;
    }
    let (span, quoted) = match bytes.get(offset) {
        Some(b'"' | b'\'' | b',' | b':' | b'{' | b'}' | b'[' | b']') | None => {
            (Span::empty(offset), false)
        }
        Some(byte) if byte.is_ascii_whitespace() => (Span::empty(offset), false),
        Some(_) => (scalar(bytes, offset).0, false),
    };
    found(frames, span, quoted)
}

fn found(frames: Vec<Frame<'_>>, span: Span, is_quoted: bool) -> Scan<'_> {
    let is_key = frames.last().is_some_and(|top| top.is_map && !top.is_value);
    Scan::In(Flow {
        frames,
        span,
        is_key,
        is_quoted,
    })
}

/// A scalar without its quotes, and the offset after it.
fn scalar(bytes: &[u8], start: usize) -> (Span, usize) {
    let quote = bytes[start];
    if matches!(quote, b'"' | b'\'') {
        let mut at = start + 1;
        while at < bytes.len() && bytes[at] != quote && bytes[at] != b'\n' {
            at += if bytes[at] == b'\\' && quote == b'"' {
                2
            } else {
                1
            };
        }
        let at = at.min(bytes.len());
        return (Span::new(start + 1, at), (at + 1).min(bytes.len()));
    }
    let mut at = start;
    while let Some(byte) = bytes.get(at) {
        let ends = match byte {
            b',' | b'{' | b'}' | b'[' | b']' | b'"' | b'\n' => true,
            // A colon inside a path or a time is a part of it.
            b':' => bytes
                .get(at + 1)
                .is_none_or(|next| next.is_ascii_whitespace() || *next == b'"'),
            _ => false,
        };
        if ends && at > start {
            break;
        }
        at += 1;
    }
    let trimmed = bytes[start..at].trim_ascii_end().len();
    (Span::new(start, start + trimmed), at.max(start + 1))
}

/// Notes a key, or the value of one.
fn take<'t>(text: &'t str, frames: &mut [Frame<'t>], span: Span) {
    let Some(top) = frames.last_mut() else { return };
    let word = span.slice(text).unwrap_or_default();
    match (top.is_value, top.key) {
        (true, Some(key)) => top.pairs.push((key, word)),
        (true, None) => {}
        (false, _) => top.key = Some(word),
    }
}
