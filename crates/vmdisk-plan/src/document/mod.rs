//! A spec as a text: the place of each field of the guest, and edits of it.
//!
//! A spec leaves much open, so the guest depends on the host: [`SpecDocument::plan`] gives the guest for one host and
//! the places of its fields. A field that the planner chose is reported at the place of its disk.

mod allowances;
mod edits;
mod places;
mod speller;

use std::collections::BTreeSet;

use vmdisk_document::{Document, Node, read_yaml};
use vmdisk_facts::{Facts, Target};
use vmdisk_model::{DiskField, Domain, DomainField, FieldPath};
use vmdisk_source::{Allowance, SourceMap, Span};

use crate::plan::{PlanError, facts_after, plan};
use crate::spec::{MAX_SPEC_BYTES, MAX_VALUES, Reading, SpecError, SpecPath, SpecSegment};

pub use edits::CannotEdit;
pub use speller::SpecSpeller;

/// A spec that was read, as far as it could be.
#[derive(Clone, Debug)]
pub struct SpecDocument {
    reading: Reading,
    yaml: Document,
    /// Places where findings are allowed.
    pub allowances: Vec<Allowance>,
}

/// The guest that a spec asks for on one host.
#[derive(Clone, Debug, Default)]
pub struct PlannedSpec {
    /// The guest, without the disks that have mistakes.
    pub domain: Domain,
    /// The places of its fields.
    pub source_map: SourceMap<FieldPath>,
    /// The mistakes in the spec, in the order of the text.
    pub mistakes: Vec<SpecMistake>,
    /// The facts of the host with the storage that the spec creates, if there are facts and it creates some.
    pub after: Option<Facts>,
    /// Numbers of the disks in the list of the spec.
    numbers: Vec<usize>,
}

/// Something in a spec that cannot be planned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpecMistake {
    /// The field that it belongs to, or the nearest one.
    pub at: FieldPath,
    /// The place.
    pub span: Span,
    /// The name of the place, such as `disks[0].qcow2.size`; empty for the whole spec.
    pub path: String,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

/// True if a text is meant to be a spec: it has a list of disks at the top, and is not XML.
///
/// ```
/// assert!(vmdisk_plan::is_spec("version: 1\ndisks: []\n"));
/// assert!(!vmdisk_plan::is_spec("<disk/>"));
/// assert!(!vmdisk_plan::is_spec("apiVersion: v1\nspec:\n  disks: []\n"));
/// ```
pub fn is_spec(text: &str) -> bool {
    let text = text.trim_start_matches('\u{feff}').trim_start();
    // XML, regardless of its comments.
    if text.starts_with('<') {
        return false;
    }
    let has_key = |key: &str| {
        text.lines().any(|line| {
            line.strip_prefix(key)
                .is_some_and(|rest| rest.starts_with(':'))
        })
    };
    let has_quoted = |key: &str| text.contains(key);
    match text.starts_with('{') {
        true => {
            has_quoted("disks")
                && has_quoted("version")
                && read_yaml(text, MAX_VALUES).is_ok_and(|document| {
                    document.root.get("disks").is_some() && document.root.get("version").is_some()
                })
        }
        false => has_key("disks") && (has_key("version") || has_key("guest")),
    }
}

impl SpecDocument {
    /// The place of a disk in the list of the spec; `None` if there are not so many.
    pub fn disk_span(&self, number: usize) -> Option<Span> {
        Some(self.yaml.root.get("disks")?.item(number)?.span)
    }

    /// Reads a spec, past all mistakes in its values.
    ///
    /// # Errors
    /// If the text is too large or not YAML, with the place.
    pub fn read(text: &str) -> Result<Self, (Span, String)> {
        if text.len() > MAX_SPEC_BYTES {
            let message = format!(
                "the spec has {} bytes, and {MAX_SPEC_BYTES} is the most that is read",
                text.len()
            );
            return Err((Span::empty(0), message));
        }
        let yaml = read_yaml(text, MAX_VALUES).map_err(|error| (error.span, error.message))?;
        Ok(SpecDocument {
            reading: Reading::of(yaml.root.value.clone()),
            allowances: allowances::read(text, &yaml),
            yaml,
        })
    }

    /// Plans the guest for a host. Disks with mistakes are left out, and the others are planned.
    pub fn plan(&self, text: &str, facts: &Facts, target: &Target) -> PlannedSpec {
        let Reading {
            spec,
            numbers,
            errors,
        } = &self.reading;
        let mut errors = errors.clone();
        let mut numbers = numbers.clone();
        let mut domain = Domain::default();
        let mut after = None;
        let mut spec = spec.clone();
        while let Some(asked) = &mut spec {
            match plan(asked, facts, target) {
                Ok(plan) => {
                    let is_known = *facts != Facts::default();
                    after = (is_known && !plan.steps.is_empty()).then(|| facts_after(facts, &plan));
                    domain = plan.domain;
                    break;
                }
                Err(refused) => {
                    let bad: BTreeSet<usize> =
                        refused.iter().filter_map(|at| disk_of(&at.at)).collect();
                    errors.extend(refused.into_iter().map(|error| in_text(error, &numbers)));
                    if bad.is_empty() {
                        spec = None;
                        numbers.clear();
                        continue;
                    }
                    let mut nth = 0..;
                    let mut keep = || nth.next().is_some_and(|nth| !bad.contains(&nth));
                    asked.disks.retain(|_| keep());
                    let mut nth = 0..;
                    numbers.retain(|_| nth.next().is_some_and(|nth| !bad.contains(&nth)));
                }
            }
        }
        let mut mistakes: Vec<SpecMistake> = errors
            .into_iter()
            .map(|error| self.mistake(error, &numbers))
            .collect();
        mistakes.sort_by(|a, b| (a.span, &a.message).cmp(&(b.span, &b.message)));
        mistakes.dedup();
        PlannedSpec {
            source_map: places::source_map(text, &self.yaml.root, &numbers),
            domain,
            mistakes,
            after,
            numbers,
        }
    }

    fn mistake(&self, error: SpecError, numbers: &[usize]) -> SpecMistake {
        let SpecError {
            at,
            is_about_key,
            place: _,
            message,
            help,
        } = error;
        let planned = disk_of(&at).and_then(|disk| numbers.iter().position(|nth| *nth == disk));
        SpecMistake {
            at: match planned {
                Some(nth) => FieldPath::Disk(nth, DiskField::Disk),
                None => FieldPath::Domain(DomainField::Domain),
            },
            span: at.span_in(&self.yaml.root, is_about_key),
            path: at.to_string(),
            message,
            help,
        }
    }

    fn disk(&self, number: usize) -> Option<&Node> {
        self.yaml.root.get("disks")?.item(number)
    }
}

/// The number of the disk that a path leads into.
fn disk_of(path: &SpecPath) -> Option<usize> {
    match path.0.as_slice() {
        [SpecSegment::Key(list), SpecSegment::Index(index), ..] if list == "disks" => Some(*index),
        _ => None,
    }
}

/// An error of planning, with the number of the disk in the text.
fn in_text(error: PlanError, numbers: &[usize]) -> SpecError {
    let PlanError {
        mut at,
        message,
        help,
    } = error;
    if let Some(number) = disk_of(&at).and_then(|disk| numbers.get(disk)) {
        at.0[1] = SpecSegment::Index(*number);
    }
    SpecError {
        help,
        ..SpecError::value(at, message)
    }
}
