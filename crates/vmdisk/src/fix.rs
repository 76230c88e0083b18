//! Applies fixes until nothing more can be mended.

use std::collections::BTreeMap;

use vmdisk_rules::{Applicability, Severity};
use vmdisk_source::{Edit, Span, apply_edits};

use crate::{Document, LintOptions, LintReport, ReadFailure, lint, read};

/// Which fixes to apply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FixScope {
    /// Only those that change nothing but the mistake.
    Safe,
    /// Also those that trade something.
    SafeAndUnsafe,
}

/// A text after fixing.
#[derive(Debug)]
pub struct Fixed {
    /// The text.
    pub document: Document,
    /// What is still to be said about it.
    pub report: LintReport,
    /// Titles of what was mended, in the order of mending.
    pub mended: Vec<String>,
}

/// Rounds after which fixing stops; each mends at least one finding, and few fixes uncover others.
const MOST_ROUNDS: usize = 16;

/// Applies the fixes of all findings that count, reads the result again, and goes on until none is
/// left. Fixes that touch the same bytes wait for the next round. A round whose result could not be
/// read, or has an error that was not there before, is not taken.
///
/// # Errors
/// If `text` cannot be read.
pub fn fix(text: &str, options: &LintOptions<'_>, scope: FixScope) -> Result<Fixed, ReadFailure> {
    let document = read(text)?;
    let report = lint(&document, options);
    let mut fixed = Fixed {
        document,
        report,
        mended: Vec::new(),
    };
    for _ in 0..MOST_ROUNDS {
        let (edits, titles) = choose(&fixed.report, scope);
        if edits.is_empty() {
            break;
        }
        let Ok(text) = apply_edits(&fixed.document.text, &edits) else {
            break;
        };
        let Ok(document) = read(&text) else { break };
        let report = lint(&document, options);
        if errors(&report) > errors(&fixed.report) {
            break;
        }
        fixed.document = document;
        fixed.report = report;
        fixed.mended.extend(titles);
    }
    Ok(fixed)
}

fn errors(report: &LintReport) -> usize {
    report
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .count()
}

/// Edits of as many fixes as do not touch each other's bytes.
fn choose(report: &LintReport, scope: FixScope) -> (Vec<Edit>, Vec<String>) {
    let mut chosen: Vec<Edit> = Vec::new();
    let mut taken: BTreeMap<usize, usize> = BTreeMap::new();
    let mut titles = Vec::new();
    for diagnostic in &report.diagnostics {
        let Some(fix) = &diagnostic.fix else { continue };
        let wanted = match (fix.applicability, scope) {
            (Applicability::Safe, _) | (Applicability::Unsafe, FixScope::SafeAndUnsafe) => true,
            (Applicability::Unsafe, FixScope::Safe) => false,
        };
        if wanted && fix.edits.iter().all(|edit| is_free(&taken, edit.span)) {
            taken.extend(
                fix.edits
                    .iter()
                    .map(|edit| (edit.span.start, edit.span.end)),
            );
            chosen.extend(fix.edits.iter().cloned());
            titles.push(diagnostic.title.clone());
        }
    }
    (chosen, titles)
}

/// True if no taken edit starts where `span` starts or shares a byte with it; `taken` maps starts to ends.
fn is_free(taken: &BTreeMap<usize, usize>, span: Span) -> bool {
    let before = taken.range(..=span.start).next_back();
    let after = taken.range(span.start..).next();
    before.is_none_or(|(start, end)| *start != span.start && *end <= span.start)
        && after.is_none_or(|(start, _)| *start != span.start && span.end <= *start)
}
