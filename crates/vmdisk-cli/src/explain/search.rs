//! Pages by the words in them: rules, and sections about advice that does not hold.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::Rule;
use vmdisk::rules::RULES;

/// Sections about advice that is often repeated and that does not hold.
const ADVICE: &str = include_str!("folklore.md");

/// A page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Page {
    /// About a rule.
    Rule(&'static Rule),
    /// About advice that does not hold: a section in Markdown, without the marks of its heading.
    Advice(&'static str),
}

impl Page {
    /// The name of the rule, or the advice.
    pub(super) fn title(self) -> &'static str {
        match self {
            Page::Rule(rule) => rule.name,
            Page::Advice(section) => section.lines().next().unwrap_or_default(),
        }
    }

    /// The whole page.
    pub(super) fn markdown(self) -> String {
        match self {
            Page::Rule(rule) => rule.explain(),
            Page::Advice(section) => format!("# {}\n", section.trim_end()),
        }
    }

    /// The words of the title with the summary, and those of the text.
    fn words(self) -> (BTreeSet<String>, BTreeSet<String>) {
        match self {
            Page::Rule(rule) => {
                let title = format!("{} {}", rule.name, rule.summary());
                (words(&title).collect(), words(rule.page).collect())
            }
            Page::Advice(section) => (words(self.title()).collect(), words(section).collect()),
        }
    }
}

/// A page that has some of the words.
#[derive(Clone, Copy, Debug)]
pub(super) struct Found {
    /// The page.
    pub(super) page: Page,
    /// True if it has every word.
    pub(super) has_all: bool,
    score: usize,
}

/// The pages with the words of a query, the best first. A word that no page has is taken for the nearest one.
pub(super) fn search(query: &str) -> Vec<Found> {
    let advice = ADVICE.split("\n## ").skip(1).map(Page::Advice);
    let rules = RULES.iter().map(|rule| Page::Rule(rule));
    let pages: Vec<_> = advice
        .chain(rules)
        .map(|page| (page, page.words()))
        .collect();
    let mut pages_with: BTreeMap<&str, usize> = BTreeMap::new();
    for word in pages.iter().flat_map(|(_, (_, text))| text) {
        *pages_with.entry(word).or_default() += 1;
    }
    let known = || pages_with.keys().copied();
    let asked: BTreeSet<String> = words(query)
        .map(|word| match vmdisk_source::nearest(&word, known()) {
            Some(near) if !pages_with.contains_key(word.as_str()) => near.to_owned(),
            _ => word,
        })
        .collect();
    let mut found = Vec::new();
    for (page, (title, text)) in &pages {
        // A word in the title counts more than any number of pages.
        let score = |word: &String| match pages_with.get(word.as_str()) {
            _ if title.contains(word) => 3 * RULES.len(),
            Some(count) if text.contains(word) => RULES.len() / count,
            _ => 0,
        };
        let has_all = asked
            .iter()
            .all(|word| title.contains(word) || text.contains(word));
        let score = asked.iter().map(score).sum();
        if score > 0 {
            found.push(Found {
                page: *page,
                has_all,
                score,
            });
        }
    }
    found.sort_by_key(|it| (std::cmp::Reverse((it.has_all, it.score)), it.page.title()));
    found
}

/// The words of a text in lower case, without those that every text has.
fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    const COMMON: [&str; 22] = [
        "a", "and", "are", "be", "because", "do", "for", "i", "in", "is", "it", "my", "not", "of",
        "on", "or", "so", "that", "the", "to", "use", "with",
    ];
    text.split(|letter: char| !letter.is_alphanumeric())
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| !COMMON.contains(&word.as_str()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_words_that_people_use_find_the_page() {
        for (query, title) in [
            (
                "cache=none unsafe",
                "cache=none is unsafe because it never flushes",
            ),
            ("writeback ups", "cache=writeback loses data without a UPS"),
            (
                "noop scheduler",
                "Set the I/O scheduler to noop or deadline",
            ),
            ("chattr +C image", "Run chattr +C on the image"),
            (
                "issue_discards trim",
                "issue_discards=1 in lvm.conf enables TRIM",
            ),
            (
                "live migration cache none",
                "Live migration needs cache=none",
            ),
            ("lvm extents faster", "Large LVM extents are faster"),
            ("thin pool full", "thin-pool-nearly-full"),
            ("permission denied home", "image-unreachable"),
            ("nobarier", "mount-nobarrier"),
        ] {
            let found = search(query);
            let best = found.first().map(|it| (it.has_all, it.page.title()));
            assert_eq!(best, Some((true, title)), "{query}");
        }
        assert!(search("zzzzzzzz").is_empty());
    }

    #[test]
    fn each_section_says_at_once_what_is_wrong_and_names_rules_that_exist() {
        let sections: Vec<_> = ADVICE.split("\n## ").skip(1).collect();
        assert_eq!(sections.len(), 22);
        for section in sections {
            let (_, text) = section.split_once("\n\n").expect("a title and a text");
            let verdicts = [
                "Wrong",
                "Outdated",
                "No effect",
                "No noticeable effect",
                "Dangerous",
                "It depends",
                "Misleading",
                "Unreliable",
                "True only",
            ];
            assert!(
                verdicts.iter().any(|word| text.starts_with(word)),
                "{section}"
            );
            let (_, see) = text.rsplit_once("See ").unwrap_or_default();
            for name in see.split('`').skip(1).step_by(2) {
                assert!(vmdisk::rules::find(name).is_some(), "{name}");
            }
        }
    }
}
