//! What the rules say of redacted configurations and facts is what they say of the whole ones.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    reason = "a test reads fixtures, and one that cannot go on fails"
)]

use std::path::{Path, PathBuf};

use vmdisk::redact::{Level, Redactor};
use vmdisk::rules::RULES;
use vmdisk::{Facts, HostIndex, LintOptions, Target, lint, read, write};

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
    let index = facts.map(HostIndex::new);
    let options = LintOptions {
        host: index.as_ref(),
        target: facts.map_or_else(Target::default, Target::from_facts),
        ..LintOptions::default()
    };
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
        if rule.name == "identity-refused" {
            // It is about the letters of names, which redaction replaces.
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
            let whole = found(document.domain(), facts.as_ref());
            findings += whole.len();
            for level in Level::ALL {
                let redactor = redactor(*level);
                let facts = facts.as_ref().map(|facts| redactor.facts(facts).unwrap());
                let redacted = found(&redactor.domain(document.domain()), facts.as_ref());
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
