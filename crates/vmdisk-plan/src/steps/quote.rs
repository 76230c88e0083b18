//! Words of a POSIX shell.

/// The text as one word of a POSIX shell, whatever bytes it has; a shell has no word for a zero byte.
pub fn quote(text: &str) -> String {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_./:@%+,=-".contains(&byte);
    if !text.is_empty() && text.bytes().all(is_plain) {
        return text.to_owned();
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The text on one line of a comment.
pub(crate) fn comment(text: &str) -> String {
    // A line feed would end the comment, and what follows it would be run.
    text.chars()
        .flat_map(|c| match c {
            c if c.is_control() => c.escape_default().collect::<Vec<char>>(),
            c => vec![c],
        })
        .collect()
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
            assert_eq!(quote(text), quoted);
        }
    }

    #[test]
    fn a_comment_stays_on_its_line() {
        assert_eq!(comment("a\nrm -rf /\r\u{85}"), r"a\nrm -rf /\r\u{85}");
    }
}
