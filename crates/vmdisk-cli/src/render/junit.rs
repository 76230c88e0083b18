//! JUnit: a suite for each input, and a case for each finding.
//!
//! The elements and attributes follow Jenkins (`junit-10.xsd`) and GitLab.

use std::io::{self, Write};

use quick_xml::Writer;
use quick_xml::events::BytesText;
use vmdisk::Diagnostic;

use crate::render::View;
use crate::render::human::allowance;
use crate::render::spool::Spool;
use crate::render::xml::{self, explanation, line, lines};
use crate::report::input::{DocumentReport, InputReport};

/// Name of the root.
const ROOT: &str = "testsuites";

/// Numbers of all inputs.
#[derive(Debug, Default)]
pub(crate) struct Totals {
    tests: usize,
    failures: usize,
    errors: usize,
}

impl Totals {
    /// Counts the cases of an input.
    pub(crate) fn add(&mut self, checked: &InputReport) {
        let suite = Suite::of(checked);
        self.tests += suite.tests;
        self.failures += suite.failures;
        self.errors += suite.errors;
    }

    /// Writes the document, with the suites of all inputs.
    pub(crate) fn write(&self, out: &mut dyn Write, suites: &mut Spool) -> io::Result<()> {
        let numbers = [self.tests, self.failures, self.errors].map(|number| number.to_string());
        let [tests, failures, errors] = numbers.each_ref().map(String::as_str);
        let attributes = [
            ("name", "vmdisk lint"),
            ("tests", tests),
            ("failures", failures),
            ("errors", errors),
        ];
        xml::begin(out, ROOT, &attributes)?;
        suites.copy(out)?;
        xml::end(out, ROOT)
    }
}

/// The suite of an input. Findings that fail the run are failures; the others pass, with their text as output.
pub(crate) fn suite(checked: &InputReport, view: &View<'_>) -> Vec<u8> {
    xml::inside(|writer| Suite::of(checked).write(writer, view))
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
                (tests, report.at_least(report.fail_on).count(), 0, skipped)
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
                Ok(report) => cases(writer, &path, report, view),
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
    report: &DocumentReport,
    view: &View<'_>,
) -> io::Result<()> {
    if report.findings.is_empty() && report.allowed.is_empty() {
        return case(writer, path, "no findings", |_| Ok(()));
    }
    for finding in &report.findings {
        let text = explanation(finding, view);
        let place = &finding.place.start;
        let text = format!("{path}:{}:{}: {text}", place.line, place.column);
        case(writer, path, &name(finding), |writer| {
            if finding.severity >= report.fail_on {
                let kind = finding.severity.as_str();
                return said(writer, "failure", &line(&finding.title), kind, &text);
            }
            let output = writer.create_element("system-out");
            output.write_text_content(BytesText::new(&lines(&text)))?;
            Ok(())
        })?;
    }
    for finding in &report.allowed {
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
