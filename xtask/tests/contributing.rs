//! Follows CONTRIBUTING.md: its commands, its files and the rule that it adds.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn page() -> String {
    fs::read_to_string(repository().join("CONTRIBUTING.md")).unwrap()
}

/// The first block of a page whose fence has these words.
fn block<'p>(page: &'p str, words: &str) -> &'p str {
    let fence = page
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("```") && line.trim_start_matches('`') == words)
        .unwrap_or_else(|| panic!("no block of {words}"));
    let (_, rest) = page.split_once(&format!("\n{fence}\n")).unwrap();
    let end = fence.trim_end_matches(words);
    let (text, _) = rest.split_once(&format!("\n{end}\n")).unwrap();
    text
}

/// All commands of the page: lines of `sh` blocks, and lines of `console` blocks after `$`.
fn commands(page: &str) -> Vec<&str> {
    let mut found = Vec::new();
    let mut language = None;
    for line in page.lines() {
        match (line.strip_prefix("```"), language) {
            (Some(opened), None) => language = Some(opened),
            (Some(_), Some(_)) => language = None,
            (None, Some("sh")) => found.push(line),
            (None, Some("console")) => found.extend(line.strip_prefix("$ ")),
            (None, _) => {}
        }
    }
    found
}

fn xtask(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_xtask"));
    command.args(words).output().unwrap()
}

/// Copies what `new-rule` reads of a crate.
fn copy_rules(crate_name: &str, to: &Path) {
    let folder = format!("crates/{crate_name}/src/rules");
    fs::create_dir_all(to.join(&folder)).unwrap();
    for file in ["mod.rs", "template.rs"] {
        let file = format!("{folder}/{file}");
        fs::copy(repository().join(&file), to.join(&file)).unwrap();
    }
}

/// Lines that are in the new text alone.
fn added<'t>(old: &str, new: &'t str) -> Vec<&'t str> {
    let mut old = old.lines().peekable();
    let added = new.lines().filter(|line| old.next_if_eq(line).is_none());
    let added = added.collect();
    assert_eq!(old.next(), None, "a line is gone");
    added
}

#[test]
fn the_page_adds_a_rule_as_it_shows() {
    let page = page();
    let console = block(&page, "console");
    let (command, output) = console.split_once('\n').unwrap();
    let words = command.strip_prefix("$ cargo xtask ").unwrap();
    let scratch = tempfile::tempdir().unwrap();
    copy_rules("vmdisk-rules", scratch.path());
    let list = scratch.path().join("crates/vmdisk-rules/src/rules/mod.rs");
    let before = fs::read_to_string(&list).unwrap();
    let mut words: Vec<&str> = words.split(' ').collect();
    words.extend(["--checkout", scratch.path().to_str().unwrap()]);

    let run = xtask(&words);
    assert!(run.status.success(), "{run:?}");
    assert_eq!(String::from_utf8(run.stdout).unwrap().trim_end(), output);

    let (file, _) = output.split_once(" is new").unwrap();
    let rule = fs::read_to_string(scratch.path().join(file)).unwrap();
    assert_eq!(rule.trim_end(), block(&page, "rust,ignore"));

    let after = fs::read_to_string(&list).unwrap();
    let shown: Vec<&str> = block(&page, "diff")
        .lines()
        .map(|line| &line[1..])
        .collect();
    assert_eq!(added(&before, &after), shown);

    // A second time, the name is in use.
    let again = xtask(&words);
    assert!(!again.status.success());
    assert!(String::from_utf8_lossy(&again.stderr).contains("exists"));
    assert_eq!(fs::read_to_string(&list).unwrap(), after);
}

/// The template of each crate is a module of its tests, so it compiles; a new rule is the template with other literals.
#[test]
fn a_new_rule_differs_from_the_template_of_its_crate_in_its_metadata_alone() {
    for (home, crate_name) in [
        ("rules", "vmdisk-rules"),
        ("qemu", "vmdisk-qemu"),
        ("libvirt", "vmdisk-libvirt"),
    ] {
        let scratch = tempfile::tempdir().unwrap();
        copy_rules(crate_name, scratch.path());
        let root = scratch.path().to_str().unwrap();
        let run = xtask(&[
            "new-rule",
            "a-new-mistake",
            "--in",
            home,
            "--group",
            "data-safety",
            "--severity",
            "error",
            "--checkout",
            root,
        ]);
        assert!(run.status.success(), "{run:?}");
        let folder = scratch
            .path()
            .join(format!("crates/{crate_name}/src/rules"));
        let rule = fs::read_to_string(folder.join("a_new_mistake.rs")).unwrap();
        let template = fs::read_to_string(folder.join("template.rs")).unwrap();
        syn::parse_file(&rule).unwrap();
        assert_eq!(
            added(&without_metadata(&template), &rule),
            [
                "//! `a-new-mistake`",
                "    name: \"a-new-mistake\",",
                "    group: Group::DataSafety,",
                "    severity: Severity::Error,",
                concat!("    since: \"", env!("CARGO_PKG_VERSION"), "\","),
            ]
        );
        let list = fs::read_to_string(folder.join("mod.rs")).unwrap();
        assert!(
            list.contains("\nmod template;\n"),
            "{home}: tests do not compile the template"
        );
    }
}

/// The template without the lines that a new rule replaces.
fn without_metadata(template: &str) -> String {
    let lines = template.lines();
    let kept = lines.filter(|line| {
        let line = line.trim_start();
        let metadata = ["//! `", "name: ", "group: ", "severity: ", "since: "];
        !metadata.iter().any(|start| line.starts_with(start))
    });
    kept.map(|line| format!("{line}\n")).collect()
}

#[test]
fn the_commands_of_the_page_exist() {
    let help = String::from_utf8(xtask(&["--help"]).stdout).unwrap();
    let mut checked = 0;
    let page = page();
    for command in commands(&page) {
        let mut words = command
            .split_whitespace()
            .take_while(|word| *word != "#")
            .skip_while(|word| word.starts_with("VMDISK_"));
        match (words.next(), words.next()) {
            (Some("cargo"), Some("xtask")) => {
                let chore = words.next().unwrap();
                let is_known = help
                    .lines()
                    .any(|line| line.trim_start().starts_with(&format!("{chore} ")));
                assert!(is_known, "{command}");
            }
            (Some("cargo"), Some("test")) => {
                let words: Vec<&str> = words.collect();
                let of = |option: &'static str| {
                    let pairs = words.windows(2);
                    pairs
                        .filter(move |pair| pair[0] == option)
                        .map(|pair| pair[1])
                };
                for package in of("-p") {
                    let folder = match package.strip_prefix("vmdisk-").unwrap_or_default() {
                        "tests" => repository().join("tests"),
                        _ => repository().join("crates").join(package),
                    };
                    let manifest = fs::read_to_string(folder.join("Cargo.toml"));
                    let manifest = manifest.unwrap_or_else(|error| panic!("{command}: {error}"));
                    for test in of("--test") {
                        let is_there = manifest.contains(&format!("[[test]]\nname = \"{test}\"\n"));
                        assert!(is_there, "{command}: no test {test}");
                    }
                }
            }
            (Some(".ci/run"), Some(lane)) => {
                let script = fs::read_to_string(repository().join(".ci/run")).unwrap();
                assert!(script.contains(&format!("\n{lane}() {{")), "{command}");
            }
            _ => panic!("what does this do? {command}"),
        }
        checked += 1;
    }
    assert!(checked >= 10, "{checked} commands were found");
}

#[test]
fn the_member_of_a_source_goes_where_the_page_says() {
    let page = page();
    let (_, section) = page
        .split_once("## Add a member of a network source")
        .unwrap();
    let mut text = String::new();
    let mut placed = 0;
    let mut last = None;
    for line in block(section, "diff").lines() {
        if let Some(file) = line.strip_prefix("--- ") {
            text = fs::read_to_string(repository().join(file)).unwrap();
        } else if line.starts_with('+') {
            placed += usize::from(last.is_some());
        } else {
            let line = line.strip_prefix(' ').unwrap();
            assert!(text.lines().any(|known| known == line), "{line}");
            last = Some(line);
        }
    }
    assert_eq!(placed, 6);
}
