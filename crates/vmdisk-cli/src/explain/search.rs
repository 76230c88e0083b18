//! Pages by the words in them: rules, pages about what people meet, and sections about advice that does not hold.
//!
//! A pasted message is compared with the texts that programs print, and any other words with ranked pages (BM25 over
//! weighted fields, with synonyms).

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::OnceLock;

use vmdisk::Rule;
use vmdisk::rules::{Evidence, RULES};

/// Sections about advice that is often repeated and that does not hold.
const ADVICE: &str = include_str!("folklore.md");

/// Sections about what people meet and no rule reports.
const TOPICS: &str = include_str!("topics.md");

/// Messages that no evidence quotes: the message, a tab, and the page.
const MESSAGES: &str = include_str!("messages.txt");

/// The words that people use for the subject of a page.
const WORDS: &str = include_str!("words.txt");

/// A page.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Page {
    /// About a rule.
    Rule(&'static Rule),
    /// A section in Markdown, without the marks of its heading: about advice that does not hold, or what people meet.
    Section(&'static str),
}

impl Page {
    /// The name of the rule, or the heading.
    pub(super) fn title(self) -> &'static str {
        match self {
            Page::Rule(rule) => rule.name,
            Page::Section(section) => section.lines().next().unwrap_or_default(),
        }
    }

    /// The first sentence of a page whose title is a name.
    pub(super) fn summary(self) -> Option<&'static str> {
        match self {
            Page::Rule(rule) => Some(rule.summary()),
            Page::Section(section) if is_name(self.title()) => section.lines().nth(2),
            Page::Section(_) => None,
        }
    }

    /// The whole page.
    pub(super) fn markdown(self) -> String {
        match self {
            Page::Rule(rule) => rule.explain(),
            Page::Section(section) => format!("# {}\n", section.trim_end()),
        }
    }

    fn text(self) -> &'static str {
        match self {
            Page::Rule(rule) => rule.page,
            Page::Section(section) => section,
        }
    }
}

/// True for words of the form of a rule's name.
pub(super) fn is_name(words: &str) -> bool {
    let is_machine = words.starts_with("pc-");
    words.contains('-') && !words.contains(' ') && !is_machine
}

fn sections(text: &'static str) -> impl Iterator<Item = Page> {
    text.split("\n## ").skip(1).map(Page::Section)
}

fn pages() -> Vec<Page> {
    let rules = RULES.iter().map(|rule| Page::Rule(rule));
    rules
        .chain(sections(TOPICS))
        .chain(sections(ADVICE))
        .collect()
}

/// The page of this name that is not about a rule.
pub(super) fn topic(name: &str) -> Option<Page> {
    sections(TOPICS).find(|page| page.title() == name)
}

/// The pages for a query, the best first.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) pages: Vec<Page>,
    /// True if the first page fits the query, and not only some of its words.
    pub(super) fits: bool,
    /// True if the query is a phrase of the first page.
    pub(super) is_phrase: bool,
}

/// The pages for a message or for words.
pub(super) fn search(query: &str) -> Answer {
    let pages = pages();
    let (whole, parts) = by_message(query, &pages);
    let (mut ranked, fits, is_phrase) = by_words(&reason(query), &pages);
    let fits = fits || !whole.is_empty() || !parts.is_empty();
    let mut found = whole;
    if is_phrase {
        // A few words of a message may be what people call the subject of another page.
        found.extend(ranked.drain(..1));
    }
    for page in parts.into_iter().chain(ranked) {
        if !found.contains(&page) {
            found.push(page);
        }
    }
    Answer {
        pages: found,
        fits,
        is_phrase,
    }
}

/// The words of each message with the page that explains it.
fn messages(pages: &[Page]) -> Vec<(Vec<String>, Page)> {
    let of_file = MESSAGES.lines().filter_map(|line| line.split_once('\t'));
    let named = |name: &str| pages.iter().copied().find(|page| page.title() == name);
    let of_file = of_file.filter_map(|(text, name)| Some((literals(text), named(name)?)));
    let of_rules = RULES.iter().flat_map(|rule| {
        let texts = rule.evidence.iter().filter_map(|evidence| match evidence {
            Evidence::Refused { text, .. } => Some(*text),
            _ => None,
        });
        texts.map(|text| (literals(text), Page::Rule(rule)))
    });
    // A message of the file names the page that explains it best, where several rules quote it.
    of_file.chain(of_rules).collect()
}

/// The pages whose messages the query contains, and those of which it is a part, the longest match first.
fn by_message(query: &str, pages: &[Page]) -> (Vec<Page>, Vec<Page>) {
    static READ: OnceLock<Vec<(Vec<String>, Page)>> = OnceLock::new();
    let messages = READ.get_or_init(|| messages(pages));
    let mut messages_with: HashMap<&str, usize> = HashMap::new();
    for (words, _) in messages {
        for word in words.iter().collect::<BTreeSet<_>>() {
            *messages_with.entry(word).or_default() += 1;
        }
    }
    let total = messages.len() as f64;
    let weight = |word: &String| {
        let with = messages_with.get(word.as_str());
        with.map_or(0.0, |with| (1.0 + total / *with as f64).ln())
    };
    let sum = |words: &[String]| words.iter().map(weight).sum::<f64>();
    let asked = literals(&reason(query));
    let known: Vec<String> = asked
        .iter()
        .filter(|word| weight(word) > 0.0)
        .cloned()
        .collect();
    let (mut whole, mut parts) = (Vec::new(), Vec::new());
    for (words, page) in messages {
        let common = longest_common(&known, words);
        let score = sum(&common);
        let of_message = score / sum(words).max(f64::MIN_POSITIVE);
        let of_query = common.len() as f64 / asked.len().max(1) as f64;
        let contains = of_message > 0.8 && common.len() >= 2;
        let is_part = of_query > 0.75 && common.len() >= 3 && is_together(&common, words);
        let found = (score * (of_message + of_query), *page);
        match (contains, is_part) {
            (true, _) => whole.push(found),
            (false, true) => parts.push(found),
            (false, false) => {}
        }
    }
    (best_first(whole), best_first(parts))
}

/// The pages by their scores, each once.
fn best_first(mut found: Vec<(f64, Page)>) -> Vec<Page> {
    found.sort_by(|(one, _), (other, _)| other.total_cmp(one));
    let mut best: Vec<Page> = Vec::new();
    for (_, page) in found {
        if !best.contains(&page) {
            best.push(page);
        }
    }
    best
}

/// True if the words stand together in a message, but for one name between them.
fn is_together(words: &[String], message: &[String]) -> bool {
    let mut windows = message.windows((words.len() + 1).min(message.len()));
    windows.any(|window| longest_common(words, window).len() == words.len())
}

/// What programs print before the reason of a failure: it says nothing about the reason.
const AROUND: [&str; 14] = [
    "internal error:",
    "unsupported configuration:",
    "xml error:",
    "error:",
    "requested operation is not valid:",
    "operation not supported:",
    "operation failed:",
    "process exited while connecting to monitor:",
    "qemu unexpectedly closed the monitor:",
    "early end of file from monitor, possible problem:",
    "unable to execute qemu command",
    "failed to start domain",
    "failed to define domain from",
    "failed to attach disk",
];

/// What follows the name of QEMU where its message is about an option.
const OPTIONS: [&str; 4] = [": -drive ", ": -device ", ": -blockdev ", ": -object "];

/// The reason in a pasted failure, without the program, the option and the kinds of errors around it.
fn reason(message: &str) -> String {
    let mut reason = message.to_lowercase();
    for around in AROUND {
        // A message that is nothing else stays.
        let rest = reason.replace(around, " ");
        if !rest.trim().is_empty() {
            reason = rest;
        }
    }
    // A program whose message names an option is QEMU under any name.
    let of_option = OPTIONS.iter().find_map(|option| reason.find(option));
    let of_option = of_option.map(|end| reason[..end].rfind(' ').map_or(0, |space| space + 1));
    let named = reason.find("qemu-system-").or(reason.find("qemu-img: "));
    let option = of_option.or(named).and_then(|start| {
        let (before, line) = reason.split_at(start);
        let (_, mut rest) = line.split_once(": ")?;
        if rest.starts_with('-') {
            rest = rest.split_once(": ").map_or(rest, |(_, rest)| rest);
        }
        Some(format!("{before} {rest}"))
    });
    option.unwrap_or(reason)
}

/// The words of a message in order, without names: paths, numbers, and what stands for them.
fn literals(message: &str) -> Vec<String> {
    let words = message
        .split_whitespace()
        .filter(|word| !word.contains('/'));
    // `ide.0` is the name of a bus.
    let is_bus = |word: &str| {
        let word = word.trim_matches(|letter: char| !letter.is_alphanumeric());
        word.rsplit_once('.')
            .is_some_and(|(_, number)| number.parse::<u32>().is_ok())
    };
    let parts = words
        .filter(|word| !is_bus(word))
        .flat_map(|word| word.split(|letter: char| !letter.is_alphanumeric() && letter != '_'));
    parts
        .filter(|part| !part.is_empty() && part.chars().any(char::is_alphabetic))
        .map(str::to_lowercase)
        .collect()
}

/// The longest common subsequence.
fn longest_common(one: &[String], other: &[String]) -> Vec<String> {
    let mut table = vec![vec![0_usize; other.len() + 1]; one.len() + 1];
    for (row, word) in one.iter().enumerate().rev() {
        for (column, candidate) in other.iter().enumerate().rev() {
            table[row][column] = match word == candidate {
                true => table[row + 1][column + 1] + 1,
                false => table[row + 1][column].max(table[row][column + 1]),
            };
        }
    }
    let (mut row, mut column, mut common) = (0, 0, Vec::new());
    while row < one.len() && column < other.len() {
        if one[row] == other[column] {
            common.push(one[row].clone());
            (row, column) = (row + 1, column + 1);
        } else if table[row + 1][column] >= table[row][column + 1] {
            row += 1;
        } else {
            column += 1;
        }
    }
    common
}

/// Words that mean the same to someone who searches.
const SYNONYMS: &[&[&str]] = &[
    &["trim", "unmap", "discard", "fstrim", "retrim", "blkdiscard"],
    &[
        "slow",
        "performance",
        "fast",
        "speed",
        "latency",
        "throughput",
        "lag",
        "sluggish",
        "bottleneck",
    ],
    &["lock", "locked", "busy", "inuse"],
    &["pause", "enospc", "suspend", "stop", "freeze", "hang"],
    &["full", "enospc", "exhausted"],
    &["corrupt", "corruption", "damage", "broken"],
    &["checksum", "csum"],
    &["o_direct", "odirect"],
    &["denied", "eacces", "forbidden"],
    &["missing", "gone", "vanish", "lost", "delete", "absent"],
    &["cdrom", "cd", "dvd", "iso"],
    &["rbd", "ceph"],
    &["luks", "encryption", "encrypt", "dmcrypt"],
    &["hugepage", "hugetlb"],
    &["4k", "4096", "4kn"],
    &["outage", "failure", "crash", "powerloss"],
    &["hotplug", "attach", "plug", "detach"],
    &["raid", "mdadm", "md"],
    &["image", "disk", "file", "drive", "volume", "vdisk"],
    &["guest", "vm", "domain", "machine", "instance"],
    &["shrink", "reclaim", "compact"],
    &[
        "grow", "grew", "expand", "bloat", "inflate", "bigger", "larger",
    ],
    &["qcow", "qcow2"],
    &["thin", "sparse", "overprovision", "provision"],
    &["migrate", "migration", "move"],
    &["windows", "win10", "win11"],
    &["queue", "multiqueue"],
    &["nocow", "nodatacow", "chattr"],
    &["refuse", "fail", "error", "cannot", "unable"],
    &["snapshot", "checkpoint", "savevm"],
    &["boot", "start", "bootable", "startup", "launch"],
    &[
        "resize", "extend", "expand", "enlarge", "increase", "adjust",
    ],
    &["delete", "remove", "undefine", "destroy"],
    &["repair", "recover", "fix", "rescue"],
    &["convert", "conversion"],
    &["uefi", "ovmf", "efi"],
    &["serial", "identifier"],
];

/// Words between alternatives, and those of a choice among them.
const CHOICE: [&str; 8] = [
    "or",
    "vs",
    "versus",
    "which",
    "best",
    "better",
    "difference",
    "choose",
];

/// What the system says of a failed call: most programs end a message with it.
const REASONS: [&str; 6] = [
    "operation not permitted",
    "permission denied",
    "no such file or directory",
    "invalid argument",
    "input/output error",
    "no space left on device",
];

/// The weights of the fields of a page.
const NAME: f64 = 5.0;
const SUMMARY: f64 = 4.0;
const WORD: f64 = 2.0;
const BODY: f64 = 1.0;

/// A page as a bag of weighted stems.
struct Bag {
    page: Page,
    stems: BTreeMap<String, f64>,
    /// The stems of its title and summary.
    head: BTreeSet<String>,
    length: f64,
    /// The phrases of [`WORDS`].
    phrases: Vec<Vec<String>>,
}

fn bag(page: Page) -> Bag {
    let mut stems: BTreeMap<String, f64> = BTreeMap::new();
    let (mut head, mut length) = (BTreeSet::new(), 0.0);
    let mut rows = WORDS.lines().filter_map(|line| line.split_once(": "));
    let row = rows.find(|(name, _)| *name == page.title());
    let phrases = row.map_or("", |(_, phrases)| phrases);
    // The words of an example are those of XML, and not those of people.
    let prose: String = page.text().split("```").step_by(2).collect();
    let fields = [
        (NAME, page.title()),
        (SUMMARY, page.summary().unwrap_or_default()),
        (WORD, phrases),
        (BODY, &prose),
    ];
    for (weight, text) in fields {
        for stem in stems_of(text) {
            if weight >= SUMMARY {
                head.insert(stem.clone());
            }
            *stems.entry(stem).or_default() += weight;
            length += weight;
        }
    }
    let phrases = phrases
        .split(',')
        .map(|phrase| stems_of(phrase).collect())
        .collect();
    Bag {
        page,
        stems,
        head,
        length,
        phrases,
    }
}

/// The pages as bags, and the number of those with a stem.
fn index(pages: &[Page]) -> (Vec<Bag>, BTreeMap<String, usize>) {
    let bags: Vec<Bag> = pages.iter().map(|page| bag(*page)).collect();
    let mut pages_with = BTreeMap::new();
    for bag in &bags {
        for stem in bag.stems.keys().chain(bag.phrases.iter().flatten()) {
            *pages_with.entry(stem.clone()).or_default() += 1;
        }
    }
    (bags, pages_with)
}

/// The pages with the words of a query, the best first, and true if the first one fits most of them.
fn by_words(query: &str, pages: &[Page]) -> (Vec<Page>, bool, bool) {
    static BAGS: OnceLock<(Vec<Bag>, BTreeMap<String, usize>)> = OnceLock::new();
    let (bags, pages_with) = BAGS.get_or_init(|| index(pages));
    let average = bags.iter().map(|bag| bag.length).sum::<f64>() / bags.len() as f64;
    let asked = asked_of(query, pages_with);
    let is_as_written = stems_of(query).all(|stem| asked.contains_key(&stem));
    let meant: BTreeSet<&String> = asked.values().flatten().collect();
    // A word that no page has says little about which one is meant.
    let rarity = |stem: &str| match pages_with.get(stem) {
        Some(with) => (1.0 + bags.len() as f64 / *with as f64).ln(),
        None => 2.0,
    };
    // The other words of a message say more than the reason of the system at its end.
    let reason = REASONS
        .iter()
        .find(|reason| query.len() > reason.len() && query.contains(*reason));
    let of_reason: BTreeSet<String> = reason
        .into_iter()
        .flat_map(|reason| stems_of(reason))
        .collect();
    let rarity = |stem: &str| rarity(stem) * if of_reason.contains(stem) { 0.5 } else { 1.0 };
    let is_choice = query.split_whitespace().any(|word| CHOICE.contains(&word));
    let all: f64 = asked.keys().map(|stem| rarity(stem)).sum();
    let mut found = Vec::new();
    for bag in bags {
        let (mut score, mut covered, mut of_head) = (0.0, 0.0, 0.0);
        for (stem, others) in &asked {
            let own = bag.stems.get(stem).copied().unwrap_or_default();
            let others = others.iter().filter_map(|other| bag.stems.get(other));
            let count = own + 0.5 * others.copied().fold(0.0, f64::max);
            if count > 0.0 {
                covered += rarity(stem);
            }
            if bag.head.contains(stem) {
                of_head += rarity(stem);
            }
            score += rarity(stem) * count / (count + 1.5 * (0.3 + 0.7 * bag.length / average));
        }
        let phrase = bag.phrases.iter().map(|phrase| {
            let is_asked = |stem: &String| asked.contains_key(stem) || meant.contains(stem);
            if phrase.is_empty() || !phrase.iter().all(is_asked) {
                return 0.0;
            }
            // The share of the query that the phrase is, by the weight of the words.
            let parts = asked.iter().map(|(stem, others)| {
                let is_meant = || others.iter().any(|other| phrase.contains(other));
                match phrase.contains(stem) {
                    true => rarity(stem),
                    false if is_meant() => 0.6 * rarity(stem),
                    false => 0.0,
                }
            });
            parts.sum::<f64>() / all.max(f64::MIN_POSITIVE)
        });
        let mut phrase = phrase.fold(0.0, f64::max);
        // A page about a choice answers a question with alternatives that it has.
        if is_choice && bag.page.title().starts_with("which-") && covered >= 0.8 * all {
            phrase = phrase.max(1.02);
        }
        // A heading in words, not a name, is a phrase too.
        let title: BTreeSet<String> = stems_of(bag.page.title()).collect();
        let is_heading = bag.page.summary().is_none() && asked.len() > 1;
        if is_heading && asked.keys().all(|stem| title.contains(stem)) {
            // A few words of a long heading may be the subject of another page.
            phrase = phrase.max(if 2 * asked.len() > title.len() {
                1.2
            } else {
                0.9
            });
        }
        // A phrase that is a small part of the query says little: the share counts twice.
        let score = score + 3.0 * all * phrase * phrase;
        let fits = phrase >= 0.5 || covered >= 0.6 * all && of_head >= 0.3 * all;
        if score > 0.0 {
            found.push((score, (fits, is_as_written && phrase > 0.99), bag.page));
        }
    }
    found.sort_by(|one, other| {
        other
            .0
            .total_cmp(&one.0)
            .then(one.2.title().cmp(other.2.title()))
    });
    let (fits, is_phrase) = found.first().map_or((false, false), |(_, fits, _)| *fits);
    let pages = found.into_iter().map(|(.., page)| page).collect();
    (pages, fits, is_phrase)
}

/// The stems of a query, each with those that mean the same; a misspelt one is the nearest that a page has.
fn asked_of(query: &str, pages_with: &BTreeMap<String, usize>) -> BTreeMap<String, Vec<String>> {
    let known = || pages_with.keys().map(String::as_str);
    let mut asked: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for stem in stems_of(query) {
        let others: Vec<String> = synonyms(&stem).collect();
        let is_known = pages_with.contains_key(stem.as_str()) || !others.is_empty();
        if !is_known && stem.contains('_') {
            let parts = stem.split('_').filter(|it| !it.is_empty()).map(stemmed);
            asked.extend(parts.map(|it| (it.clone(), synonyms(&it).collect())));
            continue;
        }
        let near = vmdisk_source::nearest(&stem, known()).filter(|_| !is_known);
        asked.insert(near.map_or(stem.clone(), str::to_owned), others);
    }
    asked
}

/// The other words of the groups with this stem.
fn synonyms(stem: &str) -> impl Iterator<Item = String> + '_ {
    let groups = SYNONYMS
        .iter()
        .map(|group| group.iter().map(|word| stemmed(word)));
    groups
        .filter(move |group| group.clone().any(|word| word == stem))
        .flatten()
        .filter(move |word| word != stem)
}

/// The stems of a text, without words that every text has.
fn stems_of(text: &str) -> impl Iterator<Item = String> + '_ {
    const COMMON: [&str; 68] = [
        "a", "about", "after", "all", "am", "an", "and", "any", "are", "as", "at", "be", "because",
        "by", "can", "do", "does", "for", "from", "get", "has", "have", "how", "i", "if", "in",
        "is", "it", "its", "my", "not", "of", "on", "or", "should", "so", "that", "the", "to",
        "use", "using", "versus", "very", "vs", "want", "was", "what", "when", "which", "why",
        "with", "work", "works", "you", "become", "becomes", "getting", "gets", "keep", "keeps",
        "just", "still", "than", "there", "this", "will", "would", "your",
    ];
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
        .filter(|word| !word.is_empty())
        .map(str::to_lowercase)
        .filter(|word| !COMMON.contains(&word.as_str()))
        .map(|word| stemmed(&word))
        .filter(|stem| !COMMON.contains(&stem.as_str()))
}

/// A word without the endings of plurals and verbs.
fn stemmed(word: &str) -> String {
    let mut stem = word.trim_matches('_');
    if stem.len() > 3 && stem.ends_with('s') && !stem.ends_with("ss") && !stem.ends_with("us") {
        stem = stem
            .strip_suffix("ies")
            .or(stem.strip_suffix('s'))
            .unwrap_or(stem);
    }
    for ending in ["ing", "ed"] {
        if let Some(rest) = stem.strip_suffix(ending)
            && rest.len() >= 3
        {
            stem = rest;
            let letters: Vec<char> = stem.chars().rev().take(2).collect();
            if letters[0] == letters[1] && !matches!(letters[0], 's' | 'l' | 'e') {
                stem = &stem[..stem.len() - letters[0].len_utf8()];
            }
            break;
        }
    }
    let is_short = stem.chars().count() <= 3;
    stem.strip_suffix(['e', 'y'])
        .filter(|_| !is_short)
        .unwrap_or(stem)
        .to_owned()
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
            ("trim does not work", "discard-missing-thin"),
            ("vm freezes when host disk is full", "guest-paused"),
            ("why is my windows vm so slow", "bus-emulated"),
            ("permission denied home", "image-unreachable"),
            ("nobarier", "mount-nobarrier"),
            // Words of more phrases than one.
            ("qcow2 file keeps growing", "discard-missing-thin"),
        ] {
            let answer = search(query);
            let best = answer.pages.first().map(|page| page.title());
            assert_eq!((best, answer.fits), (Some(title), true), "{query}");
        }
        assert!(search("zzzzzzzz").pages.is_empty());
        for foreign in [
            "zzzzzzzz qqqqqq xxxxxx wwwwww disk",
            "error: unable to start guest: Cannot get interface MTU",
            "error: cannot undefine a network that is active",
            "error: Requested operation is not valid: Domain is already active",
        ] {
            assert!(!search(foreign).fits, "{foreign}");
        }
    }

    /// What people type and paste, a tab, and the pages that answer it.
    const ASKED: [&str; 2] = [
        include_str!("../../../../fixtures/explain/messages.tsv"),
        include_str!("../../../../fixtures/explain/queries.tsv"),
    ];

    #[test]
    fn what_people_type_finds_its_page_first() {
        let (mut right, mut wrong, mut total) = (0, Vec::new(), 0);
        for line in ASKED.iter().flat_map(|text| text.lines()) {
            let (query, wanted) = line.split_once('\t').expect("a query and its pages");
            let answer = search(query);
            let first = answer.pages.first().map_or("", |page| page.title());
            // A dash: no page answers, and none may open.
            if wanted == "-" {
                assert!(!answer.fits, "{query}: {first}");
                continue;
            }
            let is_right = wanted.split(['|', ',']).any(|page| first.contains(page));
            total += 1;
            right += usize::from(is_right);
            if !is_right {
                wrong.push((query, first, answer.fits));
            }
        }
        assert!(total >= 90, "{total}");
        assert!(right * 100 >= total * 90, "{right} of {total}: {wrong:#?}");
    }

    #[test]
    fn a_message_finds_its_page_whatever_names_it_contains() {
        for (name, message) in [
            (
                "bus-missing",
                "error: qemu: -device scsi-hd: Bus 'scsi7.0' not found",
            ),
            (
                "duplicate-target",
                "error: target 'sdz' duplicated for disk sources '/a b.img' and '/c.img'",
            ),
            (
                "snapshot-refused",
                "error: unsupported configuration: internal snapshot for disk sdq unsupported for storage type raw",
            ),
            (
                "hotplug-refused",
                "error: Operation not supported: disk bus 'fdc' cannot be hotplugged.",
            ),
            (
                "unsafe-migration",
                "error: Unsafe migration: Migration may lead to data corruption if disks use cache other than none or directsync",
            ),
        ] {
            assert_eq!(
                search(message).pages.first().map(|page| page.title()),
                Some(name),
                "{message}"
            );
        }
    }

    #[test]
    fn each_row_names_a_page() {
        let names: Vec<&str> = pages().into_iter().map(Page::title).collect();
        let of_messages = MESSAGES.lines().filter(|line| !line.starts_with('#'));
        let of_messages =
            of_messages.map(|line| line.split_once('\t').expect("a message and a page").1);
        let of_words = WORDS.lines().filter(|line| !line.starts_with('#'));
        let of_words = of_words.map(|line| line.split_once(": ").expect("a page and its words").0);
        for name in of_messages.chain(of_words) {
            assert!(names.contains(&name), "{name}");
        }
    }

    #[test]
    fn each_topic_ends_with_a_command_and_names_pages_that_exist() {
        let names: Vec<&str> = pages().into_iter().map(Page::title).collect();
        for page in sections(TOPICS) {
            let (title, text) = (page.title(), page.text().trim_end());
            let last = text.rsplit("\n\n").next().unwrap();
            assert!(last.starts_with("On th"), "{title}");
            let commands = last.split('`').filter(|part| part.starts_with("vmdisk "));
            let lines: Vec<&str> = commands.collect();
            assert!(!lines.is_empty(), "{title}");
            for line in lines {
                let words = line.split_whitespace().map(Into::into);
                let read = crate::args::Cli::read(&words.collect::<Vec<_>>());
                assert!(read.is_ok(), "{title}: {}", read.unwrap_err());
            }
            // In parentheses, a word with a hyphen is the name of a page.
            let named = text.split("(`").skip(1);
            let named = named.filter_map(|rest| rest.split(')').next());
            let named = named.flat_map(|list| list.split([',', '`'])).map(str::trim);
            let is_page = |word: &&str| {
                let is_lower = word.chars().all(|it| it.is_ascii_lowercase() || it == '-');
                is_lower && is_name(word) && !word.starts_with('-')
            };
            for name in named.filter(is_page) {
                assert!(names.contains(&name), "{title}: {name}");
            }
        }
    }

    #[test]
    fn a_stem_is_the_same_for_the_forms_of_a_word() {
        for forms in [
            &["discard", "discards", "discarded", "discarding"][..],
            &["trim", "trimming", "trimmed"],
            &["cache", "caching", "cached", "caches"],
            &["pause", "paused", "pausing"],
            &["queue", "queues"],
        ] {
            let stems: BTreeSet<String> = forms.iter().map(|form| stemmed(form)).collect();
            assert_eq!(stems.len(), 1, "{stems:?}");
        }
        assert_ne!(stemmed("bus"), stemmed("bu"));
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
