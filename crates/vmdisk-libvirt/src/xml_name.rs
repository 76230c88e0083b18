//! Names of elements and attributes.

/// What a byte may be in a name, for the bytes of ASCII.
const fn ascii_class(byte: u8) -> u8 {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'_' => START | INNER,
        b'0'..=b'9' | b'-' | b'.' => INNER,
        _ => 0,
    }
}

const START: u8 = 1;
const INNER: u8 = 2;

static CLASSES: [u8; 128] = {
    let mut classes = [0; 128];
    let mut byte = 0;
    while byte < 128 {
        classes[byte] = ascii_class(byte as u8);
        byte += 1;
    }
    classes
};

/// True for characters beyond ASCII that a name may begin with.
const fn is_wide_start(c: char) -> bool {
    matches!(c,
        '\u{c0}'..='\u{d6}' | '\u{d8}'..='\u{f6}' | '\u{f8}'..='\u{2ff}' | '\u{370}'..='\u{37d}'
        | '\u{37f}'..='\u{1fff}' | '\u{200c}'..='\u{200d}' | '\u{2070}'..='\u{218f}'
        | '\u{2c00}'..='\u{2fef}' | '\u{3001}'..='\u{d7ff}' | '\u{f900}'..='\u{fdcf}'
        | '\u{fdf0}'..='\u{fffd}' | '\u{10000}'..='\u{effff}')
}

/// True for characters beyond ASCII that may stand inside a name.
const fn is_wide_inner(c: char) -> bool {
    is_wide_start(c) || matches!(c, '\u{b7}' | '\u{300}'..='\u{36f}' | '\u{203f}'..='\u{2040}')
}

/// True for a name without a colon, as XML 1.0 has it.
pub(crate) fn is_name(name: &str) -> bool {
    let class = |byte: u8| CLASSES.get(usize::from(byte)).copied();
    let Some(first) = name.bytes().next() else {
        return false;
    };
    if class(first).is_some_and(|class| class & START == 0) {
        return false;
    }
    if name
        .bytes()
        .all(|byte| class(byte).is_some_and(|class| class & INNER != 0))
    {
        return true;
    }
    let mut characters = name.chars();
    let is_start = |c: char| match u8::try_from(c).ok().and_then(class) {
        Some(class) => class & START != 0,
        None => is_wide_start(c),
    };
    let is_inner = |c: char| match u8::try_from(c).ok().and_then(class) {
        Some(class) => class & INNER != 0,
        None => is_wide_inner(c),
    };
    characters.next().is_some_and(is_start) && characters.all(is_inner)
}

/// Offset of the one colon in a name, if it has one; an error if it is no name.
pub(crate) fn colon(name: &str) -> Result<Option<usize>, ()> {
    let colon = name.bytes().position(|byte| byte == b':');
    let is_sound = match colon {
        Some(at) => is_name(&name[..at]) && is_name(&name[at + 1..]),
        None => is_name(name),
    };
    if is_sound { Ok(colon) } else { Err(()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_has_at_most_one_colon_inside_and_begins_with_a_letter() {
        for (name, expected) in [
            ("disk", Ok(None)),
            ("qemu:commandline", Ok(Some(4))),
            ("größe-1.x", Ok(None)),
            ("_", Ok(None)),
            ("a\u{b7}", Ok(None)),
            ("", Err(())),
            (":a", Err(())),
            ("a:", Err(())),
            ("a:b:c", Err(())),
            ("1a", Err(())),
            ("-a", Err(())),
            ("a:1", Err(())),
            ("a&b", Err(())),
            ("\u{b7}a", Err(())),
            ("a\u{a0}b", Err(())),
            ("a\u{d7}", Err(())),
        ] {
            assert_eq!(colon(name), expected, "{name}");
        }
    }
}
