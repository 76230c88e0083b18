//! Writes allowances for the findings of a text.

use std::collections::BTreeMap;

use vmdisk_qemu::CommandLineForm;
use vmdisk_source::{Edit, Span, apply_edits};

use crate::fix::ReadAgain;
use crate::lint::lint_unselected;
use crate::{Diagnostic, Document, LintOptions, LintReport, Source};

/// A text with allowances for its findings.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct WithAllowances {
    /// The text.
    pub document: Document,
    /// Its report. Findings that no comment can allow are still in it; findings that the options do not ask for are
    /// left out.
    pub report: LintReport,
    /// The number of comments that were added.
    pub added: usize,
}

/// How narrow an allowance is. Each is tried for the findings that the one before it left.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scope {
    /// The innermost element, key or disk around the finding.
    Nearest,
    /// The line of a key, where a comment before it covers something else.
    Line,
    /// The whole file.
    File,
}

/// Writes a comment with `reason` for each finding that the options ask for, at the narrowest place that covers it, and
/// changes nothing else. The text is read again with `read_again`; a comment that does not have its effect is not kept.
///
/// A recording and a spec in JSON have no comments, and their findings remain. So do findings about allowances
/// themselves.
///
/// ```
/// use vmdisk::{LintOptions, allow, read};
///
/// let text = "<disk type='file'>\n  <driver name='qemu' type='raw' cache='unsafe' discard='unmap'/>\n  \
///     <source file='/a'/>\n  <target dev='vda' bus='virtio'/>\n</disk>\n";
/// let allowed = allow(read(text)?, &read, &LintOptions::default(), "scratch data");
/// assert!(allowed.document.text.contains("\n  <!-- vmdisk: allow(cache-unsafe) scratch data -->\n  <driver "));
/// assert!(allowed.report.diagnostics.is_empty());
/// # Ok::<(), vmdisk::ReadFailure>(())
/// ```
pub fn allow(
    document: Document,
    read_again: ReadAgain<'_>,
    options: &LintOptions,
    reason: &str,
) -> WithAllowances {
    let report = lint_unselected(&document, options);
    let mut writer = Writer {
        read_again,
        options,
        reason,
        document,
        report,
        added: 0,
    };
    for scope in [Scope::Nearest, Scope::Line, Scope::File] {
        writer.add(scope);
    }
    let mut report = writer.report;
    report.keep(&options.selection);
    WithAllowances {
        document: writer.document,
        report,
        added: writer.added,
    }
}

/// The comment that allows a finding at the narrowest place. It has no reason yet, which `allowance-without-reason` reports.
/// `None` where the text has no comments.
pub fn allowance_of(document: &Document, finding: &Diagnostic) -> Option<Edit> {
    let of = |scope| {
        let at = places(document, scope, &[finding.place.span]).pop()??;
        Some(edit(document, scope, at, &[finding.rule.name], ""))
    };
    of(Scope::Nearest).or_else(|| of(Scope::Line))
}

struct Writer<'w> {
    read_again: ReadAgain<'w>,
    options: &'w LintOptions,
    reason: &'w str,
    document: Document,
    report: LintReport,
    added: usize,
}

/// Comments by the place where they are inserted, each with the names of its rules.
type Comments = BTreeMap<usize, Vec<&'static str>>;

impl Writer<'_> {
    /// Allows what is left with comments of a scope.
    fn add(&mut self, scope: Scope) {
        let comments = self.comments(scope);
        if comments.is_empty() || self.try_comments(scope, &comments) {
            return;
        }
        // Some have no effect. From the last one on, so that the places of the others stay.
        for (at, rules) in comments.into_iter().rev() {
            self.try_comments(scope, &Comments::from([(at, rules)]));
        }
    }

    fn comments(&self, scope: Scope) -> Comments {
        let findings = self.report.diagnostics.iter();
        let wanted: Vec<&Diagnostic> = findings
            .filter(|finding| {
                self.options.selection.has(finding) && !finding.rule.name.starts_with("allowance-")
            })
            .collect();
        let spans: Vec<Span> = wanted.iter().map(|finding| finding.place.span).collect();
        let places = places(&self.document, scope, &spans);
        let mut comments = Comments::new();
        for (finding, place) in wanted.iter().zip(places) {
            let Some(at) = place else { continue };
            let rules = comments.entry(at).or_default();
            if !rules.contains(&finding.rule.name) {
                rules.push(finding.rule.name);
            }
        }
        comments
    }

    /// Inserts comments if each of them allows something and nothing else changes.
    fn try_comments(&mut self, scope: Scope, comments: &Comments) -> bool {
        let text = self.document.own_text();
        let edits: Vec<Edit> = comments
            .iter()
            .map(|(at, rules)| edit(&self.document, scope, *at, rules, self.reason))
            .collect();
        let Ok(text) = apply_edits(text, &edits) else {
            return false;
        };
        let Ok(document) = (self.read_again)(&text) else {
            return false;
        };
        let report = lint_unselected(&document, self.options);
        let count = |report: &LintReport| report.diagnostics.len() + report.allowed.len();
        let about_allowances = |report: &LintReport| {
            let findings = report.diagnostics.iter();
            let named = findings.filter(|finding| finding.rule.name.starts_with("allowance-"));
            named.count()
        };
        let is_good = report.diagnostics.len() < self.report.diagnostics.len()
            && count(&report) == count(&self.report)
            && about_allowances(&report) == about_allowances(&self.report);
        if is_good {
            self.document = document;
            self.report = report;
            self.added += comments.len();
        }
        is_good
    }
}

/// Where comments for these places are inserted; `None` where none is possible.
fn places(document: &Document, scope: Scope, spans: &[Span]) -> Vec<Option<usize>> {
    let text = document.own_text();
    match &document.source {
        Source::LibvirtXml(_) if scope == Scope::Line => vec![None; spans.len()],
        Source::LibvirtXml(_) => {
            let whole = Span::empty(text.len());
            let spans: Vec<Span> = spans
                .iter()
                .map(|span| if scope == Scope::File { whole } else { *span })
                .collect();
            let starts = vmdisk_libvirt::elements_around(document.read_text(), &spans);
            starts.into_iter().map(Some).collect()
        }
        Source::Spec(_)
            if !text
                .trim_start_matches('\u{feff}')
                .trim_start()
                .starts_with('{') =>
        {
            let line = |span: &Span| text[..span.start].rfind('\n').map_or(0, |end| end + 1);
            let place = |span: &Span| match scope {
                // Before the first key a comment covers the whole spec.
                Scope::Nearest => Some(line(span)).filter(|start| *start > 0),
                Scope::Line => {
                    let end = text[span.start..].find('\n');
                    let end = end.map_or(text.len(), |end| span.start + end);
                    Some(end - usize::from(text[..end].ends_with('\r')))
                }
                Scope::File => Some(text.len() - text.trim_start_matches('\u{feff}').len()),
            };
            spans.iter().map(place).collect()
        }
        // A comment cannot be among the lines of one command: it is before the lines without an empty one between them.
        Source::QemuCommandLine(line) if scope == Scope::Nearest => {
            let has_comments = line.form != CommandLineForm::Json;
            let starts = paragraphs(text);
            let before = |place: usize| starts[..starts.partition_point(|it| *it <= place)].last();
            let place = |span: &Span| before(span.start).copied().filter(|_| has_comments);
            spans.iter().map(place).collect()
        }
        Source::Spec(_) | Source::QemuCommandLine(_) => vec![None; spans.len()],
    }
}

/// The starts of what empty lines separate, after the line that names the interpreter.
fn paragraphs(text: &str) -> Vec<usize> {
    let mut found = vec![0];
    let mut end = 0;
    for line in text.split_inclusive('\n') {
        end += line.len();
        if line.trim().is_empty() || end == line.len() && line.starts_with("#!") {
            found.push(end);
        }
    }
    found
}

/// The insertion of a comment.
fn edit(document: &Document, scope: Scope, at: usize, rules: &[&str], reason: &str) -> Edit {
    let text = document.own_text();
    let words = format!("vmdisk: allow({}) {reason}", rules.join(", "));
    let words = words.trim_end();
    let end = if text.contains("\r\n") { "\r\n" } else { "\n" };
    let line = text[..at].rfind('\n').map_or(0, |end| end + 1);
    let before = &text[line..at];
    let inserted = match &document.source {
        Source::Spec(_) if scope == Scope::Line => format!(" # {words}"),
        Source::Spec(_) | Source::QemuCommandLine(_) => {
            let key = text[at..].trim_start_matches([' ', '\t']);
            let indent = &text[at..text.len() - key.len()];
            format!("{indent}# {words}{end}")
        }
        // The element keeps its indentation.
        _ if before.trim().is_empty() => format!("<!-- {words} -->{end}{before}"),
        // A comment on the line of another element would cover that element.
        _ => format!("{end}<!-- {words} -->{end}"),
    };
    Edit::insert(at, inserted)
}
