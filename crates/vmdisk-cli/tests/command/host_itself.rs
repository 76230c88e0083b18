//! The host itself, where a run has facts and no guest.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::{Value, json};

use crate::{CLEAN, Place, Run, sarif_schema};

/// Recorded facts.
fn facts(name: &str) -> Value {
    let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/facts");
    let text = std::fs::read_to_string(fixtures.join(format!("{name}.json"))).unwrap();
    serde_json::from_str(&text).unwrap()
}

/// The recorded encrypted device with a volume group on it. Discards of a file end in its file system.
fn on_luks(device: usize) -> Value {
    let mut facts = facts("luks-without-discards");
    let devices = facts["blockdevs"].as_array_mut().unwrap();
    let mut volume = devices[device].clone();
    volume["slaves"] = json!([volume["id"]]);
    volume["id"] = json!("b9");
    volume["kind"] = json!("lvm");
    volume["paths"] = json!(["/dev/vg0/root"]);
    volume["lvm"] = json!({"vg": "vg0", "lv": "root"});
    volume["crypt"] = Value::Null;
    devices.push(volume);
    facts
}

fn with(facts: &Value) -> Place {
    Place::with(&[("facts/host.json", &facts.to_string())])
}

fn check(facts: &Value, more: &[&str]) -> Run {
    with(facts).run(&[&["lint", "--facts", "facts/host.json"], more].concat())
}

/// The severity and the place of each rule that reports something.
fn found(facts: &Value) -> BTreeMap<String, (String, String)> {
    let run = check(facts, &["--format", "json"]);
    let report: Value = serde_json::from_str(&run.stdout).unwrap_or_else(|_| panic!("{run:?}"));
    let findings = report["findings"].as_array().unwrap();
    assert!(
        findings.iter().all(|it| it["subject"] == "host"),
        "{findings:?}"
    );
    let word = |it: &Value, key: &str| it[key].as_str().unwrap().to_owned();
    let one = |it| (word(it, "rule"), (word(it, "severity"), word(it, "path")));
    let found: BTreeMap<_, _> = findings.iter().map(one).collect();
    assert_eq!(found.len(), findings.len(), "each rule once: {findings:?}");
    let fails = found
        .values()
        .any(|it| it.0 == "error" || it.0 == "warning");
    assert_eq!(run.code, i32::from(fails), "{run:?}");
    found
}

#[test]
fn what_a_new_disk_would_suffer_from_is_found_on_its_host_and_not_on_a_healthy_one() {
    let healthy = found(&facts("xfs-nvme"));
    assert_eq!(healthy, BTreeMap::new());
    let cases = [
        (facts("md-degraded"), "md-degraded", "error", "/srv/img"),
        (
            facts("btrfs-checksums-6.18"),
            "btrfs-cow-image",
            "warning",
            "/srv/img",
        ),
        // A guest may do without.
        (
            facts("io-uring-disabled"),
            "io-uring-disabled",
            "advice",
            "/srv/img",
        ),
        (on_luks(1), "discard-crypt-blocked", "advice", "vg0"),
        (
            facts("unsafe-mounts"),
            "mount-nobarrier",
            "error",
            "/srv/nobarrier",
        ),
        (
            facts("lvm-thin-nearly-full"),
            "thin-pool-nearly-full",
            "error",
            "vg0/thin",
        ),
        (
            facts("tmpfs"),
            "image-on-volatile-filesystem",
            "warning",
            "/run/build",
        ),
        (
            facts("refused-images"),
            "read-only-filesystem",
            "error",
            "/srv/ro",
        ),
    ];
    for (facts, rule, severity, place) in cases {
        let found = found(&facts);
        let expected = (severity.to_owned(), format!("<host {place}>"));
        assert_eq!(found.get(rule), Some(&expected), "{rule}: {found:?}");
    }
    for (healthy, rule) in [
        (facts("btrfs-nocow-6.18"), "btrfs-cow-image"),
        (on_luks(0), "discard-crypt-blocked"),
    ] {
        assert_eq!(found(&healthy).get(rule), None, "{rule}");
    }
}

#[test]
fn what_several_places_share_is_said_once_with_their_names() {
    let mut both = facts("nvme-bfq");
    let one = check(&both, &[]);
    assert!(!one.stdout.contains("--> <host>\n"), "{one:?}");
    let mut more = both["dirs"][0].clone();
    more["path"] = json!("/srv/img/more");
    both["dirs"].as_array_mut().unwrap().push(more);
    let run = check(&both, &["-v"]);
    assert!(
        run.stdout.contains("--> <host>\n")
            && run
                .stdout
                .contains("it is so for new disks in /srv/img, /srv/img/more"),
        "{run:?}"
    );
    assert_eq!(
        run.stdout.matches("/dev/nvme0n1 below").count(),
        1,
        "{run:?}"
    );
    assert!(
        run.stderr.contains(
            "in 2 directories, 1 volume group, QEMU 10.0.13, libvirt 11.3, Linux 6.12.77"
        ),
        "{run:?}"
    );
}

#[test]
fn places_that_cannot_be_checked_are_named() {
    let run = check(&facts("unsafe-mounts"), &["--format", "concise"]);
    assert!(
        run.stderr.contains(
            "\nnot checked: /srv/full: a new disk of 10 GiB has no room, 8 GiB are free\n"
        ),
        "{run:?}"
    );
    let mut missing = facts("xfs-nvme");
    missing["dirs"][0]["present"] = json!(false);
    missing["files"] = json!([]);
    missing["blockdevs"] = json!([]);
    let run = check(&missing, &[]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stderr
            .contains("shows no place where this host keeps disks")
            || run
                .stderr
                .contains("show no place where this host keeps disks"),
        "{run:?}"
    );
    assert!(
        run.stderr
            .contains("/srv/img: the directory does not exist"),
        "{run:?}"
    );
}

#[test]
fn each_format_names_the_host_and_its_rules_can_be_ignored() {
    let facts = facts("md-degraded");
    for format in [
        "full",
        "concise",
        "json",
        "json-lines",
        "sarif",
        "github",
        "gitlab",
        "junit",
        "checkstyle",
        "prometheus",
        "html",
    ] {
        let run = check(&facts, &["--format", format]);
        assert_eq!(run.code, 1, "{format}: {run:?}");
        let names = [
            "<host /srv/img>",
            "&lt;host /srv/img&gt;",
            "%3Chost%20/srv/img%3E",
        ];
        assert!(
            run.stdout.contains("md-degraded") && names.iter().any(|it| run.stdout.contains(it)),
            "{format}: {run:?}"
        );
        assert!(!run.stdout.contains("`vda`"), "{format}: {run:?}");
        if format == "sarif" {
            sarif_schema::assert_valid(&serde_json::from_str(&run.stdout).unwrap());
        }
    }
    let report = check(&facts, &["--format", "json"]).stdout;
    let schema = Place::with(&[]).run(&["print", "schema", "report"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let report: Value = serde_json::from_str(&report).unwrap();
    assert!(
        jsonschema::validator_for(&schema)
            .unwrap()
            .is_valid(&report)
    );
    assert_eq!(report["not_checked"][0]["disk"], Value::Null);
    let run = check(&facts, &["--ignore", "md-degraded", "--format", "concise"]);
    assert_eq!(
        (run.code, run.stdout.contains("md-degraded")),
        (0, false),
        "{run:?}"
    );
    assert!(run.stderr.contains("1 allowed"), "{run:?}");
}

#[test]
fn a_guest_and_everything_else_that_is_asked_for_is_checked_instead() {
    let place = with(&facts("md-degraded"));
    let lint = |more: &[&str]| {
        let facts = ["lint", "--facts", "facts/host.json"];
        place.run(&[&facts, more].concat())
    };
    for (code, words, more) in [
        (1, "in 1 directory", &[][..]),
        (2, "contains a guest or a disk", &["."]),
        (2, "contains a guest or a disk", &["--fix"]),
        (2, "contains a guest or a disk", &["--show-files"]),
        (2, "of one host", &["--facts", "facts/other.json"]),
    ] {
        place.write("facts/other.json", facts("xfs-nvme").to_string().as_bytes());
        let run = lint(more);
        assert_eq!(run.code, code, "{more:?}: {run:?}");
        assert!(run.stderr.contains(words), "{more:?}: {run:?}");
    }
    let without_facts = place.run(&["lint"]);
    assert_eq!(without_facts.code, 2, "{without_facts:?}");
    assert!(
        without_facts.stderr.contains("`vmdisk lint --live` here"),
        "{without_facts:?}"
    );
    // A script that may start a guest, and a file that is excluded.
    place.write("start.sh", b"exec $QEMU # qemu-system-x86_64\n");
    assert_eq!(lint(&[]).code, 2);
    std::fs::remove_file(place.path("start.sh")).unwrap();
    place.write("old/a.xml", CLEAN.as_bytes());
    let excluded = lint(&["--exclude", "old/"]);
    assert_eq!(excluded.code, 2, "{excluded:?}");
    let guest = lint(&["--format", "concise"]);
    assert!(guest.stderr.contains(" in 1 file"), "{guest:?}");
    assert!(!guest.stdout.contains("<host"), "{guest:?}");
}

#[test]
fn this_host_can_be_checked() {
    let place = Place::with(&[]);
    let run = place.run(&["lint", "--live", "--format", "json"]);
    // Every host has a place, or says that it has none.
    if run.code == 2 {
        assert!(
            run.stdout.contains("no place where this host keeps disks"),
            "{run:?}"
        );
        return;
    }
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["inputs"][0]["path"], "<host>", "{run:?}");
    assert_eq!(report["inputs"][0]["status"], "checked", "{run:?}");
    assert!(report["inputs"].as_array().unwrap().len() > 1, "{run:?}");
    let written = std::fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(written, 0, "nothing is written");
}

#[test]
fn what_holds_on_every_host_is_no_finding_about_this_one() {
    let place = with(&facts("md-degraded"));
    let rule =
        "[[rule]]\nname = 'house-bus'\nwhen = 'disk.bus == \"virtio\"'\nmessage = 'no virtio'\n";
    place.write("vmdisk.toml", rule.as_bytes());
    let lint = ["lint", "--facts", "facts/host.json", "--format", "concise"];
    let host = place.run(&lint);
    assert!(host.stdout.contains("md-degraded"), "{host:?}");
    assert!(!host.stdout.contains("house-bus"), "{host:?}");
    place.write("a.xml", CLEAN.as_bytes());
    let guest = place.run(&lint);
    assert!(guest.stdout.contains("house-bus"), "{guest:?}");
}
