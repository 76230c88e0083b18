//! The parts of SARIF 2.1.0 that are used, as a schema written from the standard's text.
//!
//! Objects are closed: a property that the standard does not have, or one that is misspelt, is an error.

use serde_json::{Map, Value, json};

/// An object with these properties and no others; those in `required` must be there.
fn object(required: &[&str], properties: Value) -> Value {
    json!({
        "type": "object",
        "additionalProperties": false,
        "required": required,
        "properties": properties,
    })
}

fn list_of(items: &str) -> Value {
    json!({ "type": "array", "items": { "$ref": format!("#/$defs/{items}") } })
}

fn is(name: &str) -> Value {
    json!({ "$ref": format!("#/$defs/{name}") })
}

/// Sections 3.4 to 3.58 of the standard, as far as they are used.
fn schema() -> Value {
    let mut definitions = Map::new();
    let mut define = |name: &str, schema: Value| {
        definitions.insert(name.to_owned(), schema);
    };
    define_words(&mut define);
    define_run(&mut define);
    define_places(&mut define);
    define_result(&mut define);
    json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "$ref": "#/$defs/log",
        "$defs": definitions,
    })
}

fn define_words(define: &mut impl FnMut(&str, Value)) {
    define("text", json!({ "type": "string", "minLength": 1 }));
    define("count", json!({ "type": "integer", "minimum": 0 }));
    define("fromOne", json!({ "type": "integer", "minimum": 1 }));
    define(
        "level",
        json!({ "enum": ["none", "note", "warning", "error"] }),
    );
    // A URI reference: nothing that would have to be percent-encoded.
    define(
        "uri",
        json!({ "type": "string", "pattern": "^[A-Za-z0-9._~:/?#@!$&'()*+,;=%-]+$" }),
    );
    define(
        "webAddress",
        json!({ "type": "string", "pattern": "^https://" }),
    );
    define("message", object(&["text"], json!({ "text": is("text") })));
    define(
        "multiformatMessage",
        object(
            &["text"],
            json!({ "text": is("text"), "markdown": is("text") }),
        ),
    );
}

fn define_run(define: &mut impl FnMut(&str, Value)) {
    define(
        "log",
        object(
            &["version", "runs"],
            json!({ "$schema": is("uri"), "version": { "const": "2.1.0" }, "runs": list_of("run") }),
        ),
    );
    define(
        "run",
        object(
            &["tool"],
            json!({
                "tool": is("tool"),
                "automationDetails": is("automationDetails"),
                "columnKind": { "enum": ["utf16CodeUnits", "unicodeCodePoints"] },
                "originalUriBaseIds": { "type": "object", "additionalProperties": is("artifactLocation") },
                "invocations": list_of("invocation"),
                "artifacts": list_of("artifact"),
                "results": list_of("result"),
                "properties": { "type": "object" },
            }),
        ),
    );
    define(
        "tool",
        object(&["driver"], json!({ "driver": is("toolComponent") })),
    );
    define(
        "automationDetails",
        object(&[], json!({ "id": is("text") })),
    );
    define(
        "artifact",
        object(&[], json!({ "location": is("artifactLocation") })),
    );
    define(
        "toolComponent",
        object(
            &["name"],
            json!({
                "name": is("text"),
                "semanticVersion": { "type": "string", "pattern": "^\\d+\\.\\d+\\.\\d+" },
                "informationUri": is("webAddress"),
                "rules": list_of("reportingDescriptor"),
            }),
        ),
    );
    define(
        "reportingDescriptor",
        object(
            &["id"],
            json!({
                "id": is("text"),
                "name": is("text"),
                "shortDescription": is("multiformatMessage"),
                "fullDescription": is("multiformatMessage"),
                "help": is("multiformatMessage"),
                "helpUri": is("webAddress"),
                "defaultConfiguration": is("reportingConfiguration"),
                "properties": is("ruleProperties"),
            }),
        ),
    );
    define(
        "reportingConfiguration",
        object(&[], json!({ "level": is("level") })),
    );
    // What code scanning reads of a rule's property bag.
    define(
        "ruleProperties",
        object(
            &["precision", "problem.severity", "tags"],
            json!({
                "precision": { "enum": ["very-high", "high", "medium", "low"] },
                "problem.severity": { "enum": ["error", "warning", "recommendation"] },
                "security-severity": { "type": "string", "pattern": "^\\d+\\.\\d$" },
                "tags": { "type": "array", "items": is("text"), "uniqueItems": true, "maxItems": 10 },
            }),
        ),
    );
    define(
        "invocation",
        object(
            &["executionSuccessful"],
            json!({
                "executionSuccessful": { "type": "boolean" },
                "exitCode": { "type": "integer" },
                "toolExecutionNotifications": list_of("notification"),
            }),
        ),
    );
    define(
        "notification",
        object(
            &["message"],
            json!({
                "level": is("level"),
                "message": is("message"),
                "locations": list_of("location"),
                "associatedRule": is("reportingDescriptorReference"),
            }),
        ),
    );
    define(
        "reportingDescriptorReference",
        object(&[], json!({ "id": is("text"), "index": is("count") })),
    );
}

fn define_places(define: &mut impl FnMut(&str, Value)) {
    define(
        "artifactLocation",
        object(
            &[],
            json!({
                "uri": is("uri"),
                "uriBaseId": is("text"),
                "index": is("count"),
                "description": is("message"),
            }),
        ),
    );
    define(
        "location",
        object(
            &[],
            json!({
                "id": is("count"),
                "message": is("message"),
                "physicalLocation": is("physicalLocation"),
                "logicalLocations": list_of("logicalLocation"),
            }),
        ),
    );
    define(
        "physicalLocation",
        object(
            &["artifactLocation"],
            json!({ "artifactLocation": is("artifactLocation"), "region": is("region") }),
        ),
    );
    define(
        "logicalLocation",
        object(
            &[],
            json!({ "fullyQualifiedName": is("text"), "kind": is("text") }),
        ),
    );
    define(
        "region",
        object(
            &["startLine"],
            json!({
                "startLine": is("fromOne"),
                "startColumn": is("fromOne"),
                "endLine": is("fromOne"),
                "endColumn": is("fromOne"),
            }),
        ),
    );
}

fn define_result(define: &mut impl FnMut(&str, Value)) {
    define(
        "result",
        object(
            &["message"],
            json!({
                "ruleId": is("text"),
                "ruleIndex": is("count"),
                "level": is("level"),
                "message": is("message"),
                "locations": list_of("location"),
                "relatedLocations": list_of("location"),
                "partialFingerprints": { "type": "object", "additionalProperties": is("text") },
                "fixes": list_of("fix"),
                "suppressions": list_of("suppression"),
                "properties": { "type": "object" },
            }),
        ),
    );
    define(
        "fix",
        object(
            &["artifactChanges"],
            json!({ "description": is("message"), "artifactChanges": list_of("artifactChange") }),
        ),
    );
    define(
        "artifactChange",
        object(
            &["artifactLocation", "replacements"],
            json!({ "artifactLocation": is("artifactLocation"), "replacements": list_of("replacement") }),
        ),
    );
    define(
        "replacement",
        object(
            &["deletedRegion"],
            json!({ "deletedRegion": is("region"), "insertedContent": is("artifactContent") }),
        ),
    );
    define(
        "artifactContent",
        object(&[], json!({ "text": { "type": "string" } })),
    );
    define(
        "suppression",
        object(
            &["kind"],
            json!({
                "kind": { "enum": ["inSource", "external"] },
                "status": { "enum": ["accepted", "underReview", "rejected"] },
                "justification": is("text"),
                "location": is("location"),
            }),
        ),
    );
}

/// Fails with everything that is wrong with a log.
pub(crate) fn assert_valid(log: &Value) {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(log)
        .map(|error| format!("{}: {error}", error.instance_path))
        .collect();
    assert_eq!(errors, Vec::<String>::new());
}

#[test]
fn a_misspelt_property_is_noticed() {
    let validator = jsonschema::validator_for(&schema()).unwrap();
    let log = json!({ "version": "2.1.0", "runs": [{ "tool": { "driver": { "name": "x" } } }] });
    assert!(validator.is_valid(&log));
    let misspelt =
        json!({ "version": "2.1.0", "runs": [{ "tool": { "driver": { "nam": "x" } } }] });
    assert!(!validator.is_valid(&misspelt));
}
