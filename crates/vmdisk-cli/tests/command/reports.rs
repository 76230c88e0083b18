//! Reports for other programs: JUnit, Checkstyle, GitLab, JSON Lines and Prometheus, several in one run.

use serde_json::{Value, json};

use crate::{CLEAN, Place, UNSAFE};

/// A file with findings of two severities, a clean one, an allowed finding and an input that cannot be read.
fn place() -> Place {
    let allowed = format!("<!-- vmdisk: allow(cache-unsafe) scratch & \"test\" data -->\n{UNSAFE}");
    Place::with(&[
        (
            "d/a & b.xml",
            &UNSAFE
                .replace("qcow2", "raw")
                .replace("/srv/web1.raw", "/dev/sda"),
        ),
        ("d/allowed.xml", &allowed),
        ("d/broken.xml", "<domain>\n<os>\n</domain>\n"),
        ("d/clean.xml", CLEAN),
        (
            "d/web1.xml",
            &format!("<domain type='kvm'><name>web1</name><devices>{UNSAFE}</devices></domain>"),
        ),
    ])
}

fn report(format: &str) -> String {
    let place = place();
    let run = place.run(&["lint", "d", "--format", format]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.stderr.contains("broken.xml"), "{run:?}");
    let file = format!("{format}=out");
    let with_file = place.run(&["lint", "d", "-q", "--report", &file]);
    assert_eq!(with_file.code, 2, "{with_file:?}");
    assert_eq!(place.read("out"), run.stdout, "a report is the same data");
    run.stdout
}

fn number(node: roxmltree::Node<'_, '_>, name: &str) -> usize {
    node.attribute(name).unwrap().parse().unwrap()
}

#[test]
fn junit_has_a_suite_for_each_input_whose_numbers_are_right() {
    let text = report("junit");
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!(root.tag_name().name(), "testsuites");
    let suites: Vec<_> = root
        .children()
        .filter(roxmltree::Node::is_element)
        .collect();
    let names: Vec<_> = suites
        .iter()
        .map(|suite| suite.attribute("name").unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "d/a & b.xml",
            "d/allowed.xml",
            "d/broken.xml",
            "d/clean.xml",
            "d/web1.xml"
        ]
    );
    let below = |node: roxmltree::Node<'_, '_>, name: &str| {
        node.descendants()
            .filter(|one| one.has_tag_name(name))
            .count()
    };
    for suite in &suites {
        assert_eq!(suite.tag_name().name(), "testsuite");
        for (attribute, element) in [
            ("tests", "testcase"),
            ("failures", "failure"),
            ("errors", "error"),
            ("skipped", "skipped"),
        ] {
            assert_eq!(number(*suite, attribute), below(*suite, element), "{text}");
        }
        let cases = suite.children().filter(roxmltree::Node::is_element);
        for case in cases {
            assert_eq!(case.tag_name().name(), "testcase");
            assert!(case.attribute("name").is_some_and(|name| !name.is_empty()));
            assert_eq!(case.attribute("classname"), suite.attribute("name"));
        }
    }
    for (attribute, element) in [
        ("tests", "testcase"),
        ("failures", "failure"),
        ("errors", "error"),
    ] {
        assert_eq!(number(root, attribute), below(root, element));
    }
    let failure = document
        .descendants()
        .find(|node| node.has_tag_name("failure"))
        .unwrap();
    assert!(failure.attribute("message").is_some() && failure.attribute("type").is_some());
    let skipped = document
        .descendants()
        .find(|node| node.has_tag_name("skipped"))
        .unwrap();
    let reason = skipped.attribute("message").unwrap();
    assert!(reason.contains("scratch & \"test\" data"), "{reason}");
}

#[test]
fn findings_below_the_threshold_pass_in_junit() {
    let place = place();
    let failures = |threshold: &str| {
        let run = place.run(&[
            "lint",
            "d/web1.xml",
            "--format",
            "junit",
            "--fail-on",
            threshold,
        ]);
        let document = roxmltree::Document::parse(&run.stdout).unwrap();
        number(document.root_element(), "failures")
    };
    assert!(failures("advice") > failures("error"));
    assert_eq!(failures("error"), 1);
}

#[test]
fn checkstyle_has_a_file_for_each_input_with_findings() {
    let text = report("checkstyle");
    let document = roxmltree::Document::parse(&text).unwrap();
    let root = document.root_element();
    assert_eq!(
        (root.tag_name().name(), root.attribute("version")),
        ("checkstyle", Some("4.3"))
    );
    let files: Vec<_> = root
        .children()
        .filter(roxmltree::Node::is_element)
        .collect();
    let names: Vec<_> = files
        .iter()
        .map(|file| file.attribute("name").unwrap())
        .collect();
    assert!(
        names.contains(&"d/a & b.xml") && names.contains(&"d/broken.xml"),
        "{names:?}"
    );
    let place = Place::with(&[("clean.xml", CLEAN)]);
    let clean = place.run(&[
        "lint",
        "clean.xml",
        "--format",
        "checkstyle",
        "--min-severity",
        "error",
    ]);
    assert!(!clean.stdout.contains("<file"), "{clean:?}");
    let mut severities = std::collections::BTreeSet::new();
    for error in files
        .iter()
        .flat_map(|file| file.children().filter(roxmltree::Node::is_element))
    {
        assert_eq!(error.tag_name().name(), "error");
        assert!(number(error, "line") >= 1 && number(error, "column") >= 1);
        let severity = error.attribute("severity").unwrap();
        assert!(
            ["error", "warning", "info"].contains(&severity),
            "{severity}"
        );
        severities.insert(severity);
        assert!(!error.attribute("message").unwrap().is_empty());
        assert!(error.attribute("source").unwrap().starts_with("vmdisk"));
    }
    assert!(severities.len() > 1, "{severities:?}");
}

/// The fields that <https://docs.gitlab.com/ci/testing/code_quality/#code-quality-report-format> names.
fn gitlab_schema() -> Value {
    let line = json!({ "type": "integer", "minimum": 1 });
    let text = json!({ "type": "string", "minLength": 1 });
    json!({
        "type": "array",
        "items": {
            "type": "object",
            "required": ["description", "check_name", "fingerprint", "severity", "location"],
            "properties": {
                "description": text,
                "check_name": text,
                "fingerprint": text,
                "severity": { "enum": ["info", "minor", "major", "critical", "blocker"] },
                "location": {
                    "type": "object",
                    "required": ["path", "lines"],
                    "properties": {
                        "path": { "type": "string", "pattern": "^[^/.]" },
                        "lines": {
                            "type": "object",
                            "required": ["begin"],
                            "properties": { "begin": line, "end": line },
                        },
                    },
                },
            },
        },
    })
}

#[test]
fn gitlab_s_report_has_the_documented_fields_and_unique_fingerprints() {
    let issues: Value = serde_json::from_str(&report("gitlab")).unwrap();
    let validator = jsonschema::validator_for(&gitlab_schema()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&issues)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    assert!(!validator.is_valid(&json!([{ "description": "a" }])));
    let issues = issues.as_array().unwrap();
    let fingerprints: std::collections::BTreeSet<&str> = issues
        .iter()
        .map(|issue| issue["fingerprint"].as_str().unwrap())
        .collect();
    assert_eq!(fingerprints.len(), issues.len());
    let unsafe_one = issues
        .iter()
        .find(|issue| issue["check_name"] == "cache-unsafe")
        .unwrap();
    assert_eq!(unsafe_one["severity"], "critical");
    assert_eq!(unsafe_one["location"]["lines"]["begin"], 2);
    assert!(
        issues
            .iter()
            .any(|issue| issue["check_name"] == "unreadable")
    );
}

#[test]
fn fingerprints_of_gitlab_survive_lines_above() {
    let fingerprint = |text: &str| {
        let place = Place::with(&[("a.xml", text)]);
        let run = place.run(&[
            "lint",
            "a.xml",
            "--format",
            "gitlab",
            "--select",
            "cache-unsafe",
        ]);
        let issues: Value = serde_json::from_str(&run.stdout).unwrap();
        issues[0]["fingerprint"].as_str().unwrap().to_owned()
    };
    assert_eq!(
        fingerprint(UNSAFE),
        fingerprint(&format!("<!-- a\ncomment -->\n{UNSAFE}"))
    );
    assert_ne!(
        fingerprint(UNSAFE),
        fingerprint(&UNSAFE.replace("vda", "vdb"))
    );
}

#[test]
fn paths_for_gitlab_are_relative_to_the_repository() {
    let place = place();
    let mut command = place.command(["lint", "web1.xml", "--format", "gitlab"]);
    command
        .current_dir(place.path("d"))
        .env("CI_PROJECT_DIR", place.path(""));
    let run = crate::finish(command, b"");
    let issues: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(issues[0]["location"]["path"], "d/web1.xml");
}

#[test]
fn every_line_of_json_lines_is_what_its_schema_says() {
    let text = report("json-lines");
    let schema: Value = serde_json::from_str(
        &Place::with(&[])
            .run(&["print", "schema", "report-line"])
            .stdout,
    )
    .unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut kinds = std::collections::BTreeSet::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let errors: Vec<String> = validator
            .iter_errors(&line)
            .map(|error| error.to_string())
            .collect();
        assert_eq!(errors, Vec::<String>::new(), "{line}");
        kinds.insert(line["type"].as_str().unwrap().to_owned());
    }
    assert_eq!(
        Vec::from_iter(kinds),
        ["allowed", "failed-input", "finding"]
    );
    assert!(!validator.is_valid(&json!({ "type": "finding" })));
}

/// The samples of a metric, each with its labels.
fn samples<'a>(text: &'a str, metric: &str) -> Vec<&'a str> {
    let of_it = text.lines().filter_map(|line| line.strip_prefix(metric));
    of_it.collect()
}

#[test]
fn prometheus_counts_findings_by_rule_severity_guest_and_host() {
    let text = report("prometheus");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let (name, value) = line.rsplit_once(' ').unwrap();
        assert!(name.starts_with("vmdisk_lint_"), "{line}");
        assert!(value.parse::<u32>().is_ok(), "{line}");
    }
    assert!(text.contains("# TYPE vmdisk_lint_findings gauge\n"));
    let unsafe_one = "{rule=\"cache-unsafe\",severity=\"error\",guest=\"web1\"} 1";
    assert!(
        samples(&text, "vmdisk_lint_findings").contains(&unsafe_one),
        "{text}"
    );
    assert_eq!(samples(&text, "vmdisk_lint_inputs"), [" 5"]);
    assert_eq!(samples(&text, "vmdisk_lint_failed_inputs"), [" 1"]);
    assert_eq!(samples(&text, "vmdisk_lint_allowed_findings"), [" 1"]);

    let fixtures = concat!(env!("CARGO_MANIFEST_DIR"), "/../../fixtures");
    let guest = format!("{fixtures}/guests/web1-without-host-cache.xml");
    let facts = format!("{fixtures}/facts/btrfs-checksums-*.json");
    let run = Place::with(&[]).run(&["lint", &guest, "--facts", &facts, "--format", "prometheus"]);
    let corrupt = "{rule=\"btrfs-dio-csum-corruption\",severity=\"error\",guest=\"web1\",host=\"btrfs-checksums-6.1\"} 1";
    let found = samples(&run.stdout, "vmdisk_lint_findings");
    assert!(found.contains(&corrupt), "{run:?}");
    let on_one = found
        .iter()
        .filter(|line| line.contains("btrfs-dio-csum-corruption"));
    assert_eq!(on_one.count(), 1, "{run:?}");
}

#[test]
fn several_reports_are_written_in_one_run_beside_the_output() {
    let place = place();
    let alone = place.run(&["lint", "d"]);
    let run = place.run(&[
        "lint",
        "d",
        "--report",
        "junit=junit.xml",
        "--report",
        "gitlab=gl.json",
        "--report",
        "sarif=a=b.sarif",
    ]);
    assert_eq!((&run.stdout, &run.stderr), (&alone.stdout, &alone.stderr));
    assert!(place.read("junit.xml").starts_with("<?xml"));
    serde_json::from_str::<Value>(&place.read("gl.json")).unwrap();
    serde_json::from_str::<Value>(&place.read("a=b.sarif")).unwrap();
    for (option, meant) in [
        ("junitt=a", "did you mean `junit`?"),
        ("junit", "such as junit=report.xml"),
        ("junit=", "expected a file"),
        ("junit=-", "--format junit"),
    ] {
        let run = place.run(&["lint", "d", "--report", option]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(run.stderr.contains(meant), "{option}: {run:?}");
    }
    let twice = place.run(&["lint", "d", "--report", "junit=x", "-o", "x"]);
    assert_eq!(twice.code, 2, "{twice:?}");
    assert!(!place.path("x").exists());
    let spelled = ["--report", "junit=x", "--report", "json=./x"];
    let twice = place.run(&[&["lint", "d"], &spelled[..]].concat());
    assert_eq!(twice.code, 2, "{twice:?}");
    assert!(!place.path("x").exists());
    let nowhere = place.run(&["lint", "d/web1.xml", "--report", "junit=no/such/x"]);
    assert_eq!(nowhere.code, 2, "{nowhere:?}");
}

#[test]
fn a_failed_report_is_2_and_quiet_output_has_no_part_in_it() {
    let place = place();
    let quiet = place.run(&[
        "lint",
        "d/web1.xml",
        "-q",
        "--fail-on",
        "error",
        "--report",
        "json-lines=all",
    ]);
    let loud = place.run(&["lint", "d/web1.xml", "--format", "json-lines"]);
    assert_eq!(place.read("all"), loud.stdout);
    assert!(quiet.stdout.len() < loud.stdout.len());
}
