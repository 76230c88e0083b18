//! The library makes the report that the command prints.

use vmdisk::report::{DocumentReport, Run};
use vmdisk::{Host, LintOptions, calls, lint, read_to_lint};
use vmdisk_testing::{Case, HOST_CONFIG, cases, host_cases, host_inputs};

use crate::Place;

#[test]
fn every_fixture_has_the_same_report_as_with_the_command() {
    let (mut findings, mut unreadable) = (0, 0);
    let broken = Case {
        call: "lint",
        options: String::new(),
        name: "broken.xml".to_owned(),
        text: "<domain>\n <os>\n</domain>".to_owned(),
        facts: None,
    };
    let of_one = cases().into_iter().filter(|case| case.call == "lint");
    for case in of_one.chain([broken]) {
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

#[test]
fn the_guests_of_a_host_have_the_same_report_as_with_the_command() {
    let place = Place::with(&[("vmdisk.toml", HOST_CONFIG)]);
    std::fs::create_dir(place.path(".git")).unwrap();
    for (name, text) in host_inputs() {
        place.write(&name, text.as_bytes());
    }
    let mut compared = 0;
    for (case, arguments) in host_cases() {
        let mut words = vec!["lint", ".", "--format=json"];
        words.extend(arguments);
        match &case.facts {
            Some(facts) => {
                place.write("facts.json", facts.as_bytes());
                words.push("--facts=facts.json");
            }
            None => words.push("--host=kvm1=**"),
        }
        let command = place.run(&words);
        let host = case.facts.as_ref().map(|it| Host::parse(it).unwrap());
        let options = calls::CallOptions::parse(&case.options).unwrap();
        let report = calls::lint_all(&case.text, host.as_ref(), &options).unwrap();
        assert_eq!(report, command.stdout, "{}: {}", case.name, command.stderr);
        assert!(!report.contains("old/a.xml") && report.contains("\"broken.xml\""));
        compared += report.matches("\"image-shared-by-guests\"").count();
        compared += report.matches("\"backing-image-written\"").count();
    }
    assert!(compared > 20, "{compared}");
}

#[test]
fn hosts_of_a_fleet_are_those_of_their_facts_files() {
    let place = Place::with(&[
        (
            "facts/kvm1.json",
            r#"{"schema_version": "1.0", "limits": {"io_uring_disabled": 0}}"#,
        ),
        (
            "facts/kvm2.json",
            r#"{"schema_version": "1.0", "limits": {"io_uring_disabled": 2}}"#,
        ),
        ("vmdisk.toml", HOST_CONFIG),
    ]);
    std::fs::create_dir(place.path(".git")).unwrap();
    let mut fleet = serde_json::Map::new();
    for name in ["kvm1", "kvm2"] {
        fleet.insert(
            name.to_owned(),
            place.read(&format!("facts/{name}.json")).into(),
        );
    }
    for (name, text) in host_inputs() {
        place.write(
            &name,
            text.replace("io='native'", "io='io_uring'").as_bytes(),
        );
    }
    let (case, _) = host_cases().remove(0);
    let options = serde_json::json!({"config": HOST_CONFIG, "fleet": fleet}).to_string();
    let options = calls::CallOptions::parse(&options).unwrap();
    let inputs = case.text.replace("io='native'", "io='io_uring'");
    let report = calls::lint_all(&inputs, None, &options).unwrap();
    let command = place.run(&["lint", ".", "--format=json", "--facts=facts"]);
    let printed = command.stdout.replace("\"facts/kvm1.json\"", "\"kvm1\"");
    let printed = printed.replace("\"facts/kvm2.json\"", "\"kvm2\"");
    assert_eq!(report, printed, "{}", command.stderr);
    assert!(report.contains("migration-io-uring-differs"), "{report}");
}

#[test]
fn options_with_a_mistake_are_refused_with_what_was_meant() {
    for (options, expected) in [
        (
            r#"{"select": ["cache-unsave"]}"#,
            "select: `cache-unsave`: there is no such rule or group; did you mean `cache-unsafe`?",
        ),
        (
            r#"{"ignore": ["data-safty"]}"#,
            "ignore: `data-safty`: there is no such rule or group; did you mean `data-safety`?",
        ),
        (
            r#"{"rules": {"cache-unsave": "off"}}"#,
            "rules: `cache-unsave`",
        ),
        (
            r#"{"rules": {"cache-unsafe": "of"}}"#,
            "rules: `cache-unsafe` cannot be `of`, only off, on, ",
        ),
        (r#"{"min_severity": "wrong"}"#, "min_severity: "),
        (r#"{"fleet": {"kvm1": "["}}"#, "fleet: kvm1: "),
        (
            r#"{"config": "[rules]\ncache-unsave = 'off'\nx = 1"}"#,
            "config: `cache-unsave`: there is no such rule or group; did you mean `cache-unsafe`?, and ",
        ),
    ] {
        let options = calls::CallOptions::parse(options).unwrap();
        for call in [calls::lint, calls::fix] {
            let error = call("<disk/>", None, &options).unwrap_err();
            assert!(error.message.starts_with(expected), "{}", error.message);
            assert_eq!(error.place.is_some(), expected.starts_with("config"));
        }
        assert!(calls::lint_all("[]", None, &options).is_err() || expected.starts_with(['s', 'm']));
    }
}
