//! Checks a document, and turns its findings into diagnostics.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

use lsp_types::{
    Code, CodeDescription, Diagnostic, DiagnosticRelatedInformation, DiagnosticSeverity, Location,
    Message, Range, Uri,
};
use vmdisk::{Document, LintReport, Severity};
use vmdisk_source::Span;

use crate::file_settings::FileSettings;
use crate::language::Language;
use crate::text::Text;

/// The result for one text.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    /// The document, if the text could be read.
    pub(crate) document: Option<Document>,
    /// The findings, in the order of their places.
    pub(crate) findings: Vec<Found>,
    /// Names of the rules that lack facts.
    pub(crate) not_checked: Vec<&'static str>,
}

/// A finding, for the editor and as the rules have it.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) diagnostic: Diagnostic,
    /// The finding; `None` for a text that cannot be read.
    pub(crate) finding: Option<vmdisk::Diagnostic>,
}

/// Checks a text. A bug in a rule is reported at the start of the text, and the server continues.
pub(crate) fn check(
    uri: &str,
    path: &Path,
    text: &Text,
    settings: &mut dyn FileSettings,
) -> Checked {
    if Language::of(path, text.as_str()).is_none() {
        return Checked::default();
    }
    let attempt = catch_unwind(AssertUnwindSafe(|| lint(uri, path, text, settings)));
    attempt.unwrap_or_else(|_| {
        let help = concat!(
            "please report it at ",
            env!("CARGO_PKG_REPOSITORY"),
            "/issues"
        );
        let message = "could not be checked because of a bug in vmdisk";
        Checked::failed(plain(text, Span::empty(0), message, Some(help)))
    })
}

impl Checked {
    fn failed(diagnostic: Diagnostic) -> Self {
        Checked {
            findings: vec![Found {
                diagnostic,
                finding: None,
            }],
            ..Checked::default()
        }
    }
}

fn lint(uri: &str, path: &Path, text: &Text, settings: &mut dyn FileSettings) -> Checked {
    let document = match vmdisk::read(text.as_str()) {
        Ok(document) => document,
        Err(failure) => {
            let mut diagnostic = plain(
                text,
                failure.span,
                &failure.message,
                failure.help.as_deref(),
            );
            let related = failure.related.iter();
            let related = related.map(|(span, label)| related_at(uri, text.range(*span), label));
            diagnostic.related_information = Some(related.collect());
            return Checked::failed(diagnostic);
        }
    };
    match settings.lint(path, document) {
        Ok(Some((document, report))) => of_report(uri, text, document, report),
        Ok(None) => Checked::default(),
        Err(error) => Checked::failed(plain(text, Span::empty(0), &error.message, None)),
    }
}

fn of_report(uri: &str, text: &Text, document: Document, report: LintReport) -> Checked {
    let not_checked = report.rules_not_checked().into_iter().collect();
    // A file that a command line names is checked where it is open itself.
    let own = document.own_text().len();
    let findings = report.diagnostics.into_iter();
    let findings = findings
        .filter(|finding| finding.place.span.start <= own)
        .map(|finding| Found {
            diagnostic: diagnostic(uri, text, &finding),
            finding: Some(finding),
        });
    Checked {
        findings: findings.collect(),
        document: Some(document),
        not_checked,
    }
}

/// A finding as the editor shows it.
fn diagnostic(uri: &str, text: &Text, finding: &vmdisk::Diagnostic) -> Diagnostic {
    let related = finding.related.iter();
    let related = related.map(|other| related_at(uri, text.range(other.place.span), &other.label));
    let mut message = finding.title.clone();
    for note in &finding.notes {
        message.push_str("\nnote: ");
        message.push_str(note);
    }
    if let Some(help) = &finding.help {
        message.push_str("\nhelp: ");
        message.push_str(help);
    }
    Diagnostic {
        range: text.range(finding.place.span),
        severity: Some(severity(finding.severity)),
        code: Some(Code::String(finding.rule.name.to_owned())),
        code_description: Some(CodeDescription {
            href: Uri(vmdisk::rules::page_address(finding.rule.name)),
        }),
        message: Message::String(message),
        related_information: Some(related.collect()),
        ..empty()
    }
}

/// A diagnostic that is not a finding of a rule.
fn plain(text: &Text, span: Span, message: &str, help: Option<&str>) -> Diagnostic {
    let help = help.map(|help| format!("\nhelp: {help}"));
    Diagnostic {
        range: text.range(span),
        severity: Some(DiagnosticSeverity::Error),
        message: Message::String(format!("{message}{}", help.unwrap_or_default())),
        ..empty()
    }
}

fn empty() -> Diagnostic {
    Diagnostic {
        range: Range::default(),
        severity: None,
        code: None,
        code_description: None,
        source: Some("vmdisk".to_owned()),
        message: Message::String(String::new()),
        tags: None,
        related_information: None,
        data: None,
    }
}

fn related_at(uri: &str, range: Range, label: &str) -> DiagnosticRelatedInformation {
    DiagnosticRelatedInformation {
        location: Location {
            uri: Uri(uri.to_owned()),
            range,
        },
        message: label.to_owned(),
    }
}

const fn severity(severity: Severity) -> DiagnosticSeverity {
    match severity {
        Severity::Error => DiagnosticSeverity::Error,
        Severity::Warning => DiagnosticSeverity::Warning,
        Severity::Advice => DiagnosticSeverity::Information,
        Severity::Pedantic => DiagnosticSeverity::Hint,
    }
}
