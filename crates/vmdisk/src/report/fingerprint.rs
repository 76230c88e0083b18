//! The subject of a finding, as a number that survives edits elsewhere.

use std::collections::HashMap;

use super::DocumentReport;
use crate::Diagnostic;

/// Distinguishes the findings of a run by their subject: the rule, the guest, the disk and the property.
#[derive(Debug)]
pub struct Fingerprints<'a> {
    /// The number of inputs with a guest of each name.
    guests: HashMap<&'a str, usize>,
    /// The number of findings about each subject so far, in files that several inputs may include.
    shared: HashMap<u128, usize>,
}

impl<'a> Fingerprints<'a> {
    /// No fingerprints yet of these inputs.
    pub fn new(reports: impl IntoIterator<Item = &'a DocumentReport>) -> Self {
        let mut guests = HashMap::new();
        let reports = reports.into_iter();
        for name in reports.filter_map(|report| report.domain.as_deref()) {
            *guests.entry(name).or_default() += 1;
        }
        Fingerprints {
            guests,
            shared: HashMap::new(),
        }
    }

    /// The fingerprints of findings in an input, in their order.
    pub fn of(
        &mut self,
        uri: &str,
        report: &DocumentReport,
        findings: &[&Diagnostic],
    ) -> Vec<String> {
        let guest = report.domain.as_deref();
        // The name of the guest survives a move of its file, but is not unique if two files have it.
        let owner = match guest.filter(|name| self.guests.get(name) == Some(&1)) {
            Some(name) => ["guest", name],
            None => ["path", uri],
        };
        let mut own = HashMap::new();
        // Each input reports its own findings in a file that several include.
        let counts = match crate::begins_with_group(&report.text) {
            true => &mut self.shared,
            false => &mut own,
        };
        let fingerprint = |finding: &&Diagnostic| {
            let subject = subject(owner, finding);
            let count = counts.entry(subject).or_default();
            *count += 1;
            format!("{subject:032x}:{count}")
        };
        findings.iter().map(fingerprint).collect()
    }
}

fn subject([kind, name]: [&str; 2], finding: &Diagnostic) -> u128 {
    let disk = finding.disk.as_ref().map(|disk| match &disk.target {
        Some(target) => target.clone(),
        None => format!("#{}", disk.index),
    });
    digest(&[
        finding.rule.name,
        kind,
        name,
        disk.as_deref().unwrap_or_default(),
        &finding.place.breadcrumb,
    ])
}

/// The number of some parts, as text.
pub fn hash(parts: &[&str]) -> String {
    format!("{:032x}", digest(parts))
}

/// 128 bits of FNV-1a over the parts with their lengths: the same everywhere and for ever, which the
/// hashers of the standard library do not promise.
pub fn digest(parts: &[&str]) -> u128 {
    const PRIME: u128 = 0x0000_0000_0100_0000_0000_0000_0000_013b;
    let mut state: u128 = 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d;
    let mut take = |byte: u8| state = (state ^ u128::from(byte)).wrapping_mul(PRIME);
    for part in parts {
        (part.len() as u64)
            .to_le_bytes()
            .into_iter()
            .for_each(&mut take);
        part.bytes().for_each(&mut take);
    }
    state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_do_not_run_into_each_other_and_the_number_never_changes() {
        assert_ne!(hash(&["ab", "c"]), hash(&["a", "bc"]));
        assert_eq!(hash(&[]), "6c62272e07bb014262b821756295c58d");
        assert_eq!(
            hash(&["cache-unsafe", "web1"]),
            hash(&["cache-unsafe", "web1"])
        );
    }

    #[test]
    fn findings_about_the_same_are_counted_and_unique_guests_give_the_number() {
        let text = "<disk><target dev='vda'/><driver cache='unsafe'/></disk>";
        let document = crate::read(text).unwrap();
        let found = crate::lint(&document, &crate::LintOptions::default());
        let finding = &found.diagnostics[0];
        let input = |(path, guest, text): (&'static str, Option<&str>, &str)| {
            let report = DocumentReport {
                domain: guest.map(str::to_owned),
                text: text.into(),
                ..DocumentReport::default()
            };
            (path, report)
        };
        let inputs = [
            ("a.xml", Some("web1"), ""),
            ("b.xml", Some("web2"), ""),
            ("c.xml", Some("web2"), ""),
            ("d.cfg", None, "[drive]"),
            ("d.cfg", None, "[drive]"),
            ("e.xml", None, ""),
            ("e.xml", None, ""),
        ];
        let inputs = inputs.map(input);
        let mut fingerprints = Fingerprints::new(inputs.iter().map(|(_, report)| report));
        let mut found = inputs
            .iter()
            .map(|(path, report)| fingerprints.of(path, report, &[finding, finding]));
        let mut expected = |owner: [&str; 2], times: [usize; 2]| {
            let subject = subject(owner, finding);
            let numbers = times.map(|time| format!("{subject:032x}:{time}"));
            assert_eq!(found.next().unwrap(), numbers, "{owner:?}");
        };
        expected(["guest", "web1"], [1, 2]);
        expected(["path", "b.xml"], [1, 2]);
        expected(["path", "c.xml"], [1, 2]);
        expected(["path", "d.cfg"], [1, 2]);
        expected(["path", "d.cfg"], [3, 4]);
        expected(["path", "e.xml"], [1, 2]);
        expected(["path", "e.xml"], [1, 2]);
    }
}
