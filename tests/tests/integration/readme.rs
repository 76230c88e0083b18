//! Runs what the README and the guides show, and compares what comes out.

use std::path::PathBuf;

use vmdisk_tests::{assert_golden, repository, run_in};

/// The command as the pages write it.
const AS_WRITTEN: [&str; 2] = ["cargo run --release --quiet -- ", "vmdisk "];

/// Console blocks of a page: each command with the output shown below it.
fn commands(page: &str) -> Vec<(String, String)> {
    let mut found: Vec<(String, String)> = Vec::new();
    let mut inside = false;
    for line in page.lines() {
        match (inside, line) {
            (false, "```console") => inside = true,
            (true, "```") => inside = false,
            (true, line) => match (line.strip_prefix("$ "), found.last_mut()) {
                (Some(command), _) => found.push((command.to_owned(), String::new())),
                (None, Some((_, output))) => {
                    output.push_str(line);
                    output.push('\n');
                }
                (None, None) => panic!("a console block begins with output: {line}"),
            },
            (false, _) => {}
        }
    }
    found
}

/// Splits a command as the pages write them: words, and 'quoted words'.
fn words(command: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word = String::new();
    let (mut quoted, mut started) = (false, false);
    for letter in command.chars() {
        match letter {
            '\'' => (quoted, started) = (!quoted, true),
            ' ' if !quoted => {
                if started || !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
                started = false;
            }
            letter => word.push(letter),
        }
    }
    if started || !word.is_empty() {
        words.push(word);
    }
    words
}

/// The folder of a command, which `cd` names, and the command without it.
fn in_folder(command: &str) -> (PathBuf, &str) {
    let there = command.strip_prefix("cd ");
    match there.and_then(|there| there.split_once(" && ")) {
        Some((folder, command)) => (repository().join(folder), command),
        None => (repository().to_owned(), command),
    }
}

/// Rewrites a page with what its commands print now.
fn with_real_output(page: &str) -> String {
    let mut out = page.to_owned();
    for (command, shown) in commands(page) {
        let (folder, run) = in_folder(&command);
        let Some(arguments) = AS_WRITTEN
            .iter()
            .find_map(|prefix| run.strip_prefix(prefix))
        else {
            panic!("a console block runs something else than vmdisk: {command}");
        };
        let words = words(arguments);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let result = run_in(&folder, crate::VMDISK, &words, "");
        assert_ne!(result.code, 2, "{command} fails: {}", result.stderr);
        let real = format!("{}{}", result.stdout, result.stderr);
        let before = format!("$ {command}\n{shown}");
        assert!(out.contains(&before), "{command}");
        out = out.replacen(&before, &format!("$ {command}\n{real}"), 1);
    }
    out
}

#[test]
fn the_commands_of_the_readme_print_what_it_shows() {
    let path = repository().join("README.md");
    let page = std::fs::read_to_string(&path).unwrap();
    assert!(
        !commands(&page).is_empty(),
        "the README shows the tool working"
    );
    assert_golden(&path, &with_real_output(&page));
}

#[test]
fn a_fresh_clone_has_a_command_that_shows_a_finding_and_one_that_runs_the_tests() {
    let read = |path| std::fs::read_to_string(repository().join(path)).unwrap();
    let page = read("README.md");
    let shows = commands(&page)
        .into_iter()
        .find(|(command, _)| command.starts_with("cargo run "));
    let (command, output) = shows.expect("the README runs the clone");
    assert!(
        command.starts_with(AS_WRITTEN[0]) && output.starts_with("error["),
        "{command}: {output}"
    );
    // `cargo run` has one program to run, and the tests are those of all packages.
    assert!(read("Cargo.toml").contains("default-members = [\"crates/vmdisk-cli\"]"));
    assert_eq!(
        read("crates/vmdisk-cli/Cargo.toml")
            .matches("[[bin]]")
            .count(),
        1
    );
    assert!(page.contains("cargo test --workspace"));
}

#[test]
fn lint_in_the_clone_checks_its_examples_and_ends_with_their_findings() {
    let run = run_in(repository(), crate::VMDISK, &["lint", "--statistics"], "");
    assert_eq!(run.code, 1, "{}", run.stderr);
    assert!(run.stdout.contains("cache-unsafe"), "{}", run.stdout);
    assert!(!run.stderr.contains("could not be read"), "{}", run.stderr);
}

#[test]
fn the_readme_gives_the_recorded_size_of_the_binary() {
    let read = |path| std::fs::read_to_string(repository().join(path)).unwrap();
    let record = read("xtask/costs.txt");
    let bytes = record
        .lines()
        .find_map(|line| line.strip_prefix("bytes: the binary = "));
    let bytes: f64 = bytes.expect("the size is recorded").parse().unwrap();
    let size = format!("the binary is {:.0} MB", bytes / 1e6);
    assert!(read("README.md").contains(&size), "{size}");
}

#[test]
fn the_commands_of_the_guides_print_what_they_show() {
    let mut executed = 0;
    for entry in std::fs::read_dir(repository().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "md") {
            let page = std::fs::read_to_string(&path).unwrap();
            executed += commands(&page).len();
            assert_golden(&path, &with_real_output(&page));
        }
    }
    assert!(executed > 0, "the guides show commands");
}

/// The page without its console blocks.
fn prose(page: &str) -> String {
    let parts = page.split("```console\n");
    parts
        .enumerate()
        .map(|(nth, part)| match nth {
            0 => part,
            _ => part.split_once("\n```\n").map_or("", |(_, after)| after),
        })
        .collect()
}

#[test]
fn every_ratio_in_the_tables_of_measurements_is_in_a_report_on_the_same_page() {
    let page = std::fs::read_to_string(repository().join("docs/articles.md")).unwrap();
    let shown: String = commands(&page)
        .into_iter()
        .map(|(_, output)| output)
        .collect();
    let ratios = crate::bench_report::ratios_in(&prose(&page));
    assert!(ratios.len() > 10, "{ratios:?}");
    for ratio in ratios {
        assert!(shown.contains(&ratio), "no report shows {ratio}");
    }
}
