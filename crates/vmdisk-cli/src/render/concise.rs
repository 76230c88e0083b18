//! One line for each finding.

use std::fmt::Write as _;

use vmdisk::{Confidence, Diagnostic};

use crate::render::human::allowance;
use crate::render::message::Message;
use crate::render::{View, page_url};
use crate::report::input::InputReport;
use crate::sanitize::line;

/// The findings of one file: `path:line:column: severity[rule]: title`.
pub(crate) fn file(input: &InputReport, view: &View<'_>) -> String {
    let mut out = String::new();
    let path = input.path.as_str();
    // The host has no text.
    let has_text = input.outcome.as_ref().is_ok_and(|it| !it.text.is_empty());
    let path = |finding: &Diagnostic| {
        let start = finding.place.start;
        match has_text {
            true => format!("{}:{}:{}", line(path), start.line, start.column),
            false => line(path).into_owned(),
        }
    };
    for finding in view.findings(input) {
        one(
            &mut out,
            &path(finding),
            finding,
            finding.severity.as_str(),
            view,
        );
    }
    if view.show_allowed {
        for finding in input.allowed() {
            one(&mut out, &path(finding), finding, "allowed", view);
        }
    }
    out
}

/// An input that could not be read: `path:line:column: error: title`, as far as there is a place.
pub(crate) fn failure(path: &str, message: &Message) -> String {
    let place = message.place.as_ref();
    let quoted = place.and_then(|place| place.quoted.as_ref());
    let start = quoted.map(|quoted| quoted.start());
    let at = start.map_or_else(String::new, |start| {
        format!("{}:{}:", start.line, start.column)
    });
    let mut text = message.title.clone();
    for note in &message.notes {
        text.push_str(&format!(" ({note})"));
    }
    format!("{}:{at} error: {}\n", line(path), line(&text))
}

fn one(out: &mut String, place: &str, finding: &Diagnostic, word: &str, view: &View<'_>) {
    out.push_str(place);
    out.push_str(": ");
    let (rule, title) = (finding.rule.name, line(&finding.title));
    match view.links {
        true => {
            let url = page_url(rule);
            // Writing to a string does not fail.
            let _ = write!(
                out,
                "{word}[\u{1b}]8;;{url}\u{1b}\\{rule}\u{1b}]8;;\u{1b}\\]: {title}"
            );
        }
        false => {
            for part in [word, "[", rule, "]: ", &title] {
                out.push_str(part);
            }
        }
    }
    if let Some(hosts) = view.hosts_note(finding) {
        out.push_str(&format!(" ({})", line(&hosts)));
    }
    match finding.confidence {
        Confidence::Certain => {}
        Confidence::Assumed => out.push_str(" (assumed)"),
    }
    if let Some(by) = &finding.allowed_by {
        out.push_str(&format!(" ({})", line(&allowance(by))));
    } else if finding.fix.is_some() {
        out.push_str(" (fixable)");
    }
    out.push('\n');
}
