//! Prints the JSON report about guests of a host, and fails if one has an error: checker FACTS GUEST…
use std::error::Error;
use std::fs::read_to_string;
use std::process::ExitCode;

use vmdisk::report::{DocumentReport, Run};
use vmdisk::{Host, Severity, lint, read};

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let facts = arguments.next().ok_or("expected the file of facts")?;
    let host = Host::parse(&read_to_string(facts)?)?;
    let (mut run, mut is_bad) = (Run::default(), false);
    for path in arguments {
        let text = read_to_string(&path)?;
        match read(&text) {
            Ok(document) => {
                let report = lint(&document, &host.options());
                let mut findings = report.diagnostics.iter();
                is_bad |= findings.any(|found| found.severity == Severity::Error);
                run.add(&path, DocumentReport::new(document, report));
            }
            Err(failure) => {
                run.add_unreadable(&path, text, failure);
                is_bad = true;
            }
        }
    }
    print!("{}", run.to_json());
    Ok(ExitCode::from(u8::from(is_bad)))
}
