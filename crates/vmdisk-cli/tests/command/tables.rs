//! Tables on a terminal.

use crate::{Place, on_columns};
use vmdisk_testing::{installed, needed};

/// Every command that prints a table.
const COMMANDS: &[&[&str]] = &[
    &["explain", "--list"],
    &["facts", "qemu", "--target", "qemu=8.2"],
    &["facts", "show", "ARTICLE/facts.json"],
    &[
        "lint",
        "ARTICLE/domain.xml",
        "--facts",
        "ARTICLE/facts.json",
        "--statistics",
    ],
    &["trace", "ARTICLE/domain.xml"],
    &[
        "trace",
        "ARTICLE/domain.xml",
        "--facts",
        "ARTICLE/facts.json",
    ],
    &["advise", "--size", "40G", "--facts", "ARTICLE/facts.json"],
    #[cfg(feature = "bench")]
    &[
        "bench",
        "report",
        "fixtures/measurements/five-backends.json",
    ],
    #[cfg(feature = "bench")]
    &[
        "bench",
        "report",
        "fixtures/measurements/verify-cache-writethrough.json",
    ],
    &[
        "decide",
        "ARTICLE/domain.xml",
        "--facts",
        "ARTICLE/facts.json",
    ],
    #[cfg(feature = "bench")]
    &["bench", "presets"],
];

const ARTICLE: &str = "fixtures/articles/001-lvm-thin-iothread-hugepages";

#[test]
fn every_table_fits_a_terminal_of_80_and_of_50_columns() {
    let place = Place::with(&[]);
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for words in COMMANDS {
        let words = words.iter().map(|word| word.replace("ARTICLE", ARTICLE));
        let words: Vec<String> = words.collect();
        let whole = place.command(&words).current_dir(&root).output().unwrap();
        let whole = String::from_utf8(whole.stdout).unwrap();
        for columns in [80, 50] {
            let mut command = place.command(&words);
            command.current_dir(&root).env("PAGER", "cat");
            let Some(run) = on_columns(command, columns) else {
                return;
            };
            assert_ne!(run.code, 2, "{words:?}: {run:?}");
            let mut text = String::new();
            for line in run.stdout.lines() {
                text.push_str(line);
                text.push(' ');
                // Nothing but one word, with its label, the XML of a disk, and a command to copy may be wider.
                let start = line.trim_start();
                let is_word = line.split_whitespace().count() <= 2
                    || start.starts_with('<')
                    || start.starts_with("vmdisk ");
                let length = line.chars().count();
                assert!(
                    length <= columns || is_word,
                    "{words:?}, {length} of {columns}: {line}"
                );
            }
            // No word is lost or broken, but that the first column of records has no name.
            let shown: Vec<&str> = text.split_whitespace().collect();
            for word in whole
                .split_whitespace()
                .filter(|word| word.len() > 13 && !word.starts_with(['.', '|']))
            {
                let is_there = shown.iter().any(|one| one.contains(word));
                assert!(
                    is_there,
                    "{words:?}: {word} is not shown in {columns} columns:\n{}",
                    run.stdout
                );
            }
        }
    }
}

#[test]
fn the_manual_page_is_shown_by_man_on_a_terminal_and_is_roff_elsewhere() {
    let place = Place::with(&[]);
    assert!(place.run(&["print", "man"]).stdout.starts_with(".ie"));
    place.program(
        "bin/man",
        "echo \"shown by man $*: $(head -c 3)\"; cat >/dev/null",
    );
    for (program, said) in [("exit 0", None), ("exit 3", Some(".TH vmdisk 1"))] {
        place.program(
            "bin/man",
            &format!("echo \"man $*: $(head -c 3)\"; cat >/dev/null; {program}"),
        );
        let mut command = place.command(["print", "man"]);
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", place.path("bin").display()));
        let Some(run) = on_columns(command, 80) else {
            return;
        };
        assert!(run.stdout.starts_with("man -l -: .ie"), "{run:?}");
        // Where man fails, the page is printed as it is.
        let is_raw = run.stdout.contains(".TH vmdisk 1");
        assert_eq!(is_raw, said.is_some(), "{run:?}");
    }
    if needed(installed("man")).is_some() {
        let mut command = place.command(["print", "man"]);
        command.env("MANPAGER", "cat");
        let run = on_columns(command, 80).unwrap();
        assert!(
            !run.stdout.contains(".TH") && run.stdout.contains("General Commands Manual"),
            "{run:?}"
        );
    }
}
