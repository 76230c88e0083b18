//! `vmdisk explain` and `vmdisk rules`.

mod formatted;
mod search;

use std::fmt::Write;

use serde::Serialize;
use vmdisk::Rule;
use vmdisk::rules::RULES;

use crate::args::{ExplainArgs, PageFormat, RulesArgs, TextFormat};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::parsers::rules_of;
use crate::stop::Stop;
use search::Page;

/// A rule for programs.
#[derive(Debug, Serialize)]
struct RuleData {
    name: &'static str,
    group: &'static str,
    severity: &'static str,
    since: &'static str,
    summary: &'static str,
    evidence: Vec<String>,
    supersedes: &'static [&'static str],
    /// The whole page in Markdown; only for one rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    page: Option<String>,
}

fn data(rule: &'static Rule, page: Option<String>) -> RuleData {
    RuleData {
        name: rule.name,
        group: rule.group.as_str(),
        severity: rule.severity.as_str(),
        since: rule.since,
        summary: rule.summary(),
        evidence: rule.evidence.iter().map(ToString::to_string).collect(),
        supersedes: rule.supersedes,
        page,
    }
}

/// Shows the page of a rule, or the page that fits the words best.
pub(crate) fn explain(args: &ExplainArgs, has_color: bool, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let words = args.words.join(" ");
    let (page, others) = match vmdisk::rules::find(&words) {
        Some(rule) => (Page::Rule(rule), Vec::new()),
        None => find(&words)?,
    };
    let text = match (args.format, page) {
        (PageFormat::Text, page) => formatted::formatted(&with_others(page, &others), has_color),
        (PageFormat::Markdown, page) => with_others(page, &others),
        (PageFormat::Json, Page::Rule(rule)) => json(&data(rule, Some(rule.explain()))),
        (PageFormat::Json, Page::Advice(_)) => {
            let message = format!("no page of a rule fits `{words}` best");
            return Err(Stop::new(message).help("use `--format markdown`, or name a rule"));
        }
    };
    deliver(io, None, &text)?;
    Ok(Exit::Clean)
}

/// A page in Markdown, followed by the names of others with the same words.
fn with_others(page: Page, others: &[Page]) -> String {
    let mut text = page.markdown();
    if !others.is_empty() {
        text.push_str("\n## Other pages with these words\n");
    }
    for other in others {
        let _ = match other {
            Page::Rule(rule) => writeln!(text, "- `{}`: {}", rule.name, rule.summary()),
            Page::Advice(_) => writeln!(text, "- \"{}\"", other.title()),
        };
    }
    text
}

/// The page that fits these words best, and others with all of them; an error if none has all.
fn find(words: &str) -> Result<(Page, Vec<Page>), Stop> {
    // A name with a dash is one of a rule or group, and not words.
    let is_name = words.contains('-') && !words.contains(' ');
    let rules = rules_of(words);
    if is_name && !rules.is_empty() {
        let title = format!(
            "`{words}` selects {} rules, and each has a page",
            rules.len()
        );
        return Err(Stop::new(title).help(format!("name one of them: {}", rules.join(", "))));
    }
    let missing = || match words.contains(' ') {
        true => Stop::new(format!("no page has all of these words: {words}")),
        false => Stop::new(format!("there is no rule called `{words}`")),
    };
    let near = vmdisk_source::nearest(words, RULES.iter().map(|rule| rule.name));
    if let Some(near) = near {
        return Err(missing().help(format!("did you mean `{near}`?")));
    }
    let found = search::search(words);
    match found.as_slice() {
        [] => Err(missing().help("`vmdisk rules` lists all rules")),
        [best, others @ ..] if best.has_all && !is_name => {
            let others = others.iter().filter(|other| other.has_all);
            Ok((
                best.page,
                others.map(|other| other.page).take(MAX_TITLES).collect(),
            ))
        }
        several => {
            let titles = several.iter().take(MAX_TITLES);
            let titles: Vec<String> = titles.map(|it| format!("`{}`", it.page.title())).collect();
            let stop = match is_name {
                true => missing(),
                false => Stop::new(format!("no page has all of the words `{words}`")),
            };
            Err(stop.help(format!("the nearest pages: {}", titles.join(", "))))
        }
    }
}

/// The most titles of other pages.
const MAX_TITLES: usize = 6;

/// Lists all rules.
pub(crate) fn rules(args: &RulesArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let text = match args.format {
        TextFormat::Text => table(),
        TextFormat::Json => {
            let all: Vec<RuleData> = RULES.iter().map(|rule| data(rule, None)).collect();
            json(&all)
        }
    };
    deliver(io, None, &text)?;
    Ok(Exit::Clean)
}

fn table() -> String {
    let width = |of: fn(&Rule) -> usize| RULES.iter().map(|rule| of(rule)).max().unwrap_or(0);
    let name = width(|rule| rule.name.len());
    let severity = width(|rule| rule.severity.as_str().len());
    let group = width(|rule| rule.group.as_str().len());
    let mut out = String::new();
    for rule in RULES {
        let _ = writeln!(
            out,
            "{:name$}  {:severity$}  {:group$}  {}",
            rule.name,
            rule.severity.as_str(),
            rule.group.as_str(),
            rule.summary()
        );
    }
    out
}

fn json(value: &impl Serialize) -> String {
    let mut text =
        serde_json::to_string_pretty(value).expect("rules hold only text and lists of text");
    text.push('\n');
    text
}
