//! After a fix the text is still read, nothing is left to fix, and nothing new is reported.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::rules::{FOLLOW_UPS, Severity};
use vmdisk::{Diagnostic, FixFailure, FixScope, LintOptions, LintReport, fix, lint, read};
use vmdisk_tests::fix_cases::{FixCase, Syntax, by_syntax, fix_cases};

/// Fixes that are undone where a guest may run on several hosts: each rule sees one of them, and only the text after the
/// fix shows what it means on the others. The rule whose fix it is, and the rule that would report something then.
const UNDONE_FOR_SEVERAL_HOSTS: [(&str, &str, &str); 1] = [(
    "discard-missing-thin",
    "qcow2-discard-corruption",
    "one of the hosts has a QEMU that corrupts images by discards",
)];

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
fn appeared(before: &LintReport, after: &LintReport) -> BTreeSet<&'static str> {
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

/// What the fixes of one text came to.
#[derive(Default)]
struct Seen {
    syntaxes: Vec<Syntax>,
    changed: Vec<Syntax>,
    needed: BTreeSet<(&'static str, &'static str)>,
    undone: BTreeSet<(&'static str, &'static str)>,
    wrong: Vec<String>,
}

fn try_case(case: &FixCase, scope: FixScope, options: &LintOptions<'_>, seen: &mut Seen) {
    seen.syntaxes.push(case.syntax);
    let mut wrong = |what: String, after: &str| {
        seen.wrong.push(format!(
            "{} in {}, {scope:?}: {what}\n--- before\n{}--- after\n{after}",
            case.origin,
            case.syntax.name(),
            case.text
        ));
    };
    let Ok(document) = read(&case.text) else {
        return wrong("cannot be read".to_owned(), "");
    };
    let before = lint(&document, options);
    if before.diagnostics.iter().all(|found| found.fix.is_none()) {
        return;
    }
    let fixed = fix(&case.text, options, scope).expect("it was read before");
    let after = &fixed.document.text;
    for failed in &fixed.failed {
        let row = UNDONE_FOR_SEVERAL_HOSTS.iter().find(|(rule, appears, _)| {
            let is_it = matches!(&failed.why, FixFailure::NewFinding { rule, .. } if rule.name == *appears);
            *rule == failed.rule.name && is_it && case.facts.len() > 1
        });
        if let Some((rule, appears, _)) = row {
            seen.undone.insert((rule, appears));
            continue;
        }
        wrong(format!("{} {}: {}", failed.rule.name, failed.title, failed.why), after);
    }
    if *after == case.text {
        return;
    }
    seen.changed.push(case.syntax);
    match fix(after, options, scope) {
        Err(failure) => wrong(format!("the result is not read: {failure}"), after),
        Ok(again) if again.document.text != *after => {
            wrong(format!("a second run fixes {:?}", again.mended), &again.document.text);
        }
        Ok(again) => {
            let fixes: BTreeSet<&str> = before
                .diagnostics
                .iter()
                .filter(|found| found.fix.is_some())
                .map(|found| found.rule.name)
                .collect();
            for rule in appeared(&before, &again.report) {
                let row = FOLLOW_UPS
                    .iter()
                    .find(|row| row.appears == rule && fixes.contains(row.fixed));
                match row {
                    Some(row) if scope == FixScope::SafeAndUnsafe || case.facts.len() > 1 => {
                        seen.needed.insert((row.fixed, row.appears));
                    }
                    Some(_) | None => wrong(format!("{rule} appears"), after),
                }
            }
        }
    }
}

#[test]
fn a_fix_makes_nothing_worse_in_any_syntax() {
    let mut seen = Seen::default();
    for case in fix_cases() {
        case.with_options(|options| {
            for scope in [FixScope::Safe, FixScope::SafeAndUnsafe] {
                try_case(&case, scope, options, &mut seen);
            }
        });
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
    assert_eq!(seen.undone.len(), UNDONE_FOR_SEVERAL_HOSTS.len());
}
