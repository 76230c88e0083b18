//! Directories that the user may not search: what can be read is checked, and the rest is reported.

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::PermissionsExt as _;

use crate::{Place, Run, UNSAFE};

/// Two directories with guests, and one that only root may search.
struct Locked(Place);

impl Locked {
    fn new(mode: u32) -> Self {
        let locked = Locked(Place::with(&[
            ("d/.git/HEAD", ""),
            ("d/a/1.xml", UNSAFE),
            ("d/locked/1.xml", UNSAFE),
            ("d/locked/deep/1.xml", UNSAFE),
            ("d/z/1.xml", UNSAFE),
        ]));
        locked.set_mode(mode);
        locked
    }

    fn set_mode(&self, mode: u32) {
        set_permissions(self.0.path("d/locked"), Permissions::from_mode(mode)).unwrap();
    }

    fn lint(&self, more: &[&str]) -> Run {
        let words = ["lint", "--format", "concise", "--select", "cache-unsafe"];
        self.0.run_unprivileged(&[&words[..], more].concat())
    }
}

impl Drop for Locked {
    fn drop(&mut self) {
        self.set_mode(0o755);
    }
}

fn findings(run: &Run) -> Vec<&str> {
    let lines = run.stdout.lines();
    lines
        .map(|line| line.split_once(':').map_or(line, |(path, _)| path))
        .collect()
}

#[test]
fn a_directory_that_cannot_be_searched_hides_only_the_files_below_it() {
    // One that cannot be listed, and one whose names can be listed but not followed.
    for mode in [0o000, 0o444] {
        let locked = Locked::new(mode);
        for path in ["d", "d/**/*.xml", "d/*/*.xml", "d/*/1.xml", "d/*/**/1.xml"] {
            let run = locked.lint(&[path]);
            assert_eq!(run.code, 2, "{mode:o} {path}: {run:?}");
            assert_eq!(
                findings(&run),
                ["d/a/1.xml", "d/z/1.xml"],
                "{mode:o} {path}: {run:?}"
            );
            assert!(
                run.stderr.lines().any(|line| line.starts_with("d/locked")
                    && line.contains("could not be read: permission denied")),
                "{mode:o} {path}: {run:?}"
            );
            assert!(!run.stderr.contains("for operation"), "{run:?}");
        }
    }
}

#[test]
fn an_excluded_directory_need_not_be_searched() {
    let locked = Locked::new(0o000);
    for pattern in ["locked", "locked/", "/locked/**"] {
        let text = format!("exclude = ['{pattern}']\n");
        locked.0.write("d/vmdisk.toml", text.as_bytes());
        for path in ["d", "d/**/*.xml", "d/*/*.xml"] {
            let run = locked.lint(&[path]);
            assert_eq!(run.code, 1, "{pattern} {path}: {run:?}");
            assert_eq!(findings(&run), ["d/a/1.xml", "d/z/1.xml"], "{run:?}");
            assert!(!run.stderr.contains("locked"), "{run:?}");
        }
    }
}

#[test]
fn facts_below_a_directory_that_cannot_be_searched_are_not_left_out() {
    let locked = Locked::new(0o000);
    locked
        .0
        .write("d/a/kvm1.json", br#"{"schema_version": "1.0"}"#);
    let run = locked.lint(&["d/a", "--facts", "d/*/*.json"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(
        run.stderr
            .contains("d/locked could not be searched: permission denied"),
        "{run:?}"
    );
}
