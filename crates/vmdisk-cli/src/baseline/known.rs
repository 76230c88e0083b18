//! The findings that a baseline knows, and entries that match none any more.

use std::collections::{BTreeSet, HashMap};
use std::io::Write;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use vmdisk::AllowedBy;
use vmdisk::rules::RULES;

use crate::atomic;
use crate::baseline::file::{self, Entry};
use crate::baseline::key::{Keys, key_of, key_of_file};
use crate::config::settings::{Plan, Settings};
use crate::report::input::InputReport;
use crate::stop::Stop;

/// A baseline.
#[derive(Debug)]
pub(crate) struct Baseline {
    pub(crate) path: PathBuf,
    keys: Keys,
    entries: Vec<Entry>,
    counts: HashMap<u128, Count>,
    /// The rules that may have findings which are not in a report, by the keys of checked files.
    silent: Mutex<HashMap<u128, BTreeSet<&'static str>>>,
}

/// The numbers of an entry.
#[derive(Debug)]
struct Count {
    known: u32,
    /// The number of such findings in this run.
    found: AtomicU32,
}

/// An entry that matches fewer findings than it counts.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Stale {
    /// The number of findings that are left.
    pub(crate) left: u32,
    pub(crate) why: StaleReason,
}

/// Why an entry is stale.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum StaleReason {
    /// The findings are gone.
    Found,
    /// The file is gone.
    NoFile,
    /// No rule has this name.
    NoRule,
}

/// Reads the baselines of all inputs.
pub(crate) fn read(plan: &Plan) -> Result<Vec<Baseline>, Stop> {
    let read = |path: PathBuf| {
        let mut missing = plan.missing_baselines.iter();
        match missing.find(|(missing, _)| *missing == path) {
            Some((_, message)) => Err(message.clone().into()),
            None => Baseline::read(&path),
        }
    };
    plan.baselines().into_iter().map(read).collect()
}

/// The baseline of some settings, and the rules whose findings they leave out.
pub(crate) fn of<'a>(
    settings: &Settings,
    baselines: &'a [Baseline],
) -> Option<(&'a Baseline, BTreeSet<&'static str>)> {
    let path = settings.baseline.as_ref()?;
    let baseline = baselines.iter().find(|one| one.path == *path)?;
    Some((baseline, left_out(settings)))
}

/// Rules whose findings a run leaves out, so that their entries are not stale.
fn left_out(settings: &Settings) -> BTreeSet<&'static str> {
    let Settings {
        selection, ignored, ..
    } = settings;
    let is_left_out = |rule: &&&vmdisk::Rule| {
        let severity = selection.severities.get(rule.name);
        let severity = severity.copied().unwrap_or(rule.severity);
        !selection.has_rule(rule.name)
            || ignored.contains(rule.name)
            || selection.least.is_some_and(|least| severity < least)
    };
    let rules = RULES.iter().filter(is_left_out);
    rules.map(|rule| rule.name).collect()
}

impl Baseline {
    /// Reads a baseline.
    pub(crate) fn read(path: &Path) -> Result<Self, Stop> {
        let entries = file::read(path)?;
        let mut counts: HashMap<u128, Count> = HashMap::new();
        for entry in &entries {
            let count = counts.entry(key_of(entry)).or_insert_with(|| Count {
                known: 0,
                found: AtomicU32::new(0),
            });
            // A merge of two branches may leave an entry twice.
            count.known = count.known.max(entry.count.get());
        }
        Ok(Baseline {
            path: path.to_owned(),
            keys: Keys::new(path),
            entries,
            counts,
            silent: Mutex::default(),
        })
    }

    /// Moves known findings of an input to its allowed findings. Any thread may do this, and again for the same input. `left_out` are the rules whose findings the run leaves out.
    pub(crate) fn apply(&self, checked: &mut InputReport, left_out: &BTreeSet<&'static str>) {
        if checked.outcome.is_err() {
            return;
        }
        let file = self.keys.file(checked);
        let is_continued = checked.is_continued;
        checked.has_baseline = true;
        let Ok(report) = &mut checked.outcome else {
            return;
        };
        let mut found: HashMap<u128, u32> = HashMap::new();
        let mut known = Vec::new();
        for mut finding in std::mem::take(&mut report.findings) {
            let key = self.keys.of(&file, &finding);
            let Some(count) = self.counts.get(&key) else {
                report.findings.push(finding);
                continue;
            };
            let nth = found.entry(key).or_default();
            *nth += 1;
            count.found.fetch_max(*nth, Ordering::Relaxed);
            if *nth > count.known {
                report.findings.push(finding);
            } else {
                finding.allowed_by = Some(AllowedBy::Baseline);
                known.push(finding);
            }
        }
        if !known.is_empty() {
            report.allowed.append(&mut known);
            report
                .allowed
                .sort_by_key(|finding| (finding.place.span, finding.rule.name));
        }
        if !is_continued {
            let missed = report.unchecked_rules.rules.iter();
            let silent = left_out.iter().copied();
            let silent = silent.chain(missed.map(|rule| rule.name)).collect();
            self.silent().insert(key_of_file(&file), silent);
        }
    }

    fn silent(&self) -> MutexGuard<'_, HashMap<u128, BTreeSet<&'static str>>> {
        self.silent.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The entries, of which some are stale. Of inputs that were not checked nothing is stale unless their files are gone.
    pub(crate) fn judged(&self) -> Vec<(&Entry, Option<Stale>)> {
        let silent = self.silent();
        let mut is_there: HashMap<&str, bool> = HashMap::new();
        let mut judged = Vec::with_capacity(self.entries.len());
        for entry in &self.entries {
            let file = entry.file.as_str();
            let count = self.counts.get(&key_of(entry));
            let left = count.map_or(0, |count| count.found.load(Ordering::Relaxed));
            let mut is_gone = || {
                // A guest that came from libvirt or from a process has no path.
                let exists = || file.contains('<') || self.keys.exists(file);
                !*is_there.entry(file).or_insert_with(exists)
            };
            let why = match silent.get(&key_of_file(file)) {
                _ if !vmdisk::rules::is_name(&entry.rule) => Some(StaleReason::NoRule),
                None => is_gone().then_some(StaleReason::NoFile),
                Some(silent) => {
                    let is_stale = left < entry.count.get() && !silent.contains(&*entry.rule);
                    is_stale.then_some(StaleReason::Found)
                }
            };
            judged.push((entry, why.map(|why| Stale { left, why })));
        }
        judged
    }

    /// Removes stale entries from the file, and lowers counts. Returns the numbers of entries that were removed and that
    /// were lowered; the file is not written if there are none.
    pub(crate) fn prune(&self) -> Result<(usize, usize), Stop> {
        let mut entries = Vec::new();
        let (mut removed, mut lowered) = (0, 0);
        for (entry, stale) in self.judged() {
            let count = stale.map_or(Some(entry.count), |stale| NonZeroU32::new(stale.left));
            match count {
                None => removed += 1,
                Some(count) => {
                    lowered += usize::from(stale.is_some());
                    let file = Entry {
                        count,
                        ..entry.clone()
                    };
                    entries.push(file);
                }
            }
        }
        if removed + lowered > 0 {
            let write = |out: &mut dyn Write| file::write(out, entries.iter());
            atomic::rewrite(&self.path, write)
                .map_err(|error| Stop::file("write", &self.path, error))?;
        }
        Ok((removed, lowered))
    }
}
