//! References and line ends: the decoded text of a value.

use super::character::is_xml_char;

/// The character of the reference `&name;`; `None` for an unknown entity, and for the number of a
/// character that XML does not allow.
pub(super) fn referenced(name: &str) -> Option<char> {
    let Some(number) = name.strip_prefix('#') else {
        return match name {
            "lt" => Some('<'),
            "gt" => Some('>'),
            "amp" => Some('&'),
            "quot" => Some('"'),
            "apos" => Some('\''),
            _ => None,
        };
    };
    let (digits, radix) = match number.strip_prefix('x') {
        Some(digits) => (digits, 16),
        None => (number, 10),
    };
    // The standard library would accept a sign.
    if !digits.starts_with(|first: char| first.is_digit(radix)) {
        return None;
    }
    let code = u32::from_str_radix(digits, radix).ok()?;
    char::from_u32(code).filter(|c| is_xml_char(*c))
}

/// The value of an attribute (XML 1.0, section 3.3.3) with references, tabs or line ends. Its references are already
/// checked.
pub(super) fn attribute_value(written: &str) -> String {
    let is_special = |byte: &u8| matches!(byte, b'&' | b'\t' | b'\n' | b'\r');
    let mut out = String::with_capacity(written.len());
    let mut rest = written;
    while let Some(at) = rest.bytes().position(|byte| is_special(&byte)) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        if rest.starts_with('&') {
            rest = push_reference(rest, &mut out);
        } else {
            out.push(' ');
            rest = rest.strip_prefix("\r\n").unwrap_or(&rest[1..]);
        }
    }
    out.push_str(rest);
    out
}

/// Appends one piece of an element's text: a reference, a CDATA section, or characters.
pub(super) fn push_piece(piece: &str, out: &mut String) {
    if piece.starts_with('&') {
        push_reference(piece, out);
        return;
    }
    let mut text = piece
        .strip_prefix("<![CDATA[")
        .and_then(|section| section.strip_suffix("]]>"))
        .unwrap_or(piece);
    while let Some((line, rest)) = text.split_once('\r') {
        out.push_str(line);
        out.push('\n');
        text = rest.strip_prefix('\n').unwrap_or(rest);
    }
    out.push_str(text);
}

/// True for a piece without references and line ends.
pub(super) fn is_literal(piece: &str) -> bool {
    !piece.starts_with(['&', '<']) && !piece.as_bytes().contains(&b'\r')
}

/// Appends the character of the reference at the start of `text`, and returns the rest of the text.
fn push_reference<'t>(text: &'t str, out: &mut String) -> &'t str {
    let (name, rest) = text[1..].split_once(';').unwrap_or((&text[1..], ""));
    out.extend(referenced(name));
    rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reference_stands_for_a_character_that_xml_allows() {
        for (name, expected) in [
            ("lt", Some('<')),
            ("apos", Some('\'')),
            ("#65", Some('A')),
            ("#x1F4BE", Some('\u{1f4be}')),
            ("#13", Some('\r')),
            ("#0", None),
            ("#xd800", None),
            ("#xffff", None),
            ("#x110000", None),
            ("#", None),
            ("#x", None),
            ("#+65", None),
            ("#X41", None),
            ("nbsp", None),
        ] {
            assert_eq!(referenced(name), expected, "{name}");
        }
    }

    #[test]
    fn white_space_of_a_value_becomes_blanks_unless_it_is_a_reference() {
        assert_eq!(attribute_value("a b"), "a b");
        assert_eq!(
            attribute_value("a\tb\nc\r\nd\re&#10;f&amp;&#9;"),
            "a b c d e\nf&\t"
        );
        assert_eq!(attribute_value("\r&#10;"), " \n");
    }

    #[test]
    fn line_ends_of_a_text_become_newlines() {
        let text = |pieces: &[&str]| {
            let mut out = String::new();
            for piece in pieces {
                push_piece(piece, &mut out);
            }
            out
        };
        assert_eq!(text(&["a\r\nb\rc\r", "&#13;", "&lt;"]), "a\nb\nc\n\r<");
        assert_eq!(text(&["<![CDATA[<&]\r\n]]>", "x"]), "<&]\nx");
    }
}
