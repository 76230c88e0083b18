//! Several hosts: each thing is said once, with the hosts that it is about.

use std::path::Path;

use serde_json::{Value, json};

use crate::{Place, Run, sarif_schema};

fn fixture(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/facts");
    std::fs::read_to_string(path.join(name)).unwrap()
}

const GUEST: &str = "\
<domain type='kvm'>
  <name>db1</name>
  <os>
    <type arch='x86_64' machine='pc-q35-7.2'>hvm</type>
  </os>
  <features><acpi/></features>
  <devices>
    <disk type='file' device='disk'>
      <driver name='qemu' type='raw' cache='none' discard='unmap'/>
      <source file='/srv/img/web1.img'/>
      <target dev='vda' bus='virtio'/>
    </disk>
  </devices>
</domain>
";

/// Two hosts that differ in name alone, and an older one, which declares its class.
fn place() -> Place {
    let new = fixture("btrfs-checksums-6.18.json");
    Place::with(&[
        ("db1.xml", GUEST),
        ("facts/kvm1.json", &fixture("btrfs-checksums-6.1.json")),
        ("facts/kvm2.json", &new),
        ("facts/kvm3.json", &new.replace("kvm-gen", "other-")),
    ])
}

fn report(run: &Run) -> Value {
    serde_json::from_str(&run.stdout).unwrap_or_else(|error| panic!("{error}: {run:?}"))
}

fn of_rule<'a>(report: &'a Value, rule: &str) -> &'a Value {
    let findings = report["findings"].as_array().unwrap();
    let mut found = findings.iter().filter(|finding| finding["rule"] == rule);
    let first = found
        .next()
        .unwrap_or_else(|| panic!("no {rule}: {report}"));
    assert!(found.next().is_none(), "{rule} is said twice");
    first
}

#[test]
fn each_thing_is_said_once_with_the_classes_of_hosts_that_it_is_about() {
    let place = place();
    let run = place.run(&[
        "lint",
        "db1.xml",
        "--facts",
        "facts/*.json",
        "--format",
        "json",
    ]);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
    let report = report(&run);
    assert_eq!(
        report["host_classes"],
        json!([
            { "name": "kvm-gen1", "hosts": ["kvm1"] },
            { "name": "kvm2 and 1 more", "hosts": ["kvm2", "kvm3"] },
        ])
    );
    assert_eq!(report["hosts"][2]["class"], "kvm2 and 1 more");
    assert_eq!(report["hosts"][2]["facts"], "facts/kvm3.json");
    let (old, new) = (json!(["kvm-gen1"]), json!(["kvm2 and 1 more"]));
    for (rule, affected, not_affected) in [
        ("btrfs-dio-csum-corruption", &old, &new),
        ("btrfs-dio-buffered", &new, &old),
    ] {
        let hosts = &of_rule(&report, rule)["hosts"];
        assert_eq!(
            (&hosts["affected"], &hosts["not_affected"]),
            (affected, not_affected)
        );
        assert_eq!(hosts["not_checked"], json!([]));
    }
    // What is wrong everywhere is wrong on all classes.
    let everywhere = &of_rule(&report, "btrfs-cow-image")["hosts"]["affected"];
    assert_eq!(everywhere.as_array().unwrap().len(), 2);
    of_rule(&report, "migration-direct-io-differs");
    let schema: Value =
        serde_json::from_str(&place.run(&["print", "schema", "report"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(&report)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
    // A single host has no classes.
    let run = place.run(&[
        "lint",
        "db1.xml",
        "--facts",
        "facts/kvm1.json",
        "--format",
        "json",
    ]);
    assert!(!run.stdout.contains("host_classes"));
}

#[test]
fn a_directory_a_pattern_and_a_list_name_the_same_hosts() {
    let place = place();
    let list = ["facts/kvm1.json", "facts/kvm2.json", "facts/kvm3.json"];
    let listed: Vec<&str> = list.iter().flat_map(|file| ["--facts", file]).collect();
    let listed = place.run(&[&["lint", "db1.xml"][..], &listed].concat());
    assert!(
        listed
            .stderr
            .contains("3 hosts in 2 classes: kvm-gen1 (kvm1), "),
        "{listed:?}"
    );
    for facts in ["facts", "facts/", "facts/*.json", "fact?/kvm[123].json"] {
        let run = place.run(&["lint", "db1.xml", "--facts", facts]);
        assert_eq!(
            (run.code, &run.stdout, &run.stderr),
            (listed.code, &listed.stdout, &listed.stderr),
            "{facts}"
        );
    }
    let none = place.run(&["lint", "db1.xml", "--facts", "facts/*.yaml"]);
    assert_eq!((none.code, none.stdout.as_str()), (2, ""));
    assert!(none.stderr.contains("facts/*.yaml"), "{none:?}");
}

#[test]
fn every_format_names_the_hosts() {
    let place = place();
    for (format, words) in [
        ("full", "on kvm-gen1; not on kvm2 and 1 more"),
        ("concise", "(on kvm-gen1; not on kvm2 and 1 more)"),
        ("github", "%0Aon kvm-gen1; not on kvm2 and 1 more%0A"),
        ("sarif", "on kvm-gen1; not on kvm2 and 1 more"),
    ] {
        let run = place.run(&["lint", "db1.xml", "--facts", "facts", "--format", format]);
        assert!(run.stdout.contains(words), "{format}: {run:?}");
    }
    let run = place.run(&["lint", "db1.xml", "--facts", "facts", "--format", "sarif"]);
    let log = report(&run);
    sarif_schema::assert_valid(&log);
    let classes = &log["runs"][0]["properties"]["hostClasses"];
    assert_eq!(classes["kvm2 and 1 more"], json!(["kvm2", "kvm3"]));
    let results = log["runs"][0]["results"].as_array().unwrap();
    let result = results
        .iter()
        .find(|result| result["ruleId"] == "btrfs-dio-buffered")
        .unwrap();
    assert_eq!(
        result["properties"]["hosts"]["notAffected"],
        json!(["kvm-gen1"])
    );
}

#[test]
fn json_lines_begin_with_the_hosts_of_each_class() {
    let run = place().run(&[
        "lint",
        "db1.xml",
        "--facts",
        "facts",
        "--format",
        "json-lines",
    ]);
    let lines: Vec<Value> = run
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        lines[..2],
        [
            json!({ "type": "host-class", "name": "kvm-gen1", "hosts": ["kvm1"] }),
            json!({ "type": "host-class", "name": "kvm2 and 1 more", "hosts": ["kvm2", "kvm3"] }),
        ]
    );
    assert!(lines[2..].iter().all(|line| line["type"] == "finding"));
    let schema = place().run(&["print", "schema", "report-line"]).stdout;
    let validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    assert!(lines.iter().all(|line| validator.is_valid(line)));
}

#[test]
fn statistics_of_a_fleet_are_by_rule_class_of_hosts_and_severity() {
    let place = place();
    place.write("db2.xml", GUEST.replace("db1", "db2").as_bytes());
    place.write("broken.xml", b"<domain>");
    let run = |format: &str| {
        let lint = [
            "lint",
            ".",
            "--facts",
            "facts",
            "--statistics",
            "--format",
            format,
        ];
        let run = place.run(&lint);
        assert_eq!(run.code, 2, "{run:?}");
        run.stdout
    };
    let json: Value = serde_json::from_str(&run("json")).unwrap();
    let rules = json["rules"].as_array().unwrap();
    let of = |rule: &str| rules.iter().find(|one| one["rule"] == rule).unwrap();
    let errors = of("btrfs-dio-csum-corruption");
    assert_eq!(
        (&errors["findings"], &errors["host_classes"]),
        (&json!(2), &json!({ "kvm-gen1": 2 }))
    );
    let everywhere = json!({ "kvm-gen1": 2, "kvm-gen4": 2, "other-4": 2 });
    assert_eq!(of("btrfs-cow-image")["host_classes"], everywhere);
    let metrics = run("prometheus");
    let sample = "vmdisk_lint_findings{rule=\"btrfs-cow-image\",severity=\"warning\",host_class=\"kvm-gen1\"} 2\n";
    assert!(metrics.contains(sample), "{metrics}");
    assert!(metrics.contains("vmdisk_lint_failed_inputs 1\n") && !metrics.contains("guest="));
    let page = run("html");
    for words in [
        "<td>kvm-gen1: 2, kvm-gen4: 2, other-4: 2</td>",
        "3 hosts in 2 classes: ",
        "(facts of 2026-",
        "broken.xml",
    ] {
        assert!(page.contains(words), "{words}: {page}");
    }
    assert!(!page.contains("db1.xml"), "{page}");
}

#[test]
fn a_broken_facts_file_is_named_and_the_others_are_used() {
    let place = place();
    place.write("facts/kvm0.json", b"{");
    let run = place.run(&["lint", "db1.xml", "--facts", "facts", "--format", "json"]);
    assert_eq!(run.code, 2);
    assert!(run.stderr.contains("facts/kvm0.json"), "{run:?}");
    let report = report(&run);
    of_rule(&report, "btrfs-dio-csum-corruption");
    let failed = report["inputs"]
        .as_array()
        .unwrap()
        .iter()
        .find(|input| input["status"] == "failed")
        .unwrap();
    assert_eq!(failed["path"], "facts/kvm0.json");
    assert_eq!(report["hosts"].as_array().unwrap().len(), 3);
    // With none that can be read there is nothing to go by.
    let run = place.run(&[
        "lint",
        "db1.xml",
        "--facts",
        "facts/kvm0.json",
        "--facts",
        "gone.json",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(
        run.stderr.contains("kvm0.json") && run.stderr.contains("gone.json"),
        "{run:?}"
    );
}

#[test]
fn what_is_missing_on_one_host_is_not_checked_there() {
    let place = place();
    place.write("facts/kvm4.json", b"{\"schema_version\": \"1.0\"}");
    let run = place.run(&["lint", "db1.xml", "--facts", "facts", "--format", "json"]);
    let report = report(&run);
    let hosts = &of_rule(&report, "btrfs-dio-csum-corruption")["hosts"];
    assert_eq!(hosts["not_checked"], json!(["kvm4"]), "{hosts}");
    let missed = report["not_checked"].as_array().unwrap();
    let missed = missed
        .iter()
        .find(|missed| missed["rule"] == "btrfs-dio-csum-corruption")
        .unwrap();
    assert_eq!(missed["host_classes"], json!(["kvm4"]));
    let run = place.run(&["lint", "db1.xml", "--facts", "facts", "-v"]);
    assert!(run.stderr.contains(" on kvm4"), "{run:?}");
}

#[test]
fn a_fix_that_some_hosts_do_not_need_is_no_safe_one() {
    let place = place();
    let run = place.run(&["lint", "db1.xml", "--facts", "facts", "--fix"]);
    assert_eq!(place.read("db1.xml"), GUEST, "{run:?}");
    let run = place.run(&[
        "lint",
        "db1.xml",
        "--facts",
        "facts",
        "--fix",
        "--unsafe-fixes",
    ]);
    assert!(
        place.read("db1.xml").contains("cache='writeback'"),
        "{run:?}"
    );
}

/// Each guest in a directory with the name of its host.
fn by_host(hosts: usize) -> Place {
    let facts = fixture("btrfs-checksums-6.18.json");
    let place = Place::with(&[]);
    for number in 0..hosts {
        let facts = facts.replace("/srv/img", &format!("/srv/img{number}"));
        place.write(&format!("facts/h{number}.json"), facts.as_bytes());
        let guest = GUEST.replace("/srv/img", &format!("/srv/img{number}"));
        place.write(&format!("domains/h{number}/a.xml"), guest.as_bytes());
    }
    place
}

const EACH: &str = "{host}=domains/{host}/**";

#[test]
fn a_pattern_names_the_host_of_each_guest_by_its_directory() {
    let place = by_host(3);
    let lint = ["lint", "domains", "--facts", "facts", "--format", "concise"];
    let run = |more: &[&str]| place.run(&[&lint[..], more].concat());
    let each = run(&["--host", EACH]);
    let named: Vec<String> = (0..3).map(|n| format!("h{n}=domains/h{n}/*.xml")).collect();
    let named: Vec<&str> = named.iter().flat_map(|host| ["--host", host]).collect();
    assert_eq!(each.code, 1, "{each:?}");
    let named = run(&named);
    assert_eq!((&each.stdout, &each.stderr), (&named.stdout, &named.stderr));
    assert_eq!(each.stdout.matches("[btrfs-cow-image]").count(), 3);
    // Other hosts do not have its image.
    let select = ["--select", "source-missing", "--fail-on-unchecked"];
    assert_eq!(run(&[&select[..], &["--host", EACH]].concat()).code, 0);
    assert_eq!(run(&select).code, 1);
    std::fs::remove_file(place.path("facts/h1.json")).unwrap();
    let gone = run(&["--host", EACH]);
    assert_eq!(gone.code, 2);
    assert!(gone.stderr.contains("--host h1: no facts file"), "{gone:?}");
}

#[test]
fn the_time_of_a_fleet_grows_with_its_hosts() {
    let seconds = |hosts: usize| {
        let place = by_host(hosts);
        let arguments = [
            "lint",
            "domains",
            "--facts",
            "facts",
            "--host",
            EACH,
            "--statistics",
            "-j1",
        ];
        let once = || {
            let begun = std::time::Instant::now();
            let run = place.run(&arguments);
            assert_eq!(run.code, 1, "{run:?}");
            begun.elapsed().as_secs_f64()
        };
        once().min(once())
    };
    let (few, many) = (seconds(50), seconds(600));
    assert!(many < 40.0 * few, "50 hosts {few} s, 600 hosts {many} s");
}

#[test]
fn what_needs_one_host_says_so() {
    let place = place();
    let run = place.run(&[
        "generate",
        "--disk",
        "raw:/srv/img/new.img,size=1G",
        "--facts",
        "facts",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""));
    assert!(run.stderr.contains("names several hosts"), "{run:?}");
}
