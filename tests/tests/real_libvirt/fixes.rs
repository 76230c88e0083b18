//! A guest that a libvirt accepts is accepted after its fixes.

use std::collections::BTreeMap;

use vmdisk::FixScope;
use vmdisk_tests::fix_cases::{FixCase, Syntax, fix_cases};
use vmdisk_tests::{LibvirtBuild, Step, Verdict, libvirts};

use crate::pages::guest;

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
