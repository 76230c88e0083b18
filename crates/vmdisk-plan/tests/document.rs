//! Specs as documents: edits, allowances and mistakes at their places.

use vmdisk_facts::{Facts, Target};
use vmdisk_model::{CacheMode, Change, DiskField, DomainField, FieldPath, LimitField};
use vmdisk_plan::SpecDocument;
use vmdisk_source::apply_edits;

fn read(text: &str) -> SpecDocument {
    SpecDocument::read(text).unwrap_or_else(|error| panic!("{text}: {error:?}"))
}

#[test]
fn a_change_edits_one_key_in_each_style_of_yaml() {
    let at = FieldPath::Disk(0, DiskField::Cache);
    let set = Change::set(at, CacheMode::None);
    let remove = Change::Remove { at };
    for (text, change, edited) in [
        (
            "version: 1\ndisks:\n- raw: {path: /a}\n  cache: unsafe\n  boot: 1\n",
            &set,
            "version: 1\ndisks:\n- raw: {path: /a}\n  cache: none\n  boot: 1\n",
        ),
        (
            "version: 1\ndisks:\n- raw: {path: /a} # the image\n",
            &set,
            "version: 1\ndisks:\n- raw: {path: /a} # the image\n  cache: none\n",
        ),
        (
            "version: 1\ndisks: [{raw: {path: /a}}]\n",
            &set,
            "version: 1\ndisks: [{raw: {path: /a}, cache: none}]\n",
        ),
        (
            r#"{"version": 1, "disks": [{"raw": {"path": "/a"}}]}"#,
            &set,
            r#"{"version": 1, "disks": [{"raw": {"path": "/a"}, "cache": "none"}]}"#,
        ),
        (
            "version: 1\ndisks:\n- raw: {path: /a}\n  cache: unsafe\n  boot: 1\n",
            &remove,
            "version: 1\ndisks:\n- raw: {path: /a}\n  boot: 1\n",
        ),
        (
            "version: 1\ndisks: [{raw: {path: /a}, cache: unsafe, boot: 1}]\n",
            &remove,
            "version: 1\ndisks: [{raw: {path: /a}, boot: 1}]\n",
        ),
    ] {
        let document = read(text);
        let planned = document.plan(text, &Facts::default(), &Target::default());
        let edits = document.edits_of_all(text, &planned, std::slice::from_ref(change));
        let edits = edits.unwrap_or_else(|error| panic!("{text}: {error}"));
        assert_eq!(apply_edits(text, &edits).as_deref(), Ok(edited), "{text}");
    }
}

#[test]
fn a_group_is_shown_with_its_key_and_a_value_without() {
    let text =
        "version: 1\ndisks:\n- raw: {path: /a}\n  cache: none\n  iotune:\n    total-iops-sec: 5\n";
    let document = read(text);
    let planned = document.plan(text, &Facts::default(), &Target::default());
    let shown = |at| {
        let place = planned.source_map.place(at).unwrap();
        place.span.slice(text).unwrap()
    };
    let limit = |field| FieldPath::Iotune(0, field);
    for (at, expected) in [
        (FieldPath::Domain(DomainField::Devices), "disks:"),
        (FieldPath::Disk(0, DiskField::Cache), "none"),
        (limit(LimitField::Limits), "iotune:"),
        (limit(LimitField::TotalIops), "5"),
    ] {
        assert_eq!(shown(at), expected, "{at:?}");
    }
}

#[test]
fn an_allowance_covers_the_next_part_or_before_all_keys_the_whole_spec() {
    let comment = "# vmdisk: allow(cache-unsafe) a trial";
    let disk = "- raw: {path: /a}\n  cache: unsafe";
    for (text, covers) in [
        (
            format!("version: 1\ndisks:\n{comment}\n{disk}\n"),
            Some(&disk[2..]),
        ),
        (
            format!("version: 1\ndisks:\n{disk} {comment}\n"),
            Some("cache: unsafe"),
        ),
        (format!("{comment}\nversion: 1\ndisks:\n{disk}\n"), None),
    ] {
        let document = read(&text);
        let [allowance] = &document.allowances[..] else {
            panic!("{text}: {:?}", document.allowances)
        };
        let covered = allowance.covers.slice(&text);
        assert_eq!(covered, Some(covers.unwrap_or(&text)), "{text}");
    }
}

#[test]
fn a_mistake_of_a_disk_that_is_left_out_belongs_to_no_other_disk() {
    let text =
        "version: 1\ndisks:\n- raw: {path: /a}\n- raw: {path: /b}\n  discard-granularity: 5\n";
    let document = read(text);
    let planned = document.plan(text, &Facts::default(), &Target::default());
    let [mistake] = &planned.mistakes[..] else {
        panic!("{:?}", planned.mistakes)
    };
    assert_eq!(mistake.at, FieldPath::Domain(DomainField::Domain));
}
