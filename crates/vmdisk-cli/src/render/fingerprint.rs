//! The subject of a finding, as a number that survives edits elsewhere.
//!
//! The name of a guest is a part of the subject if no other input has it, which only the end of a run shows. Until then a
//! finding waits as a [`record`]: its text with marks, and both possible numbers.

use std::collections::HashMap;
use std::io::{self, BufRead, Read as _, Write};

use vmdisk::Diagnostic;

use crate::render::harmless::Mark;
use crate::render::spool::Spool;
use crate::report::input::{DocumentReport, InputReport};
use crate::stop::Stop;

/// Distinguishes findings by their subject: the rule, the guest, the disk and the property.
#[derive(Debug, Default)]
pub(crate) struct Fingerprints {
    /// Names of guests as numbers, each with true if only one input has it.
    guests: HashMap<u128, bool>,
}

/// The subject of a finding, as numbers.
#[derive(Debug, Default, PartialEq, Eq)]
struct Subject {
    /// The name of the guest; 0 without one.
    guest: u128,
    by_guest: u128,
    by_input: u128,
    /// True if other inputs may have findings with the same numbers, because they include this file.
    is_shared: bool,
}

/// The bytes of a subject in a record.
const SUBJECT_BYTES: usize = 49;

/// What follows in a list of records.
const INPUT: u8 = 0;
const RECORD: u8 = 1;

impl Fingerprints {
    /// Notes the guest of an input, and adds its records to a list.
    pub(crate) fn add(
        &mut self,
        checked: &InputReport,
        number: usize,
        records: &[u8],
        list: &mut Spool,
    ) -> Result<(), Stop> {
        let report = checked.outcome.as_ref().ok();
        if let Some(name) = report.and_then(|report| report.domain.as_deref()) {
            let guest = self.guests.entry(digest(&[name]));
            guest.and_modify(|is_only| *is_only = false).or_insert(true);
        }
        if !records.is_empty() {
            list.push(&[INPUT])?;
            list.push(&(number as u64).to_le_bytes())?;
            list.push(records)?;
        }
        Ok(())
    }

    /// Writes the items of a list that were added as records. Returns false if there are none.
    pub(crate) fn write_items(
        &self,
        records: &mut Spool,
        out: &mut dyn Write,
        rule_index: impl Fn(&str) -> usize,
    ) -> io::Result<bool> {
        let mut reader = records.reader()?;
        let mut used = Used::default();
        let mut is_first = true;
        let mut input = 0;
        let (mut rule, mut text) = (Vec::new(), Vec::new());
        while !reader.fill_buf()?.is_empty() {
            let mut kind = [0];
            reader.read_exact(&mut kind)?;
            if kind == [INPUT] {
                input = read_number(&mut reader)?;
                used.of_input.clear();
                continue;
            }
            let subject = Subject::read(&mut reader)?;
            read_bytes(&mut reader, &mut rule)?;
            read_bytes(&mut reader, &mut text)?;
            let is_only = self.guests.get(&subject.guest) == Some(&true);
            let text = match std::mem::take(&mut is_first) {
                // Each item begins with the comma after the one before it.
                true => &text[1..],
                false => text.as_slice(),
            };
            Mark::fill(text, out, |mark, out| match mark {
                Mark::Rule => write!(out, "{}", rule_index(&String::from_utf8_lossy(&rule))),
                Mark::Fingerprint => {
                    let hash = match is_only {
                        true => subject.by_guest,
                        false => subject.by_input,
                    };
                    let times = used.count(&subject, hash);
                    write!(out, "\"{hash:032x}:{times}\"")
                }
                Mark::Input => write!(out, "{input}"),
            })?;
        }
        Ok(!is_first)
    }
}

/// The number of findings about each subject so far.
#[derive(Debug, Default)]
struct Used {
    of_input: HashMap<u128, usize>,
    /// Of files that several inputs may include.
    shared: HashMap<u128, usize>,
}

impl Used {
    /// Counts a finding.
    fn count(&mut self, subject: &Subject, hash: u128) -> usize {
        let counts = match subject.is_shared {
            true => &mut self.shared,
            false => &mut self.of_input,
        };
        let count = counts.entry(hash).or_default();
        *count += 1;
        *count
    }
}

/// The text of a finding with marks, and all that is known of its fingerprint.
pub(crate) fn record(
    out: &mut Vec<u8>,
    checked: &InputReport,
    report: &DocumentReport,
    finding: &Diagnostic,
    text: &[u8],
) {
    write_record(
        out,
        &Subject::of(checked, report, finding),
        finding.rule.name,
        text,
    );
}

/// A text without marks.
pub(crate) fn plain_record(out: &mut Vec<u8>, text: &[u8]) {
    write_record(out, &Subject::default(), "", text);
}

fn write_record(out: &mut Vec<u8>, subject: &Subject, rule: &str, text: &[u8]) {
    out.push(RECORD);
    subject.write(out);
    for bytes in [rule.as_bytes(), text] {
        out.extend((bytes.len() as u64).to_le_bytes());
        out.extend(bytes);
    }
}

fn read_bytes(reader: &mut impl BufRead, bytes: &mut Vec<u8>) -> io::Result<()> {
    bytes.resize(read_number(reader)?, 0);
    reader.read_exact(bytes)
}

fn read_number(reader: &mut impl BufRead) -> io::Result<usize> {
    let mut bytes = [0; 8];
    reader.read_exact(&mut bytes)?;
    usize::try_from(u64::from_le_bytes(bytes)).map_err(io::Error::other)
}

impl Subject {
    fn of(checked: &InputReport, report: &DocumentReport, finding: &Diagnostic) -> Self {
        let disk = finding.disk.as_ref().map(|disk| match &disk.target {
            Some(target) => target.clone(),
            None => format!("#{}", disk.index),
        });
        let by = |kind: &str, name: &str| {
            digest(&[
                finding.rule.name,
                kind,
                name,
                disk.as_deref().unwrap_or_default(),
                &finding.place.breadcrumb,
            ])
        };
        // The name of the guest survives a move of its file, but is not unique if two files have it.
        let guest = report.domain.as_deref();
        Subject {
            guest: guest.map_or(0, |name| digest(&[name])),
            by_guest: guest.map_or(0, |name| by("guest", name)),
            by_input: by("path", &checked.uri()),
            is_shared: vmdisk::begins_with_group(&report.text),
        }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let Subject {
            guest,
            by_guest,
            by_input,
            is_shared,
        } = self;
        for number in [guest, by_guest, by_input] {
            out.extend(number.to_le_bytes());
        }
        out.push(u8::from(*is_shared));
    }

    fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        let mut bytes = [0; SUBJECT_BYTES];
        reader.read_exact(&mut bytes)?;
        let (numbers, _) = bytes.as_chunks::<16>();
        let number = |nth: usize| u128::from_le_bytes(numbers[nth]);
        Ok(Subject {
            guest: number(0),
            by_guest: number(1),
            by_input: number(2),
            is_shared: bytes[SUBJECT_BYTES - 1] == 1,
        })
    }
}

/// The number of some parts, as text.
pub(crate) fn hash(parts: &[&str]) -> String {
    format!("{:032x}", digest(parts))
}

/// 128 bits of FNV-1a over the parts with their lengths: the same everywhere and for ever, which the
/// hashers of the standard library do not promise.
pub(crate) fn digest(parts: &[&str]) -> u128 {
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
        let mut fingerprints = Fingerprints::default();
        let mut list = Spool::default();
        for (number, (guest, is_shared, records)) in [
            (Some("web1"), false, 2),
            (Some("web2"), false, 1),
            (Some("web2"), false, 1),
            (None, true, 1),
            (None, true, 1),
        ]
        .into_iter()
        .enumerate()
        {
            let checked = InputReport {
                path: String::new(),
                file: std::path::PathBuf::new(),
                outcome: Ok(DocumentReport {
                    domain: guest.map(str::to_owned),
                    ..DocumentReport::empty()
                }),
            };
            let subject = Subject {
                guest: guest.map_or(0, |name| digest(&[name])),
                by_guest: 0x10,
                by_input: 0x20,
                is_shared,
            };
            let mut bytes = Vec::new();
            for _ in 0..records {
                write_record(&mut bytes, &subject, "cache-unsafe", b",[\x01,\x02,\x03]");
            }
            fingerprints
                .add(&checked, number, &bytes, &mut list)
                .unwrap();
        }
        let mut out = Vec::new();
        let rule_index = |name: &str| name.len();
        assert!(
            fingerprints
                .write_items(&mut list, &mut out, rule_index)
                .unwrap()
        );
        let items = [
            (0, 0x10, 1),
            (0, 0x10, 2),
            (1, 0x20, 1),
            (2, 0x20, 1),
            (3, 0x20, 1),
            (4, 0x20, 2),
        ];
        let items = items.map(|(input, hash, times): (u8, u32, u8)| {
            format!("[{input},12,\"{hash:032x}:{times}\"]")
        });
        assert_eq!(String::from_utf8(out).unwrap(), items.join(","));
    }
}
