//! What a finding's help tells people to write, QEMU accepts.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_tests::fix_cases::{FixCase, Syntax, fix_cases};
use vmdisk_tests::help_cases::{Advice, advice_of, named_release};
use vmdisk_tests::{QemuBuild, qemus};

use crate::fixes::{is_tried, ready, stand_ins, starts};

/// Every `key=value` and JSON member of a spelled setting stands in the text.
fn says(text: &str, spelled: &str) -> bool {
    let dense = |text: &str| text.replace([' ', '\\'], "");
    let text = dense(text);
    let quoted = spelled
        .split('`')
        .enumerate()
        .filter(|(nth, _)| nth % 2 == 1);
    let mut settings = quoted
        .map(|(_, part)| part)
        .filter(|part| part.contains(['=', ':']));
    settings.all(|part| {
        let is_json = part.starts_with('"');
        let separator = if is_json { ", " } else { "," };
        // A member of an object that is there already stands inside it.
        part.split(separator).all(|pair| {
            let pair = dense(pair);
            let inner = pair
                .rsplit('{')
                .next()
                .unwrap_or_default()
                .trim_end_matches('}');
            text.contains(&pair) || text.contains(inner)
        })
    })
}

fn is_judged(case: &FixCase) -> bool {
    is_tried(case) && case.facts.len() < 2
}

/// Whether a QEMU starts with a text; `None` if an image of it cannot be made here.
fn accepts(build: &QemuBuild, syntax: Syntax, text: &str) -> Option<bool> {
    let read = vmdisk::read(text).expect("a text with a setting is read");
    let folder = tempfile::tempdir().expect("a folder can be made");
    // Each text gets images of the formats that it names: a help about a format follows the facts of the image.
    let files = stand_ins(read.domain(), folder.path())?;
    starts(build, syntax, &ready(text, &files), folder.path())
}

/// The QEMUs that judge the advice in a text: the one of its target, else all.
fn judges<'b>(case: &FixCase, builds: &'b [QemuBuild]) -> Vec<&'b QemuBuild> {
    let release = |version: vmdisk::facts::Version| (version.0, version.1);
    let wanted = case.with_options(|options| options.target.qemu.map(release));
    let of_target = builds
        .iter()
        .filter(|build| Some(release(build.version)) == wanted);
    let of_target: Vec<_> = of_target.collect();
    match of_target.is_empty() {
        true => builds.iter().collect(),
        false => of_target,
    }
}

/// Advice that was tried, and the QEMUs that start with it.
#[derive(Default)]
struct Trials {
    /// Advice by syntax and program.
    accepted: BTreeMap<(Syntax, String), usize>,
    /// Advice that a program refuses as it refused the text before, or that is for later programs.
    refused_before: BTreeSet<String>,
    wrong: Vec<String>,
    /// Turns the builds, so that each has its share.
    turn: usize,
}

impl Trials {
    fn try_advice(&mut self, case: &FixCase, advice: &Advice, after: &str, builds: &[QemuBuild]) {
        let told = || {
            format!(
                "{} in {} ({}): {}\n{}---\n{after}",
                advice.rule,
                case.origin,
                case.syntax.name(),
                advice.help,
                case.text
            )
        };
        let judges = judges(case, builds);
        let Some(oldest) = judges.first() else {
            return;
        };
        self.turn += 1;
        let mut order = vec![*oldest, judges[self.turn % judges.len()]];
        order.extend(judges.iter().rev());
        let mut asked = BTreeMap::new();
        for (nth, build) in order.into_iter().enumerate() {
            // The others are asked where these two refuse.
            if asked.contains_key(&build.version) || nth > 1 && asked.values().any(|it| *it) {
                continue;
            }
            let Some(is_accepted) = accepts(build, case.syntax, after) else {
                return;
            };
            asked.insert(build.version, is_accepted);
            if is_accepted {
                let class = (case.syntax, build.name.clone());
                *self.accepted.entry(class).or_default() += 1;
            }
        }
        let first = asked.iter().find(|(_, is_accepted)| **is_accepted);
        let Some((first, _)) = first else {
            // A machine may have only a QEMU that is too old for an advice that says so.
            let release = named_release(&advice.help, "QEMU");
            let is_for_later = release > judges.iter().map(|build| build.version).max();
            let starts = |build: &&QemuBuild| accepts(build, case.syntax, &case.text) == Some(true);
            match !is_for_later && judges.iter().any(starts) {
                true => self
                    .wrong
                    .push(format!("no QEMU starts with it: {}", told())),
                false => {
                    let line = format!(
                        "{} in {} ({})",
                        advice.rule,
                        case.origin,
                        case.syntax.name()
                    );
                    self.refused_before.insert(line);
                }
            }
            return;
        };
        // A text that only later releases start with, and that the oldest started with before: the advice is newer.
        let is_newer = judges.len() > 1
            && *first > oldest.version
            && accepts(oldest, case.syntax, &case.text) == Some(true);
        if is_newer {
            match named_release(&advice.help, "QEMU") {
                Some(release) if release > oldest.version && release <= *first => {}
                Some(_) | None => self.wrong.push(format!(
                    "QEMU {} refuses it, {first} accepts it, and the help does not say so: {}",
                    oldest.name,
                    told()
                )),
            }
        }
    }
}

#[test]
fn what_a_help_names_is_what_the_edits_write_and_qemu_accepts_it() {
    let builds = qemus("settings that helps name");
    let mut trials = Trials::default();
    let mut elsewhere: BTreeMap<String, usize> = BTreeMap::new();
    let mut tried: BTreeMap<Syntax, usize> = BTreeMap::new();
    let mut seen = BTreeSet::new();
    let mut named = 0;
    for case in fix_cases().iter().filter(|case| is_judged(case)) {
        for advice in advice_of(case) {
            named += 1;
            let rule = advice.rule;
            let Some(after) = &advice.after else {
                let what = format!("{rule}: {:?}", advice.spelled);
                *elsewhere.entry(what).or_default() += 1;
                continue;
            };
            let told = || format!("{rule} in {}: {:?}\n{after}", case.origin, advice.spelled);
            let Some(spelled) = &advice.spelled else {
                let fault = format!("can be written and not spelled: {}", told());
                trials.wrong.push(fault);
                continue;
            };
            if !says(after, spelled) {
                let fault = format!("the edits write something else: {}", told());
                trials.wrong.push(fault);
            }
            if seen.insert((rule, case.syntax, spelled.clone())) {
                *tried.entry(case.syntax).or_default() += 1;
                trials.try_advice(case, &advice, after, &builds);
            }
        }
    }
    println!("{named} settings named");
    for (syntax, count) in &tried {
        println!("{}: {count} kinds tried", syntax.name());
    }
    for ((syntax, program), count) in &trials.accepted {
        println!("{}: QEMU {program} starts with {count}", syntax.name());
    }
    for (what, count) in &elsewhere {
        println!("more than a value: {what} ({count} times)");
    }
    for line in &trials.refused_before {
        println!("refused before and after: {line}");
    }
    let wrong = &trials.wrong;
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
    for syntax in [Syntax::Drive, Syntax::BlockdevPairs, Syntax::BlockdevJson] {
        assert!(tried.contains_key(&syntax), "no case is {}", syntax.name());
        for build in &builds {
            let class = (syntax, build.name.clone());
            let is_there = trials.accepted.contains_key(&class);
            assert!(
                is_there,
                "QEMU {} starts with no {}",
                build.name,
                syntax.name()
            );
        }
    }
}
