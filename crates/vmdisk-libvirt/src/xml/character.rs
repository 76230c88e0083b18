//! The characters that XML can represent, and their escapes.

/// True for characters that XML 1.0 allows in a document, literally or as a reference.
pub(crate) const fn is_xml_char(c: char) -> bool {
    matches!(c,
        '\t' | '\n' | '\r' | '\u{20}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..='\u{10ffff}')
}

/// Escapes the value of an attribute, for quotes of either kind.
pub(crate) fn escape_attribute(value: &str) -> String {
    escape(value, true)
}

/// Escapes the text of an element.
pub(crate) fn escape_text(value: &str) -> String {
    escape(value, false)
}

/// A parser would turn white space other than a blank into a blank in an attribute, and a carriage return into a
/// newline everywhere.
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

/// The offset of the first character that XML does not allow.
pub(super) fn find_illegal(text: &str) -> Option<(usize, char)> {
    // Controls, and the first byte of U+FFFE and U+FFFF. Blocks without either are skipped quickly.
    // Without a short circuit, so that the compiler vectorizes it.
    let is_suspect = |byte: u8| {
        ((byte < b' ') & (byte != b'\t') & (byte != b'\n') & (byte != b'\r')) | (byte == 0xef)
    };
    let block = |bytes: &[u8]| {
        bytes
            .iter()
            .fold(false, |any, byte| any | is_suspect(*byte))
    };
    let mut blocks = text.as_bytes().chunks(64).map(block);
    let mut start = 64 * blocks.position(|is_suspect| is_suspect)?;
    while !text.is_char_boundary(start) {
        start -= 1;
    }
    let mut rest = text[start..].char_indices();
    rest.find(|(_, c)| !is_xml_char(*c))
        .map(|(at, c)| (start + at, c))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_illegal_character_is_found_wherever_it_stands() {
        for width in [0, 1, 61, 62, 63, 64, 65, 200] {
            for (filler, c) in [
                ("a", '\0'),
                ("\t", '\u{1f}'),
                ("é", '\u{ffff}'),
                ("\u{feff}", '\u{fffe}'),
            ] {
                let before = filler.repeat(width);
                assert_eq!(find_illegal(&before), None);
                let text = format!("{before}{c}{before}");
                assert_eq!(find_illegal(&text), Some((before.len(), c)), "{width}");
            }
        }
    }
}
