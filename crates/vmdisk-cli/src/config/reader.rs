//! Reads `vmdisk.toml`, and collects every mistake with its place.

use std::cmp::Reverse;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ignore::gitignore::{Gitignore, GitignoreBuilder};
use toml_edit::{Document, Item, Key, TableLike, Value};
use vmdisk::{Policy, Severity, Target};
use vmdisk_source::Span;

use crate::config::file::{self, Config, Level, Section, mistake};
use crate::input::read;
use crate::parsers::{rules_of, selector_name};
use crate::render::message::Message;
use crate::stop::Stop;

/// Keys of the whole file.
pub(super) const KEYS: [&str; 10] = [
    "facts",
    "hosts",
    "target",
    "policy",
    "fail-on",
    "min-severity",
    "baseline",
    "exclude",
    "rules",
    "files",
];

/// Keys of an entry of `files`.
pub(super) const FILE_KEYS: [&str; 6] = ["paths", "facts", "hosts", "target", "policy", "rules"];

/// Words of a level besides the severities.
const LEVELS: [&str; 2] = ["off", "on"];

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// If it cannot be read, or contains anything unknown: every mistake with its place.
    pub(crate) fn read(path: &Path) -> Result<Self, Stop> {
        Self::of_bytes(path, read::file(path)?)
    }

    /// Reads the contents of a file.
    pub(super) fn of_bytes(path: &Path, bytes: Vec<u8>) -> Result<Self, Stop> {
        let text = String::from_utf8(bytes)
            .map_err(|_| Stop::new(format!("{}: not valid UTF-8", path.display())))?;
        parsed(path, text)
    }
}

/// Reads the text of a file.
fn parsed(path: &Path, text: String) -> Result<Config, Stop> {
    let document = Document::parse(text.as_str()).map_err(|error| {
        let span = error.span().unwrap_or_default();
        let title = error.message().replace('\n', "; ");
        let span = Span::new(span.start, span.end);
        Stop::from(mistake(path, &text, span, title, None))
    })?;
    let directory = file::directory_of(path);
    let mut reader = Reader {
        path,
        text: &text,
        directory: &directory,
        mistakes: Vec::new(),
    };
    let top = reader.top(document.as_table());
    let mistakes = reader.mistakes;
    if !mistakes.is_empty() {
        return Err(Stop(mistakes));
    }
    let Top {
        all,
        files,
        exclude,
        fail_on,
        min_severity,
        baseline,
    } = top;
    drop(document);
    Ok(Config {
        path: path.to_owned(),
        directory,
        all,
        files,
        exclude,
        fail_on,
        min_severity,
        baseline,
        text,
        found: None,
    })
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    directory: &'a Path,
    mistakes: Vec<Message>,
}

/// The keys of a whole file.
struct Top {
    all: Section,
    files: Vec<(Gitignore, Section)>,
    exclude: Gitignore,
    fail_on: Option<Severity>,
    min_severity: Option<Severity>,
    baseline: Option<(PathBuf, Span)>,
}

impl Reader<'_> {
    fn top(&mut self, table: &dyn TableLike) -> Top {
        self.know_keys(table, &KEYS);
        let all = self.section(table);
        let fail_on = self.one(table, "fail-on", Severity::WORDS, Severity::from_word);
        let min_severity = self.one(table, "min-severity", Severity::WORDS, Severity::from_word);
        let baseline = table
            .get("baseline")
            .and_then(|item| self.string("baseline", item));
        let exclude = self.patterns(table, "exclude");
        let files = match table.get_key_value("files") {
            None => Vec::new(),
            Some((key, item)) => self.files(key, item),
        };
        Top {
            all,
            files,
            exclude,
            fail_on,
            min_severity,
            baseline: baseline.map(|(path, span)| (file::shown(self.directory.join(path)), span)),
        }
    }

    /// `[[files]]`, or an array of inline tables.
    fn files(&mut self, key: &Key, item: &Item) -> Vec<(Gitignore, Section)> {
        let tables: Vec<&dyn TableLike> = match item {
            Item::ArrayOfTables(tables) => {
                tables.iter().map(|table| table as &dyn TableLike).collect()
            }
            Item::Value(Value::Array(values)) => {
                let tables = values.iter().filter_map(Value::as_inline_table);
                let tables: Vec<&dyn TableLike> =
                    tables.map(|table| table as &dyn TableLike).collect();
                if tables.len() != values.len() {
                    self.complain(
                        item.span(),
                        "`files` must be a list of tables".to_owned(),
                        None,
                    );
                }
                tables
            }
            Item::None | Item::Value(_) | Item::Table(_) => {
                let help = "write [[files]]".to_owned();
                self.complain(
                    key.span(),
                    "`files` must be a list of tables".to_owned(),
                    Some(help),
                );
                Vec::new()
            }
        };
        let mut files = Vec::new();
        for table in tables {
            self.know_keys(table, &FILE_KEYS);
            if table.get("paths").is_none() {
                let help = "write paths = [\"domains/**\"]".to_owned();
                let first = table
                    .iter()
                    .next()
                    .and_then(|(name, _)| span_of_key(table, name));
                let span = first.or_else(|| key.span());
                self.complain(
                    span,
                    "an entry of `files` has no `paths`".to_owned(),
                    Some(help),
                );
            }
            let paths = self.patterns(table, "paths");
            files.push((paths, self.section(table)));
        }
        files
    }

    fn section(&mut self, table: &dyn TableLike) -> Section {
        let facts = self.strings(table, "facts").map(|facts| {
            let paths = facts.into_iter();
            paths
                .map(|(path, span)| (file::shown(self.directory.join(path)), span))
                .collect::<Vec<(PathBuf, Span)>>()
        });
        Section {
            facts,
            hosts: self.strings(table, "hosts"),
            target: self.target(table),
            policy: self.one(table, "policy", Policy::WORDS, Policy::from_word),
            rules: self.rules(table),
        }
    }

    fn target(&mut self, table: &dyn TableLike) -> Option<Target> {
        let (text, span) = self.string("target", table.get("target")?)?;
        match text.parse() {
            Ok(target) => Some(target),
            Err(error) => {
                let error: vmdisk::facts::TargetError = error;
                self.complain(Some(span.start..span.end), error.to_string(), None);
                None
            }
        }
    }

    /// Levels of rules; those of groups come first, so that a rule takes precedence over its group.
    fn rules(&mut self, table: &dyn TableLike) -> Vec<(String, Level)> {
        let Some(item) = table.get("rules") else {
            return Vec::new();
        };
        let Some(levels) = item.as_table_like() else {
            let title = "`rules` must be a table of names and levels".to_owned();
            self.complain(item.span(), title, Some("write [rules]".to_owned()));
            return Vec::new();
        };
        let mut rules = Vec::new();
        for (name, item) in levels.iter() {
            if let Err(why) = selector_name(name) {
                let span = span_of_key(levels, name);
                self.complain(span, format!("`{name}`: {why}"), None);
            }
            let words: Vec<&str> = [&LEVELS, Severity::WORDS].concat();
            let expected = format!("one of the strings {}", words.join(", "));
            let Some((word, span)) = self.string_among(name, item, &expected) else {
                continue;
            };
            match level(&word) {
                Some(level) => rules.push((name.to_owned(), level)),
                None => self.unknown_word(span, name, &word, &words),
            }
        }
        rules.sort_by_key(|(name, _): &(String, Level)| Reverse(rules_of(name).len()));
        rules
    }

    /// A value that is one of a few words.
    fn one<T>(
        &mut self,
        table: &dyn TableLike,
        name: &str,
        words: &[&str],
        parse: fn(&str) -> Option<T>,
    ) -> Option<T> {
        let (word, span) = self.string(name, table.get(name)?)?;
        let value = parse(&word);
        if value.is_none() {
            self.unknown_word(span, name, &word, words);
        }
        value
    }

    fn string(&mut self, name: &str, item: &Item) -> Option<(String, Span)> {
        self.string_among(name, item, "a string")
    }

    /// A string; `expected` names the accepted types.
    fn string_among(&mut self, name: &str, item: &Item, expected: &str) -> Option<(String, Span)> {
        match item.as_str() {
            Some(text) => Some((text.to_owned(), span_of(item.span()))),
            None => {
                let title = format!("`{name}` must be {expected}, not {}", item.type_name());
                self.complain(item.span(), title, None);
                None
            }
        }
    }

    /// A string or a list of strings.
    fn strings(&mut self, table: &dyn TableLike, name: &str) -> Option<Vec<(String, Span)>> {
        let item = table.get(name)?;
        let Some(values) = item.as_array() else {
            let one = self.string_among(name, item, "a string or a list of strings");
            return one.map(|one| vec![one]);
        };
        let mut strings = Vec::new();
        for value in values {
            match value.as_str() {
                Some(text) => strings.push((text.to_owned(), span_of(value.span()))),
                None => {
                    let kind = value.type_name();
                    let title = format!("`{name}` must be a list of strings, not of {kind}");
                    self.complain(value.span(), title, None);
                }
            }
        }
        Some(strings)
    }

    /// Patterns as in a .gitignore file in the directory of the configuration.
    fn patterns(&mut self, table: &dyn TableLike, name: &str) -> Gitignore {
        let mut builder = GitignoreBuilder::new(self.directory);
        for (pattern, span) in self.strings(table, name).unwrap_or_default() {
            if let Err(error) = builder.add_line(None, &pattern) {
                self.complain(Some(span.start..span.end), error.to_string(), None);
            }
        }
        match builder.build() {
            Ok(patterns) => patterns,
            Err(error) => {
                let span = table.get(name).and_then(Item::span);
                self.complain(span, error.to_string(), None);
                Gitignore::empty()
            }
        }
    }

    fn know_keys(&mut self, table: &dyn TableLike, known: &[&str]) {
        for (name, _) in table.iter() {
            if !known.contains(&name) {
                let span = span_of_key(table, name);
                let title = format!("unknown key `{name}`");
                self.complain(span, title, Some(suggestion(name, known)));
            }
        }
    }

    fn unknown_word(&mut self, span: Span, name: &str, word: &str, known: &[&str]) {
        let title = format!("`{name}` cannot be `{word}`");
        self.complain(
            Some(span.start..span.end),
            title,
            Some(suggestion(word, known)),
        );
    }

    fn complain(&mut self, span: Option<Range<usize>>, title: String, help: Option<String>) {
        let message = mistake(self.path, self.text, span_of(span), title, help);
        self.mistakes.push(message);
    }
}

fn span_of_key(table: &dyn TableLike, name: &str) -> Option<Range<usize>> {
    table.get_key_value(name).and_then(|(key, _)| key.span())
}

fn span_of(span: Option<Range<usize>>) -> Span {
    let span = span.unwrap_or_default();
    Span::new(span.start, span.end)
}

/// Words of other linters' configurations, each with what to write instead.
const INSTEAD: &[(&[&str], &str)] = &[
    (
        &[
            "ignore",
            "disable",
            "disabled",
            "select",
            "enable",
            "extend-select",
            "lint",
            "linter",
        ],
        "levels of rules are in `[rules]`, such as `cache-unsafe = \"off\"`",
    ),
    (
        &["include", "paths", "src"],
        "name paths on the command line, and others in `exclude`",
    ),
];

fn suggestion(word: &str, known: &[&str]) -> String {
    if known.contains(&"off") && ["ignore", "allow", "none", "disabled"].contains(&word) {
        return "did you mean `off`?".to_owned();
    }
    if known.contains(&"rules")
        && let Some((_, instead)) = INSTEAD.iter().find(|(words, _)| words.contains(&word))
    {
        return (*instead).to_owned();
    }
    match vmdisk_source::nearest(word, known.iter().copied()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!("use one of {}", known.join(", ")),
    }
}

fn level(word: &str) -> Option<Level> {
    match word {
        "off" => Some(Level::Off),
        "on" => Some(Level::On),
        other => Severity::from_word(other).map(Level::Severity),
    }
}
