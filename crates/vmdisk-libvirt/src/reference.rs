//! `&…;`: checked by the guard, resolved where a value is asked for.

use std::borrow::Cow;

use vmdisk_source::Span;

use crate::ReadFailure;
use crate::xml_char::is_xml_char;

/// Each `&` in `span` must begin one of the five named entities or a character reference.
///
/// # Errors
/// At the first that does not.
pub(crate) fn check(text: &str, span: Span) -> Result<(), ReadFailure> {
    let inside = span.slice(text).unwrap_or_default();
    for (at, _) in inside.match_indices('&') {
        let start = span.start + at;
        let rest = &inside[at + 1..];
        let end = rest
            .find(|c: char| !(c.is_alphanumeric() || matches!(c, '#' | '_' | '-' | '.' | ':')))
            .unwrap_or(rest.len());
        let name = &rest[..end];
        if name.is_empty() || !rest[end..].starts_with(';') {
            let span = Span::new(start, start + 1);
            return Err(ReadFailure::malformed(span, "a stray `&`").help("write `&amp;`"));
        }
        if meaning(name).is_some() {
            continue;
        }
        let span = Span::new(start, start + name.len() + 2);
        return Err(if name.starts_with('#') {
            ReadFailure::malformed(span, format!("`&{name};` is no character that XML allows"))
        } else {
            ReadFailure::malformed(span, format!("unknown entity `&{name};`")).help(
                "write the character itself; XML names only `&lt;`, `&gt;`, `&amp;`, `&quot;` and `&apos;`",
            )
        });
    }
    Ok(())
}

/// The character that a reference stands for.
fn meaning(name: &str) -> Option<char> {
    match name {
        "lt" => Some('<'),
        "gt" => Some('>'),
        "amp" => Some('&'),
        "quot" => Some('"'),
        "apos" => Some('\''),
        _ => {
            let number = name.strip_prefix('#')?;
            let code = match number.strip_prefix('x') {
                Some(hex) => u32::from_str_radix(hex, 16).ok()?,
                None => number.parse().ok()?,
            };
            char::from_u32(code).filter(|c| is_xml_char(*c))
        }
    }
}

/// An attribute's value as programs get it: references resolved, white space turned into blanks.
pub(crate) fn attribute_value(written: &str) -> String {
    resolve(written, ' ')
}

/// The text of an element as programs get it: references resolved, line ends turned into newlines.
pub(crate) fn element_text(written: &str) -> Cow<'_, str> {
    if written.bytes().any(|byte| matches!(byte, b'&' | b'\r')) {
        Cow::Owned(resolve(written, '\n'))
    } else {
        Cow::Borrowed(written)
    }
}

/// The text of a CDATA section, in which `&` is a character like any other.
pub(crate) fn cdata_text(section: &str) -> Cow<'_, str> {
    let inside = section
        .strip_prefix(CDATA_START)
        .and_then(|rest| rest.strip_suffix(CDATA_END))
        .unwrap_or(section);
    if inside.contains('\r') {
        Cow::Owned(inside.replace("\r\n", "\n").replace('\r', "\n"))
    } else {
        Cow::Borrowed(inside)
    }
}

/// What begins a CDATA section.
pub(crate) const CDATA_START: &str = "<![CDATA[";
/// What ends it.
pub(crate) const CDATA_END: &str = "]]>";

/// `line_end` is what a line end becomes; a tab becomes a blank if that is one.
fn resolve(written: &str, line_end: char) -> String {
    let mut out = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(c) = rest.chars().next() {
        rest = &rest[c.len_utf8()..];
        match c {
            '&' => {
                // The guard has passed every reference; one it has not seen stays as it is.
                let named = rest.split_once(';');
                match named.and_then(|(name, after)| Some((meaning(name)?, after))) {
                    Some((meant, after)) => {
                        out.push(meant);
                        rest = after;
                    }
                    None => out.push('&'),
                }
            }
            '\r' => {
                rest = rest.strip_prefix('\n').unwrap_or(rest);
                out.push(line_end);
            }
            '\n' => out.push(line_end),
            '\t' if line_end == ' ' => out.push(' '),
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_and_white_space_come_out_as_xml_says() {
        let written = "a&amp;b\t&#9;c\r\nd\re&#xa;&lt;&gt;&quot;&apos;&#x1F4BE;";
        assert_eq!(attribute_value(written), "a&b \tc d e\n<>\"'\u{1f4be}");
        assert_eq!(element_text(written), "a&b\t\tc\nd\ne\n<>\"'\u{1f4be}");
        assert!(matches!(element_text("a\tb\n"), Cow::Borrowed("a\tb\n")));
    }
}
