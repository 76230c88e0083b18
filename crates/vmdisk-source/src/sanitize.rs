//! Text from files and file names made harmless for a terminal and a log.
//!
//! A file name may hold an escape sequence that repaints a CI log, and a value may hold characters
//! that reorder what stands around them. Data formats (JSON, SARIF) carry text exactly; what people
//! read goes through here.

use std::borrow::Cow;

/// True for characters that act on a terminal or a reader instead of being seen.
pub const fn is_hazard(character: char) -> bool {
    match character {
        // Nearly every character.
        ' '..='~' => false,
        // C0, DEL and C1 controls.
        '\u{0}'..='\u{1f}' | '\u{7f}'..='\u{9f}' => true,
        // Invisible characters: soft hyphen, vowel separator, zero widths, word joiners, marks.
        '\u{ad}' | '\u{180e}' | '\u{200b}'..='\u{200d}' | '\u{2060}'..='\u{2065}' | '\u{feff}' => {
            true
        }
        // Characters that change the direction of text.
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{206f}' => {
            true
        }
        // Line and paragraph separators, interlinear annotations, tags.
        '\u{2028}' | '\u{2029}' | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e007f}' => true,
        _ => false,
    }
}

/// True for printable ASCII, which nearly every text is.
pub fn is_plain(text: &str) -> bool {
    all(text, |byte| matches!(byte, b' '..=b'~'))
}

/// True for printable ASCII without characters that JSON escapes.
pub fn is_plain_in_json(text: &str) -> bool {
    all(
        text,
        |byte| matches!(byte, b' ' | b'!' | b'#'..=b'[' | b']'..=b'~'),
    )
}

/// As [`Iterator::all`], but without an early end, so that many bytes are compared at once.
fn all(text: &str, is_such: impl Fn(u8) -> bool) -> bool {
    text.bytes().fold(true, |all, byte| all & is_such(byte))
}

/// One line of text: every hazard, line ends included, is written as its number.
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// Text of several lines: line feeds stay, every other hazard is written as its number.
pub fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |character| character == '\n')
}

fn escape(text: &str, stays: impl Fn(char) -> bool) -> Cow<'_, str> {
    if is_plain(text) {
        return Cow::Borrowed(text);
    }
    let must_go = |character: char| is_hazard(character) && !stays(character);
    if !text.chars().any(must_go) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if must_go(character) {
            out.extend(character.escape_unicode());
        } else {
            out.push(character);
        }
    }
    Cow::Owned(out)
}

/// The replacement of a character in a quoted source line; one character each, so that columns match.
///
/// Tabs and line ends stay: the renderer of snippets lays them out.
pub fn source_character(character: char) -> char {
    match character {
        '\t' | '\n' | '\r' => character,
        '\u{0}'..='\u{1f}' => {
            char::from_u32(0x2400 + u32::from(character)).unwrap_or(char::REPLACEMENT_CHARACTER)
        }
        '\u{7f}' => '\u{2421}',
        other if is_hazard(other) => char::REPLACEMENT_CHARACTER,
        other => other,
    }
}

/// The operating system's message of an error, with a small first letter and without Rust's error number.
pub fn system_message(error: &std::io::Error) -> String {
    let text = error.to_string();
    let text = text.split(" (os error").next().unwrap_or(&text);
    let mut letters = text.chars();
    match letters.next() {
        Some(first) => first.to_lowercase().chain(letters).collect(),
        None => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_that_acts_on_a_terminal_comes_through() {
        let nasty = "a\u{1b}[2J\r\nb\u{9b}31m\u{202e}c\u{200b}\u{7f}\u{2066}";
        let safe = line(nasty);
        assert_eq!(
            safe,
            "a\\u{1b}[2J\\u{d}\\u{a}b\\u{9b}31m\\u{202e}c\\u{200b}\\u{7f}\\u{2066}"
        );
        assert!(!safe.chars().any(is_hazard));
        assert!(
            nasty
                .chars()
                .map(source_character)
                .all(|character| !is_hazard(character) || matches!(character, '\r' | '\n'))
        );
    }

    #[test]
    fn only_printable_ascii_is_plain_wherever_it_stands() {
        for byte in 0..=0x7f_u8 {
            for width in [0, 1, 7, 8, 9, 20] {
                let around = "~ ".repeat(width);
                let text = format!("{around}{}{around}", char::from(byte));
                assert_eq!(is_plain(&text), (b' '..=b'~').contains(&byte), "{text:?}");
            }
        }
        for byte in 0..=0x7f_u8 {
            let text = format!("~ abcdefghi{}jklmnopq", char::from(byte));
            let is_plain = (b' '..=b'~').contains(&byte) && !b"\"\\".contains(&byte);
            for start in 0..=11 {
                assert_eq!(is_plain_in_json(&text[start..]), is_plain, "{text:?}");
            }
        }
        assert!(!is_plain("abcdefgü"));
        assert!(!is_plain("ÿÿÿÿabcdefgh"));
    }

    #[test]
    fn ordinary_text_is_left_alone_and_not_copied() {
        let text = "/srv/bilder/größe 💾.qcow2";
        assert!(matches!(line(text), Cow::Borrowed(same) if same == text));
        assert_eq!(lines("a\nb"), "a\nb");
    }
}
