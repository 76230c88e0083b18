//! A help without a target names the first release that accepts what it advises.

use std::collections::BTreeSet;

use vmdisk::{LintOptions, Target, lint, read};
use vmdisk_tests::fix_cases::{FixCase, Syntax, by_syntax, fix_cases};
use vmdisk_tests::help_cases::{Advice, advice_of, named_release};

/// What a release does not support in a text: the rule, and the place.
fn unsupported(text: &str, release: &str) -> BTreeSet<(&'static str, String)> {
    let target: Target = release.parse().expect("it is a target");
    let options = LintOptions::default().target(target);
    let report = lint(&read(text).expect("it is read"), &options);
    let found = report.diagnostics.iter();
    let is_about_release =
        |rule: &str| matches!(rule, "unsupported-by-target" | "property-refused");
    found
        .filter(|found| is_about_release(found.rule.name))
        .map(|found| (found.rule.name, found.title.clone()))
        .map(|(rule, title)| (rule, without_release(&title)))
        .collect()
}

/// A title without the number of the release.
fn without_release(title: &str) -> String {
    title.replace(|letter: char| letter.is_ascii_digit() || letter == '.', "")
}

fn faults(case: &FixCase, advice: &Advice, after: &str) -> Vec<String> {
    let mut faults = Vec::new();
    let mut programs = vec![("QEMU", "qemu", "5.2")];
    if case.syntax == Syntax::Xml {
        programs.push(("libvirt", "libvirt", "7.0"));
    }
    for (program, key, oldest) in programs {
        let target = |release: &str| format!("{key}={release}");
        let before = unsupported(&case.text, &target(oldest));
        let new: Vec<_> = unsupported(after, &target(oldest))
            .difference(&before)
            .cloned()
            .collect();
        match (new.is_empty(), named_release(&advice.help, program)) {
            (true, None) => {}
            (true, Some(release)) => {
                faults.push(format!("{program} {oldest} has it, not first {release}"));
            }
            (false, None) => faults.push(format!("{program} {oldest} does not have it: {new:?}")),
            (false, Some(release)) => {
                let before = unsupported(&case.text, &target(&release.to_string()));
                let still = unsupported(after, &target(&release.to_string()));
                if still.difference(&before).next().is_some() {
                    faults.push(format!("{program} {release} does not have it either"));
                }
            }
        }
    }
    let told = format!(
        "{} in {} ({}): {}\n{}---\n{after}",
        advice.rule,
        case.origin,
        case.syntax.name(),
        advice.help,
        case.text
    );
    faults
        .into_iter()
        .map(|fault| format!("{fault}: {told}"))
        .collect()
}

#[test]
fn a_help_names_the_first_release_that_accepts_what_it_advises() {
    let mut tried = Vec::new();
    let mut seen = BTreeSet::new();
    let mut with_release = BTreeSet::new();
    let mut wrong = Vec::new();
    let is_open = |case: &&FixCase| {
        case.facts.is_empty()
            && case.target == Target::default()
            && !case.origin.starts_with("fuzz/")
    };
    for case in fix_cases().iter().filter(is_open) {
        for advice in advice_of(case) {
            let Some(after) = &advice.after else {
                continue;
            };
            if !seen.insert((advice.rule, case.syntax, advice.help.clone())) {
                continue;
            }
            tried.push(case.syntax);
            if advice.help.contains(" or later)") {
                with_release.insert((advice.rule, case.syntax, advice.help.clone()));
            }
            wrong.extend(faults(case, &advice, after));
        }
    }
    println!("{} helps ({})", tried.len(), by_syntax(&tried));
    for (rule, syntax, help) in &with_release {
        println!("{rule} ({}): {help}", syntax.name());
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for syntax in [
        Syntax::Xml,
        Syntax::Drive,
        Syntax::BlockdevJson,
        Syntax::BlockdevPairs,
    ] {
        assert!(tried.contains(&syntax), "no case is {}", syntax.name());
    }
    assert!(!with_release.is_empty(), "no help names a release");
}
