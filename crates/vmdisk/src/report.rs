//! The report about a document: everything that outputs say of it, as data.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use vmdisk_model::FieldPath;
use vmdisk_source::LineIndex;

use crate::rules::{Missing, NotChecked};
use crate::{Diagnostic, Document, FailedFix, LintReport};

/// The findings of one document, with the parts of the document that outputs quote.
///
/// The secrets that findings quote are masked. The text and the edits of fixes are exact.
#[derive(Clone, Debug, Default)]
pub struct DocumentReport {
    /// Name of the guest, if the document has one.
    pub domain: Option<String>,
    /// Number of disks.
    pub disks: usize,
    /// The text, if a finding refers to it.
    pub text: String,
    /// Its lines.
    pub lines: LineIndex,
    /// Findings that count.
    pub findings: Vec<Diagnostic>,
    /// Findings that do not count.
    pub allowed: Vec<Diagnostic>,
    /// Rules that could not look at something.
    pub unchecked_rules: UncheckedRules,
    /// Each place that a rule could not look at, without those of [`DocumentReport::without_places`].
    pub not_checked: Vec<Unchecked>,
    /// Titles of the findings that were fixed.
    pub mended: Vec<String>,
    /// Fixes that were undone.
    pub failed_fixes: Vec<FailedFix>,
}

/// Rules that could not look at something.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UncheckedRules {
    /// Their names.
    pub names: Vec<&'static str>,
    /// The reasons, each once.
    pub reasons: Vec<Cow<'static, str>>,
}

/// A place that a rule could not look at.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unchecked {
    /// Name of the rule.
    pub rule: &'static str,
    /// The place.
    pub place: Arc<UncheckedPlace>,
    /// The missing input.
    pub what: Box<str>,
    /// Why it is missing.
    pub why: Cow<'static, str>,
    /// The numbers of the hosts on which it was missing, where there are several.
    pub hosts: Vec<usize>,
}

/// A place of a document, in words.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct UncheckedPlace {
    /// The disk by its number and its target's name, if it is about one.
    pub disk: Option<(usize, Option<String>)>,
    /// The field.
    pub field: String,
}

impl DocumentReport {
    /// The report of a document.
    pub fn new(document: Document, mut report: LintReport) -> Self {
        let unchecked_rules = UncheckedRules::of(&report.not_checked);
        let not_checked = unchecked(&document, std::mem::take(&mut report.not_checked));
        DocumentReport {
            unchecked_rules,
            not_checked,
            ..Self::without_places(document, report)
        }
    }

    /// As [`DocumentReport::new`], without the places that rules could not look at: they are most of a report.
    pub fn without_places(document: Document, report: LintReport) -> Self {
        let LintReport {
            diagnostics,
            allowed,
            not_checked,
        } = report;
        let domain = document.domain().name.clone();
        let disks = document.domain().disks.len();
        let is_quoted = !diagnostics.is_empty() || !allowed.is_empty();
        let (text, lines) = match is_quoted {
            true => document.into_text(),
            false => Default::default(),
        };
        DocumentReport {
            domain,
            disks,
            text,
            lines,
            findings: diagnostics,
            allowed,
            unchecked_rules: UncheckedRules::of(&not_checked),
            ..DocumentReport::default()
        }
    }
}

impl UncheckedRules {
    fn of(not_checked: &[NotChecked]) -> Self {
        let mut rules = UncheckedRules::default();
        for NotChecked { rule, missing, .. } in not_checked {
            // Places come rule by rule.
            if rules.names.last() != Some(&rule.name) {
                rules.names.push(rule.name);
            }
            if !rules.reasons.contains(&missing.why) {
                rules.reasons.push(missing.why.clone());
            }
        }
        rules.names.shrink_to_fit();
        rules
    }

    /// True if an input of a rule is missing. Of a guest that another program runs, there is nothing to look at.
    pub fn lack_input(&self) -> bool {
        self.reasons.iter().any(|why| *why != Missing::NOT_QEMU)
    }
}

/// What could not be checked, with the names of its places.
fn unchecked(document: &Document, not_checked: Vec<NotChecked>) -> Vec<Unchecked> {
    let disks = &document.domain().disks;
    let target = |index: usize| disks.get(index)?.frontend.target.clone();
    // Many rules miss something about one field.
    let mut places: BTreeMap<FieldPath, Arc<UncheckedPlace>> = BTreeMap::new();
    let mut place = |at: FieldPath| {
        let new = || UncheckedPlace {
            disk: at.disk().map(|index| (index, target(index))),
            field: document.breadcrumb(at),
        };
        Arc::clone(places.entry(at).or_insert_with(|| Arc::new(new())))
    };
    let named = not_checked.into_iter().map(|missed| Unchecked {
        rule: missed.rule.name,
        place: place(missed.at),
        what: missed.missing.what.into(),
        why: missed.missing.why,
        hosts: missed.hosts,
    });
    let mut unchecked: Vec<Unchecked> = named.collect();
    unchecked.sort();
    unchecked.dedup();
    unchecked
}
