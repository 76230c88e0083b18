//! One JSON object per line: classes of hosts, findings, and inputs that could not be read.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use super::json::{self, HostClass, Input, JsonFinding};
use super::{Classes, ReportEntry, escaped_json};

/// A line of `vmdisk lint --format json-lines`. Its members are those of the report, version 1.
#[derive(Debug, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[cfg_attr(
    feature = "schema",
    schemars(title = "vmdisk lint report, one line, version 1", rename = "Line")
)]
#[serde(tag = "type", rename_all = "kebab-case")]
enum Line<'a> {
    /// Hosts about which the rules say the same in everything, before all findings.
    HostClass(HostClass<'a>),
    /// A finding that counts.
    Finding(JsonFinding<'a>),
    /// A finding that does not count, with the reason.
    Allowed(JsonFinding<'a>),
    /// An input that could not be read.
    FailedInput(Input<'a>),
}

/// A line for each finding of an input, or for an input that could not be read.
pub fn of_entry(entry: &ReportEntry<'_>, classes: Option<&Classes<'_>>) -> String {
    let mut out = String::new();
    let mut line = |line: &Line<'_>| out.push_str(&text(line));
    match &entry.outcome {
        Ok(report) => {
            let shown = |finding| json::finding(entry, finding, None, classes);
            let findings = report.findings.iter();
            findings.for_each(|one| line(&Line::Finding(shown(one))));
            let allowed = report.allowed.iter();
            allowed.for_each(|one| line(&Line::Allowed(shown(one))));
        }
        Err(_) => line(&Line::FailedInput(json::input(entry))),
    }
    out
}

/// A line for each class of hosts.
pub fn of_classes(classes: &Classes<'_>) -> String {
    let classes = json::host_classes(classes).into_iter();
    classes.map(|it| text(&Line::HostClass(it))).collect()
}

fn text(line: &Line<'_>) -> String {
    let mut out = Vec::new();
    escaped_json::line(&mut out, line).expect("writing to a Vec cannot fail");
    String::from_utf8(out).expect("JSON is UTF-8")
}

/// The JSON Schema of a line.
#[cfg(feature = "schema")]
pub fn schema() -> schemars::Schema {
    schemars::schema_for!(Line<'static>)
}
