//! JUnit: a suite for each input, and a case for each finding.
//!
//! The elements and attributes follow Jenkins (`junit-10.xsd`) and GitLab.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::BytesText;
use vmdisk::Diagnostic;

use crate::render::View;
use crate::render::human::allowance;
use crate::render::xml::{self, explanation, line, lines};
use crate::report::input::InputReport;

/// Writes a suite for each input. Findings that fail the run are failures; the others pass, with their text as output.
pub(crate) fn write(
    out: &mut dyn Write,
    inputs: &[InputReport],
    view: &View<'_>,
) -> io::Result<()> {
    let suites: Vec<Suite<'_>> = inputs.iter().map(Suite::of).collect();
    let sum = |of: fn(&Suite<'_>) -> usize| suites.iter().map(of).sum::<usize>().to_string();
    let (tests, failures) = (sum(|suite| suite.tests), sum(|suite| suite.failures));
    let errors = sum(|suite| suite.errors);
    let attributes = [
        ("name", "vmdisk lint"),
        ("tests", &tests),
        ("failures", &failures),
        ("errors", &errors),
    ];
    xml::document(out, "testsuites", &attributes, |writer| {
        suites
            .iter()
            .try_for_each(|suite| suite.write(writer, view))
    })
}

/// One input.
struct Suite<'a> {
    checked: &'a InputReport,
    tests: usize,
    failures: usize,
    errors: usize,
    skipped: usize,
}

impl<'a> Suite<'a> {
    fn of(checked: &'a InputReport) -> Self {
        let (tests, failures, errors, skipped) = match &checked.outcome {
            Ok(report) => {
                let skipped = report.allowed.len();
                let tests = (report.findings.len() + skipped).max(1);
                (tests, checked.failing().count(), 0, skipped)
            }
            Err(_) => (1, 0, 1, 0),
        };
        Suite {
            checked,
            tests,
            failures,
            errors,
            skipped,
        }
    }

    fn write(&self, writer: &mut Writer<&mut dyn Write>, view: &View<'_>) -> io::Result<()> {
        let path = line(&self.checked.path);
        writer
            .create_element("testsuite")
            .with_attributes([
                ("name", path.as_str()),
                ("tests", self.tests.to_string().as_str()),
                ("failures", self.failures.to_string().as_str()),
                ("errors", self.errors.to_string().as_str()),
                ("skipped", self.skipped.to_string().as_str()),
            ])
            .write_inner_content(|writer| match &self.checked.outcome {
                Ok(_) => cases(writer, &path, self.checked, view),
                Err(message) => {
                    let title = line(&xml::failure(message));
                    case(writer, &path, "readable", |writer| {
                        said(
                            writer,
                            "error",
                            &title,
                            "unreadable",
                            &xml::failure(message),
                        )
                    })
                }
            })?;
        Ok(())
    }
}

/// The cases of an input that could be read; one that passes if there is nothing to report.
fn cases(
    writer: &mut Writer<&mut dyn Write>,
    path: &str,
    input: &InputReport,
    view: &View<'_>,
) -> io::Result<()> {
    if input.findings().is_empty() && input.allowed().is_empty() {
        return case(writer, path, "no findings", |_| Ok(()));
    }
    for finding in input.findings() {
        let text = explanation(finding, view);
        let place = &finding.place.start;
        let text = format!("{path}:{}:{}: {text}", place.line, place.column);
        case(writer, path, &name(finding), |writer| {
            if finding.severity >= input.fail_on {
                let kind = finding.severity.as_str();
                return said(writer, "failure", &line(&finding.title), kind, &text);
            }
            let output = writer.create_element("system-out");
            output.write_text_content(BytesText::new(&lines(&text)))?;
            Ok(())
        })?;
    }
    for finding in input.allowed() {
        let why = finding.allowed_by.as_ref().map(allowance);
        case(writer, path, &name(finding), |writer| {
            let skipped = writer.create_element("skipped");
            skipped
                .with_attribute(("message", line(&why.unwrap_or_default()).as_str()))
                .write_empty()?;
            Ok(())
        })?;
    }
    Ok(())
}

/// A name that stays when lines are added above the finding.
fn name(finding: &Diagnostic) -> String {
    line(&format!(
        "{}: {}",
        finding.rule.name, finding.place.breadcrumb
    ))
}

fn case(
    writer: &mut Writer<&mut dyn Write>,
    path: &str,
    name: &str,
    contents: impl FnOnce(&mut Writer<&mut dyn Write>) -> io::Result<()>,
) -> io::Result<()> {
    writer
        .create_element("testcase")
        .with_attributes([("name", name), ("classname", path), ("time", "0")])
        .write_inner_content(contents)?;
    Ok(())
}

fn said(
    writer: &mut Writer<&mut dyn Write>,
    element: &str,
    message: &str,
    kind: &str,
    text: &str,
) -> io::Result<()> {
    writer
        .create_element(element)
        .with_attributes([("message", message), ("type", kind)])
        .write_text_content(BytesText::new(&lines(text)))?;
    Ok(())
}
