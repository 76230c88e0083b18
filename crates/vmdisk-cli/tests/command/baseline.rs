//! Known findings: they do not count, whatever moves around them; new and stale ones are reported.

use serde_json::Value;

use crate::{CLEAN, Place, Run, UNSAFE};

const BASELINE: &str = "vmdisk-baseline.json";

/// Two guests with findings and one without.
fn guests() -> Place {
    Place::with(&[
        ("d/a.xml", UNSAFE),
        ("d/b.xml", &UNSAFE.replace("vda", "vdb")),
        ("d/clean.xml", CLEAN),
    ])
}

fn lint(place: &Place, more: &[&str]) -> Run {
    let words = ["lint", "d", "--baseline", BASELINE, "--format", "concise"];
    place.run(&[&words[..], more].concat())
}

fn entries(place: &Place) -> Vec<Value> {
    let file: Value = serde_json::from_str(&place.read(BASELINE)).unwrap();
    file["findings"].as_array().unwrap().clone()
}

/// Names in bytes that are not UTF-8 look the same as text.
#[cfg(unix)]
#[test]
fn files_whose_names_are_not_text_have_their_own_entries() {
    use std::os::unix::ffi::OsStrExt;
    let place = Place::with(&[("d/clean.xml", CLEAN)]);
    let path = |name: &[u8]| place.path("d").join(std::ffi::OsStr::from_bytes(name));
    std::fs::write(path(b"a\xfe.xml"), UNSAFE).unwrap();
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    let is_known = |file: &str| entries(&place).iter().any(|it| it["file"] == file);
    assert!(is_known(r"d/a\xfe.xml"));
    assert_eq!(lint(&place, &[]).code, 0);
    // Another name has no entry, and the entries of a file that exists are not stale.
    std::fs::rename(path(b"a\xfe.xml"), path(b"a\xff.xml")).unwrap();
    let renamed = lint(&place, &[]);
    assert_eq!(renamed.code, 1, "{renamed:?}");
    std::fs::write(path(b"a\xfe.xml"), CLEAN).unwrap();
    let pruned = place.run(&["lint", "d/clean.xml", "--prune-baseline"]);
    assert_eq!(pruned.code, 0, "{pruned:?}");
    assert!(
        is_known(r"d/a\xfe.xml"),
        "a file that is not checked is not stale"
    );
}

#[test]
fn known_findings_do_not_count_and_new_ones_do() {
    let place = guests();
    assert_eq!(place.run(&["lint", "d"]).code, 1);
    let created = place.run(&["lint", "d", "--write-baseline"]);
    assert_eq!(
        (created.code, created.stdout.as_str()),
        (0, ""),
        "{created:?}"
    );
    assert!(
        created
            .stderr
            .contains("wrote vmdisk-baseline.json; `--baseline vmdisk-baseline.json`"),
        "{created:?}"
    );
    let clean = lint(&place, &[]);
    assert_eq!((clean.code, clean.stdout.as_str()), (0, ""), "{clean:?}");
    assert!(clean.stderr.contains("in the baseline"), "{clean:?}");
    assert!(!clean.stderr.contains("stale"), "{clean:?}");

    // Lines above, and other disks, change nothing.
    place.write(
        "d/a.xml",
        format!("<!-- a\ncomment -->\n{UNSAFE}").as_bytes(),
    );
    assert_eq!(lint(&place, &[]).code, 0);

    // The same rule about another disk, and another rule about the same disk, are new.
    let other = UNSAFE.replace("vda", "vdc");
    place.write(
        "d/a.xml",
        format!("<devices>{UNSAFE}{other}</devices>").as_bytes(),
    );
    let run = lint(&place, &["--select", "cache-unsafe"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("`vdc`") && !run.stdout.contains("`vda`"),
        "{run:?}"
    );
    place.write(
        "d/a.xml",
        UNSAFE
            .replace("'/>\n  <so", "' io='native'/>\n  <so")
            .as_bytes(),
    );
    let run = lint(&place, &["--min-severity", "error"]);
    assert!(run.stdout.contains("native-without-direct"), "{run:?}");
    assert!(!run.stdout.contains("cache-unsafe"), "{run:?}");
}

#[test]
fn more_findings_of_one_kind_than_the_baseline_counts_are_new() {
    let two = UNSAFE.replace(
        "<driver",
        "<driver name='qemu' colour='raw' shape='x'/>\n  <driver",
    );
    let three = two.replace("shape='x'", "shape='x' taste='y'");
    let place = Place::with(&[("d/a.xml", &two)]);
    let of = |place: &Place| {
        let run = place.run(&["lint", "d", "--write-baseline", "--force"]);
        assert_eq!(run.code, 0, "{run:?}");
        let all = entries(place);
        let counts = all.iter().map(|entry| entry["count"].as_u64().unwrap());
        (counts.max().unwrap(), all.len())
    };
    let (count, _) = of(&place);
    assert_eq!(count, 2);
    place.write("d/a.xml", three.as_bytes());
    let run = lint(&place, &["--min-severity", "advice"]);
    assert_eq!(run.stdout.lines().count(), 1, "{run:?}");
    assert_eq!(of(&place).0, 3);
}

#[test]
fn stale_entries_are_reported_and_pruned() {
    let place = guests();
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    let before = entries(&place).len();
    place.write("d/a.xml", CLEAN.as_bytes());
    std::fs::remove_file(place.path("d/b.xml")).unwrap();
    let run = lint(&place, &[]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stderr.contains("entries of the baseline are stale"),
        "{run:?}"
    );
    assert!(
        run.stderr
            .contains("d/a.xml: cache-unsafe of `vda`: 0 of 1 left"),
        "{run:?}"
    );
    assert!(
        run.stderr
            .contains("d/b.xml: cache-unsafe of `vdb`: there is no such file"),
        "{run:?}"
    );
    assert!(!lint(&place, &["-q"]).stderr.contains("stale"));

    // A run that leaves rules or inputs out says nothing about them.
    for more in [&["--ignore", "all"][..], &["--select", "startup"]] {
        let run = lint(&place, more);
        assert!(!run.stderr.contains("d/a.xml: cache-unsafe"), "{run:?}");
    }
    let other = ["lint", "d/clean.xml", "--baseline", BASELINE];
    let run = place.run(&other);
    assert!(!run.stderr.contains("d/a.xml"), "{run:?}");

    let pruned = place.run(&["lint", "d", "--prune-baseline"]);
    assert_eq!((pruned.code, pruned.stdout.as_str()), (0, ""), "{pruned:?}");
    assert!(
        pruned.stderr.contains("stale entries removed"),
        "{pruned:?}"
    );
    let left = entries(&place);
    assert!(!left.is_empty() && left.len() < before, "{left:?}");
    assert!(
        left.iter()
            .all(|entry| entry["file"] != "d/b.xml" && entry["rule"] != "cache-unsafe")
    );
    assert!(!lint(&place, &[]).stderr.contains("stale"));
    let again = place.run(&["lint", "d", "--prune-baseline"]);
    assert!(again.stderr.contains("no stale entries"), "{again:?}");
}

#[test]
fn facts_that_are_missing_make_no_entry_stale() {
    let place = Place::with(&[("d/a.xml", UNSAFE)]);
    let facts = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../fixtures/facts/btrfs-checksums-6.1.json"
    );
    let text = UNSAFE
        .replace("cache='unsafe'", "cache='none'")
        .replace("qcow2", "raw");
    place.write(
        "d/a.xml",
        text.replace("/srv/web1.raw", "/srv/img/web1.img")
            .as_bytes(),
    );
    let created = place.run(&["lint", "d", "--write-baseline", "--facts", facts]);
    assert_eq!(created.code, 0, "{created:?}");
    assert!(
        place.read(BASELINE).contains("btrfs-"),
        "{}",
        place.read(BASELINE)
    );
    assert!(!lint(&place, &[]).stderr.contains("stale"));
    assert_eq!(lint(&place, &["--facts", facts]).code, 0);
    let pruned = place.run(&["lint", "d", "--prune-baseline"]);
    assert!(pruned.stderr.contains("no stale entries"), "{pruned:?}");
}

#[test]
fn an_existing_baseline_is_replaced_only_on_request_and_never_consulted() {
    let place = guests();
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    let first = place.read(BASELINE);
    let refused = place.run(&["lint", "d", "--write-baseline"]);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(
        refused.stderr.contains("vmdisk-baseline.json exists"),
        "{refused:?}"
    );
    assert_eq!(
        place
            .run(&["lint", "d", "--write-baseline", "--force"])
            .code,
        0
    );
    assert_eq!(place.read(BASELINE), first);
}

#[test]
fn the_configuration_names_a_baseline() {
    let place = guests();
    place.write("vmdisk.toml", b"baseline = \"ci/known.json\"\n");
    std::fs::create_dir(place.path(".git")).unwrap();
    std::fs::create_dir(place.path("ci")).unwrap();
    let missing = place.run(&["lint", "d"]);
    assert_eq!(missing.code, 2, "{missing:?}");
    for says in [
        "could not read the baseline ci/known.json: no such file or directory\n --> vmdisk.toml:1:12\n",
        "`vmdisk lint --write-baseline` writes one",
    ] {
        assert!(missing.stderr.contains(says), "{missing:?}");
    }
    // Only a run that reads it needs it.
    assert_eq!(place.run(&["lint", "d", "--show-files"]).code, 0);
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    assert!(
        place
            .read("ci/known.json")
            .contains("\"file\":\"../d/a.xml\"")
    );
    let run = place.run(&["lint", "d"]);
    assert_eq!(run.code, 0, "{run:?}");
    let settings = place.run(&["lint", "d", "--show-settings"]);
    assert!(
        settings.stdout.contains("baseline = \"ci/known.json\""),
        "{settings:?}"
    );
    place.write("d/a.xml", CLEAN.as_bytes());
    let pruned = place.run(&["lint", "d", "--prune-baseline"]);
    assert!(pruned.stderr.contains("ci/known.json: "), "{pruned:?}");
    assert_eq!(
        place.read("ci/known.json").matches("cache-unsafe").count(),
        1
    );
}

#[test]
fn a_broken_baseline_is_an_error_with_its_place() {
    let place = guests();
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    let broken = place
        .read(BASELINE)
        .replacen("\"count\":1", "\"count\":\"x\"", 1);
    place.write(BASELINE, broken.as_bytes());
    let run = lint(&place, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    assert!(run.stderr.contains("vmdisk-baseline.json:4:"), "{run:?}");
    // The configuration of a pull request may name any file.
    place.write(BASELINE, b"TOKEN=abc\n");
    let other = lint(&place, &[]);
    assert_eq!(other.code, 2, "{other:?}");
    assert!(other.stderr.contains("not a baseline"), "{other:?}");
    assert!(!other.stderr.contains("abc"), "{other:?}");
}

#[test]
fn the_file_has_a_schema_and_is_the_same_with_any_number_of_threads() {
    let place = Place::with(&[]);
    for number in 0..40 {
        let text = UNSAFE.replace("vda", if number % 2 == 0 { "vda" } else { "vdb" });
        place.write(&format!("d/{number:02}.xml"), text.as_bytes());
    }
    let schema = place.run(&["print", "schema", "baseline"]);
    let schema: Value = serde_json::from_str(&schema.stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let mut files = Vec::new();
    for jobs in ["1", "4"] {
        let run = place.run(&["lint", "d", "--write-baseline", "--force", "-j", jobs]);
        assert_eq!(run.code, 0, "{run:?}");
        let text = place.read(BASELINE);
        assert!(validator.is_valid(&serde_json::from_str(&text).unwrap()));
        files.push(text);
        let run = lint(&place, &["-j", jobs]);
        assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    }
    assert_eq!(files[0], files[1]);
    assert!(!validator.is_valid(&serde_json::json!({ "findings": [{}] })));
}

#[test]
fn known_findings_are_named_as_such_in_every_format() {
    let place = guests();
    assert_eq!(place.run(&["lint", "d/a.xml", "--write-baseline"]).code, 0);
    let report = |format: &str| {
        place
            .run(&["lint", "d", "--baseline", BASELINE, "--format", format])
            .stdout
    };
    let json: Value = serde_json::from_str(&report("json")).unwrap();
    let known = json["allowed"].as_array().unwrap();
    assert!(
        known
            .iter()
            .all(|one| one["allowed_by"]["by"] == "baseline")
    );
    assert_eq!(json["summary"]["known"], known.len());
    let sarif: Value = serde_json::from_str(&report("sarif")).unwrap();
    crate::sarif_schema::assert_valid(&sarif);
    let results = sarif["runs"][0]["results"].as_array().unwrap();
    for result in results {
        let is_known =
            result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"] == "d/a.xml";
        let state = if is_known { "unchanged" } else { "new" };
        assert_eq!(result["baselineState"], state);
        assert_eq!(
            result["suppressions"].as_array().map_or(0, Vec::len),
            usize::from(is_known)
        );
    }
    assert!(
        results
            .iter()
            .any(|result| result["baselineState"] == "new")
    );
    assert!(!report("github").contains("d/a.xml") && report("github").contains("d/b.xml"));
    assert!(report("junit").contains("known in the baseline"));
    let without = place.run(&["lint", "d", "--format", "sarif"]);
    assert!(!without.stdout.contains("baselineState"));
}

#[test]
fn a_config_file_of_several_command_lines_has_one_entry_for_each_finding() {
    let line = "qemu-system-x86_64 -readconfig disks.cfg";
    let config = "[drive]\n  file = \"/a.qcow2\"\n  format = \"qcow2\"\n  cache = \"unsafe\"\n  if = \"virtio\"\n";
    let place = Place::with(&[
        ("d/a.args", line),
        ("d/b.args", line),
        ("d/disks.cfg", config),
    ]);
    assert_eq!(lint(&Place::with(&[]), &[]).code, 2);
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    let text = place.read(BASELINE);
    assert_eq!(text.matches("cache-unsafe").count(), 1, "{text}");
    assert!(text.contains("\"file\":\"d/disks.cfg\""), "{text}");
    let run = lint(&place, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
}

#[test]
fn thousands_of_files_with_a_baseline_are_clean() {
    let place = Place::with(&[]);
    for number in 0..3000 {
        let text = format!(
            "<domain type='kvm'><name>g{number}</name><devices>{UNSAFE}</devices></domain>"
        );
        place.write(
            &format!("d/{:02}/{number}.xml", number % 50),
            text.as_bytes(),
        );
    }
    assert_eq!(place.run(&["lint", "d", "--write-baseline"]).code, 0);
    let run = lint(&place, &[]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{}", run.stderr);
}
