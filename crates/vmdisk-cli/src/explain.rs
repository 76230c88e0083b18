//! `vmdisk explain`.

mod formatted;
mod search;

use std::fmt::Write;

use serde::Serialize;
use vmdisk::rules::{RULES, named};
use vmdisk::{Applicability, Rule};

use crate::args::{ExplainArgs, PageFormat};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::{deliver_exact, pretty_json};
use crate::pager;
use crate::stop::Stop;
use search::Page;
use vmdisk_source::table::table;

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
    /// `safe` for fixes that `--fix` applies, `unsafe` for those that also need `--unsafe-fixes`.
    fixes: Vec<&'static str>,
    /// The whole page in Markdown.
    page: String,
}

fn data(rule: &'static Rule) -> RuleData {
    RuleData {
        name: rule.name,
        group: rule.group.as_str(),
        severity: rule.severity.as_str(),
        since: rule.since,
        summary: rule.summary(),
        evidence: rule.evidence.iter().map(ToString::to_string).collect(),
        supersedes: rule.supersedes,
        fixes: rule
            .fixes()
            .into_iter()
            .map(Applicability::as_str)
            .collect(),
        page: rule.explain(),
    }
}

/// Shows the page of a rule, or the page that fits the words best.
pub(crate) fn explain(args: &ExplainArgs, has_color: bool, io: &mut Io<'_>) -> Result<Exit, Stop> {
    if args.list {
        return list(args, io);
    }
    let words = args.words.join(" ");
    let named = vmdisk::rules::find(&words).map(Page::Rule);
    let (page, others) = match named.or_else(|| search::topic(&words)) {
        Some(page) => (Some(page), Vec::new()),
        None => find(&words)?,
    };
    let text = match (args.format, page) {
        (PageFormat::Text, page) => {
            let width = io
                .stdout_width
                .map(|width| width.clamp(MIN_WIDTH, MAX_WIDTH));
            let text = formatted::formatted(&with_others(page, &others), has_color, width);
            pager::page(io, &text)?;
            return Ok(Exit::Clean);
        }
        (PageFormat::Markdown, page) => with_others(page, &others),
        (PageFormat::Json, Some(Page::Rule(rule))) => pretty_json(&data(rule)),
        (PageFormat::Json, _) => {
            let message = format!("no page of a rule fits `{words}` best");
            return Err(Stop::new(message).help("use `--format markdown`, or name a rule"));
        }
    };
    deliver_exact(io, None, &text)?;
    Ok(Exit::Clean)
}

/// A page in Markdown, followed by the names of others with the same words; only these, if no page fits.
fn with_others(page: Option<Page>, others: &[Page]) -> String {
    let (mut text, heading) = match page {
        Some(page) => (page.markdown(), "\n## Other pages with these words\n"),
        None => (String::new(), "# The closest pages\n"),
    };
    if !others.is_empty() {
        text.push_str(heading);
    }
    for other in others {
        let _ = match other.summary() {
            Some(summary) => writeln!(text, "- `{}`: {summary}", other.title()),
            None => writeln!(text, "- \"{}\"", other.title()),
        };
    }
    text
}

/// The page that fits these words best, if one fits, and others; an error for the name of a rule that does not exist.
fn find(words: &str) -> Result<(Option<Page>, Vec<Page>), Stop> {
    // A name with a dash is one of a rule or group, and not words.
    let is_name = search::is_name(words);
    let rules = named(words).unwrap_or_default();
    if is_name && !rules.is_empty() {
        let title = format!(
            "`{words}` selects {} rules, and each has a page",
            rules.len()
        );
        return Err(Stop::new(title).help(format!("name one of them: {}", rules.join(", "))));
    }
    let answer = search::search(words);
    // A misspelt name; `io-error` is a phrase.
    let near = vmdisk_source::nearest(words, RULES.iter().map(|rule| rule.name));
    if let Some(near) = near.filter(|_| is_name && !answer.is_phrase) {
        let title = format!("there is no rule called `{words}`");
        return Err(Stop::new(title).help(format!("did you mean `{near}`?")));
    }
    if answer.pages.is_empty() {
        let stop = Stop::new(format!("no page has any of these words: {words}"));
        return Err(stop.help("`vmdisk explain --list` lists all rules"));
    }
    let mut pages = answer.pages.into_iter();
    let opens = answer.fits && (!is_name || answer.is_phrase);
    let page = if opens { pages.next() } else { None };
    Ok((page, pages.take(MAX_TITLES).collect()))
}

/// Text is wrapped to the width of the terminal within these limits.
const MIN_WIDTH: usize = 40;
const MAX_WIDTH: usize = 100;

/// The most titles of other pages.
const MAX_TITLES: usize = 5;

/// Lists the rules that have all words.
fn list(args: &ExplainArgs, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let has_all = |rule: &&&'static Rule| {
        let text = [
            rule.name,
            rule.group.as_str(),
            rule.severity.as_str(),
            rule.summary(),
        ];
        let text = text.join("\n").to_lowercase();
        args.words
            .iter()
            .all(|word| text.contains(&word.to_lowercase()))
    };
    let rules: Vec<&Rule> = RULES.iter().filter(has_all).copied().collect();
    if rules.is_empty() {
        let words = args.words.join(" ");
        return Err(
            Stop::new(format!("no rule has all of these words: {words}"))
                .help(format!("`vmdisk explain {words}` searches the pages")),
        );
    }
    let text = match args.format {
        PageFormat::Text => {
            let row = |rule: &&Rule| {
                let (severity, group) = (rule.severity.as_str(), rule.group.as_str());
                [rule.name, severity, group, rule.summary()]
                    .map(str::to_owned)
                    .to_vec()
            };
            let rows: Vec<Vec<String>> = rules.iter().map(row).collect();
            let text = table(&rows, false, io.stdout_width);
            pager::page(io, &text)?;
            return Ok(Exit::Clean);
        }
        PageFormat::Markdown => {
            return Err(Stop::new("a list has no Markdown").help("use --format text, or json"));
        }
        PageFormat::Json => pretty_json(&rules.iter().map(|rule| data(rule)).collect::<Vec<_>>()),
    };
    deliver_exact(io, None, &text)?;
    Ok(Exit::Clean)
}
