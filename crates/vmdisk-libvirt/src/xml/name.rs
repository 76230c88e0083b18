//! Names of elements and attributes, by XML 1.0 (section 2.3) and Namespaces in XML (section 4).

/// True for the same two names. They are short: a loop takes less than a call of the C library's comparison.
#[inline]
pub(crate) fn is_same(one: &str, other: &str) -> bool {
    one.len() == other.len() && one.bytes().zip(other.bytes()).all(|(a, b)| a == b)
}

/// The offset of the colon in a qualified name; `Err` if the text is not a qualified name.
pub(super) fn check_qualified(name: &str) -> Result<Option<usize>, NotAName> {
    match name.split_once(':') {
        Some((prefix, local)) if is_name(prefix) && is_name(local) => Ok(Some(prefix.len())),
        None if is_name(name) => Ok(None),
        Some(_) | None => Err(NotAName),
    }
}

/// The text is not a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NotAName;

/// True for a name without a colon.
pub(super) fn is_name(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(is_start) && chars.all(is_name_char)
}

pub(super) const fn is_ascii_start(byte: u8) -> bool {
    byte.is_ascii_alphabetic() || byte == b'_'
}

pub(super) const fn is_ascii_name_byte(byte: u8) -> bool {
    is_ascii_start(byte) || byte.is_ascii_digit() || matches!(byte, b'-' | b'.')
}

fn is_start(c: char) -> bool {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => is_ascii_start(byte),
        Ok(_) | Err(_) => matches!(c,
            '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
            | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
            | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}'
            | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}'),
    }
}

fn is_name_char(c: char) -> bool {
    match u8::try_from(c) {
        Ok(byte) if byte.is_ascii() => is_ascii_name_byte(byte),
        Ok(_) | Err(_) => {
            is_start(c) || matches!(c, '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_qualified_name_has_at_most_one_colon_inside() {
        for (name, colon) in [
            ("disk", None),
            ("_a-1.b", None),
            ("qemu:arg", Some(4)),
            ("größe", None),
            ("a\u{b7}", None),
        ] {
            assert_eq!(check_qualified(name), Ok(colon), "{name}");
        }
        for name in [
            "", ":", ":a", "a:", "a:b:c", "1", "-a", ".a", "a:1", "a$b", "a!", "\u{b7}a",
            "a\u{37e}",
        ] {
            assert_eq!(check_qualified(name), Err(NotAName), "{name}");
        }
    }
}
