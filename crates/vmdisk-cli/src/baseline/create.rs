//! The entries of a new baseline, while inputs are checked.

use std::collections::BTreeMap;
use std::io::{self, Write};

use crate::baseline::file::{self, Entry, push_line};
use crate::baseline::key::{Keys, key_of};
use crate::render::spool::Spool;
use crate::report::input::InputReport;
use crate::stop::Stop;

/// Entries of files that several inputs include: each input reports its own findings in them.
#[derive(Debug, Default)]
pub(crate) struct Shared(BTreeMap<u128, Entry>);

impl Shared {
    /// Adds the findings of an input to the lines of a baseline.
    pub(crate) fn add(
        &mut self,
        keys: &Keys,
        checked: &InputReport,
        lines: &mut Spool,
    ) -> Result<(), Stop> {
        let Ok(report) = &checked.outcome else {
            return Ok(());
        };
        let entries = keys.entries(checked, report);
        if vmdisk::begins_with_group(&report.text) {
            for entry in entries {
                let known = self
                    .0
                    .entry(key_of(&entry))
                    .or_insert_with(|| entry.clone());
                known.count = known.count.max(entry.count);
            }
            return Ok(());
        }
        let mut bytes = Vec::new();
        entries
            .iter()
            .for_each(|entry| push_line(&mut bytes, entry));
        lines.push(&bytes)
    }

    /// Writes the baseline.
    pub(crate) fn write(&self, out: &mut dyn Write, lines: &mut Spool) -> io::Result<()> {
        let mut shared: Vec<&Entry> = self.0.values().collect();
        shared.sort_by_key(|entry| (&entry.file, &entry.disk, &entry.rule, &entry.field));
        let mut bytes = Vec::new();
        shared.iter().for_each(|entry| push_line(&mut bytes, entry));
        file::write(out, &mut |out| {
            let has_lines = lines.copy_items(out)?;
            let first = usize::from(!has_lines && !bytes.is_empty());
            out.write_all(&bytes[first..])?;
            Ok(has_lines || !bytes.is_empty())
        })
    }
}
