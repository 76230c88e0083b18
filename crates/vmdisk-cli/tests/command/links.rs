//! Links to the pages of rules, on a terminal that `script` provides.

use std::process::{Command, Stdio};

use vmdisk_testing::{installed, needed};

use crate::{Place, UNSAFE, finish};

const LINK: &str =
    "\u{1b}]8;;https://github.com/vmdisk/vmdisk/blob/main/docs/rules/cache-unsafe.md\u{1b}\\";

/// The output of a command on a terminal of this kind.
fn on_terminal(place: &Place, kind: &str, words: &str) -> String {
    let mut command = Command::new("script");
    let line = format!("{} {words}", crate::program());
    command
        .args(["-qec", &line, "/dev/null"])
        .current_dir(place.path(""))
        .env("TERM", kind)
        .env_remove("NO_COLOR")
        .env_remove("CLICOLOR_FORCE")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    finish(command, b"").stdout
}

#[test]
fn a_terminal_gets_links_and_nothing_else_does() {
    if needed(installed("script")).is_none() {
        return;
    }
    let place = Place::with(&[("a.xml", UNSAFE)]);
    for format in ["full", "concise"] {
        let words = format!("lint a.xml --format {format}");
        let text = on_terminal(&place, "xterm-256color", &words);
        assert!(text.contains(LINK), "{text:?}");
        for (kind, more) in [
            ("dumb", ""),
            ("", ""),
            ("xterm", " --color never"),
            ("xterm", " -o out.txt"),
        ] {
            let text = on_terminal(&place, kind, &format!("{words}{more}"));
            assert!(!text.contains("\u{1b}]8"), "{kind:?}{more}: {text:?}");
        }
        let piped = place.run(&["lint", "a.xml", "--format", format, "--color", "always"]);
        assert!(!piped.stdout.contains("\u{1b}]8"), "{piped:?}");
    }
}
