//! Thousands of generated guests: the linter and each libvirt say the same, or the difference has a name.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::rules::Severity;
use vmdisk::{LintOptions, lint, read};
use vmdisk_tests::{LibvirtBuild, Step, Verdict, libvirts};

use crate::breaks::BREAKS;
use crate::difference::{self, Case};
use crate::guest::{Dice, Guest, guest};
use crate::moves::MOVES;
use crate::quoted::{FROM_DOCUMENTS_ONLY, Quoted, quoted, said_at_definition};

/// Guests of the first round, with any moves.
const FIRST_ROUND: usize = 600;

/// Guests of the second round, with one move at most: with more, the first that libvirt looks at hides the others.
const SECOND_ROUND: usize = 1400;

/// How often each constraint is to be hit.
const ENOUGH: usize = 20;

/// Rounds after which a constraint that is not hit stays so.
const ROUNDS: usize = 5;

/// A generated guest, and what was done to it.
struct Generated {
    guest: Guest,
    xml: String,
    moves: Vec<usize>,
    /// What it was made to break.
    breaks: Option<&'static str>,
}

/// A guest with some moves out of `among`.
fn moved(number: usize, dice: &mut Dice, among: &[usize], most: usize) -> Generated {
    let mut made = guest(number, dice);
    let count = [0, 1, 1, 1, 1, 2, 2, 3][dice.below(8)].min(most);
    let moves: Vec<usize> = (0..count).map(|_| dice.pick(among)).collect();
    for chosen in &moves {
        (MOVES[*chosen].make)(&mut made, dice);
    }
    Generated {
        xml: made.write(),
        guest: made,
        moves,
        breaks: None,
    }
}

/// Guests that brought out a text.
type Witnesses = BTreeMap<&'static str, Vec<Guest>>;

/// How many witnesses are kept for each text.
const WITNESSES: usize = 8;

/// Guests that are to bring out what has not been said often enough: by the move that is made for it, else like those
/// that happened to do it.
fn directed(
    lacking: &BTreeMap<&'static str, usize>,
    witnesses: &Witnesses,
    dice: &mut Dice,
) -> Vec<Generated> {
    let mut guests = Vec::new();
    for (text, missing) in lacking {
        let made_for_it = BREAKS.iter().find(|(breaks, _)| breaks == text);
        let like_it = witnesses.get(text).map(Vec::as_slice).unwrap_or_default();
        for nth in 0..*missing {
            let number = guests.len();
            let made = if let Some((_, make)) = made_for_it {
                let mut made = guest(number, dice);
                make(&mut made, dice);
                made
            } else if like_it.is_empty() {
                break;
            } else {
                like_it[nth % like_it.len()].varied(number, dice)
            };
            guests.push(Generated {
                xml: made.write(),
                guest: made,
                moves: Vec::new(),
                breaks: Some(text),
            });
        }
    }
    guests
}

/// The rules that say in an error what they quote libvirt for.
fn ours(xml: &str, libvirt: &LibvirtBuild) -> BTreeSet<&'static str> {
    let options = LintOptions::default().target(libvirt.target());
    let document = read(xml).expect("generated guests are XML");
    let about_libvirt: BTreeSet<&str> = quoted()
        .filter(|quoted| !quoted.evidence.is_at_start())
        .map(|quoted| quoted.rule.name)
        .collect();
    lint(&document, &options)
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .map(|diagnostic| diagnostic.rule.name)
        .filter(|name| about_libvirt.contains(name))
        .collect()
}

/// What came of one libvirt.
#[derive(Default)]
struct Tally {
    guests: usize,
    taken_by_both: usize,
    refused_by_both: usize,
    for_the_same_reason: usize,
    hits: BTreeMap<&'static str, usize>,
    witnesses: Witnesses,
    named: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl Tally {
    fn note(&mut self, libvirt: &LibvirtBuild, guest: &Generated, verdict: &Verdict) {
        self.guests += 1;
        let rules = ours(&guest.xml, libvirt);
        let said: Vec<Quoted> = match verdict.refusal() {
            Some(message) => quoted()
                .filter(|quoted| quoted.evidence.is_said_by("libvirt", message))
                .collect(),
            None => Vec::new(),
        };
        // What one rule quotes of all attributes, another quotes of one of them.
        let length = |quoted: &Quoted| quoted.text.replace('…', "").len();
        let exact = said.iter().map(length).max();
        let texts: BTreeSet<&'static str> = said
            .iter()
            .filter(|quoted| Some(length(quoted)) == exact)
            .map(|quoted| quoted.text)
            .collect();
        for text in texts {
            *self.hits.entry(text).or_default() += 1;
            let witnesses = self.witnesses.entry(text).or_default();
            if witnesses.len() < WITNESSES {
                witnesses.push(guest.guest.clone());
            }
        }
        match (verdict, rules.is_empty()) {
            (Verdict::Accepted, true) => self.taken_by_both += 1,
            (Verdict::Refused(_), false) => {
                self.refused_by_both += 1;
                let is_ours = said.iter().any(|quoted| rules.contains(quoted.rule.name));
                self.for_the_same_reason += usize::from(is_ours);
            }
            (Verdict::Accepted, false) | (Verdict::Refused(_) | Verdict::Crashed, _) => {
                let case = Case {
                    xml: &guest.xml,
                    rules: &rules,
                    message: verdict.refusal(),
                };
                match difference::name(&case) {
                    Some(name) => *self.named.entry(name).or_default() += 1,
                    None => {
                        let moves: Vec<&str> =
                            guest.moves.iter().map(|nth| MOVES[*nth].name).collect();
                        self.unexplained.push(format!(
                            "after {moves:?} {:?} rules {rules:?}, libvirt {verdict:?}\n{}",
                            guest.breaks, guest.xml
                        ));
                    }
                }
            }
        }
    }

    /// What has not been said often enough, and how often it is missing.
    fn lacking(&self, libvirt: &LibvirtBuild) -> BTreeMap<&'static str, usize> {
        said_at_definition(libvirt)
            .into_iter()
            .map(|text| {
                (
                    text,
                    ENOUGH.saturating_sub(self.hits.get(text).copied().unwrap_or_default()),
                )
            })
            .filter(|(_, missing)| *missing > 0)
            .collect()
    }

    fn print(&self, libvirt: &LibvirtBuild) {
        println!(
            "libvirt {} with QEMU {}: {} guests, {} taken by both, {} refused by both ({} for a reason that a rule quotes), {} differences with a name, {} without; {} constraints, each hit at least {ENOUGH} times but for {}",
            libvirt.version,
            libvirt.qemu,
            self.guests,
            self.taken_by_both,
            self.refused_by_both,
            self.for_the_same_reason,
            self.named.values().sum::<usize>(),
            self.unexplained.len(),
            said_at_definition(libvirt).len(),
            self.lacking(libvirt).len(),
        );
        for (name, count) in &self.named {
            println!("  {count:5} differ: {name}");
        }
        for (text, hits) in &self.hits {
            println!("  {hits:5} hits: {text}");
        }
    }

    /// Everything that this libvirt shows to be wrong.
    fn failures(&self, libvirt: &LibvirtBuild) -> Vec<String> {
        let mut failures = Vec::new();
        let version = libvirt.version;
        let differences: usize = self.named.values().sum();
        if differences * 50 > self.guests {
            failures.push(format!(
                "libvirt {version}: {differences} of {} guests differ, which is more than 2 %",
                self.guests
            ));
        }
        for (text, missing) in self.lacking(libvirt) {
            let hits = ENOUGH - missing;
            failures.push(format!(
                "libvirt {version} says only {hits} times `{text}`: a move in breaks.rs is to bring it out, or a row in quoted.rs says why nothing can"
            ));
        }
        let known = said_at_definition(libvirt);
        for (text, hits) in &self.hits {
            let is_known = known.contains(text);
            if !is_known {
                failures.push(format!(
                    "libvirt {version} says {hits} times `{text}`, which a row in quoted.rs or the rule that quotes it says it does not"
                ));
            }
        }
        for (text, why) in FROM_DOCUMENTS_ONLY {
            if self.hits.contains_key(text) {
                failures.push(format!("libvirt {version} says `{text}`, although {why}"));
            }
        }
        failures.extend(self.unexplained.iter().take(20).cloned());
        failures
    }
}

/// Defines guests round after round, until each constraint has been hit often enough.
fn tried(libvirt: &LibvirtBuild) -> Tally {
    let mut tally = Tally::default();
    let is_known = |nth: &usize| libvirt.version >= MOVES[*nth].since;
    let all: Vec<usize> = (0..MOVES.len()).filter(is_known).collect();
    for round in 0..ROUNDS {
        let mut dice = Dice::new(1 + round as u64);
        let guests: Vec<Generated> = match round {
            0 => (0..FIRST_ROUND)
                .map(|number| moved(number, &mut dice, &all, 3))
                .collect(),
            1 => (0..SECOND_ROUND)
                .map(|number| moved(number, &mut dice, &all, 1))
                .collect(),
            _ => directed(&tally.lacking(libvirt), &tally.witnesses, &mut dice),
        };
        if guests.is_empty() {
            break;
        }
        let verdicts = libvirt
            .session()
            .verdicts(Step::Define, guests.iter().map(|guest| guest.xml.as_str()));
        for (guest, verdict) in guests.iter().zip(&verdicts) {
            tally.note(libvirt, guest, verdict);
        }
    }
    tally
}

#[test]
fn the_linter_and_libvirt_agree_on_generated_guests() {
    let libvirts = libvirts("what libvirt refuses");
    // Each waits for its libvirt most of the time.
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let running: Vec<_> = libvirts
            .iter()
            .map(|libvirt| scope.spawn(|| tried(libvirt)))
            .collect();
        let joined = running.into_iter().map(|thread| thread.join());
        joined
            .map(|tally| tally.expect("it does not panic"))
            .collect()
    });
    let mut failures = Vec::new();
    for (libvirt, tally) in libvirts.iter().zip(&tallies) {
        tally.print(libvirt);
        failures.extend(tally.failures(libvirt));
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

#[test]
fn each_break_is_of_something_that_a_rule_quotes() {
    let all: BTreeSet<&str> = quoted().map(|quoted| quoted.text).collect();
    let mut seen = BTreeSet::new();
    for (text, _) in BREAKS {
        assert!(all.contains(text), "no rule quotes `{text}`");
        assert!(seen.insert(text), "two moves break `{text}`");
    }
}
