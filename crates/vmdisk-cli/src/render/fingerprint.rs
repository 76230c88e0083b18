//! The subject of a finding, as a number that survives edits elsewhere.

use std::collections::BTreeMap;

use vmdisk::Diagnostic;

use crate::lint::checked::{Checked, Report};

/// Distinguishes findings by their subject: the rule, the guest, the disk and the property.
pub(crate) struct Fingerprints<'a> {
    guests: BTreeMap<&'a str, usize>,
    used: BTreeMap<String, usize>,
}

impl<'a> Fingerprints<'a> {
    pub(crate) fn new(all: &'a [Checked]) -> Self {
        let mut guests: BTreeMap<&str, usize> = BTreeMap::new();
        for report in all
            .iter()
            .filter_map(|checked| checked.outcome.as_ref().ok())
        {
            if let Some(name) = &report.domain {
                *guests.entry(name).or_default() += 1;
            }
        }
        Fingerprints {
            guests,
            used: BTreeMap::new(),
        }
    }

    /// The fingerprint of one finding; of findings about the same thing, the first come first.
    pub(crate) fn of(
        &mut self,
        checked: &Checked,
        report: &Report,
        finding: &Diagnostic,
    ) -> String {
        // The name of the guest survives a move of its file, but is not unique if two files have it.
        let guest = match report.domain.as_deref() {
            Some(name) if self.guests.get(name) == Some(&1) => ("guest", name),
            Some(_) | None => ("path", checked.uri.as_str()),
        };
        let disk = finding.disk.as_ref().map(|disk| match &disk.target {
            Some(target) => target.clone(),
            None => format!("#{}", disk.index),
        });
        let parts = [
            finding.rule.name,
            guest.0,
            guest.1,
            disk.as_deref().unwrap_or_default(),
            &finding.place.breadcrumb,
        ];
        let hash = hash(&parts);
        let same = self.used.entry(hash.clone()).or_default();
        *same += 1;
        format!("{hash}:{same}")
    }
}

/// 128 bits of FNV-1a over the parts with their lengths: the same everywhere and for ever, which the
/// hashers of the standard library do not promise.
pub(crate) fn hash(parts: &[&str]) -> String {
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
    format!("{state:032x}")
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
}
