//! A guest that a libvirt accepts is accepted after its fixes.

use std::collections::BTreeMap;

use vmdisk::source::apply_edits;
use vmdisk::{FixScope, LintOptions, lint, read};
use vmdisk_tests::fix_cases::{FixCase, Syntax, fix_cases};
use vmdisk_tests::{LibvirtBuild, Step, Verdict, libvirts};

use crate::guest::{Dice, guest as any_guest};
use crate::moves::MOVES;
use crate::pages::guest;
use crate::sources::made_by;

/// Whether a libvirt takes each guest, under a name of its own.
pub(crate) fn defined(libvirt: &LibvirtBuild, guests: &[&str]) -> Vec<Verdict> {
    let renamed = |(number, xml): (usize, &&str)| {
        let parts = xml.split_once("<name>");
        let parts = parts.and_then(|(start, rest)| Some((start, rest.split_once("</name>")?.1)));
        match parts {
            Some((start, end)) => format!("{start}<name>fixed{number}</name>{end}"),
            None => (*xml).to_owned(),
        }
    };
    let guests: Vec<String> = guests.iter().enumerate().map(renamed).collect();
    let session = libvirt.session();
    session.verdicts(Step::Define, guests.iter().map(String::as_str))
}

#[test]
fn what_libvirt_accepts_it_accepts_after_every_fix() {
    let libvirts = libvirts("guests after fixes");
    if libvirts.is_empty() {
        return;
    }
    let is_xml = |case: &FixCase| case.syntax == Syntax::Xml;
    let cases: Vec<FixCase> = fix_cases()
        .into_iter()
        .filter(is_xml)
        .enumerate()
        .map(|(number, case)| FixCase {
            text: guest(&case.text, number),
            ..case
        })
        .filter(|case| vmdisk::read(&case.text).is_ok())
        .collect();
    for libvirt in &libvirts {
        // Each text once; the same after comes of both scopes where nothing is unsafe.
        let mut after = BTreeMap::new();
        for (nth, case) in cases.iter().enumerate() {
            for scope in [FixScope::Safe, FixScope::SafeAndUnsafe] {
                if let Some(changed) = case.changed(scope, &libvirt.target()) {
                    after.insert((nth, changed.after), (scope, changed.rules));
                }
            }
        }
        let mut numbers: Vec<usize> = after.keys().map(|(nth, _)| *nth).collect();
        numbers.dedup();
        let texts: Vec<&str> = numbers.iter().map(|nth| &*cases[*nth].text).collect();
        let verdicts = defined(libvirt, &texts);
        let before: BTreeMap<usize, Verdict> = numbers.into_iter().zip(verdicts).collect();
        let texts: Vec<&str> = after.keys().map(|(_, text)| text.as_str()).collect();
        let verdicts = defined(libvirt, &texts);
        let (mut kept, mut gained, mut refused) = (0, 0, 0);
        let mut wrong = Vec::new();
        for (((nth, text), (scope, rules)), verdict) in after.iter().zip(verdicts) {
            match (&before[nth], &verdict) {
                (Verdict::Accepted, Verdict::Accepted) => kept += 1,
                (Verdict::Accepted, Verdict::Refused(_) | Verdict::Crashed) => wrong.push(format!(
                    "{} after {scope:?} fixes of {rules:?}: {verdict:?}\n{}---\n{text}",
                    cases[*nth].origin, cases[*nth].text
                )),
                (Verdict::Refused(_) | Verdict::Crashed, Verdict::Accepted) => gained += 1,
                (Verdict::Refused(_) | Verdict::Crashed, _) => refused += 1,
            }
        }
        println!(
            "libvirt {}: {} fixed guests, {kept} accepted before and after, {gained} only after, {refused} refused as before",
            libvirt.version,
            after.len()
        );
        assert!(
            wrong.is_empty(),
            "{} wrong:\n{}",
            wrong.len(),
            wrong.join("\n")
        );
        assert!(kept > 100, "{kept}");
    }
}

/// The name of an element that is alone on its line.
fn leaf(line: &str) -> Option<&str> {
    let inside = line.trim().strip_prefix('<')?;
    let is_whole = inside.ends_with("/>") || inside.contains("</");
    let end = inside.find([' ', '/', '>'])?;
    (is_whole && end > 0).then(|| &inside[..end])
}

/// Guests in which an element is there twice; the second is one of that name in another place or guest.
fn with_duplicates() -> Vec<String> {
    let mut dice = Dice::new(36);
    let mut guests = Vec::new();
    for number in 0..400 {
        let mut made = any_guest(number, &mut dice);
        (MOVES[dice.below(MOVES.len())].make)(&mut made, &mut dice);
        let name = format!("<name>guest{number}</name>");
        let uuid = "<uuid>11111111-1111-4111-8111-111111111111</uuid>";
        let source = format!("<name>source</name>\n  {uuid}");
        guests.push(made.write().replace(&name, &source));
    }
    let mut pool: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for line in guests.iter().flat_map(|xml| xml.lines()) {
        if let Some(name) = leaf(line) {
            pool.entry(name).or_default().push(line);
        }
    }
    let mut doubled = Vec::new();
    for xml in &guests {
        let lines: Vec<&str> = xml.lines().collect();
        for _ in 0..3 {
            let nth = dice.below(lines.len());
            if let Some(name) = leaf(lines[nth]) {
                let other = dice.pick(&pool[name]);
                let (before, after) = lines.split_at(nth + 1);
                doubled.push([before, &[other], after].concat().join("\n"));
            }
        }
    }
    doubled
}

#[test]
fn libvirt_keeps_the_same_of_a_guest_whose_duplicate_is_removed() {
    let mut cases = Vec::new();
    for before in with_duplicates() {
        let Ok(document) = read(&before) else {
            continue;
        };
        let found = lint(&document, &LintOptions::default()).diagnostics;
        let duplicates = found.iter().filter(|it| it.rule.name == "duplicate-value");
        for fix in duplicates.filter_map(|it| it.fix.as_ref()) {
            cases.push((before.clone(), apply_edits(&before, &fix.edits).unwrap()));
        }
    }
    for libvirt in libvirts("duplicates") {
        let (before, after): (Vec<String>, Vec<String>) = cases.iter().cloned().unzip();
        let [made, fixed] = [before, after].map(|guests| made_by(&libvirt, &guests, false));
        let mut kept = 0;
        for (((before, after), made), fixed) in cases.iter().zip(made).zip(fixed) {
            if made.definition.is_some() {
                assert_eq!(made.definition, fixed.definition, "{before}\n---\n{after}");
                kept += 1;
            }
        }
        assert!(kept > 100, "only {kept} of {}", cases.len());
    }
}
