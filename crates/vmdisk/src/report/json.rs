//! Version 1 of the report: what `vmdisk lint --format json` prints.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning; the second number
//! of `schema_version` counts additions. Lines and columns start at 1, columns count Unicode characters,
//! offsets are bytes from 0.

use std::collections::HashMap;
use std::io::{self, Write};
use std::ptr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk_source::Edit;

use super::entry::JsonPosition;
use super::escaped_json::{self, Members, add_line};
use super::{
    ClassNames, Classes, Counts, DocumentReport, EntryFailure, Fingerprints, ReportEntry, Unchecked,
};
use crate::{AllowedBy, Applicability, Confidence, Diagnostic, Severity};

/// Version of the shape.
pub const SCHEMA_VERSION: &str = "1.6";

/// The report of one `vmdisk lint` run.
#[cfg(feature = "schema")]
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
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Tool {
    /// `vmdisk`.
    name: &'static str,
    /// Its version.
    version: &'static str,
}

/// A host that the inputs may run on.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub(super) struct HostClass<'a> {
    /// Its name, which findings refer to.
    name: &'a str,
    /// Names of its hosts.
    hosts: Vec<&'a str>,
}

/// On which classes of hosts something was found, by their names.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct FoundOn<'a> {
    /// The classes on which it was found.
    affected: Vec<&'a str>,
    /// The classes on which it was checked and not found.
    not_affected: Vec<&'a str>,
    /// The classes on which it could not be checked.
    not_checked: Vec<&'a str>,
}

/// One input.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    error: Option<&'a EntryFailure<'a>>,
}

/// A fix that was undone.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct FailedFix<'a> {
    /// Name of the rule whose fix it is.
    rule: &'static str,
    /// Title of the finding that it was to fix.
    title: &'a str,
    /// Why it was undone.
    reason: String,
}

/// Whether an input could be read.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum InputStatus {
    /// The rules looked at it.
    Checked,
    /// It could not be read, and nothing is known about it.
    Failed,
}

/// One finding.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Finding"))]
pub(super) struct JsonFinding<'a> {
    /// Name of the rule; `vmdisk explain NAME` shows its page.
    rule: &'static str,
    /// How much it matters here.
    severity: SeverityWord,
    /// How sure it is.
    confidence: ConfidenceWord,
    /// Where the mistake is: in the guest's configuration, or on the host; since 1.5.
    subject: SubjectWord,
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
    /// The subject as a number that survives edits elsewhere, as in SARIF; since 1.5. Lines have none: it depends on all
    /// inputs.
    #[serde(skip_serializing_if = "Option::is_none")]
    fingerprint: Option<&'a str>,
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
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum ConfidenceWord {
    /// It rests on the configuration itself or on something observed.
    Certain,
    /// It rests on a version number or a default.
    Assumed,
}

/// Where a mistake is.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum SubjectWord {
    /// In the configuration of the guest.
    Guest,
    /// On the host, whatever the guest is.
    Host,
}

/// Whether a fix may be applied without asking.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
enum ApplicabilityWord {
    /// It changes nothing but the mistake; `--fix` applies it.
    Safe,
    /// It trades something, or the guest sees it; `--fix --unsafe-fixes` applies it.
    Unsafe,
}

/// Who says that a finding does not count.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Disk<'a> {
    /// Its number in the document, from 0.
    index: usize,
    /// Name of its target, if it has one.
    target: Option<&'a str>,
}

/// A place in a text.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Place"))]
struct JsonPlace<'a> {
    /// Its first character.
    start: JsonPosition,
    /// Just past its last character.
    end: JsonPosition,
    /// False if the field is not written and this is the nearest one around it.
    exact: bool,
    /// The field in words.
    field: &'a str,
}

/// A further place that a finding is about.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Related<'a> {
    /// Its relation to the finding.
    label: &'a str,
    /// Where.
    place: JsonPlace<'a>,
}

/// Edits that fix a finding.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Fix<'a> {
    /// Whether it may be applied without asking.
    applicability: ApplicabilityWord,
    /// Replacements; places refer to the text before any of them, and none overlap.
    edits: Vec<Replacement<'a>>,
}

/// A replacement of a part of a text.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Replacement<'a> {
    /// Where the replaced part starts.
    start: JsonPosition,
    /// Where it ends.
    end: JsonPosition,
    /// The new text.
    text: &'a str,
}

/// Why a finding does not count.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Allowance<'a> {
    /// Who says so.
    by: AllowedByWord,
    /// The reason given.
    reason: Option<&'a str>,
    /// Line of an allowance in the file.
    line: Option<usize>,
}

/// What a rule could not look at for one reason: at one place, or at several, of which the first is told.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
    /// Number of places; since 1.6.
    places: usize,
    /// The disks of the other places, by their numbers; since 1.6.
    #[serde(skip_serializing_if = "<[usize]>::is_empty")]
    #[cfg_attr(feature = "schema", schemars(default))]
    further_disks: &'a [usize],
    /// On which classes of hosts, where there are several; since 1.1.
    #[serde(skip_serializing_if = "Option::is_none")]
    host_classes: Option<Vec<&'a str>>,
}

/// Adds places that rules could not look at.
fn add_all_not_checked(list: &mut Vec<u8>, entry: &ReportEntry<'_>, classes: Option<&Classes<'_>>) {
    let mut path = Vec::new();
    escaped_json::string(&mut path, entry.path);
    let missed = entry.outcome.iter().flat_map(|it| it.not_checked.iter());
    for one in missed {
        match classes {
            Some(_) => add_line(list, &not_checked(entry.path, one, classes)),
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
        places,
        further_disks,
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
    list.extend_from_slice(b", \"places\": ");
    list.extend_from_slice(places.to_string().as_bytes());
    if !further_disks.is_empty() {
        list.extend_from_slice(b", \"further_disks\": ");
        let numbers: Vec<String> = further_disks.iter().map(usize::to_string).collect();
        list.extend_from_slice(format!("[{}]", numbers.join(", ")).as_bytes());
    }
    list.push(b'}');
}

/// Writes the whole report. Each item of a long list has a line of its own: indented, the report would be a fifth longer.
///
/// # Errors
/// If it cannot be written.
pub fn write(
    out: &mut dyn Write,
    entries: &[ReportEntry<'_>],
    counts: &Counts,
    classes: Option<&Classes<'_>>,
) -> io::Result<()> {
    let tool = Tool {
        name: "vmdisk",
        version: env!("CARGO_PKG_VERSION"),
    };
    let fingerprints = fingerprints(entries);
    let add_findings =
        |list: &mut Vec<u8>, entry: &ReportEntry<'_>, all: fn(&DocumentReport) -> &[Diagnostic]| {
            for one in entry.outcome.iter().flat_map(|report| all(report)) {
                let fingerprint = fingerprints.get(&ptr::from_ref(one)).map(String::as_str);
                add_line(list, &finding(entry, one, fingerprint, classes));
            }
        };
    let mut report = Members::new(out);
    report.member("schema_version", &SCHEMA_VERSION)?;
    report.member("tool", &tool)?;
    report.member("summary", counts)?;
    report.lines("inputs", entries, |list, entry| {
        if !entry.is_continued {
            add_line(list, &input(entry));
        }
    })?;
    if let Some(classes) = classes {
        report.member("hosts", &hosts(classes))?;
        report.member("host_classes", &host_classes(classes))?;
    }
    report.lines("findings", entries, |list, entry| {
        add_findings(list, entry, |report| &report.findings);
    })?;
    report.lines("allowed", entries, |list, entry| {
        add_findings(list, entry, |report| &report.allowed);
    })?;
    report.lines("not_checked", entries, |list, entry| {
        add_all_not_checked(list, entry, classes);
    })?;
    report.end()
}

/// The fingerprints of all findings, which are those of SARIF.
fn fingerprints(entries: &[ReportEntry<'_>]) -> HashMap<*const Diagnostic, String> {
    let reports = || {
        entries
            .iter()
            .filter_map(|it| Some((it, *it.outcome.as_ref().ok()?)))
    };
    let mut fingerprints = Fingerprints::new(reports().map(|(_, report)| report));
    let mut all = HashMap::new();
    for (entry, report) in reports() {
        let findings = report.by_place();
        let texts = fingerprints.of(&entry.uri(), report, &findings);
        all.extend(findings.into_iter().map(ptr::from_ref).zip(texts));
    }
    all
}

/// The JSON Schema of the report.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
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

pub(super) fn host_classes<'a>(classes: &'a Classes<'_>) -> Vec<HostClass<'a>> {
    let named = classes.named();
    named
        .map(|(name, hosts)| HostClass { name, hosts })
        .collect()
}

fn found_on<'a>(classes: &'a Classes<'_>, found: &crate::FoundOn) -> FoundOn<'a> {
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

pub(super) fn input<'a>(entry: &'a ReportEntry<'_>) -> Input<'a> {
    let report = entry.outcome.as_ref();
    let read = report.ok();
    Input {
        path: entry.path,
        status: match read {
            Some(_) => InputStatus::Checked,
            None => InputStatus::Failed,
        },
        domain: read.and_then(|report| report.domain.as_deref()),
        disks: read.map(|report| report.disks),
        fixed: read.map_or(&[], |report| &report.mended),
        failed_fixes: read
            .iter()
            .flat_map(|it| &it.failed_fixes)
            .map(failed_fix)
            .collect(),
        error: report.err(),
    }
}

fn failed_fix(failed: &crate::FailedFix) -> FailedFix<'_> {
    FailedFix {
        rule: failed.rule.name,
        title: &failed.title,
        reason: failed.why.to_string(),
    }
}

pub(super) fn finding<'a>(
    entry: &'a ReportEntry<'_>,
    finding: &'a Diagnostic,
    fingerprint: Option<&'a str>,
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
        is_about_host,
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
        subject: match is_about_host {
            true => SubjectWord::Host,
            false => SubjectWord::Guest,
        },
        path: entry.path,
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
        fingerprint,
        fix: fix.as_ref().map(|fix| Fix {
            applicability: match fix.applicability {
                Applicability::Safe => ApplicabilityWord::Safe,
                Applicability::Unsafe => ApplicabilityWord::Unsafe,
            },
            edits: fix
                .edits
                .iter()
                .map(|edit| replacement(entry, edit))
                .collect(),
        }),
        hosts: classes
            .zip(hosts.as_ref())
            .map(|(classes, found)| found_on(classes, found)),
        allowed_by: allowed_by.as_ref().map(|by| allowance(entry, by)),
    }
}

fn place(place: &crate::TextPlace) -> JsonPlace<'_> {
    let crate::TextPlace {
        span,
        start,
        end,
        is_exact,
        breadcrumb,
    } = place;
    JsonPlace {
        start: JsonPosition {
            line: start.line,
            column: start.column,
            offset: span.start,
        },
        end: JsonPosition {
            line: end.line,
            column: end.column,
            offset: span.end,
        },
        exact: *is_exact,
        field: breadcrumb,
    }
}

fn replacement<'a>(entry: &ReportEntry<'_>, edit: &'a Edit) -> Replacement<'a> {
    Replacement {
        start: entry.position(edit.span.start),
        end: entry.position(edit.span.end),
        text: &edit.text,
    }
}

fn allowance<'a>(entry: &ReportEntry<'_>, by: &'a AllowedBy) -> Allowance<'a> {
    let (by, reason, line) = match by {
        AllowedBy::InFile { reason, span } => {
            let line = entry.position(span.start).line;
            (AllowedByWord::File, reason.as_deref(), Some(line))
        }
        AllowedBy::Ignored => (AllowedByWord::CommandLine, None, None),
        AllowedBy::Baseline => (AllowedByWord::Baseline, None, None),
    };
    Allowance { by, reason, line }
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
        places,
        further_disks,
    } = missed;
    NotChecked {
        rule: rule.name,
        path,
        disk: disk.map(|(index, target)| Disk { index, target }),
        field,
        what,
        why,
        places,
        further_disks,
        host_classes: classes.map(|classes| classes.names(hosts)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_entry_without_serde_is_that_of_serde() {
        let disks = [None, Some((0, None)), Some((12, Some("v\"da\u{202e}")))];
        for (disk, further_disks) in disks.into_iter().zip([&[][..], &[1], &[13, 14, 700]]) {
            let missed = Unchecked {
                rule: crate::rules::find("cache-unsafe").unwrap(),
                disk,
                field: "disk vda › driver/@cache",
                what: "file system of /srv/\\a\n.img",
                why: "no facts were given",
                hosts: &[],
                places: 1 + further_disks.len(),
                further_disks,
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
