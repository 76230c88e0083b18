//! A fleet says of each host what lint says of it alone, and hosts that are taken for one are judged alike.

use std::collections::BTreeSet;

use vmdisk::rules::{NotChecked, RULES};
use vmdisk::{Detail, Document, Facts, Fleet, Host, LintOptions, Target, lint, read};
use vmdisk_tests::fixtures;

/// The facts that rules' pages use, by name.
fn hosts() -> Vec<(String, Facts)> {
    let mut files: Vec<_> = std::fs::read_dir(fixtures().join("facts"))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    let facts = |path: std::path::PathBuf| {
        let text = std::fs::read_to_string(&path).unwrap();
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (name, Facts::from_json(&text).unwrap().facts)
    };
    files.into_iter().map(facts).collect()
}

/// What is found on one host: rule, place and severity, and what could not be checked.
type Found = BTreeSet<(&'static str, usize, bool)>;

/// The examples of all rules that can be read.
fn examples() -> Vec<(String, Document)> {
    let examples = RULES.iter().flat_map(|rule| rule.examples());
    examples
        .filter_map(|example| {
            let document = read(&example.text).ok()?;
            Some((example.text, document))
        })
        .collect()
}

fn alone(document: &Document, options: &LintOptions) -> Found {
    let report = lint(document, options);
    let found = report.diagnostics.iter();
    let found = found.map(|one| (one.rule.name, one.place.span.start, true));
    let missed = report.not_checked.iter();
    let missed = missed.flat_map(|one| places(document, one));
    found.chain(missed).collect()
}

/// All places that a rule could not look at for one reason.
fn places(document: &Document, missed: &NotChecked) -> Vec<(&'static str, usize, bool)> {
    let all = std::iter::once(&missed.at).chain(&missed.further);
    all.map(|at| (missed.rule.name, document.place(*at).span.start, false))
        .collect()
}

#[test]
fn a_fleet_says_of_each_host_what_is_said_of_it_alone() {
    let hosts = hosts();
    let known = |(name, facts): &(String, Facts)| (name.clone(), Host::new(facts.clone()));
    let known: Vec<(String, Host)> = hosts.iter().map(known).collect();
    let fleet = Fleet::new(known.clone(), &Target::default());
    // Rules and places are compared, and no words.
    let detail = Detail::Titles;
    let titles = |(_, host): &(String, Host)| host.options().detail(detail);
    let each: Vec<LintOptions> = known.iter().map(titles).collect();
    let all = LintOptions::default().fleet(fleet).detail(detail);
    let examples = examples();
    let mut compared = 0;
    for (text, document) in &examples {
        let report = lint(document, &all);
        let mut together = vec![Found::new(); hosts.len()];
        let mut superseded: BTreeSet<&str> = BTreeSet::new();
        for one in &report.diagnostics {
            let start = one.place.span.start;
            if one.rule.compares_hosts() {
                superseded.extend(one.rule.supersedes);
                continue;
            }
            for host in one.hosts.iter().flat_map(|hosts| &hosts.affected) {
                together[*host].insert((one.rule.name, start, true));
            }
        }
        for missed in report
            .not_checked
            .iter()
            .filter(|one| !one.rule.compares_hosts())
        {
            for host in &missed.hosts {
                together[*host].extend(places(document, missed));
            }
        }
        for (((name, _), options), mut together) in hosts.iter().zip(&each).zip(together) {
            let mut alone = alone(document, options);
            // Where comparing the hosts names the cause, the rule about one host is silent.
            // Allowances belong to the file, and to no host.
            let is_told = |(rule, ..): &(&str, usize, bool)| {
                !superseded.contains(rule) && !rule.starts_with("allowance-")
            };
            alone.retain(is_told);
            together.retain(is_told);
            assert_eq!(together, alone, "{name}\n{text}");
            compared += alone.len();
        }
    }
    let documents = examples.len();
    assert!(documents > 100 && compared > 5000, "{documents} {compared}");
}

/// Hosts with a file system that has less free space than its images can still use.
const HAS_TIGHT_FILE_SYSTEM: [&str; 1] = ["unsafe-mounts"];

#[test]
fn what_tells_one_host_from_another_of_its_kind_changes_nothing_that_is_said() {
    let examples = examples();
    for (name, facts) in hosts() {
        let mut twin = facts.clone();
        twin.host.id = vmdisk::facts::Fact::Known("twin".to_owned());
        twin.limits.aio_nr = vmdisk::facts::Fact::Known(99);
        twin.memory.available_bytes = vmdisk::facts::Fact::Known(1);
        for filesystem in &mut twin.filesystems {
            filesystem.free_bytes = vmdisk::facts::Fact::Known(u64::MAX);
        }
        let (one, twin) = (Host::new(facts), Host::new(twin));
        let named = [("one", one.clone()), ("twin", twin.clone())];
        let fleet = Fleet::new(named, &Target::default());
        // Free space counts only where the images can use it up.
        if HAS_TIGHT_FILE_SYSTEM.contains(&name.as_str()) {
            assert_eq!(fleet.kinds(), 2, "{name}");
            continue;
        }
        assert_eq!(fleet.kinds(), 1, "{name}");
        let [one, other] = [one, twin].map(|host| host.options());
        for (text, document) in &examples {
            let said = |options: &LintOptions| lint(document, options).diagnostics;
            assert_eq!(said(&one), said(&other), "{name}\n{text}");
        }
    }
}
