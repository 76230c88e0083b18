//! explain, rules, schema, completions, man.

use crate::Place;

fn json(arguments: &[&str]) -> serde_json::Value {
    let run = Place::with(&[]).run(arguments);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{arguments:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

#[test]
fn every_rule_is_listed_and_explained() {
    let all = json(&["rules", "--format", "json"]);
    let all = all.as_array().unwrap();
    let table = Place::with(&[]).run(&["rules"]).stdout;
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
    assert!(others.lines().count() == 6, "{others}");
    assert!(
        others
            .lines()
            .all(|line| line.starts_with("- `") && line.contains("`: ")),
        "{others}"
    );
    let run = place.run(&["explain", "frob-none"]);
    assert_eq!(run.code, 0);
    assert!(
        run.stdout.starts_with("No page fits all of these words.\n"),
        "{run:?}"
    );
    let run = place.run(&["explain", "nfs", "soft"]);
    assert!(run.stdout.starts_with("NFS-SOFT-MOUNT\n"), "{run:?}");
    let run = place.run(&["explain", "zebra", "giraffe", "elephant", "nfs"]);
    assert_eq!(run.code, 0);
    assert!(
        run.stdout.starts_with("No page fits all of these words.\n"),
        "{run:?}"
    );
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
        let schema = json(&["schema", format]);
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
fn completions_and_manual_pages_cover_every_command() {
    let place = Place::with(&[]);
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let run = place.run(&["completions", shell]);
        assert_eq!(run.code, 0);
        assert!(run.stdout.contains("fail-on"), "{shell}");
    }
    assert!(place.run(&["man"]).stdout.contains(".TH vmdisk 1"));
    assert_eq!(place.run(&["man", "pages"]).code, 0);
    for page in [
        "vmdisk",
        "vmdisk-lint",
        "vmdisk-generate",
        "vmdisk-facts",
        "vmdisk-explain",
        "vmdisk-baseline-create",
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
