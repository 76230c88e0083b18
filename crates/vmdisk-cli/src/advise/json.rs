//! Version 1 of what `vmdisk advise --format json` prints.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;
use vmdisk::advise::{StorageAdvice, StorageCandidate};
use vmdisk::facts::MeasuredStorage;
use vmdisk::report::decide::BriefFinding;
use vmdisk::report::escaped_json;
use vmdisk::report::explain::ExplainedOption;
use vmdisk::trace::CrashLoss;

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// Where a new disk can live on a host, and in which form.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk advise, version 1", rename = "Advice")
)]
struct Envelope<'a> {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// The places and forms that have everything that is asked, the best first; the first is recommended.
    candidates: Vec<Candidate<'a>>,
    /// What would be best if more were asked.
    alternatives: Vec<Alternative<'a>>,
    /// Places and forms that are not advised.
    excluded: Vec<Excluded<'a>>,
}

/// A place with a form.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Candidate<'a> {
    /// A directory, volume group, thin pool or device.
    place: &'a str,
    /// A file system with its device, `volume group`, `thin pool` or `unused disk`.
    kind: &'a str,
    /// The form.
    form: String,
    /// What speaks for the first one; of the others, what speaks for the one before.
    reason: &'a str,
    /// What the disk has: `snapshots`, `thin`, `clones`, `migration`, `trim`, `checksums`, `redundancy`.
    gives: BTreeMap<String, Gift<'a>>,
    /// The data that a crash of the host can lose.
    crash: &'a CrashLoss,
    /// Bytes that it takes when it is made.
    taken_bytes: u64,
    /// Free bytes of the place; null if not known.
    free_bytes: Option<u64>,
    /// The most bytes that can be free, where they are not known; null if not known either.
    most_free_bytes: Option<u64>,
    /// Whether its medium is removable or on USB; null if not known.
    is_removable: Option<bool>,
    /// Whether its drives do not rotate; null if not known.
    is_fast: Option<bool>,
    /// What was measured on the same storage with the same form and settings; empty if nothing was.
    measured: &'a [MeasuredStorage],
    /// Other measurements of the host, with the reason for which each does not count.
    unused: Vec<Unused<'a>>,
    /// Its options, in the order of the decisions.
    choices: Vec<ExplainedOption>,
    /// The disk as a spec for `vmdisk generate`, with each option.
    spec: String,
    /// What the rules report whatever options are chosen.
    findings: Vec<BriefFinding<'a>>,
    /// The rules whose findings a command or a setting on the host ends, as their help says.
    best_after: Vec<&'static str>,
}

/// A measurement that does not count.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Unused<'a> {
    /// The measurement.
    measured: &'a MeasuredStorage,
    /// The reason.
    why: &'a str,
}

/// What a disk has of something.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Gift<'a> {
    /// `yes`, `at a price`, `unknown` or `no`.
    has: &'static str,
    /// The mechanism, the price, the missing fact or the reason.
    by: &'a str,
}

/// The answer to another question.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Alternative<'a> {
    /// The question, as options of the command.
    asked: &'a str,
    /// The best place; null if nothing fits.
    place: Option<&'a str>,
    /// Its form; null if nothing fits.
    form: Option<String>,
    /// The mechanism, or why nothing fits.
    why: &'a str,
}

/// What is not advised.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Excluded<'a> {
    /// The place.
    place: &'a str,
    /// The excluded forms; empty if the place itself is excluded.
    forms: Vec<String>,
    /// The deciding fact.
    why: &'a str,
}

/// The JSON Schema of the advice.
#[cfg(feature = "schema")]
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope<'_>)
}

/// The advice as JSON.
pub(super) fn write(advice: &StorageAdvice) -> String {
    let alternatives = advice.alternatives.iter();
    let envelope = Envelope {
        schema_version: SCHEMA_VERSION,
        candidates: advice
            .fitting
            .iter()
            .zip(&advice.reasons)
            .map(|(candidate, reason)| of_candidate(candidate, reason))
            .collect(),
        alternatives: alternatives
            .map(|it| Alternative {
                asked: &it.asked,
                place: it.best.as_ref().map(|(place, _)| place.as_str()),
                form: it.best.as_ref().map(|(_, form)| form.to_string()),
                why: &it.why,
            })
            .collect(),
        excluded: advice
            .excluded
            .iter()
            .map(|it| Excluded {
                place: &it.place,
                forms: it.forms.iter().map(ToString::to_string).collect(),
                why: &it.why,
            })
            .collect(),
    };
    escaped_json::text(&envelope)
}

fn of_candidate<'a>(candidate: &'a StorageCandidate, reason: &'a str) -> Candidate<'a> {
    let gives = candidate.gives.iter().map(|(want, mechanism)| {
        let (has, by) = (mechanism.word(), mechanism.text());
        (want.to_string(), Gift { has, by })
    });
    let choices = candidate.plan.choices.iter();
    let choices = choices.filter(|choice| choice.at.disk().is_some());
    Candidate {
        place: &candidate.place,
        kind: &candidate.kind,
        form: candidate.form.to_string(),
        reason,
        gives: gives.collect(),
        crash: &candidate.loss,
        taken_bytes: candidate.taken.0,
        free_bytes: candidate.free.map(|free| free.0),
        most_free_bytes: candidate.most_free.map(|free| free.0),
        is_removable: candidate.is_removable,
        is_fast: candidate.is_fast,
        measured: &candidate.measured,
        unused: candidate
            .unused
            .iter()
            .map(|(measured, why)| Unused { measured, why })
            .collect(),
        choices: choices
            .map(|choice| ExplainedOption::new(None, choice))
            .collect(),
        spec: candidate.spec.to_yaml(),
        findings: candidate.findings.iter().map(BriefFinding::of).collect(),
        best_after: candidate.todo().map(|it| it.rule.name).collect(),
    }
}
