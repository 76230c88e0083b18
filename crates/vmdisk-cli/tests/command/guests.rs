//! The guests of one host are compared with each other: their images, and the sums of what they need.

use crate::{Place, Run};

/// A guest with a disk.
fn guest(name: &str, more: &str, path: &str) -> String {
    format!(
        "<domain type='kvm'><name>{name}</name><memory unit='MiB'>3000</memory>{more}<devices>\n\
         <disk type='file' device='disk'><driver name='qemu' type='qcow2' cache='none' io='native' discard='unmap'/>\n\
         <source file='{path}'/><target dev='vda' bus='virtio'/></disk>\n</devices></domain>\n"
    )
}

/// An overlay with a backing image.
fn overlay(name: &str, path: &str, base: &str) -> String {
    let inside = format!(
        "<source file='{path}'/><backingStore type='file'><format type='qcow2'/>\
         <source file='{base}'/><backingStore/></backingStore>"
    );
    guest(name, "", path).replace(&format!("<source file='{path}'/>"), &inside)
}

/// Facts of a host with little of everything.
const SMALL: &str = r#"{"schema_version": "1.0", "limits": {"aio_max_nr": 1500},
    "cpu": {"arch": "x86_64"}, "kernel": {"cmdline": {"default_hugepagesz": null}},
    "memory": {"hugepages": {"2048": {"nr": 2000, "free": 2000, "reserved": 0}}},
    "mounts": [{"id": "m1", "point": "/srv", "fstype": "xfs", "source": "/dev/sda1", "fs": "f1", "options": {"rw": true}}],
    "filesystems": [{"id": "f1", "kind": "xfs", "free_bytes": 5000000000, "devices": []}],
    "files": [
      {"path": "/srv/a.qcow2", "present": true, "kind": "regular", "real_path": "/srv/a.qcow2", "mount": "m1",
       "inode": "8:1/1", "size": 1000000, "alloc": 1000000, "image": {"format": "qcow2", "virtual_size": 4000000000, "backing": null}},
      {"path": "/srv/b.qcow2", "present": true, "kind": "regular", "real_path": "/srv/b.qcow2", "mount": "m1",
       "inode": "8:1/2", "size": 1000000, "alloc": 1000000, "image": {"format": "qcow2", "virtual_size": 4000000000, "backing": null}},
      {"path": "/srv/link.qcow2", "present": true, "kind": "regular", "real_path": "/srv/a.qcow2", "mount": "m1",
       "inode": "8:1/1", "size": 1000000, "alloc": 1000000, "image": {"format": "qcow2", "virtual_size": 4000000000, "backing": null}}
    ]}"#;

/// The rules that compare guests.
const RULES: [&str; 5] = [
    "backing-image-written",
    "guests-exceed-aio-slots",
    "guests-exceed-free-space",
    "guests-exceed-hugepages",
    "image-shared-by-guests",
];

/// File and rule of each finding that compares guests.
fn found(run: &Run) -> Vec<(String, String)> {
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let findings = report["findings"].as_array().unwrap().iter();
    let text = |value: &serde_json::Value| value.as_str().unwrap().to_owned();
    let found = findings.map(|finding| (text(&finding["path"]), text(&finding["rule"])));
    found
        .filter(|(_, rule)| RULES.contains(&rule.as_str()))
        .collect()
}

fn pairs(found: &[(String, String)]) -> Vec<(&str, &str)> {
    found
        .iter()
        .map(|(path, rule)| (path.as_str(), rule.as_str()))
        .collect()
}

const ARGUMENTS: [&str; 5] = ["lint", ".", "--no-config", "--format", "json"];

#[test]
fn guests_of_one_host_are_compared_by_image_and_by_sum() {
    let huge = "<memoryBacking><hugepages/></memoryBacking>";
    let place = Place::with(&[
        ("a.xml", &guest("a", huge, "/srv/a.qcow2")),
        ("b.xml", &guest("b", huge, "/srv/b.qcow2")),
        ("same-as-a.xml", &guest("a", huge, "/srv/a.qcow2")),
        ("z.xml", &guest("z", "", "/srv/link.qcow2")),
        ("host.json", SMALL),
    ]);
    let run = place.run(&[&ARGUMENTS[..], &["--facts", "host.json"]].concat());
    let expected = [
        ("b.xml", "guests-exceed-aio-slots"),
        ("b.xml", "guests-exceed-free-space"),
        ("b.xml", "guests-exceed-hugepages"),
        ("z.xml", "image-shared-by-guests"),
    ];
    let mut found = found(&run);
    found.sort();
    assert_eq!(pairs(&found), expected, "{run:#?}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["summary"]["inputs"], 4, "{run:#?}");
    assert_eq!(report["inputs"].as_array().unwrap().len(), 4);
    // What is printed at once ends with them.
    let text = place.run(&[
        "lint",
        ".",
        "--no-config",
        "--facts",
        "host.json",
        "--format",
        "concise",
    ]);
    assert!(text.stdout.contains("image-shared-by-guests"), "{text:#?}");
    assert_eq!(text.code, 1, "{text:#?}");
}

#[test]
fn without_a_host_guests_are_not_compared_and_the_run_says_so() {
    let files = [
        ("kvm1/a.xml", guest("a", "", "/srv/a.qcow2")),
        ("kvm1/b.xml", guest("b", "", "/srv/a.qcow2")),
        ("kvm2/c.xml", guest("c", "", "/srv/a.qcow2")),
        ("kvm2/d.xml", overlay("d", "/srv/d.qcow2", "/srv/a.qcow2")),
    ];
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(name, text)| (*name, text.as_str()))
        .collect();
    let place = Place::with(&files);
    let run = place.run(&ARGUMENTS);
    assert_eq!(found(&run), [], "{run:#?}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    let missed = report["not_checked"].as_array().unwrap().iter();
    let missed = missed.filter(|missed| missed["rule"] == "image-shared-by-guests");
    assert_eq!(missed.count(), 4);
    // Other guests of the host of one guest may be elsewhere, unless its host is named.
    let alone = ["lint", "kvm1/a.xml", "--no-config", "--format", "json"];
    let open = place.run(&alone);
    let why = "the other guests of its host are unknown";
    assert_eq!(open.stdout.matches(why).count(), RULES.len(), "{open:#?}");
    let named = place.run(&[&alone[..], &["--host", "kvm1=**"]].concat());
    assert!(!named.stdout.contains(why), "{named:#?}");
    // Guests of different hosts do not conflict.
    let hosts = ["--host", "kvm1=kvm1/*.xml", "--host", "kvm2=kvm2/*.xml"];
    let run = place.run(&[&["lint", "kvm1", "kvm2"], &ARGUMENTS[2..], &hosts].concat());
    let expected = [
        ("kvm1/b.xml", "image-shared-by-guests"),
        ("kvm2/c.xml", "backing-image-written"),
    ];
    assert_eq!(pairs(&found(&run)), expected, "{run:#?}");
    assert!(!run.stdout.contains(why), "{run:#?}");
}

#[test]
fn a_host_is_the_one_whose_facts_file_has_its_name() {
    let place = Place::with(&[
        ("a.xml", &guest("a", "", "/srv/a.qcow2")),
        ("b.xml", &guest("b", "", "/srv/link.qcow2")),
        ("facts/kvm1.json", SMALL),
        ("facts/kvm2.json", r#"{"schema_version": "1.0"}"#),
    ]);
    let with = |hosts: &[&str]| place.run(&[&ARGUMENTS[..], &["--facts", "facts"], hosts].concat());
    assert_eq!(found(&with(&[])), []);
    let run = with(&["--host", "kvm1=*.xml"]);
    let rules = found(&run);
    assert!(
        pairs(&rules).contains(&("b.xml", "image-shared-by-guests")),
        "{run:#?}"
    );
    assert_eq!(
        found(&with(&["--host", "kvm1=a.xml", "--host", "kvm2=b.xml"])),
        []
    );
    let unknown = with(&["--host", "kvm3=*.xml"]);
    assert_eq!(unknown.code, 2, "{unknown:#?}");
    assert!(
        unknown.stderr.contains("no facts file has this name"),
        "{unknown:#?}"
    );
}

#[test]
fn an_allowance_covers_a_comparison_and_is_not_unused() {
    let allowed = guest("b", "", "/srv/a.qcow2").replace(
        "<disk ",
        "<!-- vmdisk: allow(image-shared-by-guests) the guests replace each other -->\n<disk ",
    );
    let place = Place::with(&[
        ("a.xml", &guest("a", "", "/srv/a.qcow2")),
        ("b.xml", &allowed),
    ]);
    let run = place.run(&[&ARGUMENTS[..], &["--host", "here=*.xml"]].concat());
    assert_eq!(found(&run), [], "{run:#?}");
    assert!(!run.stdout.contains("allowance-unused"), "{run:#?}");
    let report: serde_json::Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["allowed"].as_array().unwrap().len(), 1, "{run:#?}");
}
