//! Thousands of generated guests: the linter and each libvirt say the same, or the difference has a name.

use std::collections::BTreeMap;

use vmdisk::rules::{Evidence, Severity};
use vmdisk::{LintOptions, lint, read};
use vmdisk_tests::{LibvirtBuild, Verdict, libvirts};

use crate::guest::{Dice, guest};
use crate::moves::MOVES;

/// A generated guest, and what was done to it.
struct Generated {
    xml: String,
    moves: Vec<&'static str>,
}

fn generated(count: usize, seed: u64) -> Vec<Generated> {
    (0..count)
        .map(|number| {
            let mut dice = Dice::new(seed.wrapping_mul(1_000_003).wrapping_add(number as u64));
            let mut made = guest(number, &mut dice);
            let mut moves = Vec::new();
            for _ in 0..[0, 1, 1, 1, 1, 2, 2, 3][dice.below(8)] {
                let chosen = &MOVES[dice.below(MOVES.len())];
                (chosen.make)(&mut made, &mut dice);
                moves.push(chosen.name);
            }
            let xml = made.write();
            Generated { xml, moves }
        })
        .collect()
}

/// The error of ours that libvirt's refusal is, or all of our errors.
#[derive(Debug)]
struct Ours {
    rules: Vec<&'static str>,
    is_the_same: bool,
}

fn ours(xml: &str, libvirt: &LibvirtBuild, verdict: &Verdict) -> Ours {
    let options = LintOptions {
        target: libvirt.target(),
        ..LintOptions::default()
    };
    let document = read(xml).expect("generated guests are XML");
    let report = lint(&document, &options);
    let errors = report
        .diagnostics
        .iter()
        .filter(|diagnostic| diagnostic.severity == Severity::Error);
    let mut rules: Vec<&'static str> = Vec::new();
    let mut is_the_same = false;
    for diagnostic in errors {
        rules.push(diagnostic.rule.name);
        is_the_same |= verdict.refusal().is_some_and(|message| {
            let said = |evidence: &Evidence| evidence.is_said_by("libvirt", message);
            diagnostic.rule.evidence.iter().any(said)
        });
    }
    rules.sort_unstable();
    rules.dedup();
    Ours { rules, is_the_same }
}

#[test]
fn the_linter_and_libvirt_agree_on_generated_guests() {
    let count = std::env::var("VMDISK_CASES").map_or(1500, |count| count.parse().unwrap());
    let guests = generated(count, 1);
    for libvirt in libvirts("what libvirt refuses") {
        let verdicts = libvirt.verdicts(guests.iter().map(|guest| guest.xml.as_str()));
        let mut hits: BTreeMap<String, usize> = BTreeMap::new();
        let mut differences: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let (mut same, mut refused, mut taken) = (0, 0, 0);
        for (guest, verdict) in guests.iter().zip(&verdicts) {
            let ours = ours(&guest.xml, &libvirt, verdict);
            match (verdict.refusal(), ours.rules.is_empty()) {
                (None, true) => taken += 1,
                (Some(message), false) => {
                    refused += 1;
                    same += usize::from(ours.is_the_same);
                    if !ours.is_the_same {
                        differences
                            .entry(format!("OTHER {} / {:?}", pattern(message), ours.rules))
                            .or_default()
                            .push(guest.xml.clone());
                    }
                }
                (None, false) => differences
                    .entry(format!("OURS {:?}", ours.rules))
                    .or_default()
                    .push(format!("{:?}\n{}", guest.moves, guest.xml)),
                (Some(message), true) => differences
                    .entry(format!("THEIRS {}", pattern(message)))
                    .or_default()
                    .push(format!("{message} {:?}\n{}", guest.moves, guest.xml)),
            }
            if let Some(message) = verdict.refusal() {
                *hits.entry(pattern(message)).or_default() += 1;
            }
        }
        println!(
            "libvirt {} with QEMU {}: {count} guests, {taken} taken by both, {refused} refused by both, {same} for the reason given",
            libvirt.version, libvirt.qemu
        );
        for (difference, examples) in &differences {
            println!("{:5} {difference}", examples.len());
        }
        if let Ok(folder) = std::env::var("VMDISK_DIFFERENCES") {
            for (number, (difference, examples)) in differences.iter().enumerate() {
                let text = format!("{difference}\n{}", examples.join("\n"));
                std::fs::write(format!("{folder}/{}-{number}", libvirt.version), text).unwrap();
            }
        }
    }
}

/// A message without the names and numbers in it.
fn pattern(message: &str) -> String {
    let mut out = String::new();
    let mut quoted = false;
    for character in message.chars() {
        match character {
            '\'' => {
                quoted = !quoted;
                out.push(character);
            }
            _ if quoted => {}
            '0'..='9' => out.push('N'),
            _ => out.push(character),
        }
    }
    out
}
