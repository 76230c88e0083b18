//! One JSON object per line: findings and inputs that could not be read.

use schemars::JsonSchema;
use serde::Serialize;

use crate::render::harmless;
use crate::render::json::v1::{self, Input, JsonFinding};
use crate::report::classes::Classes;
use crate::report::input::InputReport;

/// A line of `vmdisk lint --format json-lines`. Its members are those of the report, version 1.
#[derive(Debug, Serialize, JsonSchema)]
#[schemars(title = "vmdisk lint report, one line, version 1", rename = "Line")]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line<'a> {
    /// A finding that counts.
    Finding(JsonFinding<'a>),
    /// A finding that does not count, with the reason.
    Allowed(JsonFinding<'a>),
    /// An input that could not be read.
    FailedInput(Input<'a>),
}

/// A line for each finding of an input, or for an input that could not be read.
pub(crate) fn file(checked: &InputReport, classes: Option<&Classes<'_>>) -> Vec<u8> {
    let mut out = Vec::new();
    let mut line = |line: &Line<'_>| {
        harmless::line(&mut out, line).expect("writing to a Vec cannot fail");
    };
    let Ok(report) = &checked.outcome else {
        line(&Line::FailedInput(v1::input(checked)));
        return out;
    };
    for one in &report.findings {
        line(&Line::Finding(v1::finding(
            &checked.path,
            report,
            one,
            classes,
        )));
    }
    for one in &report.allowed {
        line(&Line::Allowed(v1::finding(
            &checked.path,
            report,
            one,
            classes,
        )));
    }
    out
}

/// The JSON Schema of a line.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Line<'static>)
}
