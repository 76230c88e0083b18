//! The text of `$'…'`, in which a shell reads escapes as in C.

/// Returns the value of the text after `$'` and the length of this text with the closing quote. The value is `None` if its
/// bytes are not UTF-8.
pub(super) fn value(text: &str) -> (Option<String>, usize) {
    let mut bytes = Vec::new();
    let mut at = 0;
    // A shell ignores what follows a zero byte.
    let mut has_ended = false;
    while let Some(letter) = text[at..].chars().next() {
        at += letter.len_utf8();
        let mut found = match letter {
            '\'' => return (String::from_utf8(bytes).ok(), at),
            '\\' => {
                let (value, length) = escape(&text[at..]);
                at += length;
                value
            }
            _ => letter.to_string().into_bytes(),
        };
        has_ended |= found == [0];
        if !has_ended {
            bytes.append(&mut found);
        }
    }
    (String::from_utf8(bytes).ok(), at)
}

/// The bytes of an escape without its backslash, and its length.
fn escape(text: &str) -> (Vec<u8>, usize) {
    let Some(letter) = text.chars().next() else {
        return (vec![b'\\'], 0);
    };
    let one = |byte: u8| (vec![byte], 1);
    match letter {
        'a' => one(0x07),
        'b' => one(0x08),
        'e' | 'E' => one(0x1b),
        'f' => one(0x0c),
        'n' => one(b'\n'),
        'r' => one(b'\r'),
        't' => one(b'\t'),
        'v' => one(0x0b),
        '\\' | '\'' | '"' | '?' => one(letter as u8),
        '0'..='7' => {
            let (code, length) = number(text, 8, 3);
            (vec![code as u8], length)
        }
        'x' | 'u' | 'U' => {
            let most = match letter {
                'x' => 2,
                'u' => 4,
                _ => 8,
            };
            match number(&text[1..], 16, most) {
                (_, 0) => (format!("\\{letter}").into_bytes(), 1),
                (code, length) if letter == 'x' => (vec![code as u8], 1 + length),
                (code, length) => {
                    let letter = char::from_u32(code).unwrap_or(char::REPLACEMENT_CHARACTER);
                    (letter.to_string().into_bytes(), 1 + length)
                }
            }
        }
        'c' if text.len() > 1 && text.is_char_boundary(2) => (vec![text.as_bytes()[1] & 0x1f], 2),
        other => (format!("\\{other}").into_bytes(), other.len_utf8()),
    }
}

/// The number of at most `most` digits at the start of a text, and how many there are.
fn number(text: &str, base: u32, most: usize) -> (u32, usize) {
    let digits = text.chars().map_while(|letter| letter.to_digit(base));
    digits.take(most).fold((0, 0), |(value, length), digit| {
        (value * base + digit, length + 1)
    })
}
