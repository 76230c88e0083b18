//! After a fix the text is still read, nothing is left to fix, and nothing new is reported.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::rules::{FOLLOW_UPS, Rule, Severity, may_follow};
use vmdisk::source::apply_edits;
use vmdisk::{
    Applicability, Diagnostic, FailedFix, FixScope, LintOptions, LintReport, ResolvedFix, fix,
    lint, read,
};
use vmdisk_tests::fix_cases::{FixCase, Syntax, by_syntax, fix_cases};

/// Findings of one rule about one disk.
type Counts = BTreeMap<(&'static str, Option<usize>), Vec<Severity>>;

fn counts(report: &LintReport) -> Counts {
    let mut counts = Counts::new();
    for Diagnostic {
        rule, at, severity, ..
    } in &report.diagnostics
    {
        counts
            .entry((rule.name, at.disk()))
            .or_default()
            .push(*severity);
    }
    for severities in counts.values_mut() {
        severities.sort_by(|a, b| b.cmp(a));
    }
    counts
}

/// Rules that report more, or more severely, than before.
pub(crate) fn appeared(before: &LintReport, after: &LintReport) -> BTreeSet<&'static str> {
    let before = counts(before);
    let after = counts(after);
    let is_new = |key, severities: &[Severity]| {
        let known = before.get(&key).map_or(&[][..], Vec::as_slice);
        let mut pairs = severities.iter().enumerate();
        pairs.any(|(nth, severity)| known.get(nth).is_none_or(|known| known < severity))
    };
    let rules = after.iter().filter(|(key, is)| is_new(**key, is));
    rules.map(|((rule, _), _)| *rule).collect()
}

/// What all fixes came to.
#[derive(Default)]
struct Seen {
    syntaxes: Vec<Syntax>,
    changed: Vec<Syntax>,
    needed: BTreeSet<(&'static str, &'static str)>,
    wrong: Vec<String>,
}

impl Seen {
    fn wrong(&mut self, case: &FixCase, what: &str, after: &str) {
        self.wrong.push(format!(
            "{} in {}: {what}\n--- before\n{}--- after\n{after}",
            case.origin,
            case.syntax.name(),
            case.text
        ));
    }
}

/// Applies the fix of one finding and no other.
fn try_alone(
    case: &FixCase,
    options: &LintOptions,
    before: &LintReport,
    found: &Diagnostic,
    seen: &mut Seen,
) {
    let Some(ResolvedFix {
        edits,
        applicability,
        ..
    }) = &found.fix
    else {
        return;
    };
    let name = found.rule.name;
    let text = match apply_edits(&case.text, edits) {
        Ok(text) => text,
        Err(conflict) => return seen.wrong(case, &format!("{name} alone: {conflict}"), ""),
    };
    let document = match read(&text) {
        Ok(document) => document,
        Err(failure) => return seen.wrong(case, &format!("{name} alone: {failure}"), &text),
    };
    let after = lint(&document, options);
    let count = |report: &LintReport| {
        let all = report.diagnostics.iter();
        all.filter(|other| other.rule == found.rule).count()
    };
    if count(&after) >= count(before) {
        seen.wrong(case, &format!("{name} alone: still reported"), &text);
    }
    for rule in appeared(before, &after) {
        let hosts = case.facts.len();
        if rule == "allowance-unused" || found.rule.supersedes.contains(&rule) {
            // The next round removes the allowance; what was superseded was true before.
        } else if may_follow(found.rule, rule)
            && (*applicability == Applicability::Unsafe || hosts > 1)
        {
            seen.needed.insert((name, rule));
        } else {
            seen.wrong(case, &format!("{name} alone: {rule} appears"), &text);
        }
    }
}

/// Applies all fixes, and all of what is left then.
fn try_all(
    case: &FixCase,
    scope: FixScope,
    options: &LintOptions,
    before: &LintReport,
    seen: &mut Seen,
) {
    let fixed = fix(&case.text, options, scope).expect("it was read before");
    let after = &fixed.document.text;
    for FailedFix {
        rule, title, why, ..
    } in &fixed.failed
    {
        seen.wrong(
            case,
            &format!("{scope:?}: {} {title}: {why}", rule.name),
            after,
        );
    }
    if **after == case.text {
        return;
    }
    seen.changed.push(case.syntax);
    let again = match fix(after, options, scope) {
        Ok(again) => again,
        Err(failure) => return seen.wrong(case, &format!("{scope:?}: {failure}"), after),
    };
    if again.document.text != *after {
        let what = format!("{scope:?}: a second run fixes {:?}", again.mended);
        return seen.wrong(case, &what, &again.document.text);
    }
    let fixes: Vec<&Rule> = before
        .diagnostics
        .iter()
        .filter(|found| found.fix.is_some())
        .map(|found| found.rule)
        .collect();
    for rule in appeared(before, &again.report) {
        if !fixes.iter().any(|fixed| may_follow(fixed, rule)) {
            seen.wrong(case, &format!("{scope:?}: {rule} appears"), after);
        }
    }
}

fn try_case(case: &FixCase, options: &LintOptions, seen: &mut Seen) {
    seen.syntaxes.push(case.syntax);
    let document = match read(&case.text) {
        Ok(document) => document,
        Err(failure) => return seen.wrong(case, &failure.to_string(), ""),
    };
    let before = lint(&document, options);
    if before.diagnostics.iter().all(|found| found.fix.is_none()) {
        return;
    }
    for found in &before.diagnostics {
        try_alone(case, options, &before, found, seen);
    }
    for scope in [FixScope::Safe, FixScope::SafeAndUnsafe] {
        try_all(case, scope, options, &before, seen);
    }
}

#[test]
fn a_fix_makes_nothing_worse_in_any_syntax() {
    let mut seen = Seen::default();
    for case in fix_cases() {
        case.with_options(|options| try_case(&case, options, &mut seen));
    }
    println!("texts: {}", by_syntax(&seen.syntaxes));
    println!("of them changed: {}", by_syntax(&seen.changed));
    assert!(
        seen.wrong.is_empty(),
        "{} wrong:\n{}",
        seen.wrong.len(),
        seen.wrong.join("\n")
    );
    let idle: Vec<_> = FOLLOW_UPS
        .iter()
        .filter(|row| !seen.needed.contains(&(row.fixed, row.appears)))
        .collect();
    assert!(idle.is_empty(), "rows that nothing needs: {idle:#?}");
}
