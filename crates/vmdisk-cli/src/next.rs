//! The command that follows a command.

use std::ffi::OsString;

use vmdisk::plan::shell_word;

use crate::sanitize::line;

/// This command once more, without options that have a value, and with further words. `None` if it ends its options, or has
/// characters that are not printed as they are.
pub(crate) fn again(arguments: &[OsString], without: &[&str], more: &[&str]) -> Option<String> {
    let mut words = vec!["vmdisk".to_owned()];
    let mut rest = arguments.iter().skip(1);
    while let Some(word) = rest.next() {
        let word = word.to_str().filter(|it| *it != "--")?;
        if without.contains(&word) {
            rest.next();
            continue;
        }
        let is_joined = |option: &&str| {
            let value = word.strip_prefix(*option);
            value.is_some_and(|value| !option.starts_with("--") || value.starts_with('='))
        };
        if !without.iter().any(is_joined) {
            words.push(shell_word(word));
        }
    }
    words.extend(more.iter().map(|word| shell_word(word)));
    let command = words.join(" ");
    (line(&command) == command).then_some(command)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_are_left_out_with_their_values_and_words_are_quoted() {
        let of = |text: &str| {
            let words: Vec<OsString> = text.split('|').map(OsString::from).collect();
            again(&words, &["--output", "-o", "--format"], &["--to", "spec"])
        };
        let whole = "vmdisk advise --size 1G --in '/a b' --to spec";
        for with in ["--output|x", "--output=x", "-o|x", "-ox", "--format|text"] {
            let text = format!("/usr/bin/vmdisk|advise|{with}|--size|1G|--in|/a b");
            assert_eq!(of(&text).as_deref(), Some(whole), "{with}");
        }
        assert_eq!(of("vmdisk|decide|--|a.xml"), None);
        assert_eq!(of("vmdisk|decide|a\nb.xml"), None);
    }
}
