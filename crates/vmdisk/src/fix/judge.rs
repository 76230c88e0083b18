//! Whether a text after fixes is better than before, and which of them is to blame if it is not.

use std::collections::{HashMap, HashSet};

use crate::rules::{Rule, Severity, may_follow};
use vmdisk_model::FieldPath;

use super::FixFailure;
use crate::{Diagnostic, LintReport};

/// The parts of a finding that are compared.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    rule: &'static Rule,
    at: FieldPath,
    severity: Severity,
    pub(super) disk: Option<usize>,
}

impl Seen {
    pub(super) fn of(diagnostic: &Diagnostic) -> Self {
        Seen {
            rule: diagnostic.rule,
            at: without_number(diagnostic.at),
            severity: diagnostic.severity,
            disk: diagnostic.at.disk(),
        }
    }

    fn key(&self) -> (&'static str, FieldPath) {
        (self.rule.name, self.at)
    }
}

/// Controllers, iothreads and throttle groups move up where a fix removes one before them.
fn without_number(at: FieldPath) -> FieldPath {
    match at {
        FieldPath::Controller(_, field) => FieldPath::Controller(0, field),
        FieldPath::IoThread(_, field) => FieldPath::IoThread(0, field),
        FieldPath::ThrottleGroup(_, field) => FieldPath::ThrottleGroup(0, field),
        _ => at,
    }
}

/// Which fixes of a batch made the text worse.
#[derive(Debug)]
pub(super) struct Blame {
    /// Their places in the batch, with what each did.
    pub(super) guilty: HashMap<usize, FixFailure>,
    /// What some fix did, without a hint at which one.
    pub(super) other: Option<FixFailure>,
}

impl Blame {
    pub(super) fn of_nobody(other: FixFailure) -> Self {
        Blame {
            guilty: HashMap::new(),
            other: Some(other),
        }
    }
}

type Counted = HashMap<(&'static str, FieldPath), Vec<Severity>>;

fn counted(report: &LintReport) -> Counted {
    let mut counted = Counted::new();
    for diagnostic in &report.diagnostics {
        let seen = Seen::of(diagnostic);
        counted.entry(seen.key()).or_default().push(seen.severity);
    }
    counted
}

/// True if there are more findings than before, or more severe ones.
fn is_worse(before: &[Severity], after: &[Severity]) -> bool {
    let sorted = |list: &[Severity]| {
        let mut list = list.to_vec();
        list.sort_unstable_by(|a, b| b.cmp(a));
        list
    };
    let before = sorted(before);
    let after = sorted(after);
    after
        .iter()
        .enumerate()
        .any(|(nth, severity)| before.get(nth).is_none_or(|before| before < severity))
}

/// True for rules whose fix corrects the spelling of a name.
fn is_misspelling(rule: &Rule) -> bool {
    matches!(rule.name, "unknown-attribute" | "unknown-element")
}

/// Compares the findings before and after fixes of the findings in `batch`.
pub(super) fn judge(before: &LintReport, after: &LintReport, batch: &[&Seen]) -> Result<(), Blame> {
    let old = counted(before);
    let new = counted(after);
    let mut fixed: HashMap<(&'static str, FieldPath), Vec<usize>> = HashMap::new();
    let mut by_disk: HashMap<Option<usize>, Vec<usize>> = HashMap::new();
    let rules: HashMap<&str, &Rule> = batch
        .iter()
        .map(|seen| (seen.rule.name, seen.rule))
        .collect();
    for (nth, seen) in batch.iter().enumerate() {
        fixed.entry(seen.key()).or_default().push(nth);
        by_disk.entry(seen.disk).or_default().push(nth);
    }
    let mut blame = Blame {
        guilty: HashMap::new(),
        other: None,
    };
    let mut judged = HashSet::new();
    for diagnostic in &after.diagnostics {
        let seen = Seen::of(diagnostic);
        // All controllers have one place, and the same is said of each.
        if !judged.insert((seen.key(), seen.severity)) {
            continue;
        }
        let near = by_disk.get(&seen.disk).map_or(&[][..], Vec::as_slice);
        // A pedantic finding says that nothing is wrong. Advice about what a misspelt word meant is not worse than a word
        // without effect, and advice is not worse than an error.
        let fixes = || near.iter().map(|nth| batch[*nth]);
        let is_harmless = match seen.severity {
            Severity::Pedantic => true,
            Severity::Advice => {
                !near.is_empty()
                    && fixes().all(|fixed| {
                        is_misspelling(fixed.rule) || fixed.severity == Severity::Error
                    })
            }
            Severity::Warning | Severity::Error => false,
        };
        let key = seen.key();
        let was = old.get(&key).map_or(&[][..], Vec::as_slice);
        let is = &new[&key];
        let own = fixed.get(&key).map_or(&[][..], Vec::as_slice);
        if is_worse(was, is) && !is_harmless {
            let is_expected = if seen.disk.is_some() && !near.is_empty() {
                near.iter().any(|nth| may_follow(batch[*nth].rule, key.0))
            } else {
                rules.values().any(|rule| may_follow(rule, key.0))
            };
            if is_expected {
                continue;
            }
            let why = FixFailure::NewFinding {
                rule: diagnostic.rule,
                title: diagnostic.title.clone(),
            };
            if near.is_empty() {
                blame.other.get_or_insert(why);
            } else {
                let near = near.iter().map(|nth| (*nth, why.clone()));
                blame.guilty.extend(near);
            }
        } else if is.len() + own.len() > was.len() {
            let own = own.iter().map(|nth| (*nth, FixFailure::StillReported));
            blame.guilty.extend(own);
        }
    }
    if blame.guilty.is_empty() && blame.other.is_none() {
        Ok(())
    } else {
        Err(blame)
    }
}
