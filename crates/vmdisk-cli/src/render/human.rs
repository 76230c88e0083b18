//! Findings for people, in rustc's style.

use vmdisk::report::DocumentReport;
use vmdisk::{AllowedBy, Diagnostic, Severity};
use vmdisk_source::secrets::Secrets;

use crate::render::block::{Block, Heading, Quoted};
use crate::render::{View, fix_command, page_url};
use crate::report::input::{InputReport, confidence_note, unwritten_note};

/// The findings of one file; blocks end with an empty line.
pub(crate) fn file(input: &InputReport, report: &DocumentReport, view: &View<'_>) -> String {
    let mut out = String::new();
    let path = input.path.as_str();
    let secrets = Secrets::of(&report.text);
    for finding in view.findings(input) {
        out.push_str(&block(path, report, &secrets, finding, view));
        out.push('\n');
    }
    if view.show_allowed {
        for finding in &report.allowed {
            out.push_str(&block(path, report, &secrets, finding, view));
            out.push('\n');
        }
    }
    out
}

fn block(
    path: &str,
    report: &DocumentReport,
    secrets: &Secrets,
    finding: &Diagnostic,
    view: &View<'_>,
) -> String {
    let Diagnostic {
        rule,
        severity,
        confidence,
        disk: _,
        at: _,
        title,
        place,
        label,
        related,
        notes,
        help,
        fix,
        allowed_by,
        .. // The view puts the hosts into words.
    } = finding;
    let is_brief = match (allowed_by, severity) {
        (Some(_), _) => true,
        (None, Severity::Advice | Severity::Pedantic) => !view.verbose,
        (None, Severity::Warning | Severity::Error) => false,
    };
    let mut said: Vec<String> = Vec::new();
    if !is_brief {
        said.extend(notes.iter().cloned());
        said.extend(unwritten_note(place, label.as_deref()));
    }
    said.extend(view.hosts_note(finding));
    said.extend(confidence_note(*confidence).map(str::to_owned));
    said.extend(allowed_by.as_ref().map(allowance));
    let help = if allowed_by.is_some() {
        None
    } else {
        let fix = fix.as_ref().filter(|_| view.suggests_fix);
        let how = fix.and_then(|fix| fix_command(path, fix.applicability));
        let how = how.map(|command| match command.strip_prefix("vmdisk lint ") {
            Some(options) => format!("`{options}` does this"),
            None => format!("with `{command}`"),
        });
        match (help, how) {
            (Some(help), Some(how)) => Some(format!("{help} ({how})")),
            (Some(help), None) => Some(help.clone()),
            (None, Some(how)) => Some(how),
            (None, None) => None,
        }
    };
    let heading = match (allowed_by, severity) {
        (Some(_), _) => Heading::Allowed,
        (None, Severity::Error) => Heading::Error,
        (None, Severity::Warning) => Heading::Warning,
        (None, Severity::Advice) => Heading::Advice,
        (None, Severity::Pedantic) => Heading::Pedantic,
    };
    let edits = fix.as_ref().filter(|_| !is_brief);
    Block {
        heading,
        id: Some(rule.name),
        url: view.links.then(|| page_url(rule.name)),
        title,
        path: Some(path),
        quoted: (!report.text.is_empty()).then_some(Quoted {
            text: &report.text,
            lines: &report.lines,
            secrets,
            span: place.span,
            label: label.as_deref(),
            snippet: !is_brief,
        }),
        related: related
            .iter()
            .map(|related| (related.place.span, related.label.as_str()))
            .collect(),
        notes: said,
        help,
        patch: edits.map(|fix| fix.edits.as_slice()).unwrap_or_default(),
    }
    .render(view.colored)
}

/// Why a finding does not count.
pub(crate) fn allowance(by: &AllowedBy) -> String {
    match by {
        AllowedBy::InFile {
            reason: Some(reason),
            ..
        } => format!("allowed in the file: {reason}"),
        AllowedBy::InFile { reason: None, .. } => {
            "allowed in the file, without a reason".to_owned()
        }
        AllowedBy::Ignored => "ignored by --ignore".to_owned(),
        AllowedBy::Baseline => "known in the baseline".to_owned(),
    }
}
