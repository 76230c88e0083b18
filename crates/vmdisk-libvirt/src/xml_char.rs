//! Which characters XML can carry, and how they are escaped.

/// True for characters that XML 1.0 allows in a document, as themselves or as a reference.
pub(crate) const fn is_xml_char(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// The first character of a text that XML does not allow, with its offset.
pub(crate) fn find_no_xml_char(text: &str) -> Option<(usize, char)> {
    // Without a way out of the loop, the compiler looks at many bytes at once.
    let is_suspect =
        |byte: &u8| (*byte < 0x20) & (*byte != b'\t') & (*byte != b'\n') & (*byte != b'\r');
    let (mut has_control, mut has_wide) = (false, false);
    for byte in text.as_bytes() {
        has_control |= is_suspect(byte);
        // U+FFFE and U+FFFF are the only others that UTF-8 can say; both begin with this byte.
        has_wide |= *byte == 0xef;
    }
    if !has_control && !has_wide {
        return None;
    }
    text.char_indices().find(|(_, c)| !is_xml_char(*c))
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
