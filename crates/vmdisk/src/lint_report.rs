//! The result of a check.

use std::collections::BTreeSet;

use crate::rules::{NotChecked, Severity};
use crate::{Diagnostic, Selection};

/// The findings of a check, and what it could not look at.
#[derive(Clone, Debug, Default)]
#[non_exhaustive]
pub struct LintReport {
    /// Findings that count, in the order of their places.
    pub diagnostics: Vec<Diagnostic>,
    /// Findings that do not count, each with the reason.
    pub allowed: Vec<Diagnostic>,
    /// What rules could not look at, and why.
    pub not_checked: Vec<NotChecked>,
    /// Number of different placeholders and conditions of a template.
    pub placeholders: usize,
}

impl LintReport {
    /// Removes everything that is not asked for.
    pub(crate) fn keep(&mut self, selection: &Selection) {
        self.diagnostics
            .retain(|diagnostic| selection.has(diagnostic));
        self.allowed.retain(|diagnostic| selection.has(diagnostic));
        self.not_checked
            .retain(|missed| selection.has_rule(missed.rule.name));
    }

    /// The worst severity among the findings that count.
    pub fn worst(&self) -> Option<Severity> {
        self.diagnostics
            .iter()
            .map(|diagnostic| diagnostic.severity)
            .max()
    }

    /// Names of the rules that could not look at something, each once.
    pub fn rules_not_checked(&self) -> BTreeSet<&'static str> {
        self.not_checked
            .iter()
            .map(|missed| missed.rule.name)
            .collect()
    }
}
