//! Which characters XML can carry, and how they are escaped.

/// True for characters that XML 1.0 allows in a document, as themselves or as a reference.
pub(crate) const fn is_xml_char(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// The value of an attribute, for quotes of either kind.
pub(crate) fn escape_attribute(value: &str) -> String {
    escape(value, true)
}

/// The text of an element.
pub(crate) fn escape_text(value: &str) -> String {
    escape(value, false)
}

/// White space other than a blank would come back as a blank from an attribute; a carriage return
/// would come back as a newline from anywhere.
fn escape(value: &str, is_attribute: bool) -> String {
    let mut out = String::with_capacity(value.len());
    for c in value.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '\'' => out.push_str("&apos;"),
            '"' => out.push_str("&quot;"),
            '\r' => out.push_str("&#13;"),
            '\n' if is_attribute => out.push_str("&#10;"),
            '\t' if is_attribute => out.push_str("&#9;"),
            c => out.push(c),
        }
    }
    out
}
