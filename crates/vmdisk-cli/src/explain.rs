//! `vmdisk explain` and `vmdisk rules`.

mod formatted;

use std::fmt::Write;

use serde::Serialize;
use vmdisk::Rule;
use vmdisk::rules::RULES;

use crate::args::{ExplainArgs, PageFormat, RulesArgs, TextFormat};
use crate::exit::Exit;
use crate::io::Io;
use crate::output::deliver;
use crate::stop::Stop;

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

/// Shows the page of one rule.
pub(crate) fn explain(args: &ExplainArgs, has_color: bool, io: &mut Io<'_>) -> Result<Exit, Stop> {
    let rule = vmdisk::rules::find(&args.rule)
        .ok_or_else(|| Stop::new(format!("unknown rule `{}`", args.rule)))?;
    let text = match args.format {
        PageFormat::Text => formatted::formatted(&rule.explain(), has_color),
        PageFormat::Markdown => rule.explain(),
        PageFormat::Json => json(&data(rule, Some(rule.explain()))),
    };
    deliver(io, None, &text)?;
    Ok(Exit::Clean)
}

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
