//! One JSON object per line: findings and inputs that could not be read.

use schemars::JsonSchema;
use serde::Serialize;

use crate::render::escaped_json;
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
pub(crate) fn file(input: &InputReport, classes: Option<&Classes<'_>>) -> String {
    let mut out = Vec::new();
    let mut line = |line: &Line<'_>| {
        escaped_json::line(&mut out, line).expect("writing to a Vec cannot fail");
    };
    match &input.outcome {
        Ok(report) => {
            let json = |finding| v1::finding(&input.path, report, finding, classes);
            let findings = report.findings.iter();
            findings.for_each(|one| line(&Line::Finding(json(one))));
            let allowed = report.allowed.iter();
            allowed.for_each(|one| line(&Line::Allowed(json(one))));
        }
        Err(_) => line(&Line::FailedInput(v1::input(input))),
    }
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The JSON Schema of a line.
pub(crate) fn schema() -> schemars::Schema {
    schemars::schema_for!(Line<'static>)
}
