//! The published schema accepts what is written and read here, and refuses what is not.

#![allow(clippy::disallowed_methods, reason = "tests read fixtures")]

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use vmdisk_facts::{Fact, Facts, Reason};

fn validator() -> jsonschema::Validator {
    let schema = serde_json::to_value(Facts::json_schema()).expect("a schema is JSON");
    jsonschema::validator_for(&schema).expect("our schema is a schema")
}

/// Every facts file among the fixtures.
fn fixtures() -> Vec<PathBuf> {
    fn descend(directory: &Path, found: &mut Vec<PathBuf>) {
        for entry in fs::read_dir(directory).into_iter().flatten().flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() && !path.is_symlink() {
                descend(&path, found);
            } else if name == "facts.json" || name.ends_with(".facts.json") {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    descend(
        &Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures"),
        &mut found,
    );
    found.sort();
    found
}

#[test]
fn every_facts_file_of_the_fixtures_fits_the_schema() {
    let validator = validator();
    let fixtures = fixtures();
    assert!(fixtures.len() >= 2, "the recorded systems have facts");
    for path in fixtures {
        let text = fs::read_to_string(&path).expect("fixtures are readable");
        let read =
            Facts::from_json(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        for value in [
            serde_json::from_str(&text),
            serde_json::from_str(&read.facts.to_json()),
        ] {
            let value: Value = value.expect("it was read before");
            let mistakes: Vec<String> = validator
                .iter_errors(&value)
                .map(|error| format!("{}: {error}", error.instance_path))
                .collect();
            assert!(mistakes.is_empty(), "{}: {mistakes:?}", path.display());
        }
    }
}

#[test]
fn the_schema_knows_the_states_of_a_value_and_refuses_wrong_ones() {
    let validator = validator();
    let valid = |value: Value| validator.is_valid(&value);
    assert!(valid(json!({})));
    assert!(valid(json!({"kvm": {"dev_kvm": true}})));
    assert!(valid(json!({"kvm": {"dev_kvm": null}})));
    assert!(valid(
        json!({"kvm": {"dev_kvm": {"unknown": "permission", "detail": "x"}}})
    ));
    assert!(!valid(json!({"kvm": {"dev_kvm": "yes"}})));
    assert!(!valid(json!({"kvm": {"dev_kvm": {"detail": "x"}}})));
    assert!(!valid(json!({"files": [{"size": 1}]})), "a file has a path");
    assert!(!valid(json!({"kernel": {"version": "6.12"}})));
    assert!(!valid(json!({"kernel": {"version": [6, 12, 77, 1]}})));
    assert!(valid(json!({"memory": {"hugepages": {"2048": {"nr": 1}}}})));
}

#[test]
fn every_written_state_of_a_value_fits_the_schema() {
    let validator = validator();
    for fact in [
        Fact::Known(true),
        Fact::Absent,
        Fact::unknown(Reason::Timeout, ""),
        Fact::NotCollected,
    ] {
        let mut facts = Facts::default();
        facts.kvm.access = fact;
        let value: Value =
            serde_json::from_str(&facts.to_json()).expect("facts are written as JSON");
        assert!(validator.is_valid(&value), "{value}");
    }
}
