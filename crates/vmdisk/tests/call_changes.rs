//! The changes of a guest that is there, for other languages.

use serde_json::{Value, json};
use vmdisk::calls::{CallOptions, plan};

const SPEC: &str =
    "{version: 1, guest: {name: a, memory: 1G}, disks: [{raw: {path: /a}, cache: none}]}";

#[test]
fn a_plan_has_the_changes_of_the_guest_that_is_there() {
    let planned = |spec: &str, existing: Option<&str>| {
        let mut options = CallOptions::default();
        options.existing = existing.map(str::to_owned);
        plan(spec, None, &options).map(|json| serde_json::from_str::<Value>(&json).unwrap())
    };
    let new = planned(SPEC, None).unwrap();
    assert_eq!(new["changes"], json!([]));
    let xml = new["xml"].as_str();
    let other = SPEC
        .replace("1G", "2G")
        .replace("none}", "writeback, serial: x}");
    let changed = planned(&other, xml).unwrap();
    let change = &changed["changes"][0];
    assert_eq!(
        change["what"],
        "cache from none to writeback, serial from unset to x"
    );
    assert_eq!(
        (&change["state"], &change["argv"][1]),
        (&json!("not-asked"), &json!("define"))
    );
    assert_eq!(changed["unchanged"][0]["key"], "memory");
    assert_eq!(planned(SPEC, xml).unwrap()["changes"], new["changes"]);
    let moved = planned(&SPEC.replace("/a}", "/b, size: 1G}"), xml).unwrap();
    let why = "the size of /a is not known";
    assert_eq!(moved["changes"][1]["refusal"], why, "{moved}");
    assert_eq!(moved["changes"][1]["state"], "refused", "{moved}");
    assert!(planned(SPEC, Some("<domain>")).is_err());
}
