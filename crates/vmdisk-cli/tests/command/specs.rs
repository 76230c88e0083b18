//! `lint` of specs: every output format, fixes, directories.

use crate::Place;

const SPEC: &str = "\
version: 1
disks:
  # the system
  - qcow2: {path: /srv/web1.qcow2}
    cache: unsafe # fast
  - raw: {path: /srv/data.img}
";

#[test]
fn every_format_names_the_place_in_the_spec() {
    let place = Place::with(&[("web1.yaml", SPEC)]);
    for (format, shown) in [
        ("concise", "web1.yaml:5:12: error[cache-unsafe]"),
        ("full", "5 |     cache: unsafe # fast"),
        ("json", "\"line\": 5"),
        ("sarif", "\"startLine\": 5"),
        ("github", "file=web1.yaml,line=5"),
    ] {
        let run = place.run(&[
            "lint",
            "web1.yaml",
            "--format",
            format,
            "--fail-on",
            "error",
        ]);
        assert_eq!(run.code, 1, "{run:?}");
        assert!(run.stdout.contains(shown), "{format}: {}", run.stdout);
    }
}

#[test]
fn a_fix_and_a_diff_change_one_value_and_keep_comments() {
    let place = Place::with(&[("web1.yaml", SPEC)]);
    let run = place.run(&["lint", "web1.yaml", "--diff"]);
    assert!(
        run.stdout
            .contains("-    cache: unsafe # fast\n+    cache: writeback # fast\n"),
        "{run:?}"
    );
    assert_eq!(place.read("web1.yaml"), SPEC);
    let run = place.run(&["lint", "web1.yaml", "--fix", "--fail-on", "error"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(place.read("web1.yaml"), SPEC.replace("unsafe", "writeback"));
}

#[test]
fn mistakes_are_findings_and_text_that_is_not_yaml_is_a_failure() {
    let place = Place::with(&[
        (
            "mistake.yaml",
            "version: 1\ndisks:\n- raw: {path: /a}\n  cahce: none\n",
        ),
        ("broken.yaml", "version: 1\ndisks: [\n"),
    ]);
    let run = place.run(&["lint", "mistake.yaml", "--format", "concise"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout
            .contains("mistake.yaml:4:3: error[spec-refused]: unknown key `cahce`"),
        "{run:?}"
    );
    let run = place.run(&["lint", "broken.yaml"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr.contains("unclosed bracket") || run.stdout.contains("unclosed bracket"),
        "{run:?}"
    );
}

#[test]
fn specs_of_a_directory_are_found_and_other_yaml_is_left_alone() {
    let place = Place::with(&[
        ("d/web1.yaml", SPEC),
        ("d/compose.yml", "version: '3'\nservices: {}\n"),
    ]);
    let run = place.run(&["lint", "d", "--format", "concise"]);
    assert!(run.stdout.contains("web1.yaml:5:12"), "{run:?}");
    assert!(
        !run.stdout.contains("compose") && !run.stderr.contains("compose"),
        "{run:?}"
    );
}
