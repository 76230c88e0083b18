//! The published schema of SARIF 2.1.0, and what code scanning reads besides.

use serde_json::{Value, json};

/// The schema, as published; `fixtures/schemas/README.md` has its source and licence.
const PUBLISHED: &str = include_str!("../../../../fixtures/schemas/sarif-2.1.0-rtm.5.json");

/// What code scanning reads of a rule's property bag, which the standard leaves open.
fn code_scanning() -> Value {
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "additionalProperties": false,
        "required": ["precision", "problem.severity", "tags"],
        "properties": {
            "precision": { "enum": ["very-high", "high", "medium", "low"] },
            "problem.severity": { "enum": ["error", "warning", "recommendation"] },
            "security-severity": { "type": "string", "pattern": "^\\d+\\.\\d$" },
            "tags": { "type": "array", "items": { "type": "string" }, "uniqueItems": true, "maxItems": 10 },
        },
    })
}

fn errors(schema: &Value, instance: &Value) -> Vec<String> {
    let validator = jsonschema::validator_for(schema).unwrap();
    let errors = validator.iter_errors(instance);
    errors
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect()
}

fn published() -> Value {
    serde_json::from_str(PUBLISHED).unwrap()
}

/// Fails with everything that is wrong with a log.
pub(crate) fn assert_valid(log: &Value) {
    let none: Vec<String> = Vec::new();
    assert_eq!(errors(&published(), log), none);
    for rule in log["runs"][0]["tool"]["driver"]["rules"]
        .as_array()
        .unwrap()
    {
        assert_eq!(errors(&code_scanning(), &rule["properties"]), none);
    }
    for result in log["runs"][0]["results"].as_array().unwrap() {
        let artifact = &result["locations"][0]["physicalLocation"]["artifactLocation"];
        let uri = artifact["uri"].as_str().unwrap();
        // Nothing that would have to be percent-encoded.
        let is_of_uri =
            |it: char| it.is_ascii_alphanumeric() || "._~:/?#@!$&'()*+,;=%-".contains(it);
        assert!(uri.chars().all(is_of_uri), "{uri}");
    }
}

#[test]
fn a_misspelt_property_and_a_wrong_word_are_noticed() {
    let log = |driver: Value, result: Value| json!({ "version": "2.1.0", "runs": [{ "tool": { "driver": driver }, "results": [result] }] });
    let result = json!({ "message": { "text": "a" }, "baselineState": "new" });
    let good = log(json!({ "name": "x" }), result.clone());
    assert_eq!(errors(&published(), &good), Vec::<String>::new());
    for bad in [
        log(json!({ "nam": "x" }), result),
        log(
            json!({ "name": "x" }),
            json!({ "message": { "text": "a" }, "baselineState": "old" }),
        ),
        log(
            json!({ "name": "x" }),
            json!({ "message": { "text": "a" }, "fixes": [{ "artifactChanges": [] }] }),
        ),
    ] {
        assert!(!errors(&published(), &bad).is_empty(), "{bad}");
    }
}
