//! Mistakes that a reader finds.

use vmdisk_model::FieldPath;
use vmdisk_source::{Edit, Span};

use crate::{Applicability, Fix, Report, Rule, Severity, reading};

/// A mistake found by a reader, which continued after it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Problem {
    /// The rule that reports it.
    pub rule: &'static Rule,
    /// The severity, which may differ from the rule's.
    pub severity: Severity,
    /// Its field, or the nearest enclosing one.
    pub at: FieldPath,
    /// The exact place.
    pub span: Span,
    /// The mistake: lower case, no full stop, with the value and what was expected.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// Edits that fix it, if only one meaning is possible.
    pub fix: Vec<Edit>,
}

impl Problem {
    /// A mistake without a remedy.
    pub fn new(rule: &'static Rule, at: FieldPath, span: Span, message: impl Into<String>) -> Self {
        Problem {
            rule,
            severity: rule.severity,
            at,
            span,
            message: message.into(),
            help: None,
            fix: Vec::new(),
        }
    }

    /// Reports the mistake as a finding of its rule.
    pub fn report(&self, report: &mut Report) {
        let help = self.help.as_deref().or(reading::default_help(self.rule));
        let finding = report.finding(self.at, self.message.clone());
        finding.span(self.span).severity(self.severity);
        if let Some(help) = help {
            finding.help(help.to_owned());
        }
        if !self.fix.is_empty() {
            finding.fix(Fix {
                changes: Vec::new(),
                edits: self.fix.clone(),
                applicability: Applicability::Safe,
            });
        }
    }
}
