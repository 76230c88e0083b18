//! Facts: collected here or below a recorded root, and what they change for lint.

use serde_json::Value;

use crate::{CLEAN, Place, Run};

fn facts(run: &Run) -> Value {
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// How many rules could not look at something.
fn not_checked(place: &Place, arguments: &[&str]) -> u64 {
    let run = place.run(&[&["lint", "a.xml", "--format", "json"], arguments].concat());
    assert!(run.code < 2, "{run:?}");
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    report["summary"]["rules_not_checked"].as_u64().unwrap()
}

#[test]
fn facts_of_this_host_can_be_read_back_and_let_more_be_checked() {
    let place = Place::with(&[("image.qcow2", "not really")]);
    let image = place.path("image.qcow2");
    place.write(
        "a.xml",
        CLEAN
            .replace("/srv/web1.qcow2", image.to_str().unwrap())
            .as_bytes(),
    );
    let collected = facts(&place.run(&["facts", "--for", "a.xml"]));
    assert_eq!(collected["files"][0]["path"], image.to_str().unwrap());
    let relative = facts(&place.run(&["facts", "image.qcow2"]));
    assert_eq!(relative["files"][0]["path"], image.to_str().unwrap());
    let run = place.run(&[
        "facts",
        "--for",
        "a.xml",
        "--format",
        "yaml",
        "--output",
        "facts.yaml",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    let without = not_checked(&place, &[]);
    assert!(not_checked(&place, &["--facts", "facts.yaml"]) < without);
    assert!(not_checked(&place, &["--live"]) < without);
}

#[test]
fn a_recorded_root_is_asked_instead_of_this_host() {
    let place = Place::with(&[
        ("root/proc/sys/kernel/osrelease", "5.10.0-1-amd64\n"),
        ("root/srv/a.img", "x"),
    ]);
    let collected = facts(&place.run(&["facts", "/srv/a.img", "--root", "root"]));
    assert_eq!(
        collected["kernel"]["version"],
        serde_json::json!([5, 10, 0])
    );
    let relative = place.run(&["facts", "a.img", "--root", "root"]);
    assert_eq!(relative.code, 2);
    assert!(relative.stderr.contains("from / on"), "{relative:?}");
}

#[test]
fn a_recorded_host_gives_the_same_facts_file_again() {
    let place = Place::with(&[("image.qcow2", "not really"), ("used/file", "")]);
    let image = place.path("image.qcow2");
    place.write(
        "a.xml",
        CLEAN
            .replace("/srv/web1.qcow2", image.to_str().unwrap())
            .as_bytes(),
    );
    let recorded = place.run(&["facts", "--for", "a.xml", "--record", "host"]);
    assert_eq!(
        (recorded.code, recorded.stderr.as_str()),
        (0, ""),
        "{recorded:?}"
    );
    let again = place.run(&["facts", "--root", "host"]);
    assert_eq!(again.stdout, recorded.stdout);
    // What was asked for then is in the recording, and not this host's any more.
    std::fs::remove_file(&image).unwrap();
    assert_eq!(
        place.run(&["facts", "--root", "host"]).stdout,
        recorded.stdout
    );
    for arguments in [
        &["facts", "--record", "used"][..],
        &["facts", "--record", "host"],
        &["facts", "--record", "used/file"],
        &["facts", "--record", "no/such/parent"],
        &["facts", "--record", "new", "--root", "host"],
        &["facts", "--record", "new", "--probe-dio", "used"],
    ] {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(!run.stderr.is_empty());
    }
    assert!(!place.path("new").exists());
}

#[test]
fn what_cannot_be_asked_is_a_failure_and_not_an_empty_answer() {
    let place = Place::with(&[("broken.xml", "<domain>"), ("file", "")]);
    for arguments in [
        &["facts", "--for", "missing.xml"][..],
        &["facts", "--for", "broken.xml"],
        &["facts", "--root", "missing"],
        &["facts", "--root", "file"],
        &["facts", "--probe-dio", "missing"],
        &["facts", "--group", "everything"],
    ] {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(!run.stderr.is_empty());
    }
}

/// A host with one image, on a file system with or without checksums.
fn host(nocow: bool, present: bool) -> String {
    format!(
        r#"{{"schema_version": "1.0", "collected_at": "2020-01-01T00:00:00Z", "host": {{"id": "acme-kvm1"}},
            "kernel": {{"version": [6, 1, 18]}}, "files": [{{"path": "/acme/web1.qcow2", "present": {present}, "nocow": {nocow},
            "device": null, "image": {{"format": "qcow2", "backing": {{"path": "base.qcow2", "format": "qcow2"}}}}}}]}}"#
    )
}

#[test]
fn what_changed_on_a_host_is_told_with_what_follows_for_a_guest() {
    let place = Place::with(&[
        ("old.json", &host(false, true)),
        ("new.json", &host(true, false)),
        ("a.xml", &CLEAN.replace("/srv/", "/acme/")),
    ]);
    let same = place.run(&["facts", "diff", "old.json", "old.json", "--for", "a.xml"]);
    assert_eq!(
        (same.code, same.stdout.as_str()),
        (0, "0 new findings, 0 gone\n"),
        "{same:?}"
    );
    let run = place.run(&["facts", "diff", "old.json", "new.json", "--for", "a.xml"]);
    assert_eq!(run.code, 1, "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "~ files[/acme/web1.qcow2].nocow: false → true",
            "~ files[/acme/web1.qcow2].present: true → false",
        ]
    );
    assert!(
        lines[2].starts_with("new finding: a.xml: error[source-missing]: "),
        "{run:?}"
    );
    assert_eq!(lines[3], "1 new finding, 0 gone");
}

#[test]
fn facts_that_are_too_old_or_not_understood_are_complained_about() {
    let odd = host(false, true).replace("\"device\": null", "\"devcie\": null");
    let place = Place::with(&[("old.json", &host(false, true)), ("odd.json", &odd)]);
    assert_eq!(place.run(&["facts", "check", "old.json"]).code, 0);
    let run = place.run(&["facts", "check", "old.json", "--max-age", "30d"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("2020-01-01T00:00:00Z is ") && run.stdout.contains(" days and "),
        "{run:?}"
    );
    let run = place.run(&["facts", "check", "odd.json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("files[0].devcie"), "{run:?}");
    assert_eq!(place.run(&["facts", "check", "gone.json"]).code, 2);
    let age = place.run(&["facts", "check", "old.json", "--max-age", "soon"]);
    assert_eq!(age.code, 2);
}

#[test]
fn facts_are_shown_to_people() {
    let place = Place::with(&[("host.json", &host(false, true))]);
    let run = place.run(&["facts", "show", "host.json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    for line in [
        "host           acme-kvm1",
        "libvirt        not collected",
        "file           /acme/web1.qcow2: qcow2 on base.qcow2, O_DIRECT: not collected",
    ] {
        assert!(
            run.stdout.lines().any(|found| found == line),
            "{line}: {run:?}"
        );
    }
}

#[test]
fn redacted_facts_fit_the_configuration_redacted_with_the_same_salt() {
    let place = Place::with(&[
        ("host.json", &host(false, false)),
        ("a.xml", &CLEAN.replace("/srv/", "/acme/")),
        ("salt", "a salt that nobody guesses\n"),
        ("short", "salt"),
    ]);
    for (from, to) in [("host.json", "shared.json"), ("a.xml", "shared.xml")] {
        let run = place.run(&["facts", "redact", from, "--salt-file", "salt", "-o", to]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
        let text = place.read(to);
        assert!(
            !text.contains("acme") && !text.contains("web1") && text.contains("/x"),
            "{text}"
        );
    }
    let findings = |xml: &str, facts: &str| {
        let run = place.run(&["lint", xml, "--facts", facts, "--format", "json"]);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        let rules: Vec<String> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["rule"].as_str().unwrap().to_owned())
            .collect();
        rules
    };
    let whole = findings("a.xml", "host.json");
    assert!(whole.contains(&"source-missing".to_owned()), "{whole:?}");
    assert_eq!(findings("shared.xml", "shared.json"), whole);
    for arguments in [
        &["facts", "redact", "host.json", "--salt-file", "short"][..],
        &["facts", "redact", "host.json", "--salt-file", "gone"],
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    }
    let mut command = place.command(["facts", "redact", "host.json"]);
    command.env_remove("VMDISK_SALT");
    assert_eq!(crate::finish(command, b"").code, 2);
    let mut command = place.command(["facts", "redact", "host.json"]);
    command.env("VMDISK_SALT", "a salt that nobody guesses");
    let run = crate::finish(command, b"");
    assert_eq!(run.stdout, place.read("shared.json"));
}

#[test]
fn a_difference_for_programs_is_what_its_published_schema_says() {
    let host = |kernel: &str, disabled: u32| {
        format!(
            r#"{{"schema_version": "1.0", "kernel": {{"release": "{kernel}"}}, "limits": {{"io_uring_disabled": {disabled}}}}}"#
        )
    };
    let place = Place::with(&[
        (
            "a.xml",
            &CLEAN.replace("cache='writeback'", "cache='none' io='io_uring'"),
        ),
        ("old.json", &host("6.1", 0)),
        ("new.json", &host("6.6", 2)),
    ]);
    let arguments = [
        "facts", "diff", "old.json", "new.json", "--for", "a.xml", "--format", "json",
    ];
    let run = place.run(&arguments);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
    let difference: Value = serde_json::from_str(&run.stdout).unwrap();
    let schema = place.run(&["schema", "facts-diff"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&difference), "{difference}");
    assert_eq!(
        difference["changes"],
        serde_json::json!([
            { "path": "kernel.release", "old": "6.1", "new": "6.6" },
            { "path": "limits.io_uring_disabled", "old": "0", "new": "2" },
        ])
    );
    let found = &difference["new_findings"][0];
    assert_eq!(
        (&found["rule"], &found["disk"]),
        (&"io-uring-disabled".into(), &"vda".into())
    );
    assert_eq!(difference["gone_findings"], serde_json::json!([]));
    let same = place.run(&["facts", "diff", "old.json", "old.json", "--format", "json"]);
    assert_eq!(same.code, 0, "{same:?}");
}
