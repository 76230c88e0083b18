//! The words that facts may contain at every level: those of kernels, programs and distributions.

use std::collections::HashSet;
use std::sync::LazyLock;

use vmdisk_facts::{BlockKind, FsKind, Quantity};
use vmdisk_model::Format;

use super::Redactor;

/// Each word that stays, in lower case: those of the enumerations that facts are read into, and those of a list.
static WORDS: LazyLock<HashSet<String>> = LazyLock::new(|| {
    let listed = include_str!("words.txt").lines();
    let listed = listed
        .filter(|line| !line.starts_with('#'))
        .map(str::to_owned);
    let blocks = BlockKind::NAMED.iter().map(|kind| kind.as_str().to_owned());
    let systems = FsKind::NAMED.iter().map(|kind| kind.name().into_owned());
    let formats = Format::ALL.iter().map(|format| format.as_str().to_owned());
    let figures = Quantity::WORDS.iter().map(|word| (*word).to_owned());
    let named = blocks.chain(systems).chain(formats).chain(figures);
    let texts: Vec<String> = listed.chain(named).collect();
    let words = texts
        .iter()
        .flat_map(|text| text.split(|character: char| !character.is_ascii_alphabetic()));
    words.map(str::to_owned).collect()
});

impl Redactor {
    /// A version, a state or another text of known words and numbers. A part with an unknown word is replaced whole:
    /// of `6.1.0-acme7` stays `6.1.0-`.
    pub(super) fn words(&self, text: &str) -> String {
        let mut out = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(first) = rest.chars().next() {
            let is_word = first.is_alphanumeric();
            let end = rest
                .find(|character: char| character.is_alphanumeric() != is_word)
                .unwrap_or(rest.len());
            let (part, after) = rest.split_at(end);
            match !is_word || is_known(part) {
                true => out.push_str(part),
                false => out.push_str(&self.name(part)),
            }
            rest = after;
        }
        out
    }
}

/// True for a hexadecimal number with its prefix, and for known words and single letters with numbers between them.
fn is_known(part: &str) -> bool {
    let is_hexadecimal = |digits: &str| digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    part.strip_prefix("0x").is_some_and(is_hexadecimal)
        || part
            .split(|character: char| character.is_ascii_digit())
            .all(|run| run.len() <= 1 || WORDS.contains(run.to_ascii_lowercase().as_str()))
}

#[cfg(test)]
mod tests {
    use crate::redact::{Level, Redactor};

    #[test]
    fn versions_of_distributions_stay_and_other_suffixes_do_not() {
        let redactor = Redactor::new(b"a salt for tests", Level::Shareable);
        for kept in [
            "6.1.0-28-amd64",
            "6.8.0-51-generic",
            "5.14.0-503.11.1.el9_5.x86_64",
            "4.18.0-553.el8_10.x86_64",
            "6.12.9-200.fc41.x86_64",
            "6.8.12-5-pve",
            "6.4.0-150600.23.33-default",
            "1:8.2.2+ds-0ubuntu1.5",
            "1:7.2+dfsg-7+deb12u7",
            "9.0.0-4+deb12u2~bpo11+1",
            "6.9.3-arch1-1",
            "6.13.0-rc4",
            "0x9123683e",
        ] {
            assert_eq!(redactor.words(kept), kept);
        }
        for (text, start) in [
            ("6.1.0-acmecorp-prod7", "6.1.0-x"),
            ("9.0.0-4+acmecorp2", "9.0.0-4+x"),
            ("qemu-system-x86_64-acmecorp", "qemu-system-x86_64-x"),
            ("could not open /srv/acmecorp/secret.img", ""),
        ] {
            let words = redactor.words(text);
            assert!(words.starts_with(start), "{words}");
            for name in ["acmecorp", "prod", "secret"] {
                assert!(!words.contains(name), "{words}");
            }
        }
    }
}
