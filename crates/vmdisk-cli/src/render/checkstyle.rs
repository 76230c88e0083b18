//! Checkstyle's report: a file element for each input with findings.

use std::io::{self, Write};

use vmdisk::Severity;

use crate::render::View;
use crate::render::xml::{self, explanation, line};
use crate::report::input::InputReport;

/// The version of Checkstyle whose report other linters write as well.
const VERSION: &str = "4.3";

/// Name of the root.
const ROOT: &str = "checkstyle";

/// Writes what stands before all inputs.
pub(crate) fn begin(out: &mut dyn Write) -> io::Result<()> {
    xml::begin(out, ROOT, &[("version", VERSION)])
}

/// Writes what stands after all inputs.
pub(crate) fn end(out: &mut dyn Write) -> io::Result<()> {
    xml::end(out, ROOT)
}

/// The findings of an input.
pub(crate) fn file(checked: &InputReport, view: &View<'_>) -> Vec<u8> {
    let errors: Vec<[String; 5]> = match &checked.outcome {
        Ok(report) => {
            let findings = report.findings.iter();
            let error = |finding: &vmdisk::Diagnostic| {
                let start = finding.place.start;
                let severity = match finding.severity {
                    Severity::Error => "error",
                    Severity::Warning => "warning",
                    Severity::Advice | Severity::Pedantic => "info",
                };
                [
                    start.line.to_string(),
                    start.column.to_string(),
                    severity.to_owned(),
                    one_line(&explanation(finding, view)),
                    format!("vmdisk.{}", finding.rule.name),
                ]
            };
            findings.map(error).collect()
        }
        Err(message) => {
            let (row, column) = xml::position(message).map_or((1, 1), |at| (at.line, at.column));
            vec![[
                row.to_string(),
                column.to_string(),
                "error".to_owned(),
                one_line(&xml::failure(message)),
                "vmdisk".to_owned(),
            ]]
        }
    };
    if errors.is_empty() {
        return Vec::new();
    }
    xml::inside(|writer| {
        writer
            .create_element("file")
            .with_attribute(("name", line(&checked.path).as_str()))
            .write_inner_content(|writer| {
                for [row, column, severity, message, source] in &errors {
                    writer
                        .create_element("error")
                        .with_attributes([
                            ("line", row.as_str()),
                            ("column", column.as_str()),
                            ("severity", severity.as_str()),
                            ("message", message.as_str()),
                            ("source", source.as_str()),
                        ])
                        .write_empty()?;
                }
                Ok(())
            })?;
        Ok(())
    })
}

/// An attribute has no line ends.
fn one_line(text: &str) -> String {
    line(&text.replace('\n', "; "))
}
