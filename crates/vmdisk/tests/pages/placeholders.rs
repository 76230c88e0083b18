//! A placeholder in any value of any example: no finding depends on what it stands for.

use std::collections::BTreeSet;
use std::ops::Range;

use vmdisk::rules::{Example, Missing, RULES};
use vmdisk::{Host, LintOptions, LintReport, lint, read};
use vmdisk_facts::Facts;

use super::{facts_named, policy_of, target_of};

/// Values of attributes and texts of elements.
fn values(text: &str) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    for (at, mark) in text.match_indices(['=', '>']) {
        let (start, end) = match (mark, text[at + 1..].chars().next()) {
            ("=", Some(quote @ ('\'' | '"'))) => (at + 2, text[at + 2..].find(quote)),
            (">", Some(_)) => (at + 1, text[at + 1..].find('<')),
            _ => continue,
        };
        let Some(length) = end else { continue };
        let value = &text[start..start + length];
        let is_marked = value.contains(['<', '>']) || text[..start].ends_with("-->");
        if !value.trim().is_empty() && !is_marked {
            found.push(start..start + length);
        }
    }
    found
}

fn lint_example(example: &Example, text: &str) -> Option<LintReport> {
    let facts: Vec<Facts> = example
        .values_of("facts-")
        .into_iter()
        .map(facts_named)
        .collect();
    let options = LintOptions::default()
        .host(facts.first().cloned().map(Host::new))
        .target(target_of(example))
        .policy(policy_of(example));
    Some(lint(&read(text).ok()?, &options))
}

#[test]
fn a_placeholder_in_any_value_brings_no_finding_that_needs_the_value() {
    // `VMDISK_PLACEHOLDERS=all` tries every value of every example, which takes minutes.
    let step = if std::env::var_os("VMDISK_PLACEHOLDERS").is_some() {
        1
    } else {
        23
    };
    let (mut number, mut unknown, mut wrong) = (0, 0, Vec::new());
    let examples = RULES
        .iter()
        .flat_map(|rule| rule.examples().into_iter().map(move |it| (rule, it)));
    for (rule, example) in examples {
        if example.says("args") || example.values_of("facts-").len() > 1 {
            continue;
        }
        let text = &example.text;
        let Some(report) = lint_example(&example, text) else {
            continue;
        };
        let known = report
            .diagnostics
            .iter()
            .map(|it| (it.rule.name, it.place.span.start));
        let known: BTreeSet<_> = known.collect();
        for value in values(text) {
            number += 1;
            if number % step > 0 {
                continue;
            }
            let hole = ["{{ hole }}", "${HOLE}", "%s", "<%= hole %>"][number % 4];
            let template = format!("{}{hole}{}", &text[..value.start], &text[value.end..]);
            let what = || format!("{}:\n{template}", rule.name);
            let Some(raw) = lint_example(&example, &template) else {
                panic!("{}", what());
            };
            let origin = |at: usize| {
                if at > value.start {
                    at + value.len() - hole.len()
                } else {
                    at
                }
            };
            let found = raw
                .diagnostics
                .iter()
                .map(|it| (it.rule.name, origin(it.place.span.start)));
            let new: Vec<_> = found.filter(|it| !known.contains(it)).collect();
            if !new.is_empty() {
                wrong.push(format!("{new:?} in {}", what()));
            }
            let is_unknown = raw
                .not_checked
                .iter()
                .any(|it| it.missing.why == Missing::PLACEHOLDER);
            unknown += usize::from(is_unknown);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(
        number > 2000 && unknown * step * 3 > number,
        "{unknown} of {number}"
    );
}
