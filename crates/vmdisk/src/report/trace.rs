//! Version 1 of what `vmdisk trace --format json` prints.
//!
//! Within version 1 keys are added, never removed, renamed or given another meaning.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use super::escaped_json;
use crate::Diagnostic;
use crate::trace::{DiskTrace, GuestTrace, IoPath};

/// Version of the shape.
const SCHEMA_VERSION: &str = "1.0";

/// The I/O paths of a guest.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk trace, version 1", rename = "Trace")
)]
struct Envelope<'a> {
    /// Version of this shape: another first number is another shape.
    schema_version: &'static str,
    /// The given path of the document.
    file: &'a str,
    /// Name of the guest; null if the document has none.
    domain: Option<&'a str>,
    /// The path of each disk.
    disks: Vec<Disk<'a>>,
    /// Findings that concern no single disk.
    findings: Vec<Finding<'a>>,
}

/// The I/O path of a disk.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Disk<'a> {
    /// Number of the disk in the document, from 0.
    index: usize,
    /// Name of its target; null if it has none.
    target: Option<&'a str>,
    /// The steps, and what a crash of the host can lose.
    #[serde(flatten)]
    path: &'a IoPath,
    /// Findings, each at the step that it concerns.
    findings: Vec<Finding<'a>>,
}

/// A finding of the linter.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
struct Finding<'a> {
    /// The number of the step, from 0; null for a finding that concerns no single disk.
    step: Option<usize>,
    /// Name of the rule.
    rule: &'static str,
    /// `error`, `warning` or `advice`.
    severity: &'static str,
    /// The mistake.
    title: &'a str,
    /// The remedy.
    help: Option<&'a str>,
}

/// The JSON Schema of the paths.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Envelope<'_>)
}

/// The paths of a guest as JSON.
pub fn to_json(file: &str, domain: Option<&str>, guest: &GuestTrace) -> String {
    let envelope = Envelope {
        schema_version: SCHEMA_VERSION,
        file,
        domain,
        disks: guest.disks.iter().map(disk).collect(),
        findings: guest.others.iter().map(|it| finding(None, it)).collect(),
    };
    escaped_json::text(&envelope)
}

fn disk(traced: &DiskTrace) -> Disk<'_> {
    let findings = traced.findings.iter();
    Disk {
        index: traced.disk.index,
        target: traced.disk.target.as_deref(),
        path: &traced.path,
        findings: findings
            .map(|(step, it)| finding(Some(*step), it))
            .collect(),
    }
}

fn finding(step: Option<usize>, finding: &Diagnostic) -> Finding<'_> {
    Finding {
        step,
        rule: finding.rule.name,
        severity: finding.severity.as_str(),
        title: &finding.title,
        help: finding.help.as_deref(),
    }
}
