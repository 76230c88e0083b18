//! Checkstyle's report: a file element for each input with findings.

use std::io::{self, Write};

use quick_xml::Writer;
use vmdisk::Severity;

use crate::render::View;
use crate::render::xml::{self, explanation, line};
use crate::report::input::InputReport;

/// The version of Checkstyle whose report other linters write as well.
const VERSION: &str = "4.3";

/// Writes the findings of all inputs.
pub(crate) fn write(
    out: &mut dyn Write,
    inputs: &[InputReport],
    view: &View<'_>,
) -> io::Result<()> {
    xml::document(out, "checkstyle", &[("version", VERSION)], |writer| {
        inputs
            .iter()
            .try_for_each(|input| file(writer, input, view))
    })
}

/// Writes the findings of an input.
fn file(
    writer: &mut Writer<&mut dyn Write>,
    checked: &InputReport,
    view: &View<'_>,
) -> io::Result<()> {
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
        return Ok(());
    }
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
}

/// An attribute has no line ends.
fn one_line(text: &str) -> String {
    line(&text.replace('\n', "; "))
}
