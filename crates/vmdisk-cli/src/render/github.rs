//! Annotations of a GitHub workflow.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt::Write;

use vmdisk::{Diagnostic, Severity};

use crate::age::OldFacts;
use crate::render::View;
use crate::render::message::Message;
use crate::report::caveats::Caveats;
use crate::report::input::{InputReport, confidence_note, unwritten_note};
use crate::report::run::RunReport;
use crate::sanitize::{line, lines};

/// GitHub shows this number of annotations of each kind.
const SHOWN: usize = 10;

/// The number of further places that an annotation of a rule names.
const NAMED: usize = 50;

/// Caveats, then inputs that could not be read, then findings, the worst first. Those of a kind of which GitHub would hide
/// some are one annotation for each rule.
pub(crate) fn report(run: RunReport<'_>, view: &View<'_>) -> String {
    let mut out = caveats(run.caveats, view);
    for input in run.inputs {
        if let Err(message) = &input.outcome {
            out.push_str(&failure(input, message));
        }
    }
    let inputs = run.inputs.iter();
    let all = inputs.flat_map(|input| {
        view.findings(input)
            .map(move |one| (input.path.as_str(), one))
    });
    let mut all: Vec<(&str, &Diagnostic)> = all.collect();
    all.sort_by_key(|(_, finding)| Reverse(finding.severity));
    for of_kind in all.chunk_by(|(_, a), (_, b)| kind(a.severity) == kind(b.severity)) {
        let mut by_rule: BTreeMap<(usize, &str), Vec<(&str, &Diagnostic)>> = BTreeMap::new();
        let mut firsts: BTreeMap<&str, usize> = BTreeMap::new();
        for (number, (path, finding)) in of_kind.iter().enumerate() {
            let first = match of_kind.len() > SHOWN {
                true => *firsts.entry(finding.rule.name).or_insert(number),
                false => number,
            };
            by_rule
                .entry((first, finding.rule.name))
                .or_default()
                .push((path, finding));
        }
        for findings in by_rule.values() {
            annotation(&mut out, findings, view);
        }
    }
    out
}

/// The kind of annotation.
const fn kind(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice | Severity::Pedantic => "notice",
    }
}

/// An input that could not be read.
fn failure(checked: &InputReport, message: &Message) -> String {
    let mut out = format!("::error file={}", property(&checked.path));
    let quoted = message
        .place
        .as_ref()
        .and_then(|place| place.quoted.as_ref());
    if let Some(quoted) = quoted {
        let start = quoted.start();
        let _ = write!(out, ",line={},col={}", start.line, start.column);
    }
    let mut text = message.title.clone();
    if let Some(help) = &message.help {
        let _ = write!(text, "\nhelp: {help}");
    }
    let _ = writeln!(
        out,
        ",title={}::{}",
        property("could not be read"),
        data(&text)
    );
    out
}

/// One annotation at the first of some findings of a rule.
fn annotation(out: &mut String, findings: &[(&str, &Diagnostic)], view: &View<'_>) {
    let [(path, finding), further @ ..] = findings else {
        return;
    };
    let command = kind(finding.severity);
    let (start, end) = (finding.place.start, finding.place.end);
    let _ = write!(
        out,
        "::{command} file={},line={},endLine={}",
        property(path),
        start.line,
        end.line
    );
    // Columns are refused for a place of several lines.
    if start.line == end.line {
        let _ = write!(out, ",col={},endColumn={}", start.column, end.column);
    }
    let mut text = finding.title.clone();
    let notes = finding
        .label
        .iter()
        .chain(&finding.notes)
        .cloned()
        .chain(unwritten_note(&finding.place, finding.label.as_deref()))
        .chain(view.hosts_note(finding))
        .chain(confidence_note(finding.confidence).map(str::to_owned));
    for note in notes {
        let _ = write!(text, "\n{note}");
    }
    if let Some(help) = &finding.help {
        let _ = write!(text, "\nhelp: {help}");
    }
    if !further.is_empty() {
        let _ = write!(text, "\n{} more:", further.len());
    }
    for (path, finding) in further.iter().take(NAMED) {
        let _ = write!(
            text,
            "\n{path}:{}: {}",
            finding.place.start.line, finding.title
        );
    }
    if further.len() > NAMED {
        text.push_str("\n…");
    }
    let _ = writeln!(
        out,
        ",title={}::{}",
        property(finding.rule.name),
        data(&text)
    );
}

/// Annotations about unchecked rules and old facts; a quiet run has only the annotations that fail it.
fn caveats(caveats: &Caveats<'_>, view: &View<'_>) -> String {
    let Caveats {
        not_checked,
        unchecked_fails,
        old_facts,
        old_facts_fail,
    } = caveats;
    let mut out = String::new();
    let mut add = |command: &str, properties: &str, text: &str| {
        if !view.quiet || command == "error" {
            let _ = writeln!(out, "::{command} {properties}::{}", data(text));
        }
    };
    if let Some(text) = not_checked {
        match unchecked_fails {
            true => {
                let text = format!("{text}; this fails the run (--fail-on-unchecked)");
                add("error", "title=not checked", &text);
            }
            false => add("notice", "title=not checked", text),
        }
    }
    for OldFacts { path, text, fails } in *old_facts {
        let command = match (fails, old_facts_fail) {
            (true, true) => "error",
            (true, false) | (false, _) => "warning",
        };
        let properties = format!("file={},title=old facts", property(path));
        add(command, &properties, text);
    }
    out
}

/// Text behind the `::`.
fn data(text: &str) -> String {
    lines(text)
        .replace('%', "%25")
        .replace('\r', "%0D")
        .replace('\n', "%0A")
}

/// Text of a property, where colons and commas end it.
fn property(text: &str) -> String {
    data(&line(text)).replace(':', "%3A").replace(',', "%2C")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_end_a_property_or_a_command() {
        assert_eq!(data("100%\na,b::c"), "100%25%0Aa,b::c");
        assert_eq!(property("a:b,c%d"), "a%3Ab%2Cc%25d");
        for text in ["\r\n::error::x", "\u{2028}", "\u{1b}[1m"] {
            assert!(!property(text).chars().any(char::is_control), "{text:?}");
            assert!(!data(text).contains(['\n', '\r', '\u{1b}']), "{text:?}");
        }
    }
}
