//! Reads `vmdisk.toml`, and collects every mistake with its place.

use std::ops::Range;

use toml_edit::{Document, Item, Key, TableLike, Value};
use vmdisk_facts::{Target, TargetError};
use vmdisk_source::Span;

use super::HouseRule;
use super::{ConfigText, Patterns, Section, SettingsMistake};
use crate::rules::{self, Group, Policy, Rule, Severity};
use crate::selection::RuleLevel;

/// Keys of the whole file.
pub const KEYS: [&str; 11] = [
    "facts",
    "hosts",
    "target",
    "policy",
    "fail-on",
    "min-severity",
    "baseline",
    "exclude",
    "rules",
    "rule",
    "files",
];

/// Keys of an entry of `files`.
pub const FILE_KEYS: [&str; 6] = ["paths", "facts", "hosts", "target", "policy", "rules"];

/// Keys of an entry of `rule`.
pub const RULE_KEYS: [&str; 6] = ["name", "when", "message", "help", "severity", "group"];

impl ConfigText {
    /// Reads the text of a `vmdisk.toml`.
    ///
    /// # Errors
    /// If it contains anything unknown: every mistake, at least one.
    pub fn parse(text: &str) -> Result<Self, Vec<SettingsMistake>> {
        let document = Document::parse(text).map_err(|error| {
            vec![SettingsMistake {
                title: error.message().replace('\n', "; "),
                help: None,
                span: span_of(error.span()),
            }]
        })?;
        let mut reader = Reader::default();
        let settings = reader.settings(document.as_table());
        match reader.mistakes.is_empty() {
            true => Ok(settings),
            false => Err(reader.mistakes),
        }
    }
}

#[derive(Default)]
struct Reader {
    mistakes: Vec<SettingsMistake>,
}

impl Reader {
    fn settings(&mut self, table: &dyn TableLike) -> ConfigText {
        self.know_keys(table, &KEYS);
        let all = self.section(table);
        let fail_on = self.one(table, "fail-on", Severity::WORDS, Severity::from_word);
        let min_severity = self.one(table, "min-severity", Severity::WORDS, Severity::from_word);
        let baseline = table
            .get("baseline")
            .and_then(|item| self.string("baseline", item));
        let exclude = self.patterns(table, "exclude");
        let files = self.files(table);
        let rules = self.house_rules(table);
        ConfigText {
            all,
            files,
            rules,
            exclude,
            fail_on,
            min_severity,
            baseline,
        }
    }

    /// The tables of `[[name]]`, or of an array of inline tables.
    fn tables<'t>(&mut self, name: &str, key: &Key, item: &'t Item) -> Vec<&'t dyn TableLike> {
        match item {
            Item::ArrayOfTables(tables) => {
                tables.iter().map(|table| table as &dyn TableLike).collect()
            }
            Item::Value(Value::Array(values)) => {
                let tables = values.iter().filter_map(Value::as_inline_table);
                let tables: Vec<&dyn TableLike> =
                    tables.map(|table| table as &dyn TableLike).collect();
                if tables.len() != values.len() {
                    let title = format!("`{name}` must be a list of tables");
                    self.complain(item.span(), title, None);
                }
                tables
            }
            Item::None | Item::Value(_) | Item::Table(_) => {
                let title = format!("`{name}` must be a list of tables");
                self.complain(key.span(), title, Some(format!("write [[{name}]]")));
                Vec::new()
            }
        }
    }

    fn files(&mut self, table: &dyn TableLike) -> Vec<(Patterns, Section)> {
        let Some((key, item)) = table.get_key_value("files") else {
            return Vec::new();
        };
        let mut files = Vec::new();
        for table in self.tables("files", key, item) {
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

    fn house_rules(&mut self, table: &dyn TableLike) -> Vec<&'static Rule> {
        let Some((key, item)) = table.get_key_value("rule") else {
            return Vec::new();
        };
        let mut rules: Vec<&'static Rule> = Vec::new();
        for table in self.tables("rule", key, item) {
            let Some(rule) = self.house_rule(table, key.span()) else {
                continue;
            };
            if rules.iter().any(|other| other.name == rule.name) {
                let title = format!("two house rules have the name `{}`", rule.name);
                self.complain(span_of_key(table, "name"), title, None);
            }
            rules.push(rule);
        }
        rules
    }

    fn house_rule(
        &mut self,
        table: &dyn TableLike,
        place: Option<Range<usize>>,
    ) -> Option<&'static Rule> {
        self.know_keys(table, &RULE_KEYS);
        let whole = table.iter().next();
        let place = whole
            .and_then(|(name, _)| span_of_key(table, name))
            .or(place);
        let mut needed = |name: &str| {
            let found = table.get(name).map(|item| self.string(name, item));
            found.unwrap_or_else(|| {
                let title = format!("a house rule has no `{name}`");
                self.complain(place.clone(), title, None);
                None
            })
        };
        let (name, when, message) = (needed("name"), needed("when"), needed("message"));
        let help = table.get("help").and_then(|item| self.string("help", item));
        let severity = self.one(table, "severity", Severity::WORDS, Severity::from_word);
        let groups: Vec<&str> = Group::ALL.iter().map(|group| group.as_str()).collect();
        let group = self.one(table, "group", &groups, Group::from_word);
        let ((name, at), (when, condition), (message, _)) = (name?, when?, message?);
        let usual = HouseRule::default();
        let rule = HouseRule {
            name: &name,
            when: &when,
            message: &message,
            help: help.as_ref().map(|(help, _)| help.as_str()),
            severity: severity.unwrap_or(usual.severity),
            group: group.unwrap_or(usual.group),
        };
        let mistake = match rule.compile() {
            Ok(rule) => return Some(rule),
            Err(mistake) => mistake,
        };
        let is_name = !rules::is_of_house(&name);
        let span = if is_name { at } else { condition };
        self.complain(Some(span.start..span.end), mistake.title, mistake.help);
        None
    }

    fn section(&mut self, table: &dyn TableLike) -> Section {
        Section {
            facts: self.strings(table, "facts"),
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
                let error: TargetError = error;
                self.complain(Some(span.start..span.end), error.to_string(), None);
                None
            }
        }
    }

    /// Levels of rules; those of groups come first, so that a rule takes precedence over its group.
    fn rules(&mut self, table: &dyn TableLike) -> Vec<(String, RuleLevel)> {
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
            if let Err(why) = rules::named(name) {
                let span = span_of_key(levels, name);
                self.complain(span, format!("`{name}`: {why}"), None);
            }
            let words = RuleLevel::words();
            let expected = format!("one of the strings {}", words.join(", "));
            let Some((word, span)) = self.string_among(name, item, &expected) else {
                continue;
            };
            match RuleLevel::from_word(&word) {
                Some(level) => rules.push((name.to_owned(), level)),
                None => self.unknown_word(span, name, &word, &words),
            }
        }
        RuleLevel::sort(&mut rules);
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
    fn patterns(&mut self, table: &dyn TableLike, name: &str) -> Patterns {
        let patterns = self.strings(table, name).unwrap_or_default();
        let whole = span_of(table.get(name).and_then(Item::span));
        let (patterns, mistakes) = Patterns::new(&patterns, whole);
        for (span, title) in mistakes {
            self.complain(Some(span.start..span.end), title, None);
        }
        patterns
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
        let span = span_of(span);
        self.mistakes.push(SettingsMistake { title, help, span });
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
