//! Words of a POSIX shell.

use crate::{Piece, quoted};

/// The text as one word of a POSIX shell, whatever bytes it has; a shell has no word for a zero byte.
pub fn shell_word(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+,=-".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A command with arguments, printed in backticks; a shell reads each argument as one word.
pub fn command(start: &str, arguments: &[&str]) -> Piece {
    let words = arguments.iter().map(|it| shell_word(it));
    quoted(words.fold(start.to_owned(), |all, word| all + " " + &word))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plain_word_stays_and_anything_else_is_quoted() {
        for (text, quoted) in [
            ("/srv/a.img", "/srv/a.img"),
            ("size=40G,x", "size=40G,x"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("a\nb", "'a\nb'"),
            ("$(rm)", "'$(rm)'"),
            ("~", "'~'"),
            ("é", "'é'"),
        ] {
            assert_eq!(shell_word(text), quoted);
        }
    }
}
