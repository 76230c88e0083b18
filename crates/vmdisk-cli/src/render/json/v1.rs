//! Version 1 of the report: what `vmdisk lint --format json` prints.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning; the second number
//! of `schema_version` counts additions. Lines and columns start at 1, columns count Unicode characters,
//! offsets are bytes from 0.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::report::{DocumentReport, Unchecked};
use vmdisk::{AllowedBy, Applicability, Confidence, Diagnostic, Severity};
use vmdisk_source::{Edit, LineIndex, Span};

use crate::render::escaped_json::{self, Members, add_line};
use crate::render::message::Message;
use crate::render::summary::Summary;
use crate::report::classes::{ClassNames, Classes};
use crate::report::input::InputReport;
use crate::report::run::RunReport;

/// Version of the shape.
pub(crate) const SCHEMA_VERSION: &str = "1.4";

/// The report of one `vmdisk lint` run.
#[derive(JsonSchema)]
#[schemars(title = "vmdisk lint report, version 1", rename = "Report")]
#[allow(
    dead_code,
    reason = "only its schema is used: members are written one by one"
)]
struct Envelope<'a> {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// Who wrote it.
    tool: Tool,
    /// Numbers of the run.
    summary: Counts,
    /// Every input in the order it was checked; also facts files that could not be read.
    inputs: Vec<Input<'a>>,
    /// The hosts that the inputs may run on, where there are several; since 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<Vec<Host<'a>>>,
    /// Classes of hosts about which the rules say the same in everything; since 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_classes: Option<Vec<HostClass<'a>>>,
    /// Findings that count, by input and then by place.
    findings: Vec<JsonFinding<'a>>,
    /// Findings that do not count, each with the reason.
    allowed: Vec<JsonFinding<'a>>,
    /// Checks that lacked an input.
    not_checked: Vec<NotChecked<'a>>,
}

/// The program that wrote a report.
#[derive(Debug, Serialize, JsonSchema)]
struct Tool {
    /// `vmdisk`.
    name: &'static str,
    /// Its version.
    version: &'static str,
}

/// Numbers of a run.
#[derive(Debug, Serialize, JsonSchema)]
struct Counts {
    /// Inputs, including unreadable ones.
    inputs: usize,
    /// Inputs that could not be read.
    failed_inputs: usize,
    /// Findings of severity `error`.
    errors: usize,
    /// Findings of severity `warning`.
    warnings: usize,
    /// Findings of severity `advice`.
    advice: usize,
    /// Findings of severity `pedantic`; since 1.3.
    pedantic: usize,
    /// Findings that do not count.
    allowed: usize,
    /// Those of them that a baseline knows; since 1.4.
    known: usize,
    /// Findings with a fix that `--fix` applies.
    fixable: usize,
    /// Findings with a fix that only `--unsafe-fixes` applies.
    fixable_unsafely: usize,
    /// The findings that `--fix` fixed in this run.
    fixed: usize,
    /// Fixes that `--fix` undid in this run; since 1.2.
    failed_fixes: usize,
    /// Rules that could not look at something.
    rules_not_checked: usize,
}

/// A host that the inputs may run on.
#[derive(Debug, Serialize, JsonSchema)]
struct Host<'a> {
    /// Its name: the name of its facts file.
    name: &'a str,
    /// Its facts file.
    facts: &'a str,
    /// Name of its class in `host_classes`.
    class: &'a str,
    /// The class that its facts declare.
    declared_class: Option<&'a str>,
}

/// Hosts about which the rules say the same in everything.
#[derive(Debug, Serialize, JsonSchema)]
struct HostClass<'a> {
    /// Its name, which findings refer to.
    name: &'a str,
    /// Names of its hosts.
    hosts: Vec<&'a str>,
}

/// On which classes of hosts something was found, by their names.
#[derive(Debug, Serialize, JsonSchema)]
struct FoundOn<'a> {
    /// The classes on which it was found.
    affected: Vec<&'a str>,
    /// The classes on which it was checked and not found.
    not_affected: Vec<&'a str>,
    /// The classes on which it could not be checked.
    not_checked: Vec<&'a str>,
}

/// One input.
#[derive(Debug, Serialize, JsonSchema)]
pub(super) struct Input<'a> {
    /// The given path.
    path: &'a str,
    /// Whether it could be read.
    status: InputStatus,
    /// Name of the guest, if the document has one.
    domain: Option<&'a str>,
    /// Number of disks; absent if it could not be read.
    disks: Option<usize>,
    /// Titles of the findings that `--fix` fixed.
    fixed: &'a [String],
    /// Fixes that `--fix` undid because they made something worse; since 1.2.
    failed_fixes: Vec<FailedFix<'a>>,
    /// Why it could not be read.
    error: Option<Failure<'a>>,
}

/// A fix that was undone.
#[derive(Debug, Serialize, JsonSchema)]
struct FailedFix<'a> {
    /// Name of the rule whose fix it is.
    rule: &'static str,
    /// Title of the finding that it was to fix.
    title: &'a str,
    /// Why it was undone.
    reason: String,
}

/// Whether an input could be read.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum InputStatus {
    /// The rules looked at it.
    Checked,
    /// It could not be read, and nothing is known about it.
    Failed,
}

/// Why an input failed.
#[derive(Debug, Serialize, JsonSchema)]
struct Failure<'a> {
    /// The mistake.
    message: &'a str,
    /// Where, if it is text.
    start: Option<Position>,
    /// Where the place ends.
    end: Option<Position>,
    /// The remedy.
    help: Option<&'a str>,
}

/// One finding.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Finding")]
pub(super) struct JsonFinding<'a> {
    /// Name of the rule; `vmdisk explain NAME` shows its page.
    rule: &'static str,
    /// How much it matters here.
    severity: SeverityWord,
    /// How sure it is.
    confidence: ConfidenceWord,
    /// Path of the input.
    path: &'a str,
    /// Which disk, if it is about one.
    disk: Option<Disk<'a>>,
    /// The mistake.
    title: &'a str,
    /// Where.
    place: JsonPlace<'a>,
    /// The label of the place.
    label: Option<&'a str>,
    /// Further places.
    related: Vec<Related<'a>>,
    /// Why it matters here: the facts that decided.
    notes: &'a [String],
    /// The remedy.
    help: Option<&'a str>,
    /// Edits that fix it.
    fix: Option<Fix<'a>>,
    /// On which hosts, where there are several; since 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    hosts: Option<FoundOn<'a>>,
    /// Why it does not count; only under `allowed`.
    #[serde(skip_serializing_if = "Option::is_none")]
    allowed_by: Option<Allowance<'a>>,
}

/// How much a finding matters.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum SeverityWord {
    /// Will not start, or loses or leaks data.
    Error,
    /// Probably not what was wanted.
    Warning,
    /// Could be better.
    Advice,
    /// Works as it is; reported only on request; since 1.3.
    Pedantic,
}

/// How sure a finding is.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ConfidenceWord {
    /// It rests on the configuration itself or on something observed.
    Certain,
    /// It rests on a version number or a default.
    Assumed,
}

/// Whether a fix may be applied without asking.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum ApplicabilityWord {
    /// It changes nothing but the mistake; `--fix` applies it.
    Safe,
    /// It trades something, or the guest sees it; `--fix --unsafe-fixes` applies it.
    Unsafe,
}

/// Who says that a finding does not count.
#[derive(Debug, Serialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum AllowedByWord {
    /// An allowance in the file.
    File,
    /// `--ignore`.
    CommandLine,
    /// A baseline; since 1.4.
    Baseline,
}

/// A disk of a document.
#[derive(Debug, Serialize, JsonSchema)]
struct Disk<'a> {
    /// Its number in the document, from 0.
    index: usize,
    /// Name of its target, if it has one.
    target: Option<&'a str>,
}

/// A position in a text.
#[derive(Debug, Serialize, JsonSchema)]
struct Position {
    /// Line, from 1.
    line: usize,
    /// Column in Unicode characters, from 1.
    column: usize,
    /// Bytes before it.
    offset: usize,
}

/// A place in a text.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(rename = "Place")]
struct JsonPlace<'a> {
    /// Its first character.
    start: Position,
    /// Just past its last character.
    end: Position,
    /// False if the field is not written and this is the nearest one around it.
    exact: bool,
    /// The field in words.
    field: &'a str,
}

/// A further place that a finding is about.
#[derive(Debug, Serialize, JsonSchema)]
struct Related<'a> {
    /// Its relation to the finding.
    label: &'a str,
    /// Where.
    place: JsonPlace<'a>,
}

/// Edits that fix a finding.
#[derive(Debug, Serialize, JsonSchema)]
struct Fix<'a> {
    /// Whether it may be applied without asking.
    applicability: ApplicabilityWord,
    /// Replacements; places refer to the text before any of them, and none overlap.
    edits: Vec<Replacement<'a>>,
}

/// A replacement of a part of a text.
#[derive(Debug, Serialize, JsonSchema)]
struct Replacement<'a> {
    /// Where the replaced part starts.
    start: Position,
    /// Where it ends.
    end: Position,
    /// The new text.
    text: &'a str,
}

/// Why a finding does not count.
#[derive(Debug, Serialize, JsonSchema)]
struct Allowance<'a> {
    /// Who says so.
    by: AllowedByWord,
    /// The reason given.
    reason: Option<&'a str>,
    /// Line of an allowance in the file.
    line: Option<usize>,
}

/// Something that a rule could not look at.
#[derive(Debug, Serialize, JsonSchema)]
struct NotChecked<'a> {
    /// Name of the rule.
    rule: &'static str,
    /// Path of the input.
    path: &'a str,
    /// Which disk, if it is about one.
    disk: Option<Disk<'a>>,
    /// The field in words.
    field: &'a str,
    /// What would have been needed.
    what: &'a str,
    /// Why it is not there.
    why: &'a str,
    /// On which classes of hosts, where there are several; since 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_classes: Option<Vec<&'a str>>,
}

/// Adds places that rules could not look at.
fn add_all_not_checked(list: &mut Vec<u8>, input: &InputReport, classes: Option<&Classes<'_>>) {
    let mut path = Vec::new();
    escaped_json::string(&mut path, &input.path);
    for one in input.not_checked() {
        match classes {
            Some(_) => add_line(list, &not_checked(&input.path, one, classes)),
            None => add_not_checked(list, &path, one),
        }
    }
}

/// As [`add_line`] of [`NotChecked`] without classes. Most of a report are these entries. `path` is a string of JSON.
fn add_not_checked(list: &mut Vec<u8>, path: &[u8], missed: Unchecked<'_>) {
    let Unchecked {
        rule,
        disk,
        field,
        what,
        why,
        hosts: _,
    } = missed;
    list.extend_from_slice(escaped_json::LINE);
    list.extend_from_slice(b"{\"rule\": ");
    escaped_json::string(list, rule.name);
    list.extend_from_slice(b", \"path\": ");
    list.extend_from_slice(path);
    match disk {
        Some((index, target)) => {
            list.extend_from_slice(b", \"disk\": {\"index\": ");
            list.extend_from_slice(index.to_string().as_bytes());
            list.extend_from_slice(b", \"target\": ");
            match target {
                Some(target) => escaped_json::string(list, target),
                None => list.extend_from_slice(b"null"),
            }
            list.push(b'}');
        }
        None => list.extend_from_slice(b", \"disk\": null"),
    }
    list.extend_from_slice(b", \"field\": ");
    escaped_json::string(list, field);
    list.extend_from_slice(b", \"what\": ");
    escaped_json::string(list, what);
    list.extend_from_slice(b", \"why\": ");
    escaped_json::string(list, why);
    list.push(b'}');
}

/// Writes the whole report. Each item of a long list has a line of its own: indented, the report would be a fifth longer.
///
/// # Errors
/// If it cannot be written.
pub(crate) fn write(
    out: &mut dyn Write,
    run: RunReport<'_>,
    classes: Option<&Classes<'_>>,
) -> io::Result<()> {
    let tool = Tool {
        name: "vmdisk",
        version: env!("CARGO_PKG_VERSION"),
    };
    let add_findings = |list: &mut Vec<u8>, checked: &InputReport, all: &[Diagnostic]| {
        if let Ok(report) = &checked.outcome {
            let findings = all.iter();
            findings.for_each(|one| add_line(list, &finding(&checked.path, report, one, classes)));
        }
    };
    let mut report = Members::new(out);
    report.member("schema_version", &SCHEMA_VERSION)?;
    report.member("tool", &tool)?;
    report.member("summary", &counts(run.summary))?;
    report.lines("inputs", run.inputs, |list, checked| {
        if !checked.is_continued {
            add_line(list, &input(checked));
        }
    })?;
    if let Some(classes) = classes {
        report.member("hosts", &hosts(classes))?;
        report.member("host_classes", &host_classes(classes))?;
    }
    report.lines("findings", run.inputs, |list, checked| {
        add_findings(list, checked, checked.findings());
    })?;
    report.lines("allowed", run.inputs, |list, checked| {
        add_findings(list, checked, checked.allowed());
    })?;
    report.lines("not_checked", run.inputs, |list, checked| {
        add_all_not_checked(list, checked, classes);
    })?;
    report.end()
}

fn counts(summary: &Summary) -> Counts {
    let Summary {
        inputs,
        failed,
        errors,
        warnings,
        advice,
        pedantic,
        allowed,
        known,
        fixable,
        fixable_unsafely,
        fixed,
        failed_fixes,
        rules_not_checked,
        ..
    } = summary;
    Counts {
        inputs: *inputs,
        failed_inputs: *failed,
        errors: *errors,
        warnings: *warnings,
        advice: *advice,
        pedantic: *pedantic,
        allowed: *allowed,
        known: *known,
        fixable: *fixable,
        fixable_unsafely: *fixable_unsafely,
        fixed: *fixed,
        failed_fixes: *failed_fixes,
        rules_not_checked: rules_not_checked.len(),
    }
}

/// The JSON Schema of the report.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope<'static>)
}

fn hosts<'a>(classes: &'a Classes<'_>) -> Vec<Host<'a>> {
    let hosts = classes.hosts().iter().enumerate();
    hosts
        .map(|(number, host)| Host {
            name: &host.name,
            facts: &host.path,
            class: classes.class_of(number),
            declared_class: host.declared_class.as_deref(),
        })
        .collect()
}

fn host_classes<'a>(classes: &'a Classes<'_>) -> Vec<HostClass<'a>> {
    let named = classes.named();
    named
        .map(|(name, hosts)| HostClass { name, hosts })
        .collect()
}

fn found_on<'a>(classes: &'a Classes<'_>, found: &vmdisk::FoundOn) -> FoundOn<'a> {
    let ClassNames {
        affected,
        not_affected,
        not_checked,
    } = classes.names_of(found);
    FoundOn {
        affected,
        not_affected,
        not_checked,
    }
}

pub(super) fn input(checked: &InputReport) -> Input<'_> {
    match &checked.outcome {
        Ok(report) => Input {
            path: &checked.path,
            status: InputStatus::Checked,
            domain: report.domain.as_deref(),
            disks: Some(report.disks),
            fixed: &report.mended,
            failed_fixes: report.failed_fixes.iter().map(failed_fix).collect(),
            error: None,
        },
        Err(message) => Input {
            path: &checked.path,
            status: InputStatus::Failed,
            domain: None,
            disks: None,
            fixed: &[],
            failed_fixes: Vec::new(),
            error: Some(failure(message)),
        },
    }
}

fn failed_fix(failed: &vmdisk::FailedFix) -> FailedFix<'_> {
    FailedFix {
        rule: failed.rule.name,
        title: &failed.title,
        reason: failed.why.to_string(),
    }
}

fn failure(message: &Message) -> Failure<'_> {
    let quoted = message
        .place
        .as_ref()
        .and_then(|place| place.quoted.as_ref());
    let at = |offset: fn(Span) -> usize| {
        quoted.map(|quoted| position(quoted.text.text(), quoted.text.lines(), offset(quoted.span)))
    };
    Failure {
        message: &message.title,
        start: at(|span| span.start),
        end: at(|span| span.end),
        help: message.help.as_deref(),
    }
}

pub(super) fn finding<'a>(
    path: &'a str,
    report: &'a DocumentReport,
    finding: &'a Diagnostic,
    classes: Option<&'a Classes<'_>>,
) -> JsonFinding<'a> {
    let Diagnostic {
        rule,
        severity,
        confidence,
        disk,
        at: _, // The disk and the place name it.
        title,
        place: at,
        label,
        related,
        notes,
        help,
        fix,
        allowed_by,
        hosts,
    } = finding;
    JsonFinding {
        rule: rule.name,
        severity: match severity {
            Severity::Error => SeverityWord::Error,
            Severity::Warning => SeverityWord::Warning,
            Severity::Advice => SeverityWord::Advice,
            Severity::Pedantic => SeverityWord::Pedantic,
        },
        confidence: match confidence {
            Confidence::Certain => ConfidenceWord::Certain,
            Confidence::Assumed => ConfidenceWord::Assumed,
        },
        path,
        disk: disk.as_ref().map(|disk| Disk {
            index: disk.index,
            target: disk.target.as_deref(),
        }),
        title,
        place: place(at),
        label: label.as_deref(),
        related: related
            .iter()
            .map(|related| Related {
                label: &related.label,
                place: place(&related.place),
            })
            .collect(),
        notes,
        help: help.as_deref(),
        fix: fix.as_ref().map(|fix| Fix {
            applicability: match fix.applicability {
                Applicability::Safe => ApplicabilityWord::Safe,
                Applicability::Unsafe => ApplicabilityWord::Unsafe,
            },
            edits: fix
                .edits
                .iter()
                .map(|edit| replacement(report, edit))
                .collect(),
        }),
        hosts: classes
            .zip(hosts.as_ref())
            .map(|(classes, found)| found_on(classes, found)),
        allowed_by: allowed_by.as_ref().map(|by| allowance(report, by)),
    }
}

fn place(place: &vmdisk::TextPlace) -> JsonPlace<'_> {
    let vmdisk::TextPlace {
        span,
        start,
        end,
        is_exact,
        breadcrumb,
    } = place;
    JsonPlace {
        start: Position {
            line: start.line,
            column: start.column,
            offset: span.start,
        },
        end: Position {
            line: end.line,
            column: end.column,
            offset: span.end,
        },
        exact: *is_exact,
        field: breadcrumb,
    }
}

fn replacement<'a>(report: &DocumentReport, edit: &'a Edit) -> Replacement<'a> {
    Replacement {
        start: position(&report.text, &report.lines, edit.span.start),
        end: position(&report.text, &report.lines, edit.span.end),
        text: &edit.text,
    }
}

fn position(text: &str, lines: &LineIndex, offset: usize) -> Position {
    let found = lines.position(text, offset);
    Position {
        line: found.line,
        column: found.column,
        offset,
    }
}

fn allowance<'a>(report: &DocumentReport, by: &'a AllowedBy) -> Allowance<'a> {
    match by {
        AllowedBy::InFile { reason, span } => Allowance {
            by: AllowedByWord::File,
            reason: reason.as_deref(),
            line: Some(report.lines.position(&report.text, span.start).line),
        },
        AllowedBy::Ignored => Allowance {
            by: AllowedByWord::CommandLine,
            reason: None,
            line: None,
        },
        AllowedBy::Baseline => Allowance {
            by: AllowedByWord::Baseline,
            reason: None,
            line: None,
        },
    }
}

fn not_checked<'a>(
    path: &'a str,
    missed: Unchecked<'a>,
    classes: Option<&'a Classes<'_>>,
) -> NotChecked<'a> {
    let Unchecked {
        rule,
        disk,
        field,
        what,
        why,
        hosts,
    } = missed;
    NotChecked {
        rule: rule.name,
        path,
        disk: disk.map(|(index, target)| Disk { index, target }),
        field,
        what,
        why,
        host_classes: classes.map(|classes| classes.names(hosts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_serde_is_that_of_serde() {
        for disk in [None, Some((0, None)), Some((12, Some("v\"da\u{202e}")))] {
            let missed = Unchecked {
                rule: vmdisk::rules::find("cache-unsafe").unwrap(),
                disk,
                field: "disk vda › driver/@cache",
                what: "file system of /srv/\\a\n.img",
                why: "no facts were given",
                hosts: &[],
            };
            let path = "a \u{7f}.xml";
            let (mut expected, mut found, mut quoted) = (Vec::new(), Vec::new(), Vec::new());
            add_line(&mut expected, &not_checked(path, missed, None));
            escaped_json::string(&mut quoted, path);
            add_not_checked(&mut found, &quoted, missed);
            assert_eq!(String::from_utf8(found), String::from_utf8(expected));
        }
    }
}
