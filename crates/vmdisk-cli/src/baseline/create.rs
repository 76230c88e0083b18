//! The entries of a new baseline.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::baseline::file::{self, Entry};
use crate::baseline::key::{Keys, key_of};
use crate::report::input::InputReport;

/// Writes a baseline with the findings of all inputs.
pub(crate) fn write(out: &mut dyn Write, keys: &Keys, inputs: &[InputReport]) -> io::Result<()> {
    let mut entries: Vec<Entry> = Vec::new();
    // Entries of files that several inputs include: each input reports its own findings in them.
    let mut shared: BTreeMap<u128, Entry> = BTreeMap::new();
    for input in inputs {
        let Ok(report) = &input.outcome else {
            continue;
        };
        let found = keys.entries(input, report);
        if !vmdisk::begins_with_group(&report.text) {
            entries.extend(found);
            continue;
        }
        for entry in found {
            let known = shared.entry(key_of(&entry));
            let known = known.or_insert_with(|| entry.clone());
            known.count = known.count.max(entry.count);
        }
    }
    let mut shared: Vec<&Entry> = shared.values().collect();
    shared.sort_by_key(|entry| (&entry.file, &entry.disk, &entry.rule, &entry.field));
    file::write(out, entries.iter().chain(shared))
}
