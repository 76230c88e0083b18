//! Version 1 of what `vmdisk decide --format json` prints.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use super::escaped_json;
use super::explain::ExplainedOption;
use crate::diagnostic::mask;
use crate::{Decisions, Diagnostic, DiskDecision};

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// The options of the disks of a guest.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk decide, version 1", rename = "Decisions")
)]
struct Envelope<'a> {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// The given path of the document.
    file: &'a str,
    /// The options of each disk.
    disks: Vec<Disk<'a>>,
}

/// The options of a disk.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Disk<'a> {
    /// Number of the disk in the document, from 0.
    index: usize,
    /// Name of its target; null if it has none.
    target: Option<&'a str>,
    /// The set and the chosen options, in the order of the decisions.
    choices: Vec<ExplainedOption>,
    /// Why nothing is decided; empty if options are.
    errors: Vec<String>,
    /// The disk with these options, as libvirt's XML; null if nothing is decided.
    xml: Option<String>,
    /// What the rules report about the disk with these options.
    findings: Vec<BriefFinding<'a>>,
}

/// A finding of the linter.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(feature = "schema", schemars(rename = "Finding"))]
#[non_exhaustive]
pub struct BriefFinding<'a> {
    /// Name of the rule.
    rule: &'static str,
    /// `error`, `warning`, `advice` or `pedantic`.
    severity: &'static str,
    /// The mistake.
    title: &'a str,
    /// The remedy.
    help: Option<&'a str>,
}

impl<'a> BriefFinding<'a> {
    /// A finding without its place.
    pub fn of(finding: &'a Diagnostic) -> Self {
        BriefFinding {
            rule: finding.rule.name,
            severity: finding.severity.as_str(),
            title: &finding.title,
            help: finding.help.as_deref(),
        }
    }
}

/// The JSON Schema of the decisions.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope<'_>)
}

/// The decisions as JSON.
pub fn to_json(file: &str, decisions: &Decisions) -> String {
    let envelope = Envelope {
        schema_version: SCHEMA_VERSION,
        file,
        disks: decisions
            .disks
            .iter()
            .map(|it| disk(decisions, it))
            .collect(),
    };
    escaped_json::text(&envelope)
}

fn disk<'a>(decisions: &'a Decisions, decision: &'a DiskDecision) -> Disk<'a> {
    let name = || Some(decisions.name(decision));
    let choices = decision.options.iter().flat_map(|decided| &decided.choices);
    let errors = decision.options.as_ref().err().into_iter().flatten();
    let findings = decision.findings.iter();
    Disk {
        index: decision.disk.index,
        target: decision.disk.target.as_deref(),
        choices: choices
            .map(|choice| ExplainedOption::new(name(), choice))
            .collect(),
        errors: errors.map(|error| masked(error.to_string())).collect(),
        xml: decisions.xml(decision),
        findings: findings.map(BriefFinding::of).collect(),
    }
}

/// A message without the secrets that it quotes.
fn masked(mut text: String) -> String {
    mask(&mut text);
    text
}
