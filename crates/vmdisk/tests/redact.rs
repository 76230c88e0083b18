//! What the rules say of redacted configurations and facts is what they say of the whole ones.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads fixtures, and one that cannot go on fails"
)]

use std::path::{Path, PathBuf};

use vmdisk::redact::{Level, Redactor};
use vmdisk::rules::RULES;
use vmdisk::{Facts, Host, LintOptions, Target, lint, read, write};

fn fixtures() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures")
}

fn facts_in(file: &Path) -> Facts {
    let read = Facts::parse(&std::fs::read_to_string(file).unwrap()).unwrap();
    assert_eq!(read.warnings, [], "{}", file.display());
    read.facts
}

/// What is found, without the words: rule, severity, how sure, which disk and which field.
fn found(domain: &vmdisk::model::Domain, facts: Option<&Facts>) -> Vec<String> {
    let document = read(&write::libvirt_xml(domain).unwrap()).unwrap();
    let index = facts.cloned().map(Host::new);
    let options = LintOptions::default()
        .host(index.clone())
        .target(facts.map_or_else(Target::default, Target::from_facts));
    let report = lint(&document, &options);
    let mut found: Vec<String> = report
        .diagnostics
        .iter()
        .map(|found| {
            format!(
                "{} {} {:?} {:?} {}",
                found.rule.name,
                found.severity,
                found.confidence,
                found.disk,
                found.place.breadcrumb
            )
        })
        .collect();
    found.extend(
        report
            .not_checked
            .iter()
            .map(|missed| format!("{} not checked {:?}", missed.rule.name, missed.at)),
    );
    found.sort();
    found
}

fn redactor(level: Level) -> Redactor {
    Redactor::new(b"a salt for these tests", level)
}

#[test]
fn the_examples_of_every_rule_are_judged_alike() {
    let mut findings = 0;
    for rule in RULES {
        if matches!(rule.name, "identity-refused" | "image-denied-by-apparmor") {
            // They are about the letters of names, which redaction replaces.
            continue;
        }
        for example in rule.examples() {
            let Ok(document) = read(&example.text) else {
                continue;
            };
            let name = example
                .words
                .iter()
                .find_map(|word| word.strip_prefix("facts-"));
            let facts = name.map(|name| facts_in(&fixtures().join(format!("facts/{name}.json"))));
            let mut whole = found(document.domain(), facts.as_ref());
            whole.retain(|it| !it.starts_with("serial-too-long"));
            findings += whole.len();
            for level in Level::ALL {
                let redactor = redactor(*level);
                let facts = facts.as_ref().map(|facts| redactor.facts(facts).unwrap());
                let domain = redactor.domain(document.domain());
                let mut redacted = found(&domain, facts.as_ref());
                // A UUID is not reported, and redaction replaces it by a name of the same length.
                redacted.retain(|it| !it.starts_with("serial-too-long"));
                // A finding names its disk, and a target that may be a name is replaced.
                for (disk, of) in domain.disks.iter().zip(&document.domain().disks) {
                    for finding in &mut redacted {
                        *finding = finding.replace(disk.name(), of.name());
                    }
                }
                assert_eq!(redacted, whole, "{} {level:?}\n{}", rule.name, example.text);
            }
        }
    }
    assert!(findings > 100, "only {findings} findings were compared");
}

#[test]
fn redacted_facts_are_read_without_a_warning_and_hold_no_name() {
    for entry in std::fs::read_dir(fixtures().join("facts")).unwrap() {
        let file = entry.unwrap().path();
        let facts = facts_in(&file);
        for level in Level::ALL {
            let text = redactor(*level).facts(&facts).unwrap().to_json();
            let read = Facts::from_json(&text).unwrap();
            assert_eq!(read.warnings, [], "{}", file.display());
            assert!(read.facts.redaction.is_known());
        }
    }
    let text = r#"{"schema_version": "1.0",
        "host": {"id": "acme-host"},
        "mounts": [{"id": "m1", "point": "/srv/acme", "source": "acme-nas:/acme/vms", "options": {"addr": "acme"}}],
        "files": [{"path": "/srv/acme/acme.qcow2", "mount": "m1", "lock": {"unknown": "permission", "detail": "/srv/acme: no"},
                   "image": {"format": "qcow2", "backing": {"path": "nbd://acme/acme", "format": "raw"}}}],
        "blockdevs": [{"id": "b1", "kind": "lvm-thin", "paths": ["/dev/acme/acme-1", "/dev/mapper/acme-acme--1"], "by_id": ["dm-name-acme"],
                       "model": "ACME acme", "dm": {"name": "acme-acme--1"}, "lvm": {"vg": "acme", "lv": "acme-1", "pool": "acme"}}],
        "errors": [{"what": "/srv/acme", "reason": "permission", "detail": "acme"}]}"#;
    let facts = Facts::from_json(text).unwrap().facts;
    for level in [Level::Shareable, Level::Minimal] {
        let text = redactor(level).facts(&facts).unwrap().to_json();
        assert!(!text.to_lowercase().contains("acme"), "{text}");
    }
}

#[test]
fn groups_decide_what_is_kept_on_every_profile() {
    // Optimized builds once read the group of every key as "": kept words became tokens, and `host.id` was kept.
    let text = r#"{"schema_version": "1.0", "cpu": {"arch": "x86_64"}, "kernel": {"release": "6.1"},
        "host": {"id": "acme-host", "class": "acme-class", "boot": "acme-boot"},
        "files": [{"path": "/a", "dio": {"dioalign": "set"}}]}"#;
    let facts = Facts::from_json(text).unwrap().facts;
    let text = redactor(Level::Shareable).facts(&facts).unwrap().to_json();
    assert!(!text.contains("acme"), "{text}");
    for kept in ["\"x86_64\"", "\"6.1\"", "\"set\""] {
        assert!(text.contains(kept), "{kept}: {text}");
    }
}

#[test]
fn credentials_in_the_names_of_images_are_removed_at_every_level() {
    for name in [
        "nbd://joe:canary@host/a",
        "json:{\"password\": \"canary\"}",
        "https://host/a?X-Amz-Signature=canary",
    ] {
        let text = serde_json::json!({
            "schema_version": "1.0",
            "files": [{"path": "/a", "image": {"format": "qcow2", "backing": {"path": name}}}],
        });
        let facts = Facts::from_json(&text.to_string()).unwrap().facts;
        for level in Level::ALL {
            let text = redactor(*level).facts(&facts).unwrap().to_json();
            assert!(!text.contains("canary"), "{level:?}: {text}");
        }
    }
}

#[test]
fn no_level_keeps_cookies_queries_or_passwords_of_a_guest() {
    let text = "<domain type='kvm'><name>a</name><devices><disk type='network' device='cdrom'>
        <source protocol='https' name='a.iso' query='token=canary'><host name='h' port='443'/>
        <cookies><cookie name='c'>canary</cookie></cookies></source><target dev='sda' bus='sata'/></disk>
        <graphics type='vnc' passwd='canary'/></devices></domain>";
    let document = read(text).unwrap();
    for level in Level::ALL {
        let redacted = redactor(*level).domain(document.domain());
        let xml = write::libvirt_xml(&redacted).unwrap();
        assert!(
            xml.contains("<cookie ") && xml.contains("query="),
            "{level:?}: {xml}"
        );
        assert!(!xml.contains("canary"), "{level:?}: {xml}");
    }
}

#[test]
fn a_redacted_configuration_holds_no_name() {
    let text =
        "<domain type='kvm'><name>acme</name><uuid>c7a5fdbd-edaf-9455-926a-d65c16db1809</uuid>
        <description>acme</description>
        <blkiotune><device><path>/dev/acme</path><weight>100</weight></device></blkiotune>
        <throttlegroups><throttlegroup><total_iops_sec>9</total_iops_sec><group_name>acme</group_name></throttlegroup>
        </throttlegroups><devices>
        <controller type='nvme' index='0'><serial>acme-2</serial><alias name='ua-acme-nvme'/></controller>
        <disk type='file'><driver name='qemu' type='qcow2'/><source file='/srv/acme/acme.qcow2'/>
        <backingStore type='file'><format type='raw'/><source file='/acme/base'/></backingStore>
        <target dev='vda' bus='virtio'/><throttlefilters><throttlefilter group='acme'/></throttlefilters>
        <serial>acme-1</serial><boot loadparm='acme'/><alias name='ua-acme'/></disk>
        <interface type='bridge'><source bridge='acme'/></interface></devices></domain>";
    let document = read(text).unwrap();
    let redacted = redactor(Level::Shareable).domain(document.domain());
    let xml = write::libvirt_xml(&redacted).unwrap();
    assert!(!xml.contains("acme") && !xml.contains("c7a5fdbd"), "{xml}");
    assert!(xml.contains("/srv/x") && xml.contains(".qcow2"), "{xml}");
}

proptest::proptest! {
    #![proptest_config(proptest::test_runner::Config { cases: 48, failure_persistence: None, ..Default::default() })]

    /// Disks that share images or not, on chains of relative and absolute names that end well or not.
    #[test]
    fn generated_guests_are_judged_alike(
        disks in proptest::collection::vec(("[ab]", "[a-d](\\.qcow2)?"), 1..5),
        files in proptest::collection::vec(("[ab]", "[a-d](\\.qcow2)?", "(\\.\\./[ab]/|/acme/[ab]/|)[a-d](\\.qcow2)?", 0..4_u8), 0..8),
    ) {
        let images: Vec<String> = disks
            .iter()
            .enumerate()
            .map(|(number, (directory, name))| {
                format!(
                    "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/acme/{directory}/{name}'/>\
                     <target dev='vd{}' bus='virtio'/></disk>",
                    char::from(b'a' + number as u8)
                )
            })
            .collect();
        let text = format!("<domain type='kvm'><name>acme</name><devices>{}</devices></domain>", images.concat());
        let files: Vec<String> = files
            .iter()
            .map(|(directory, name, backing, kind)| {
                let backing = match kind {
                    0 => "null".to_owned(),
                    1 => format!(r#"{{"path": "{backing}", "format": null}}"#),
                    _ => format!(r#"{{"path": "{backing}", "format": "qcow2"}}"#),
                };
                format!(
                    r#"{{"path": "/acme/{directory}/{name}", "present": true, "device": null, "image": {{"format": "qcow2", "backing": {backing}}}}}"#
                )
            })
            .collect();
        let facts = format!(r#"{{"schema_version": "1.0", "files": [{}]}}"#, files.join(","));
        let facts = Facts::from_json(&facts).unwrap().facts;
        let document = read(&text).unwrap();
        let whole = found(document.domain(), Some(&facts));
        let redactor = redactor(Level::Shareable);
        let redacted = found(&redactor.domain(document.domain()), Some(&redactor.facts(&facts).unwrap()));
        proptest::prop_assert_eq!(redacted, whole);
    }
}

/// Every facts file below `fixtures/`, with its JSON.
fn every_facts_file() -> Vec<(PathBuf, serde_json::Value)> {
    let mut files = Vec::new();
    let mut folders = vec![fixtures()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let entry = entry.unwrap();
            let path = entry.path();
            // Links of sysfs trees lead in circles.
            if entry.file_type().unwrap().is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "json") {
                let text = std::fs::read_to_string(&path).unwrap();
                let Ok(tree) = serde_json::from_str::<serde_json::Value>(&text) else {
                    continue;
                };
                if tree.get("schema_version").is_some() && Facts::from_json(&text).is_ok() {
                    files.push((text.len(), path, tree));
                }
            }
        }
    }
    // A place is tried in the first file that has it: the smallest is the cheapest.
    files.sort_by(|one, other| (one.0, &one.1).cmp(&(other.0, &other.1)));
    files
        .into_iter()
        .map(|(_, path, tree)| (path, tree))
        .collect()
}

/// A name that no fixture contains.
const CANARY: &str = "acme-canary";

/// Every text and object of a tree: its pointer, and its place with the list indexes left out.
fn places(tree: &serde_json::Value) -> Vec<(String, String)> {
    let mut found = Vec::new();
    let mut pending = vec![(tree, String::new(), String::new())];
    while let Some((here, pointer, place)) = pending.pop() {
        match here {
            serde_json::Value::Null | serde_json::Value::Bool(_) | serde_json::Value::Number(_) => {
            }
            serde_json::Value::String(_) => found.push((pointer, place)),
            serde_json::Value::Array(all) => {
                pending.extend(
                    all.iter()
                        .enumerate()
                        .map(|(nth, one)| (one, format!("{pointer}/{nth}"), format!("{place}[]"))),
                );
            }
            serde_json::Value::Object(map) => {
                pending.extend(map.iter().map(|(key, one)| {
                    let escaped = key.replace('~', "~0").replace('/', "~1");
                    (
                        one,
                        format!("{pointer}/{escaped}"),
                        format!("{place}.{key}"),
                    )
                }));
                found.push((pointer, format!("{place}.*")));
            }
        }
    }
    found
}

/// A file with the canary at one place: instead of a text and behind it, or as a key.
fn planted(tree: &serde_json::Value, pointer: &str) -> Vec<serde_json::Value> {
    let with = |value: serde_json::Value| {
        let mut copy = tree.clone();
        *copy.pointer_mut(pointer).unwrap() = value;
        copy
    };
    match tree.pointer(pointer).unwrap() {
        serde_json::Value::String(text) => {
            let whole = if text.starts_with('/') {
                format!("/{CANARY}/{CANARY}")
            } else {
                CANARY.to_owned()
            };
            vec![with(whole.into()), with(format!("{text}-{CANARY}").into())]
        }
        serde_json::Value::Object(map) => {
            let mut map = map.clone();
            map.insert(CANARY.to_owned(), "1".into());
            vec![with(map.into())]
        }
        other => unreachable!("{other}"),
    }
}

/// The words that an error message offers instead of another.
fn words_expected(message: &str) -> Vec<&str> {
    let offered = message.split_once("expected ").map_or("", |(_, offered)| {
        offered.strip_prefix("one of").unwrap_or(offered)
    });
    let words = offered.split([',', ' ']);
    words
        .map(|word| word.trim_matches([':', '`']))
        .filter(|word| !word.is_empty())
        .collect()
}

#[test]
fn measured_figures_stay_with_their_conditions() {
    let facts = crate::fixtures::facts_of(&fixtures().join("facts/measured.json"));
    for level in [Level::Shareable, Level::Minimal] {
        let redacted = redactor(level).facts(&facts).unwrap();
        let path = redactor(level).path("/srv/img/new.img");
        let found = Host::new(redacted.clone());
        let found = found.index().measured_on(&path).len();
        assert_eq!(found, facts.measured.len());
        for (one, other) in redacted.measured.iter().zip(&facts.measured) {
            assert_eq!(
                (&one.figures, &one.effects),
                (&other.figures, &other.effects)
            );
            assert_eq!(one.conditions(), other.conditions());
        }
    }
}

#[test]
fn a_name_planted_anywhere_in_any_facts_file_is_not_published() {
    let files = every_facts_file();
    assert!(files.len() > 80, "{} facts files", files.len());
    let mut seen = std::collections::BTreeSet::new();
    let mut words = std::collections::BTreeSet::new();
    let mut redacted = 0;
    for (_, tree) in &files {
        for (pointer, place) in places(tree) {
            if !seen.insert(place.clone()) {
                continue;
            }
            for planted in planted(tree, &pointer) {
                // A place that takes few words only cannot hold a name, and keeps each of them.
                let read = match Facts::from_json(&planted.to_string()) {
                    Ok(read) => read,
                    Err(error) => {
                        for word in words_expected(&error.to_string()) {
                            let mut copy = tree.clone();
                            *copy.pointer_mut(&pointer).unwrap() = word.into();
                            if let Ok(read) = Facts::from_json(&copy.to_string()) {
                                redactor(Level::Shareable).facts(&read.facts).unwrap();
                                words.insert(format!("{place} {word}"));
                            }
                        }
                        continue;
                    }
                };
                for level in [Level::Shareable, Level::Minimal] {
                    let text = redactor(level).facts(&read.facts).unwrap().to_json();
                    assert!(!text.contains(CANARY), "{place} {level:?}: {text}");
                }
                redacted += 1;
            }
        }
    }
    let counts = format!(
        "{} facts files, {} places, {redacted} names, {} words of places that take few",
        files.len(),
        seen.len(),
        words.len()
    );
    println!("{counts}");
    assert!(
        seen.len() > 300 && redacted > 500 && words.len() > 3,
        "{counts}"
    );
}
