//! Quoting for a POSIX shell.

use std::borrow::Cow;

/// Quotes a word so that a POSIX shell reads exactly this word.
///
/// Words of letters, digits and `-_./:,=@%+` are not quoted; all others are put in single quotes, in which only the
/// single quote itself is special.
///
/// ```
/// use vmdisk_qemu::shell_quote;
/// assert_eq!(shell_quote("/srv/web1.qcow2"), "/srv/web1.qcow2");
/// assert_eq!(shell_quote("it's $HOME"), r"'it'\''s $HOME'");
/// ```
pub fn shell_quote(word: &str) -> Cow<'_, str> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./:,=@%+".contains(&byte);
    if !word.is_empty() && word.bytes().all(is_plain) {
        return Cow::Borrowed(word);
    }
    Cow::Owned(format!("'{}'", word.replace('\'', r"'\''")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        for (word, quoted) in [
            ("-blockdev", "-blockdev"),
            ("q35,accel=kvm", "q35,accel=kvm"),
            ("", "''"),
            ("a b", "'a b'"),
            ("a\nb", "'a\nb'"),
            ("~root", "'~root'"),
            ("#x", "'#x'"),
            ("{a,b}", "'{a,b}'"),
            ("'", r"''\'''"),
            ("\\", "'\\'"),
            ("\u{e9}", "'\u{e9}'"),
        ] {
            assert_eq!(shell_quote(word), quoted, "{word:?}");
        }
    }
}
