//! Comments of a POSIX shell.

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
    fn a_comment_stays_on_its_line() {
        assert_eq!(comment("a\nrm -rf /\r\u{85}"), r"a\nrm -rf /\r\u{85}");
    }
}
