//! Thousands of generated guests: the linter and each libvirt say the same, or the difference has a name.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::rules::{Evidence, RULES, Rule, Severity};
use vmdisk::{LintOptions, lint, read};
use vmdisk_tests::{LibvirtBuild, Verdict, libvirts};

use crate::difference::{self, Case};
use crate::guest::{Dice, guest};
use crate::moves::MOVES;

/// Guests of the first round, with any moves.
const FIRST_ROUND: usize = 600;

/// Guests of each round after it, with the moves that have not yet broken enough.
const NEXT_ROUND: usize = 400;

/// How often each constraint is to be hit.
const ENOUGH: usize = 20;

/// Rounds after which a constraint that is not hit stays so.
const ROUNDS: usize = 3;

/// A generated guest, and what was done to it.
struct Generated {
    xml: String,
    moves: Vec<usize>,
}

/// A guest with some moves out of `among`.
fn generated(number: usize, dice: &mut Dice, among: &[usize], most: usize) -> Generated {
    let mut made = guest(number, dice);
    let count = [0, 1, 1, 1, 1, 2, 2, 3][dice.below(8)].min(most);
    let moves: Vec<usize> = (0..count).map(|_| dice.pick(among)).collect();
    for chosen in &moves {
        (MOVES[*chosen].make)(&mut made, dice);
    }
    Generated {
        xml: made.write(),
        moves,
    }
}

/// A text that a rule quotes of libvirt.
type Quoted = (&'static str, &'static Evidence);

/// Everything that rules quote of libvirt.
fn quoted() -> impl Iterator<Item = Quoted> {
    RULES.iter().flat_map(|rule| {
        rule.evidence
            .iter()
            .filter(|evidence| quotes_libvirt(evidence))
            .map(|evidence| (rule.name, evidence))
    })
}

fn quotes_libvirt(evidence: &Evidence) -> bool {
    matches!(evidence, Evidence::Refused { by, .. } if by.starts_with("libvirt"))
}

fn text(evidence: &Evidence) -> &'static str {
    match evidence {
        Evidence::Refused { text, .. } => text,
        Evidence::Measured { .. }
        | Evidence::Source(_)
        | Evidence::Cve(_)
        | Evidence::NotMeasuredHere(_) => "",
    }
}

/// The rules that say in an error what they quote libvirt for.
fn ours(xml: &str, libvirt: &LibvirtBuild) -> BTreeSet<&'static str> {
    let options = LintOptions {
        target: libvirt.target(),
        ..LintOptions::default()
    };
    let document = read(xml).expect("generated guests are XML");
    let about_libvirt = |rule: &Rule| rule.evidence.iter().any(quotes_libvirt);
    lint(&document, &options)
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error)
        .filter(|diagnostic| about_libvirt(diagnostic.rule))
        .map(|diagnostic| diagnostic.rule.name)
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
    named: BTreeMap<&'static str, usize>,
    unexplained: Vec<String>,
}

impl Tally {
    fn note(&mut self, libvirt: &LibvirtBuild, guest: &Generated, verdict: &Verdict) {
        self.guests += 1;
        let rules = ours(&guest.xml, libvirt);
        let said: Vec<Quoted> = match verdict.refusal() {
            Some(message) => quoted()
                .filter(|(_, evidence)| evidence.is_said_by("libvirt", message))
                .collect(),
            None => Vec::new(),
        };
        for (_, evidence) in &said {
            *self.hits.entry(text(evidence)).or_default() += 1;
        }
        match (verdict, rules.is_empty()) {
            (Verdict::Accepted, true) => self.taken_by_both += 1,
            (Verdict::Refused(_), false) => {
                self.refused_by_both += 1;
                let is_ours = said.iter().any(|(rule, _)| rules.contains(rule));
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
                            "after {moves:?} rules {rules:?}, libvirt {verdict:?}\n{}",
                            guest.xml
                        ));
                    }
                }
            }
        }
    }

    /// What has not been hit enough.
    fn lacking(&self) -> BTreeSet<&'static str> {
        quoted()
            .map(|(_, evidence)| text(evidence))
            .filter(|text| self.hits.get(text).is_none_or(|hits| *hits < ENOUGH))
            .collect()
    }

    fn print(&self, libvirt: &LibvirtBuild) {
        println!(
            "libvirt {} with QEMU {}: {} guests, {} taken by both, {} refused by both ({} for a reason that a rule quotes), {} differences with a name, {} without",
            libvirt.version,
            libvirt.qemu,
            self.guests,
            self.taken_by_both,
            self.refused_by_both,
            self.for_the_same_reason,
            self.named.values().sum::<usize>(),
            self.unexplained.len(),
        );
        for (name, count) in &self.named {
            println!("  {count:5} differ: {name}");
        }
        for (text, hits) in &self.hits {
            println!("  {hits:5} hits: {text}");
        }
    }
}

#[test]
fn the_linter_and_libvirt_agree_on_generated_guests() {
    let libvirts = libvirts("what libvirt refuses");
    if libvirts.is_empty() {
        return;
    }
    let mut never: BTreeSet<&'static str> = quoted().map(|(_, evidence)| text(evidence)).collect();
    let mut too_rare: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut failures = Vec::new();
    for libvirt in &libvirts {
        let mut tally = Tally::default();
        // By which moves a text was brought out.
        let mut brought_out: BTreeMap<&'static str, BTreeSet<usize>> = BTreeMap::new();
        let is_known = |nth: &usize| libvirt.version >= MOVES[*nth].since;
        let all: Vec<usize> = (0..MOVES.len()).filter(is_known).collect();
        for round in 0..ROUNDS {
            let lacking = tally.lacking();
            let (count, among) = if round == 0 {
                (FIRST_ROUND, all.clone())
            } else {
                let moves = lacking.iter().filter_map(|text| brought_out.get(text));
                (NEXT_ROUND, moves.flatten().copied().collect())
            };
            if among.is_empty() {
                break;
            }
            let most = if round == 0 { 3 } else { 1 };
            let mut dice = Dice::new(1 + round as u64);
            let guests: Vec<Generated> = (0..count)
                .map(|number| generated(number, &mut dice, &among, most))
                .collect();
            let verdicts = libvirt.verdicts(guests.iter().map(|guest| guest.xml.as_str()));
            for (guest, verdict) in guests.iter().zip(&verdicts) {
                tally.note(libvirt, guest, verdict);
                let Some(message) = verdict.refusal() else {
                    continue;
                };
                for (_, evidence) in quoted() {
                    if evidence.is_said_by("libvirt", message) {
                        brought_out
                            .entry(text(evidence))
                            .or_default()
                            .extend(&guest.moves);
                    }
                }
            }
        }
        tally.print(libvirt);
        for (text, hits) in &tally.hits {
            never.remove(text);
            let most = too_rare.entry(text).or_default();
            *most = (*most).max(*hits);
        }
        let differences: usize = tally.named.values().sum();
        if differences * 50 > tally.guests {
            failures.push(format!(
                "libvirt {}: {differences} of {} guests differ, which is more than 2 %",
                libvirt.version, tally.guests
            ));
        }
        failures.extend(tally.unexplained.into_iter().take(20));
    }
    too_rare.retain(|_, hits| *hits < ENOUGH);
    too_rare.extend(never.iter().map(|text| (*text, 0)));
    println!("said less than {ENOUGH} times: {too_rare:#?}");
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
