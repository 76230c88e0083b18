//! No fix touches text that a shell, systemd or a template fills in later.

use std::collections::BTreeMap;

use vmdisk::{FixScope, LintOptions, fix, read};
use vmdisk_tests::fix_cases::fix_cases;

const EXPANSIONS: [&str; 7] = [
    "$PLANT",
    "${PLANT}",
    "$(plant)",
    "`plant`",
    "%PLANT%",
    "{{plant}}",
    "${PLANT:-on}",
];

/// The words of keys and values in any syntax: their starts and ends.
fn words(text: &str) -> Vec<(usize, usize)> {
    let is_inside = |letter: char| letter.is_ascii_alphanumeric() || "_./-".contains(letter);
    let mut words = Vec::new();
    let mut start = None;
    for (at, letter) in text.char_indices().chain([(text.len(), '\n')]) {
        match (start, is_inside(letter)) {
            (None, true) => start = Some(at),
            (Some(from), false) => {
                words.push((from, at));
                start = None;
            }
            _ => {}
        }
    }
    words
}

/// The text between the spaces around a position.
fn word_at(text: &str, at: usize) -> &str {
    let start = text[..at].rfind(char::is_whitespace).map_or(0, |it| it + 1);
    let end = text[at..].find(char::is_whitespace);
    &text[start..end.map_or(text.len(), |it| at + it)]
}

/// What plants in one syntax came to.
#[derive(Debug, Default)]
struct Count {
    planted: usize,
    fixed: usize,
}

#[test]
fn no_fix_touches_an_expansion_wherever_it_is_planted() {
    /// Words between two plants in one text.
    const STRIDE: usize = 61;
    let mut counts: BTreeMap<&str, Count> = BTreeMap::new();
    let mut nth = 0;
    for (number, case) in fix_cases().iter().enumerate() {
        for (start, end) in words(&case.text)
            .into_iter()
            .skip(number % STRIDE)
            .step_by(STRIDE)
        {
            nth += 1;
            let expansion = EXPANSIONS[nth % EXPANSIONS.len()];
            // The whole word, its end, or its beginning.
            let at = match nth % 3 {
                0 => start..end,
                1 => end..end,
                _ => start..start,
            };
            let mut text = case.text.clone();
            text.replace_range(at.clone(), expansion);
            if read(&text).is_err() {
                continue;
            }
            let count = counts.entry(case.syntax.name()).or_default();
            count.planted += 1;
            let fixed = case.with_options(|options| fix(&text, options, FixScope::SafeAndUnsafe));
            let after = fixed.expect("it was read before").document.text;
            count.fixed += usize::from(*after != text);
            let word = word_at(&text, at.start);
            assert!(
                after.contains(word),
                "{}: `{word}` was changed\n--- before\n{text}--- after\n{after}",
                case.origin
            );
        }
    }
    println!("{counts:?}");
    assert!(counts.len() > 8, "{counts:?}");
    for (syntax, count) in &counts {
        assert!(count.planted >= 20, "{syntax}: {count:?}");
    }
    let fixed: usize = counts.values().map(|count| count.fixed).sum();
    assert!(fixed >= 200, "only {fixed} texts were fixed elsewhere");
}

#[test]
fn text_that_stands_in_several_places_of_a_command_line_is_not_fixed() {
    let drive = "-drive file=/a,format=raw,if=virtio,cahce=none";
    let value = "file=/a,format=raw,if=virtio,cahce=none";
    for (script, is_fixed) in [
        (format!("O='{drive}'\nqemu-system-x86_64 -m 1G $O\n"), true),
        (
            format!("O=({drive})\nqemu-system-x86_64 -m 1G \"${{O[@]}}\"\n"),
            true,
        ),
        (
            format!("O='{drive}'\necho \"$O\"\nqemu-system-x86_64 -m 1G $O\n"),
            false,
        ),
        (
            format!("D={value}\nqemu-system-x86_64 -m 1G -drive $D\n"),
            false,
        ),
        (
            format!("for i in 1 2; do O+=' {drive}'; done\nqemu-system-x86_64 -m 1G $O\n"),
            false,
        ),
        (
            // What a function appends is checked where it stands, however often it is called.
            format!("f() {{ O+=' {drive}'; }}\nf; f\nqemu-system-x86_64 -m 1G $O\n"),
            true,
        ),
        (
            format!("f() {{ O+=' {drive}'; }}\nf\nqemu-system-x86_64 -m 1G $O\n"),
            true,
        ),
    ] {
        let fixed = fix(&script, &LintOptions::default(), FixScope::SafeAndUnsafe);
        let text = fixed.expect("it is a command line").document.text;
        let expected = match is_fixed {
            true => script.replace("cahce", "cache"),
            false => script.clone(),
        };
        assert_eq!(*text, expected);
    }
}
