//! One JSON object per line: findings and inputs that could not be read.

use std::io::{self, Write};

use schemars::JsonSchema;
use serde::Serialize;

use crate::lint::checked::Checked;
use crate::lint::classes::Classes;
use crate::render::harmless;
use crate::render::json::v1::{self, Finding, Input};

/// A line of `vmdisk lint --format json-lines`. Its members are those of the report, version 1.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "vmdisk lint report, one line, version 1", rename = "Line")]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line<'a> {
    /// A finding that counts.
    Finding(Finding<'a>),
    /// A finding that does not count, with the reason.
    Allowed(Finding<'a>),
    /// An input that could not be read.
    FailedInput(Input<'a>),
}

/// Writes a line for each finding and each input that could not be read, by input.
pub(crate) fn write(
    out: &mut dyn Write,
    all: &[Checked],
    classes: Option<&Classes<'_>>,
) -> io::Result<()> {
    for checked in all {
        let Ok(report) = &checked.outcome else {
            harmless::line(out, &Line::FailedInput(v1::input(checked)))?;
            continue;
        };
        for one in &report.findings {
            let finding = v1::finding(&checked.path, report, one, classes);
            harmless::line(out, &Line::Finding(finding))?;
        }
        for one in &report.allowed {
            let finding = v1::finding(&checked.path, report, one, classes);
            harmless::line(out, &Line::Allowed(finding))?;
        }
    }
    Ok(())
}

/// The JSON Schema of a line.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Line<'static>)
}
