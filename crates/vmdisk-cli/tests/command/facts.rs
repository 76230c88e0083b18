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
