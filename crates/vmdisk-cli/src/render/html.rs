//! A page for people: for each guest the mistakes with their fixes as diffs, and the I/O paths as pictures. It is one file that
//! refers to no other.

use std::io::{self, Write};
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use vmdisk::report::DocumentReport;
use vmdisk::{Applicability, Diagnostic, Severity};

use crate::render::View;
use crate::render::message::Message;
use crate::report::diff;
use crate::report::input::{InputReport, confidence_note, unwritten_note};
use crate::report::run::RunReport;
use crate::sanitize::{line, lines};
use crate::trace::svg;
use vmdisk_source::secrets::{mask, mask_message};

const STYLE: &str = include_str!("page.css");

/// The part of the page about an input.
fn section(input: &InputReport, view: &View<'_>) -> String {
    let content = match &input.outcome {
        Ok(report) => guest(input, report, view),
        Err(message) => unreadable(&input.path, message),
    };
    content.into_string()
}

/// Writes the page with the parts about its inputs.
pub(crate) fn write(out: &mut dyn Write, run: RunReport<'_>, view: &View<'_>) -> io::Result<()> {
    let summary = run.summary;
    let hosts: Vec<String> = match view.classes {
        Some(classes) => classes
            .hosts()
            .iter()
            .map(|host| host.name.clone())
            .collect(),
        None => run.host.map(str::to_owned).into_iter().collect(),
    };
    let counts = [
        (summary.errors, "errors"),
        (summary.warnings, "warnings"),
        (summary.advice, "advice"),
        (summary.pedantic, "pedantic"),
        (summary.failed, "unreadable inputs"),
        (summary.rules_not_checked.len(), "rules not checked"),
    ];
    let head = html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { "vmdisk lint" }
            style { (PreEscaped(STYLE)) (PreEscaped(svg::STYLE)) }
        }
    };
    let top = html! {
        h1 { "vmdisk lint" }
        p { (summary.inputs) " inputs" @if !hosts.is_empty() { ", on " (line(&hosts.join(", "))) } }
        ul class="counts" {
            @for (count, name) in counts { @if count > 0 { li { b { (count) } " " (name) } } }
        }
    };
    write!(
        out,
        "{}<html lang=\"en\">{}<body><main>{}",
        DOCTYPE.into_string(),
        head.into_string(),
        top.into_string()
    )?;
    let mut sections = run.inputs.iter().map(|input| section(input, view));
    sections.try_for_each(|section| out.write_all(section.as_bytes()))?;
    writeln!(out, "</main></body></html>")
}

fn unreadable(path: &str, message: &Message) -> Markup {
    html! {
        section {
            h2 { (line(path)) }
            article class="error" { h3 { "not checked: " (said(&message.title)) } }
        }
    }
}

fn guest(input: &InputReport, report: &DocumentReport, view: &View<'_>) -> Markup {
    let path = input.path.as_str();
    html! {
        section {
            h2 { (line(report.domain.as_deref().unwrap_or(path))) }
            p class="path" { (line(path)) }
            @if report.findings.is_empty() { p { "No findings." } }
            @for finding in view.findings(input) { (finding_of(path, report, finding, view)) }
            @for paths in &input.paths {
                @match view.classes {
                    Some(classes) => {
                        @let names: Vec<&str> = paths.hosts.iter().map(|host| classes.hosts()[*host].name.as_str()).collect();
                        h3 { "I/O paths on " (line(&names.join(", "))) }
                    }
                    None => { h3 { "I/O paths" } }
                }
                div class="pictures" {
                    @for disk in &paths.guest.disks { (svg::picture(disk)) }
                }
            }
        }
    }
}

fn finding_of(
    path: &str,
    report: &DocumentReport,
    finding: &Diagnostic,
    view: &View<'_>,
) -> Markup {
    let class = match finding.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
        Severity::Advice | Severity::Pedantic => "advice",
    };
    let start = finding.place.start;
    let mut notes: Vec<String> = finding.notes.clone();
    notes.extend(unwritten_note(&finding.place));
    notes.extend(view.hosts_note(finding));
    notes.extend(confidence_note(finding.confidence).map(str::to_owned));
    html! {
        article class=(class) {
            h3 { (finding.severity.as_str()) ": " (said(&finding.title)) }
            p class="path" {
                (line(path)) ":" (start.line) ":" (start.column) " · " (finding.rule.name)
            }
            @if let Some(label) = &finding.label { p { (said(label)) } }
            @if !notes.is_empty() { ul { @for note in &notes { li { (said(note)) } } } }
            @if let Some(help) = &finding.help { p class="help" { (said(help)) } }
            (fix(path, report, finding))
        }
    }
}

/// A text in one line, without secrets.
fn said(text: &str) -> String {
    line(&mask_message(text)).into_owned()
}

/// The fix of a finding, as a diff if its lines are not too long; empty without a fix.
fn fix(path: &str, report: &DocumentReport, finding: &Diagnostic) -> Markup {
    let Some(fix) = &finding.fix else {
        return html! {};
    };
    let command = match fix.applicability {
        Applicability::Safe => "vmdisk lint --fix",
        Applicability::Unsafe => "vmdisk lint --fix --unsafe-fixes",
    };
    let (text, lines_of) = (&report.text, &report.lines);
    let diff = diff::of_edits(Path::new(path), text, lines_of, &fix.edits, mask);
    html! {
        @match diff {
            None => { p { code { (command) } " fixes it" } }
            Some(diff) => {
                p { code { (command) } " changes:" }
                pre {
                    @for text in lines(&diff).lines() {
                        @let class = match text.as_bytes().first() {
                            Some(b'+') => "added",
                            Some(b'-') => "removed",
                            _ => "context",
                        };
                        span class=(class) { (text) "\n" }
                    }
                }
            }
        }
    }
}
