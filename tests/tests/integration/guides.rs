//! Holds the pages for contributors to the repository: the files that they name exist.

use vmdisk_tests::repository;

const PAGES: [&str; 5] = [
    "ARCHITECTURE.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
    "STYLE.md",
];

/// Directories at the root whose files the pages name.
const ROOTS: [&str; 9] = [
    ".ci", "benches", "crates", "docs", "fixtures", "fuzz", "testing", "tests", "xtask",
];

/// The page without its blocks of code, which name files to be made, but with its drawings.
fn prose(page: &str) -> String {
    let mut out = String::new();
    let mut fence: Option<&str> = None;
    for line in page.lines() {
        let ticks = &line[..line.len() - line.trim_start_matches('`').len()];
        match fence {
            Some(open) if line == open.trim_end_matches(|it| it != '`') => fence = None,
            Some("```text") | None if ticks.len() < 3 => {
                out.push_str(line);
                out.push('\n');
            }
            Some(_) => {}
            None => fence = Some(line),
        }
    }
    out
}

/// Paths from the root, and targets of links to files.
fn named(page: &str) -> Vec<String> {
    let prose = prose(page);
    let is_of_path = |it: char| it.is_alphanumeric() || "._-/".contains(it);
    let words = prose.split(|it| !is_of_path(it));
    let paths = words.filter(|word| {
        let root = word.split_once('/').map(|(root, _)| root);
        root.is_some_and(|root| ROOTS.contains(&root))
    });
    let links = prose
        .split("](")
        .skip(1)
        .filter_map(|rest| rest.split(')').next());
    let links = links.filter(|link| !link.contains("://"));
    paths
        .chain(links)
        .map(|path| path.trim_end_matches('.').to_owned())
        .collect()
}

#[test]
fn the_files_that_the_pages_for_contributors_name_exist() {
    for page in PAGES {
        let text = std::fs::read_to_string(repository().join(page)).unwrap();
        let gone: Vec<String> = named(&text)
            .into_iter()
            .filter(|path| !repository().join(path).exists())
            .collect();
        assert!(gone.is_empty(), "{page} names {gone:?}");
    }
}

#[test]
fn a_path_is_found_in_sentences_links_and_drawings() {
    let page = "In `crates/a/b.rs`, and [docs](docs/c.md).\n```text\n+- xtask/d\n```\n```sh\ncat docs/e\n```\nSee tests/f.";
    assert_eq!(
        named(page),
        [
            "crates/a/b.rs",
            "docs/c.md",
            "xtask/d",
            "tests/f",
            "docs/c.md"
        ]
    );
}
