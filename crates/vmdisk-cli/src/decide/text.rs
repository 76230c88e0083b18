//! Decisions for people: a line for each option, the findings that remain, and the disk as it should be.

use std::fmt::Write;

use vmdisk::Decisions;

use crate::generate::explain;
use crate::sanitize::{line, lines};
use vmdisk_source::table::fitted;

/// The decisions as text; the disks are XML.
pub(super) fn write(decisions: &Decisions, width: Option<usize>) -> String {
    let mut out = String::new();
    for disk in &decisions.disks {
        let mut said = String::new();
        let name = decisions.name(disk);
        let name = line(&name);
        match &disk.options {
            Ok(decided) => {
                for choice in &decided.choices {
                    said.push_str(&explain::line_of(&name, choice));
                }
            }
            Err(errors) => {
                for error in errors {
                    let _ = writeln!(
                        said,
                        "{name}: nothing is decided: {}",
                        line(&error.to_string())
                    );
                }
            }
        }
        for finding in &disk.findings {
            let (severity, title) = (finding.severity.as_str(), line(&finding.title));
            let _ = writeln!(said, "{name}: {severity}[{}]: {title}", finding.rule.name);
        }
        out.push_str(&fitted(&said, width));
        if let Some(xml) = decisions.xml(disk) {
            let _ = write!(out, "\n{}", lines(&xml));
        }
        out.push('\n');
    }
    if let Some(last) = out.pop() {
        debug_assert_eq!(last, '\n');
    }
    out
}
