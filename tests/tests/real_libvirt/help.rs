//! What a finding's help tells people to write, libvirt accepts.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::facts::Version;
use vmdisk::{Severity, lint, read};
use vmdisk_tests::fix_cases::{FixCase, Syntax, fix_cases};
use vmdisk_tests::help_cases::advice_of;
use vmdisk_tests::{LibvirtBuild, Verdict, libvirts};

use crate::fixes::defined;
use crate::pages::guest;

/// Settings in a guest.
struct Trial {
    told: String,
    before: String,
    after: String,
    /// True if another rule reports an error, for its own target or one of the libvirts that judge.
    has_other_error: bool,
    /// The release of libvirt that the text is for, if it names one.
    release: Option<(u32, u32)>,
}

/// One trial for each setting that a rule names.
fn trials(libvirts: &[LibvirtBuild]) -> Vec<Trial> {
    // A machine may have only a libvirt that is too old for a case.
    let versions = libvirts.iter().map(|build| Some(build.version));
    let versions: Vec<_> = versions.chain([None]).collect();
    let mut trials = Vec::new();
    let mut seen = BTreeSet::new();
    let cases = fix_cases().into_iter().enumerate();
    let is_judged = |(_, case): &(usize, FixCase)| {
        case.syntax == Syntax::Xml && case.facts.len() < 2 && !case.origin.starts_with("fuzz/")
    };
    for (number, case) in cases.filter(is_judged) {
        let case = FixCase {
            text: guest(&case.text, number),
            ..case
        };
        if vmdisk::read(&case.text).is_err() {
            continue;
        }
        let release = case.with_options(|options| options.target.libvirt);
        for advice in advice_of(&case) {
            let Some(after) = advice.after else {
                println!(
                    "more than a value: {} in {}: {}",
                    advice.rule, case.origin, advice.help
                );
                continue;
            };
            if seen.insert((advice.rule, advice.spelled, release)) {
                let is_other = |found: &&vmdisk::Diagnostic| {
                    found.severity == Severity::Error && found.rule.name != advice.rule
                };
                let has_error_for = |version: &Option<Version>| {
                    case.with_options(|options| {
                        let mut options = options.clone();
                        options.target.libvirt = version.or(options.target.libvirt);
                        let document = read(&case.text).expect("cases are read");
                        let report = lint(&document, &options);
                        report.diagnostics.iter().any(|found| is_other(&found))
                    })
                };
                trials.push(Trial {
                    has_other_error: versions.iter().any(has_error_for),
                    told: format!("{} in {}: {}", advice.rule, case.origin, advice.help),
                    before: case.text.clone(),
                    after,
                    release: release.map(|version| (version.0, version.1)),
                });
            }
        }
    }
    trials
}

/// The libvirts that judge a trial: the one of its target, else all.
fn judges(trial: &Trial, libvirts: &[LibvirtBuild]) -> Vec<usize> {
    let is_meant = |build: &LibvirtBuild| Some((build.version.0, build.version.1)) == trial.release;
    let all = 0..libvirts.len();
    let meant: Vec<usize> = all
        .clone()
        .filter(|nth| is_meant(&libvirts[*nth]))
        .collect();
    match meant.is_empty() {
        true => all.collect(),
        false => meant,
    }
}

#[test]
fn what_a_help_names_libvirt_accepts() {
    let libvirts = libvirts("settings that helps name");
    if libvirts.is_empty() {
        return;
    }
    let trials = trials(&libvirts);
    let verdicts = |text: fn(&Trial) -> &str| -> Vec<Vec<Verdict>> {
        let texts: Vec<&str> = trials.iter().map(text).collect();
        libvirts
            .iter()
            .map(|libvirt| defined(libvirt, &texts))
            .collect()
    };
    let before = verdicts(|trial| &trial.before);
    let after = verdicts(|trial| &trial.after);
    let mut accepted: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    let mut other_errors = Vec::new();
    for (nth, trial) in trials.iter().enumerate() {
        let judges = judges(trial, &libvirts);
        let accepts = |libvirt: &&usize| after[**libvirt][nth] == Verdict::Accepted;
        let accepting: Vec<&usize> = judges.iter().filter(accepts).collect();
        for libvirt in &accepting {
            let version = libvirts[**libvirt].version.to_string();
            *accepted.entry(version).or_default() += 1;
        }
        if !accepting.is_empty() {
            continue;
        }
        let said = judges.iter().map(|libvirt| &after[*libvirt][nth]);
        let said: Vec<_> = said.collect();
        let is_same = judges
            .iter()
            .all(|libvirt| before[*libvirt][nth] == after[*libvirt][nth]);
        // A warning, too: the machine type is of another vendor's QEMU.
        let is_about_machine = said.iter().all(|verdict| {
            matches!(verdict, Verdict::Refused(why) if why.contains("does not support machine type"))
        });
        if is_same && (trial.has_other_error || is_about_machine) {
            other_errors.push(&trial.told);
            continue;
        }
        let was_accepted = judges
            .iter()
            .any(|libvirt| before[*libvirt][nth] == Verdict::Accepted);
        let when = if was_accepted {
            "accepted before"
        } else {
            "refused before"
        };
        wrong.push(format!(
            "{} ({when}): {said:?}\n{}\n",
            trial.told, trial.after
        ));
    }
    println!("XML: {} kinds tried", trials.len());
    for told in &other_errors {
        println!("refused for another error before and after: {told}");
    }
    for (version, count) in &accepted {
        println!("XML: libvirt {version} accepts {count}");
    }
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for libvirt in &libvirts {
        let version = libvirt.version.to_string();
        assert!(
            accepted.contains_key(&version),
            "libvirt {version} accepts no case"
        );
    }
}
