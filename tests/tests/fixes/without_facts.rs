//! Fixes that are applied without facts lead to no finding on any recorded host.

use std::collections::BTreeSet;
use std::fs;

use vmdisk::rules::{Rule, may_follow};
use vmdisk::{Facts, FixScope, Host, LintOptions, fix, lint, read};
use vmdisk_tests::fixtures;

use super::harmless::appeared;

/// Guests of common tools, and the examples of rules about discards, caches and iothreads.
fn guests() -> Vec<(String, String)> {
    let mut found = Vec::new();
    for entry in fs::read_dir(fixtures().join("healthy")).unwrap() {
        let path = entry.unwrap().path();
        if path
            .extension()
            .is_some_and(|it| it == "xml" || it == "args")
        {
            found.push((
                path.display().to_string(),
                fs::read_to_string(&path).unwrap(),
            ));
        }
    }
    for rule in vmdisk::rules::RULES {
        let examples = rule.examples().into_iter();
        found.extend(examples.map(|example| (rule.name.to_owned(), example.text)));
    }
    found
}

/// What a fix can lead to, because its mistake hid it or only facts show it: the rule whose fix it is, the new rule, and
/// the reason why the fix is still offered.
const HIDDEN: [(&str, &str, &str); 5] = [
    (
        "discard-on-one-node",
        "qcow2-discard-corruption",
        "the author asked for discards",
    ),
    (
        "native-without-direct",
        "btrfs-dio-csum-corruption",
        "the guest did not start",
    ),
    (
        "native-without-direct",
        "io-native-on-buffered-dio",
        "the guest did not start",
    ),
    (
        "native-without-direct",
        "odirect-silently-buffered",
        "the guest did not start",
    ),
    (
        "qcow2-on-device-fragments",
        "unsupported-by-target",
        "the version of QEMU was unknown",
    ),
];

fn is_hidden(fixed: &str, new: &str) -> bool {
    HIDDEN
        .iter()
        .any(|(rule, appears, _)| *rule == fixed && *appears == new)
}

#[test]
fn a_fix_without_facts_leads_to_no_finding_on_any_host() {
    let mut hosts = Vec::new();
    for name in [
        "apparmor",
        "btrfs-checksums-6.1",
        "layers",
        "lvm-thin-64k",
        "xfs-nvme",
    ] {
        let text = fs::read_to_string(fixtures().join(format!("facts/{name}.json"))).unwrap();
        hosts.push((name, Facts::parse(&text).unwrap().facts));
    }
    let (mut fixed_guests, mut found) = (0, BTreeSet::new());
    for (name, text) in guests() {
        let Ok(fixed) = fix(&text, &LintOptions::default(), FixScope::SafeAndUnsafe) else {
            continue;
        };
        let fixed_text = fixed.document.own_text();
        if fixed_text == text {
            continue;
        }
        let (before, after) = (read(&text).unwrap(), read(fixed_text).unwrap());
        let alone = lint(&before, &LintOptions::default());
        let fixable = alone.diagnostics.iter().filter(|it| it.fix.is_some());
        let applied: Vec<&Rule> = fixable.map(|it| it.rule).collect();
        fixed_guests += 1;
        for (host, facts) in &hosts {
            let options = Host::new(facts.clone()).options();
            for new in appeared(&lint(&before, &options), &lint(&after, &options)) {
                if !applied
                    .iter()
                    .any(|rule| may_follow(rule, new) || is_hidden(rule.name, new))
                {
                    let applied: Vec<&str> = applied.iter().map(|it| it.name).collect();
                    found.insert(format!("{name} on {host}: {applied:?} leads to {new}"));
                }
            }
        }
    }
    assert!(fixed_guests > 60, "{fixed_guests}");
    assert!(found.is_empty(), "{found:#?}");
}
