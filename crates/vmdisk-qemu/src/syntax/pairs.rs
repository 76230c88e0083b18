//! key=value pairs with doubled commas, with places.

use vmdisk_source::Span;

use super::properties::{Kind, Properties, Property, Syntax};
use super::text::Text;
use crate::limits::MAX_PROPERTIES_OF_OPTION;

/// The pairs of an option; a first part without a key is the value of `implied`.
pub(crate) fn pairs(text: &Text, implied: Option<&str>) -> Properties {
    let value = text.as_str();
    let bytes = value.as_bytes();
    let mut list = Vec::new();
    let mut at = 0;
    // Reads one more than the limit, to detect the excess.
    while at < bytes.len() && list.len() <= MAX_PROPERTIES_OF_OPTION {
        let start = at;
        while at < bytes.len() && bytes[at] != b',' && bytes[at] != b'=' {
            at += 1;
        }
        let has_value = at < bytes.len() && bytes[at] == b'=';
        let (key, key_range, value_start) = match (has_value, implied.filter(|_| start == 0)) {
            (true, _) => (value[start..at].to_owned(), start..at, at + 1),
            (false, Some(implied)) => (implied.to_owned(), start..start, start),
            (false, None) => (value[start..at].to_owned(), start..at, at),
        };
        let is_flag = !has_value && (start > 0 || implied.is_none());
        let (property, end) = if is_flag {
            (flag(text, &key, key_range), at)
        } else {
            let (content, end) = content(text, value_start);
            let span = text.span(value_start..end);
            (
                Property {
                    key,
                    value: content,
                    kind: Kind::Plain,
                    span,
                    key_span: text.span(key_range.clone()),
                    has_open_key: has_hole(text, &key_range),
                    whole: span,
                    number: 0,
                },
                end,
            )
        };
        // The comma before belongs to the pair; for the first pair, the comma after.
        let whole = match (start, end < bytes.len()) {
            (0, true) => 0..end + 1,
            (0, false) => 0..end,
            (start, _) => start - 1..end,
        };
        list.push(Property {
            whole: text.span(whole),
            ..property
        });
        at = end + 1;
    }
    let end = text.span(bytes.len()..bytes.len()).start;
    Properties::new(list, Syntax::Pairs { end })
}

/// A value that is only a file name.
pub(crate) fn file_name(text: &Text) -> Properties {
    let span = text.whole();
    let property = Property {
        key: "file".to_owned(),
        value: text.clone(),
        kind: Kind::Plain,
        span,
        key_span: Span::empty(span.start),
        has_open_key: false,
        whole: span,
        number: 0,
    };
    Properties::new(vec![property], Syntax::FileName)
}

/// `share` means `share=on` and `noshare` means `share=off` to QEMU, deprecated since 6.0.
fn flag(text: &Text, key: &str, range: std::ops::Range<usize>) -> Property {
    let (key, word) = match key.strip_prefix("no") {
        Some(key) if matches!(key, "wait" | "delay" | "share" | "rw") => (key, "off"),
        Some(_) | None => (key, "on"),
    };
    let span = text.span(range.clone());
    let mut value = Text::empty(span.start);
    value.push_escape(word, span);
    Property {
        key: key.to_owned(),
        value,
        kind: Kind::Plain,
        span,
        key_span: span,
        has_open_key: has_hole(text, &range),
        whole: span,
        number: 0,
    }
}

/// True if a part of a range is unknown.
fn has_hole(text: &Text, range: &std::ops::Range<usize>) -> bool {
    let mut holes = text.holes();
    holes.any(|(hole, _)| hole.start < range.end && range.start < hole.end)
}

/// A value with its doubled commas reduced, and its end.
fn content(text: &Text, start: usize) -> (Text, usize) {
    let bytes = text.as_str().as_bytes();
    let mut content = text.part(start..start);
    let (mut plain, mut at) = (start, start);
    while at < bytes.len() {
        if bytes[at] == b',' {
            if bytes.get(at + 1) != Some(&b',') {
                break;
            }
            content.push_part(text, plain..at);
            let span: Span = text.span(at..at + 2);
            content.push_escape(",", span);
            at += 2;
            plain = at;
        } else {
            at += 1;
        }
    }
    content.push_part(text, plain..at);
    (content, at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_taken_apart_with_their_places() {
        let file = "virtio-blk-pci,drive=a,,b=c,share-rw,id=";
        let mut text = Text::empty(0);
        text.push_verbatim(file, Span::new(0, file.len()));
        let properties = pairs(&text, Some("driver"));
        let found: Vec<(&str, &str)> = properties
            .iter()
            .map(|property| (property.key.as_str(), property.value.as_str()))
            .collect();
        assert_eq!(
            found,
            [
                ("driver", "virtio-blk-pci"),
                ("drive", "a,b=c"),
                ("share-rw", "on"),
                ("id", "")
            ]
        );
        let drive = properties.get("drive").unwrap();
        assert_eq!(drive.span.slice(file), Some("a,,b=c"));
        assert_eq!(drive.whole.slice(file), Some(",drive=a,,b=c"));
        assert_eq!(properties.get("id").unwrap().span, Span::empty(40));
    }
}
