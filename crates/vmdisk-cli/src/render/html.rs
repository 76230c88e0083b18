//! A page for people: the number of findings of each rule, then for each guest the mistakes with their fixes as diffs, and the
//! I/O paths of their disks as pictures. It is one file that needs no other.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;

use maud::{DOCTYPE, Markup, PreEscaped, html};
use vmdisk::report::{Counts, DocumentReport};
use vmdisk::{Diagnostic, Severity};

use crate::clock;
use crate::draw;
use crate::render::message::Message;
use crate::render::statistics::Statistics;
use crate::render::{PAGE_STYLE, View, fix_command, page_url};
use crate::report::diff;
use crate::report::input::{InputReport, confidence_note, unwritten_note};
use crate::report::run::RunReport;
use crate::sanitize::{line, lines};
use crate::trace::svg;
use vmdisk_source::secrets::mask;

/// The most pictures: they are most of the page.
const MAX_PICTURES: usize = 40;

/// The part of the page about an input.
fn section(input: &InputReport, view: &View<'_>, pictures: &mut usize) -> String {
    let content = match &input.outcome {
        Ok(report) => guest(input, report, view, pictures),
        Err(message) => unreadable(&input.path, message),
    };
    content.into_string()
}

/// True for an input that is only listed.
fn is_clean(input: &InputReport, view: &View<'_>) -> bool {
    input.outcome.is_ok() && view.findings(input).next().is_none()
}

/// A table with the number of findings of each rule.
fn statistics(run: RunReport<'_>, view: &View<'_>) -> Markup {
    let Statistics { mut rules, .. } = Statistics::of(run.tally, view);
    rules.sort_by_key(|count| Reverse(count.severity.parse::<Severity>().ok()));
    html! {
        @if !rules.is_empty() {
            table {
                tr {
                    th { "findings" } th { "rule" } th { "severity" } th { "fixable" }
                    @if view.classes.is_some() { th { "classes of hosts" } }
                }
                @for count in &rules {
                    tr {
                        td { (count.findings) }
                        td { (rule(count.rule)) }
                        td { (count.severity) }
                        td { (count.fixable + count.fixable_unsafely) }
                        @if view.classes.is_some() { td { (line(&of_classes(count.host_classes.as_ref()))) } }
                    }
                }
            }
        }
    }
}

/// Numbers of findings by class of hosts, the largest first.
fn of_classes(classes: Option<&BTreeMap<String, usize>>) -> String {
    const NAMED: usize = 10;
    let mut sorted: Vec<(&String, &usize)> = classes.into_iter().flatten().collect();
    sorted.sort_by_key(|(_, number)| Reverse(*number));
    let named = sorted.iter().take(NAMED);
    let mut named: Vec<String> = named
        .map(|(class, number)| format!("{class}: {number}"))
        .collect();
    if let Some(more @ 1..) = sorted.len().checked_sub(NAMED) {
        named.push(format!("{more} more"));
    }
    named.join(", ")
}

/// The name of a rule, with a link to its page.
fn rule(name: &str) -> Markup {
    html! { a href=(page_url(name)) { (name) } }
}

/// Writes the page with the parts about its inputs; for `is_brief` only about those that could not be read.
pub(crate) fn write(
    out: &mut dyn Write,
    run: RunReport<'_>,
    view: &View<'_>,
    is_brief: bool,
) -> io::Result<()> {
    let summary = &run.tally.summary;
    let head = html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            title { "vmdisk lint" }
            style { (PreEscaped(PAGE_STYLE)) (PreEscaped(draw::STYLE)) }
        }
    };
    let top = html! {
        h1 { "vmdisk lint" }
        p {
            (count(summary.counts.inputs, "input", "inputs")) ", " (line(run.facts))
        }
        p class="path" { "vmdisk " (env!("CARGO_PKG_VERSION")) ", " (clock::day(clock::reference())) }
        ul class="counts" {
            @for (count, name) in counts(&summary.counts) { @if count > 0 { li { b { (count) } " " (name) } } }
        }
        (statistics(run, view))
    };
    write!(
        out,
        "{}<html lang=\"en\">{}<body><main>{}",
        DOCTYPE.into_string(),
        head.into_string(),
        top.into_string()
    )?;
    let shown = run.inputs.iter();
    let shown = shown.filter(|input| !is_brief || input.outcome.is_err());
    let (clean, others): (Vec<_>, Vec<_>) = shown.partition(|input| is_clean(input, view));
    let mut pictures = 0;
    let mut sections = others
        .into_iter()
        .map(|input| section(input, view, &mut pictures));
    sections.try_for_each(|section| out.write_all(section.as_bytes()))?;
    let rest = html! {
        @if !clean.is_empty() {
            details {
                summary { (count(clean.len(), "input", "inputs")) " without findings" }
                ul { @for input in clean { li { (line(&input.path)) } } }
            }
        }
        @if pictures > MAX_PICTURES {
            p { "The page has pictures of " (MAX_PICTURES) " disks with findings; " code { "vmdisk trace" } " shows all." }
        }
    };
    writeln!(out, "{}</main></body></html>", rest.into_string())
}

/// The numbers in the head of the page.
fn counts(counts: &Counts) -> [(usize, &'static str); 6] {
    let not_checked = counts.rules_not_checked.len();
    [
        (counts.errors, plural(counts.errors, "error", "errors")),
        (
            counts.warnings,
            plural(counts.warnings, "warning", "warnings"),
        ),
        (counts.advice, "advice"),
        (counts.pedantic, "pedantic"),
        (
            counts.failed_inputs,
            plural(
                counts.failed_inputs,
                "unreadable input",
                "unreadable inputs",
            ),
        ),
        (
            not_checked,
            plural(not_checked, "rule not checked", "rules not checked"),
        ),
    ]
}

const fn plural(number: usize, one: &'static str, many: &'static str) -> &'static str {
    if number == 1 { one } else { many }
}

fn count(number: usize, one: &'static str, many: &'static str) -> String {
    format!("{number} {}", plural(number, one, many))
}

fn unreadable(path: &str, message: &Message) -> Markup {
    html! {
        section {
            h2 { (line(path)) }
            article class="error" { h3 { "not checked: " (said(&message.title)) } }
        }
    }
}

fn guest(
    input: &InputReport,
    report: &DocumentReport,
    view: &View<'_>,
    pictures: &mut usize,
) -> Markup {
    let path = input.path.as_str();
    let with_findings: BTreeSet<usize> = view
        .findings(input)
        .filter_map(|finding| finding.at.disk())
        .collect();
    let before = *pictures;
    *pictures += with_findings.len() * input.paths.len();
    let is_shown = *pictures <= MAX_PICTURES || before == 0;
    html! {
        section {
            h2 { (line(report.domain.as_deref().unwrap_or(path))) }
            p class="path" { (line(path)) }
            @for finding in view.findings(input) { (finding_of(path, report, finding, view)) }
            @for paths in input.paths.iter().filter(|_| is_shown && !with_findings.is_empty()) {
                @match view.classes {
                    Some(classes) => {
                        @let names: Vec<&str> = paths.hosts.iter().map(|host| classes.hosts()[*host].name.as_str()).collect();
                        h3 { "I/O paths on " (line(&names.join(", "))) }
                    }
                    None => { h3 { "I/O paths" } }
                }
                div class="pictures" {
                    @for (number, disk) in paths.guest.disks.iter().enumerate() {
                        @if with_findings.contains(&number) { (svg::picture(disk).in_page()) }
                    }
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
    notes.extend(unwritten_note(&finding.place, finding.label.as_deref()));
    notes.extend(view.hosts_note(finding));
    notes.extend(confidence_note(finding.confidence).map(str::to_owned));
    html! {
        article class=(class) {
            h3 { (finding.severity.as_str()) ": " (said(&finding.title)) }
            p class="path" {
                (line(path)) ":" (start.line) ":" (start.column) " · " (rule(finding.rule.name))
            }
            @if let Some(label) = &finding.label { p { (said(label)) } }
            @if !notes.is_empty() { ul { @for note in &notes { li { (said(note)) } } } }
            @if let Some(help) = &finding.help { p class="help" { (said(help)) } }
            (fix(path, report, finding))
        }
    }
}

/// A text in one line. What stands between back-ticks is code.
fn said(text: &str) -> Markup {
    let text = line(text);
    let parts: Vec<&str> = text.split('`').collect();
    let is_code = |number: usize| number % 2 == 1 && number + 1 < parts.len();
    html! {
        @for (number, part) in parts.iter().enumerate() {
            @if is_code(number) { code { (part) } } @else {
                @if number % 2 == 1 { "`" }
                (part)
            }
        }
    }
}

/// The fix of a finding, as a diff if its lines are not too long; empty without a fix.
fn fix(path: &str, report: &DocumentReport, finding: &Diagnostic) -> Markup {
    let Some(fix) = &finding.fix else {
        return html! {};
    };
    let command = fix_command(path, fix.applicability);
    let (text, lines_of) = (&report.text, &report.lines);
    let diff = diff::of_edits(Path::new(path), text, lines_of, &fix.edits, mask);
    html! {
        @match diff {
            None => { @if let Some(command) = command { p { code { (command) } " fixes it" } } }
            Some(diff) => {
                @if let Some(command) = command { p { code { (command) } " changes:" } }
                pre {
                    // git ends a name with a space by a tab.
                    @for text in lines(&diff.replace("\t\n", "\n")).lines() {
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
