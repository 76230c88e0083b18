//! The library makes the report that the command prints.

use vmdisk::report::{DocumentReport, Run};
use vmdisk::{Host, LintOptions, calls, lint, read_to_lint};
use vmdisk_testing::{Case, cases};

use crate::Place;

#[test]
fn every_fixture_has_the_same_report_as_with_the_command() {
    let (mut findings, mut unreadable) = (0, 0);
    let broken = Case {
        name: "broken.xml".to_owned(),
        text: "<domain>\n <os>\n</domain>".to_owned(),
        facts: None,
    };
    for case in cases().into_iter().chain([broken]) {
        let place = Place::with(&[]);
        place.write(&case.name, case.text.as_bytes());
        let mut arguments = vec!["lint", &case.name, "--format", "json"];
        if let Some(facts) = &case.facts {
            place.write("facts.json", facts.as_bytes());
            arguments.extend(["--facts", "facts.json"]);
        }
        let command = place.run(&arguments).stdout;
        let host = case.facts.as_ref().map(|it| Host::parse(it).unwrap());
        let host = host.as_ref();
        let options = host.map_or_else(LintOptions::default, Host::options);
        let mut run = Run::default();
        match read_to_lint(case.text.as_bytes(), &Default::default()) {
            Ok(mut document) => {
                document = options.planned(&document).unwrap_or(document);
                let found = lint(&document, &options);
                findings += found.diagnostics.len();
                run.add(&case.name, DocumentReport::new(document, found));
            }
            Err(failure) => run.add_unreadable(&case.name, case.text.clone(), failure),
        }
        assert_eq!(run.to_json(), command, "{}", case.name);
        let mut options = calls::CallOptions::default();
        options.name.clone_from(&case.name);
        match calls::lint(&case.text, host, &options) {
            Ok(report) => assert_eq!(report, command),
            Err(error) => {
                assert!(error.place.is_some(), "{error:?}");
                unreadable += 1;
            }
        }
    }
    assert!(findings > 100, "{findings}");
    assert_eq!(unreadable, 1);
}
