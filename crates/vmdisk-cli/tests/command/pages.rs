//! explain, the help, and what `print` prints.

use crate::Place;

fn json(arguments: &[&str]) -> serde_json::Value {
    let run = Place::with(&[]).run(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn every_rule_is_listed_and_explained() {
    let all = json(&["explain", "--list", "--format", "json"]);
    let all = all.as_array().unwrap();
    let table = Place::with(&[]).run(&["explain", "--list"]).stdout;
    assert_eq!(table.lines().count(), all.len());
    for rule in all {
        let name = rule["name"].as_str().unwrap();
        assert!(
            table
                .lines()
                .any(|line| line.starts_with(&format!("{name} "))),
            "{name}"
        );
    }
    let text = Place::with(&[]).run(&["explain", "cache-unsafe"]);
    assert!(text.stdout.starts_with("CACHE-UNSAFE\n"), "{text:?}");
    assert!(!text.stdout.contains("```"), "{text:?}");
    let page = Place::with(&[]).run(&["explain", "cache-unsafe", "--format", "markdown"]);
    assert!(page.stdout.starts_with("# cache-unsafe\n"), "{page:?}");
    let data = json(&["explain", "cache-unsafe", "--format", "json"]);
    assert_eq!(data["name"], "cache-unsafe");
    assert_eq!(data["page"].as_str().unwrap(), page.stdout);
}

#[test]
fn an_unknown_rule_gets_a_suggestion() {
    let run = Place::with(&[]).run(&["explain", "cache-unsave"]);
    assert_eq!(run.code, 2);
    assert!(
        run.stderr.contains("did you mean `cache-unsafe`?"),
        "{run:?}"
    );
}

#[test]
fn words_find_a_page_about_a_rule_or_about_wrong_advice() {
    let place = Place::with(&[]);
    let run = place.run(&["explain", "cache=none", "unsafe"]);
    assert!(
        run.stdout
            .starts_with("CACHE=NONE IS UNSAFE BECAUSE IT NEVER FLUSHES\n"),
        "{run:?}"
    );
    let run = place.run(&["explain", "permission denied home"]);
    assert!(run.stdout.starts_with("IMAGE-UNREACHABLE\n"), "{run:?}");
    let run = place.run(&["explain", "iothread"]);
    let (_, others) = run
        .stdout
        .split_once("\nOTHER PAGES WITH THESE WORDS\n")
        .unwrap();
    assert!(others.lines().count() == 5, "{others}");
    assert!(
        others
            .lines()
            .all(|line| line.starts_with("- `") && line.contains("`: ")),
        "{others}"
    );
    let run = place.run(&["explain", "frob-none"]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.starts_with("THE CLOSEST PAGES\n"), "{run:?}");
    let run = place.run(&["explain", "nfs", "soft"]);
    assert!(run.stdout.starts_with("NFS-SOFT-MOUNT\n"), "{run:?}");
    let run = place.run(&["explain", "zebra", "giraffe", "elephant", "nfs"]);
    assert_eq!(run.code, 0);
    assert!(run.stdout.starts_with("THE CLOSEST PAGES\n"), "{run:?}");
    assert!(run.stdout.contains("`nfs-soft-mount`"), "{run:?}");
    // A page that is not about a rule has a name too.
    let run = place.run(&["explain", "guest-paused"]);
    assert!(
        run.stdout.starts_with("GUEST-PAUSED\n\nA guest is paused"),
        "{run:?}"
    );
}

#[test]
fn schemas_are_valid_schemas() {
    for format in [
        "report",
        "report-line",
        "statistics",
        "config",
        "facts",
        "spec",
    ] {
        let schema = json(&["print", "schema", format]);
        assert!(
            schema["$schema"].as_str().unwrap().contains("2020-12"),
            "{format}"
        );
        jsonschema::meta::validate(&schema).unwrap_or_else(|error| panic!("{format}: {error}"));
    }
}

#[test]
fn the_pages_of_a_group_are_named() {
    let place = Place::with(&[]);
    let run = place.run(&["explain", "data-safety"]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(
        run.stderr.contains("rules, and each has a page") && run.stderr.contains("cache-unsafe"),
        "{run:?}"
    );
    // The name of a group that is a word finds pages.
    assert_eq!(place.run(&["explain", "space"]).code, 0);
    let words = place.run(&["explain", "zzz", "yyy"]);
    assert!(
        words
            .stderr
            .contains("no page has any of these words: zzz yyy"),
        "{words:?}"
    );
}

#[test]
fn the_help_of_a_command_says_when_it_exits_with_1() {
    let place = Place::with(&[]);
    for command in [
        &["edit"][..],
        &["facts", "check"],
        &["facts", "collect"],
        &["facts", "diff"],
    ] {
        let help = place.run(&[command, &["--help"]].concat()).stdout;
        let text = help.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(text.contains("Exits with 1 if"), "{command:?}: {help}");
    }
}

#[test]
fn the_help_fits_a_screen_and_has_each_command_below_its_heading() {
    let place = Place::with(&[]);
    let help = place.run(&["--help"]).stdout;
    assert_eq!(help, place.run(&["-h"]).stdout);
    assert!(help.lines().count() <= 24, "{help}");
    assert!(help.lines().all(|line| line.len() <= 80), "{help}");
    let mut headings = Vec::new();
    let mut commands = Vec::new();
    let list = help.split("\n\n").nth(1).unwrap();
    for line in list.lines() {
        let (heading, command) = line.split_at(8);
        match heading.trim() {
            "" => {}
            heading => headings.push(heading),
        }
        let (name, about) = command.trim().split_once(' ').unwrap();
        assert!(!about.trim().is_empty(), "{help}");
        commands.push(name);
    }
    assert_eq!(headings, ["Check", "Plan", "Look", "Measure", "Set up"]);
    // Every other command is one that `print` is for.
    let mut all = commands.clone();
    all.push("print");
    for name in &all {
        let help = place.run(&[*name, "--help"]);
        assert!(help.stdout.contains("\nUsage: vmdisk "), "{name}: {help:?}");
    }
    let script = place.run(&["print", "completions", "elvish"]).stdout;
    let listed = script.split("&'vmdisk'= {").nth(1).unwrap();
    let listed = listed.split('}').next().unwrap();
    let listed = listed
        .lines()
        .filter_map(|line| line.trim().strip_prefix("cand "));
    let listed = listed.filter_map(|line| line.split_whitespace().next());
    let listed: Vec<&str> = listed.filter(|name| !name.starts_with('-')).collect();
    all.push("help");
    assert_eq!(listed, all);
}

#[test]
fn the_help_of_lint_begins_with_examples_and_shows_few_options_at_first() {
    let place = Place::with(&[]);
    let help = place.run(&["lint", "--help"]).stdout;
    let headings: Vec<&str> = help
        .lines()
        .filter(|line| line.ends_with(':') && !line.starts_with(' '))
        .collect();
    let expected = [
        "Examples:",
        "Arguments:",
        "Fixes:",
        "Rules:",
        "Guests:",
        "Host:",
        "Output:",
        "Files:",
        "Scripts and templates:",
        "Configuration:",
    ];
    assert_eq!(headings, expected, "{help}");
    let options = |help: &str| {
        let is_option = |line: &&str| {
            let text = line.trim_start();
            text.starts_with('-') && line.len() - text.len() <= 6
        };
        help.lines().filter(is_option).count()
    };
    let short = place.run(&["lint", "-h"]).stdout;
    // -h and --color are in the last line.
    assert!(options(&short) + 2 <= 25, "{short}");
    assert!(
        short.trim_end().lines().last().unwrap().contains("--color"),
        "{short}"
    );
    assert!(options(&help) > 40, "{help}");
}

#[test]
fn a_former_name_of_a_command_is_answered_with_the_new_one() {
    let place = Place::with(&[]);
    for (former, now) in [
        (&["rules"][..], "`vmdisk explain --list`"),
        (
            &["baseline", "create", "d"],
            "`vmdisk lint --write-baseline`",
        ),
        (&["baseline", "prune"], "`vmdisk lint --prune-baseline`"),
        (&["config", "init"], "`vmdisk lint --write-config`"),
        (&["capabilities", "--qemu", "q"], "`vmdisk facts qemu`"),
        (&["schema", "report"], "`vmdisk print schema`"),
        (&["completions", "bash"], "`vmdisk print completions`"),
        (&["man"], "`vmdisk print man`"),
    ] {
        let run = place.run(former);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(now), "{former:?}: {run:?}");
        assert!(!run.stderr.contains("similar"), "{former:?}: {run:?}");
        // The new one is a command.
        let words: Vec<&str> = now.trim_matches('`').split(' ').skip(1).collect();
        let words = [&words[..], &["--help"]].concat();
        assert_eq!(place.run(&words).code, 0, "{words:?}");
    }
}

#[test]
fn completions_and_manual_pages_cover_every_command() {
    let place = Place::with(&[]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = place.run(&["print", "completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.stdout.contains("fail-on"), "{shell}");
    }
    assert!(place.run(&["print", "man"]).stdout.contains(".TH vmdisk 1"));
    assert_eq!(place.run(&["print", "man", "pages"]).code, 0);
    for page in [
        "vmdisk",
        "vmdisk-lint",
        "vmdisk-generate",
        "vmdisk-facts",
        "vmdisk-explain",
        "vmdisk-print-completions",
    ] {
        let text = place.read(&format!("pages/{page}.1"));
        assert!(
            text.contains(&format!(".TH {page} 1 \" \" ")),
            "{page}: {text}"
        );
        // Every page that a page names is there.
        for name in text
            .split_whitespace()
            .filter_map(|word| word.strip_suffix("(1)"))
        {
            place.read(&format!("pages/{}.1", name.replace('\\', "")));
        }
    }
}
