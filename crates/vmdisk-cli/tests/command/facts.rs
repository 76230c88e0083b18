//! Facts: collected here or below a recorded root, and what they change for lint.

use serde_json::Value;

use crate::{CLEAN, Place, Run};

fn facts(run: &Run) -> Value {
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    serde_json::from_str(&run.stdout).unwrap()
}

/// How many rules could not look at something.
fn not_checked(place: &Place, arguments: &[&str]) -> u64 {
    let run = place.run(&[&["lint", "a.xml", "--format", "json"], arguments].concat());
    assert!(run.code < 2, "{run:?}");
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    report["summary"]["rules_not_checked"].as_u64().unwrap()
}

#[test]
fn facts_of_this_host_can_be_read_back_and_let_more_be_checked() {
    let place = Place::with(&[("image.qcow2", "not really")]);
    let image = place.path("image.qcow2");
    place.write(
        "a.xml",
        CLEAN
            .replace("/srv/web1.qcow2", image.to_str().unwrap())
            .as_bytes(),
    );
    let collected = facts(&place.run(&["facts", "--for", "a.xml"]));
    assert_eq!(collected["files"][0]["path"], image.to_str().unwrap());
    let relative = facts(&place.run(&["facts", "image.qcow2"]));
    assert_eq!(relative["files"][0]["path"], image.to_str().unwrap());
    let run = place.run(&[
        "facts",
        "--for",
        "a.xml",
        "--format",
        "yaml",
        "--output",
        "facts.yaml",
    ]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    let without = not_checked(&place, &[]);
    assert!(not_checked(&place, &["--facts", "facts.yaml"]) < without);
    assert!(not_checked(&place, &["--live"]) < without);
}

#[test]
fn a_recorded_root_is_asked_instead_of_this_host() {
    let place = Place::with(&[
        ("root/proc/sys/kernel/osrelease", "5.10.0-1-amd64\n"),
        ("root/srv/a.img", "x"),
    ]);
    let collected = facts(&place.run(&["facts", "/srv/a.img", "--root", "root"]));
    assert_eq!(
        collected["kernel"]["version"],
        serde_json::json!([5, 10, 0])
    );
    let relative = place.run(&["facts", "a.img", "--root", "root"]);
    assert_eq!(relative.code, 2);
    assert!(
        relative
            .stderr
            .contains("the absolute path on the recorded host"),
        "{relative:?}"
    );
}

#[test]
fn a_recorded_host_gives_the_same_facts_file_again() {
    let place = Place::with(&[("image.qcow2", "not really"), ("used/file", "")]);
    let image = place.path("image.qcow2");
    place.write(
        "a.xml",
        CLEAN
            .replace("/srv/web1.qcow2", image.to_str().unwrap())
            .as_bytes(),
    );
    let recorded = place.run(&["facts", "--for", "a.xml", "--record", "host"]);
    assert_eq!(
        (recorded.code, recorded.stderr.as_str()),
        (0, ""),
        "{recorded:?}"
    );
    let again = place.run(&["facts", "--root", "host"]);
    assert_eq!(again.stdout, recorded.stdout);
    // What was asked for then is in the recording, and not this host's any more.
    std::fs::remove_file(&image).unwrap();
    assert_eq!(
        place.run(&["facts", "--root", "host"]).stdout,
        recorded.stdout
    );
    for arguments in [
        &["facts", "--record", "used"][..],
        &["facts", "--record", "host"],
        &["facts", "--record", "used/file"],
        &["facts", "--record", "no/such/parent"],
        &["facts", "--record", "new", "--root", "host"],
        &["facts", "--record", "new", "--probe-dio", "used"],
    ] {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(!run.stderr.is_empty());
    }
    assert!(!place.path("new").exists());
}

/// It may contain secrets, and is written by many names.
#[test]
fn a_recording_is_made_where_nobody_else_can_write() {
    use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, lchown, symlink};
    let place = Place::with(&[("home/x", ""), ("public/x", "")]);
    let record = |name: &str| place.run(&["facts", "--record", name]);
    assert_eq!(record("new/").code, 0);
    assert_eq!(
        std::fs::metadata(place.path("new")).unwrap().mode() & 0o777,
        0o700
    );
    std::fs::create_dir(place.path("open")).unwrap();
    let wide = |name: &str| {
        let mode = std::fs::Permissions::from_mode(0o777);
        std::fs::set_permissions(place.path(name), mode).unwrap();
    };
    wide("open");
    let refused = record("open");
    assert!(
        refused.stderr.contains("another user can write into it"),
        "{refused:?}"
    );
    // A link of another user in a directory where others can write.
    wide("public");
    symlink(place.path("home"), place.path("public/link")).unwrap();
    if lchown(place.path("public/link"), Some(1000), None).is_ok() {
        let refused = record("public/link/new");
        assert!(
            refused.stderr.contains("a link of another user"),
            "{refused:?}"
        );
        assert_eq!(std::fs::read_dir(place.path("home")).unwrap().count(), 1);
    }
}

#[test]
fn what_cannot_be_asked_is_a_failure_and_not_an_empty_answer() {
    let place = Place::with(&[("broken.xml", "<domain>"), ("file", "")]);
    for arguments in [
        &["facts", "--for", "missing.xml"][..],
        &["facts", "--for", "broken.xml"],
        &["facts", "--root", "missing"],
        &["facts", "--root", "file"],
        &["facts", "--probe-dio", "missing"],
        &["facts", "--group", "everything"],
    ] {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(!run.stderr.is_empty());
    }
}

#[test]
fn a_broken_file_of_a_directory_does_not_stop_the_facts_of_the_others() {
    let good = "<domain type='kvm'><name>a</name><devices><disk type='file'><source file='/srv/no-such.img'/>\
                <target dev='vda' bus='virtio'/></disk></devices></domain>";
    let place = Place::with(&[("guests/a.xml", good), ("guests/b.xml", "<domain")]);
    let run = place.run(&["facts", "--for", "guests"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("/srv/no-such.img"), "{run:?}");
    assert!(run.stderr.starts_with("warning: "), "{run:?}");
    assert!(run.stderr.contains("guests/b.xml:1:8"), "{run:?}");
}

/// A host with one image, on a file system with or without checksums.
fn host(nocow: bool, present: bool) -> String {
    format!(
        r#"{{"schema_version": "1.0", "collected_at": "2020-01-01T00:00:00Z", "host": {{"id": "acme-kvm1"}},
            "kernel": {{"version": [6, 1, 18]}}, "files": [{{"path": "/acme/web1.qcow2", "present": {present}, "nocow": {nocow},
            "device": null, "image": {{"format": "qcow2", "backing": {{"path": "base.qcow2", "format": "qcow2"}}}}}}]}}"#
    )
}

#[test]
fn what_changed_on_a_host_is_told_with_what_follows_for_a_guest() {
    let place = Place::with(&[
        ("old.json", &host(false, true)),
        ("new.json", &host(true, false)),
        ("a.xml", &CLEAN.replace("/srv/", "/acme/")),
    ]);
    let same = place.run(&["facts", "diff", "old.json", "old.json", "--for", "a.xml"]);
    assert_eq!(
        (same.code, same.stdout.as_str()),
        (0, "no differences\n0 new findings, 0 gone\n"),
        "{same:?}"
    );
    let run = place.run(&["facts", "diff", "old.json", "new.json", "--for", "a.xml"]);
    assert_eq!(run.code, 1, "{run:?}");
    let lines: Vec<&str> = run.stdout.lines().collect();
    assert_eq!(
        lines[..2],
        [
            "~ files[/acme/web1.qcow2].nocow: false → true",
            "~ files[/acme/web1.qcow2].present: true → false",
        ]
    );
    assert!(
        lines[2].starts_with("new finding: a.xml: error[source-missing]: "),
        "{run:?}"
    );
    assert_eq!(lines[3], "1 new finding, 0 gone");
}

#[test]
fn facts_that_are_too_old_or_not_understood_are_complained_about() {
    let odd = host(false, true).replace("\"device\": null", "\"devcie\": null");
    let place = Place::with(&[("old.json", &host(false, true)), ("odd.json", &odd)]);
    assert_eq!(place.run(&["facts", "check", "old.json"]).code, 0);
    let run = place.run(&["facts", "check", "old.json", "--max-age", "30d"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("2020-01-01T00:00:00Z is ") && run.stdout.contains(" days and "),
        "{run:?}"
    );
    let run = place.run(&["facts", "check", "odd.json"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("files[0].devcie"), "{run:?}");
    assert_eq!(place.run(&["facts", "check", "gone.json"]).code, 2);
    let age = place.run(&["facts", "check", "old.json", "--max-age", "soon"]);
    assert_eq!(age.code, 2);
}

#[test]
fn facts_are_shown_to_people() {
    let place = Place::with(&[("host.json", &host(false, true))]);
    let run = place.run(&["facts", "show", "host.json"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    for line in [
        "host           acme-kvm1",
        "libvirt        not collected",
        "file           /acme/web1.qcow2: qcow2 on base.qcow2 (qcow2), O_DIRECT: not collected",
    ] {
        assert!(
            run.stdout.lines().any(|found| found == line),
            "{line}: {run:?}"
        );
    }
}

#[test]
fn the_kernel_is_shown_without_empty_brackets() {
    let kernel = |kernel: &str| {
        let text = format!(r#"{{"schema_version":"1.0","kernel":{{{kernel}}}}}"#);
        let place = Place::with(&[("host.json", &text)]);
        let run = place.run(&["facts", "show", "host.json"]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
        let line = run.stdout.lines().find(|line| line.starts_with("kernel"));
        line.unwrap_or_default()["kernel".len()..].trim().to_owned()
    };
    assert_eq!(
        kernel(r#""version":[6,1,99],"vendor":"debian""#),
        "6.1.99 (debian)"
    );
    assert_eq!(kernel(r#""version":[6,18,44],"vendor":null"#), "6.18.44");
    assert_eq!(kernel(""), "not collected");
}

#[test]
fn a_mount_is_shown_with_what_is_known_of_it() {
    for (known, shown) in [
        ("", "not collected"),
        (
            r#","fstype":"ext4","source":"/dev/vda1""#,
            "ext4 of /dev/vda1",
        ),
        (r#","fstype":"ext4""#, "ext4"),
        (r#","source":"/dev/vda1""#, "/dev/vda1"),
    ] {
        let mount = format!(r#"{{"id":"m1","point":"/srv"{known}}}"#);
        let text = format!(r#"{{"schema_version":"1.0","mounts":[{mount}]}}"#);
        let place = Place::with(&[("host.json", &text)]);
        let run = place.run(&["facts", "show", "host.json"]);
        let line = format!("mount          /srv: {shown}");
        assert!(run.stdout.lines().any(|found| found == line), "{run:?}");
    }
}

#[test]
fn kvm_is_shown_as_far_as_it_was_tried() {
    for (known, shown) in [
        (
            r#""dev_kvm":true"#,
            "present, not tried (`vmdisk facts --group kvm` tries it)",
        ),
        (r#""dev_kvm":true,"proven":true"#, "seen to run a guest"),
        (
            r#""dev_kvm":true,"proven":false,"trial":"a guest did not finish""#,
            "present, boots nothing: a guest did not finish",
        ),
        (
            r#""dev_kvm":false,"obstacle":"module""#,
            "not there: no module of KVM is loaded",
        ),
    ] {
        let text = format!(r#"{{"schema_version":"1.0","kvm":{{{known}}}}}"#);
        let place = Place::with(&[("host.json", &text)]);
        let run = place.run(&["facts", "show", "host.json"]);
        let line = format!("kvm            {shown}");
        assert!(run.stdout.lines().any(|found| found == line), "{run:?}");
    }
}

#[test]
fn redacted_facts_fit_the_configuration_redacted_with_the_same_salt() {
    let place = Place::with(&[
        ("host.json", &host(false, false)),
        ("a.xml", &CLEAN.replace("/srv/", "/acme/")),
        ("salt", "a salt that nobody guesses\n"),
        ("short", "salt"),
    ]);
    for (from, to) in [("host.json", "shared.json"), ("a.xml", "shared.xml")] {
        let run = place.run(&["facts", "redact", from, "--salt-file", "salt", "-o", to]);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
        let text = place.read(to);
        assert!(
            !text.contains("acme") && !text.contains("web1") && text.contains("/x"),
            "{text}"
        );
    }
    let findings = |xml: &str, facts: &str| {
        let run = place.run(&["lint", xml, "--facts", facts, "--format", "json"]);
        let report: Value = serde_json::from_str(&run.stdout).unwrap();
        let rules: Vec<String> = report["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["rule"].as_str().unwrap().to_owned())
            .collect();
        rules
    };
    let whole = findings("a.xml", "host.json");
    assert!(whole.contains(&"source-missing".to_owned()), "{whole:?}");
    assert_eq!(findings("shared.xml", "shared.json"), whole);
    for arguments in [
        &["facts", "redact", "host.json", "--salt-file", "short"][..],
        &["facts", "redact", "host.json", "--salt-file", "gone"],
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    }
    let mut command = place.command(["facts", "redact", "host.json"]);
    command.env_remove("VMDISK_SALT");
    assert_eq!(crate::finish(command, b"").code, 2);
    let mut command = place.command(["facts", "redact", "host.json"]);
    command.env("VMDISK_SALT", "a salt that nobody guesses");
    let run = crate::finish(command, b"");
    assert_eq!(run.stdout, place.read("shared.json"));
}

#[test]
fn a_spec_and_a_command_line_are_not_redacted_and_the_help_says_what_is() {
    let spec = "version: 1\ndisks:\n- raw: {path: /acme/payroll.img}\n";
    let line = "qemu-system-x86_64 -drive file=/acme/payroll.img,format=raw,if=virtio\n";
    let place = Place::with(&[
        ("guest.yaml", spec),
        ("guest.args", line),
        ("salt", "a salt that nobody guesses\n"),
    ]);
    for (file, remedy) in [
        (
            "guest.yaml",
            &["generate", "guest.yaml", "-o", "guest.xml"][..],
        ),
        (
            "guest.args",
            &[
                "convert",
                "guest.args",
                "--to",
                "libvirt-xml",
                "-o",
                "guest.xml",
            ],
        ),
    ] {
        let run = place.run(&["facts", "redact", file, "--salt-file", "salt"]);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
        assert!(
            run.stderr
                .contains("only facts and libvirt XML can be redacted")
                && run.stderr.contains(&format!("run `vmdisk {} ", remedy[0])),
            "{run:?}"
        );
        let made = place.run(remedy);
        assert_eq!(made.code, 0, "{made:?}");
        let redacted = place.run(&["facts", "redact", "guest.xml", "--salt-file", "salt"]);
        assert_eq!(redacted.code, 0, "{redacted:?}");
        assert!(!redacted.stdout.contains("acme"), "{redacted:?}");
    }
}

#[test]
fn a_difference_for_programs_is_what_its_published_schema_says() {
    let host = |kernel: &str, disabled: u32| {
        format!(
            r#"{{"schema_version": "1.0", "kernel": {{"release": "{kernel}"}}, "limits": {{"io_uring_disabled": {disabled}}}}}"#
        )
    };
    let place = Place::with(&[
        (
            "a.xml",
            &CLEAN.replace("cache='writeback'", "cache='none' io='io_uring'"),
        ),
        ("old.json", &host("6.1", 0)),
        ("new.json", &host("6.6", 2)),
    ]);
    let arguments = [
        "facts", "diff", "old.json", "new.json", "--for", "a.xml", "--format", "json",
    ];
    let run = place.run(&arguments);
    assert_eq!((run.code, run.stderr.as_str()), (1, ""), "{run:?}");
    let difference: Value = serde_json::from_str(&run.stdout).unwrap();
    let schema = place.run(&["print", "schema", "facts-diff"]).stdout;
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&difference), "{difference}");
    assert_eq!(
        difference["changes"],
        serde_json::json!([
            { "path": "kernel.release", "old": "6.1", "new": "6.6" },
            { "path": "limits.io_uring_disabled", "old": "0", "new": "2" },
        ])
    );
    let found = &difference["new_findings"][0];
    assert_eq!(
        (&found["rule"], &found["disk"]),
        (&"io-uring-disabled".into(), &"vda".into())
    );
    assert_eq!(difference["gone_findings"], serde_json::json!([]));
    let same = place.run(&["facts", "diff", "old.json", "old.json", "--format", "json"]);
    assert_eq!(same.code, 0, "{same:?}");
}

/// A guest on two images below a directory.
fn guest(directory: &std::path::Path, names: [&str; 2]) -> String {
    let disk = |name: &str, target: &str| {
        let path = directory.join(name);
        CLEAN
            .replace("/srv/web1.qcow2", path.to_str().unwrap())
            .replace("vda", target)
    };
    let disks = [disk(names[0], "vda"), disk(names[1], "vdb")].concat();
    format!("<domain type='kvm'><name>a</name><devices>{disks}</devices></domain>")
}

#[test]
fn guests_are_named_by_files_directories_patterns_and_expanded_patterns() {
    let place = Place::with(&[
        ("img/1", "1"),
        ("img/2", "2"),
        ("img/3", "3"),
        ("img/4", "4"),
    ]);
    let images = place.path("img");
    place.write("vms/a.xml", guest(&images, ["1", "2"]).as_bytes());
    place.write("vms/b.xml", guest(&images, ["3", "4"]).as_bytes());
    place.write("vms/network.xml", b"<network/>");
    let paths = |run: &Run| -> Vec<String> {
        let files = &facts(run)["files"];
        let path = |file: &Value| file["path"].as_str().unwrap().to_owned();
        files.as_array().unwrap().iter().map(path).collect()
    };
    let all: Vec<String> = ["1", "2", "3", "4"]
        .map(|name| images.join(name).display().to_string())
        .into();
    for arguments in [
        &["--for", "vms/a.xml", "--for", "vms/b.xml"][..],
        &["--for", "vms"],
        &["--for", "vms/*.xml"],
        &["--for", "**/*.xml"],
        // What a shell makes of `--for vms/[ab].xml`.
        &["--for", "vms/a.xml", "vms/b.xml"],
        &["vms/a.xml", "vms/b.xml"],
    ] {
        let run = place.run(&[&["facts"], arguments].concat());
        assert_eq!(paths(&run), all, "{arguments:?}");
    }
    let piped = place.run_with_input(&["facts", "--for", "-"], place.read("vms/a.xml").as_bytes());
    assert_eq!(paths(&piped), all[..2]);
    let one = place.run(&["facts", "vms/a.xml", "img/4"]);
    assert_eq!(
        paths(&one),
        [all[0].clone(), all[1].clone(), all[3].clone()]
    );
    for arguments in [
        &["facts", "--for", "img"][..],
        &["facts", "--for", "vms/*.yaml"],
        &["facts", "--for", "vms/network.xml"],
    ] {
        let run = place.run(arguments);
        assert_eq!((run.code, run.stdout.as_str()), (2, ""), "{run:?}");
    }
}

#[test]
fn a_path_that_does_not_exist_is_reported_beside_the_facts() {
    let place = Place::with(&[("image", "x")]);
    let missing = place.path("imgae").display().to_string();
    let run = place.run(&["facts", "image", "imgae"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stderr
            .contains(&format!("warning: {missing} does not exist")),
        "{run:?}"
    );
    let facts: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(facts["files"][1]["present"], false);
}

#[test]
fn a_group_adds_to_the_core() {
    let place = Place::with(&[]);
    let facts = facts(&place.run(&["facts", "--group", "zfs"]));
    let groups = facts["collector"]["groups"].to_string();
    assert!(facts["kernel"]["release"].is_string(), "{groups}");
}

#[test]
fn values_that_change_by_themselves_are_no_difference() {
    let host = |free: u64, kernel: &str| {
        format!(
            r#"{{"schema_version": "1.0", "kernel": {{"release": "{kernel}"}}, "memory": {{"available_bytes": {free}}},
                "limits": {{"aio_nr": {free}, "aio_max_nr": 65536}}, "mounts": [{{"id": "m1", "point": "/", "fs": "f1"}}],
                "filesystems": [{{"id": "f1", "kind": "ext4", "free_bytes": {free}}}]}}"#
        )
    };
    let place = Place::with(&[
        ("old.json", &host(1, "6.1")),
        ("new.json", &host(2, "6.1")),
        ("other.json", &host(2, "6.6")),
    ]);
    let same = place.run(&["facts", "diff", "old.json", "new.json"]);
    assert_eq!(
        (same.code, same.stdout.as_str()),
        (0, "no differences\n"),
        "{same:?}"
    );
    let other = place.run(&["facts", "diff", "old.json", "other.json"]);
    assert_eq!(other.stdout, "~ kernel.release: 6.1 → 6.6\n");
    let all = place.run(&["facts", "diff", "old.json", "new.json", "--volatile"]);
    assert_eq!((all.code, all.stdout.lines().count()), (1, 3), "{all:?}");
}

#[test]
fn old_facts_are_reported_by_lint() {
    let place = Place::with(&[("a.xml", CLEAN), ("old.json", &host(false, true))]);
    place.write(
        "new.json",
        host(false, true)
            .replace("2020-01-01", "2026-11-20")
            .as_bytes(),
    );
    place.write("none.json", br#"{"schema_version": "1.0"}"#);
    let lint = |arguments: &[&str]| place.run(&[&["lint", "a.xml"], arguments].concat());
    let old = lint(&["--facts", "old.json"]);
    assert_eq!(old.code, 0, "{old:?}");
    assert!(
        old.stderr
            .contains("the facts in old.json are 2517 days old"),
        "{old:?}"
    );
    assert_eq!(lint(&["--facts", "old.json", "-q"]).stderr, "");
    assert!(!lint(&["--facts", "new.json"]).stderr.contains("days old"));
    let several = lint(&["--facts", "new.json", "--facts", "old.json"]);
    assert!(
        several.stderr.contains("old.json are 2517 days"),
        "{several:?}"
    );
    for (file, code) in [("new.json", 0), ("old.json", 1), ("none.json", 1)] {
        for format in ["full", "json"] {
            let run = lint(&[
                "--facts",
                file,
                "--max-facts-age",
                "30d",
                "-q",
                "--format",
                format,
            ]);
            assert_eq!(run.code, code, "{file}: {run:?}");
            assert_eq!(run.stderr.contains("warning: "), code == 1, "{run:?}");
        }
    }
    let sarif = lint(&[
        "--facts",
        "old.json",
        "--max-facts-age",
        "30d",
        "--format",
        "sarif",
    ]);
    assert!(sarif.stdout.contains("\"exitCode\": 1"), "{sarif:?}");
    let without = lint(&["--max-facts-age", "30d"]);
    assert_eq!(without.code, 2, "{without:?}");
    assert!(without.stderr.contains("needs facts"), "{without:?}");
    place.write("vmdisk.toml", b"facts = [\"old.json\"]\n");
    let configured = lint(&["--max-facts-age", "30d"]);
    assert_eq!(configured.code, 1, "{configured:?}");
}

#[test]
fn a_run_fails_if_a_rule_could_not_be_checked_and_that_is_asked_for() {
    let place = Place::with(&[
        ("a.xml", CLEAN),
        ("none.json", r#"{"schema_version": "1.0"}"#),
    ]);
    place.write(
        "nothing.xml",
        b"<domain type='kvm'><name>a</name><devices/></domain>",
    );
    for (file, facts) in [("a.xml", &[][..]), ("a.xml", &["--facts", "none.json"])] {
        let arguments = [&["lint", file, "-q"], facts].concat();
        let run = place.run(&arguments);
        assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
        let run = place.run(&[&arguments[..], &["--fail-on-unchecked"]].concat());
        assert_eq!(run.code, 1, "{run:?}");
        assert!(
            run.stderr.contains("not checked, which fails the run"),
            "{run:?}"
        );
    }
    let fixture =
        |name: &str| format!("{}/../../fixtures/clean/{name}", env!("CARGO_MANIFEST_DIR"));
    let covered = fixture("raw-on-lvm-with-virtio-scsi.xml");
    let facts = fixture("raw-on-lvm-with-virtio-scsi.facts.json");
    let lint = ["lint", &covered, "--facts", &facts, "--fail-on-unchecked"];
    // Its host may have other guests, unless it is named as all of them.
    assert_eq!(place.run(&lint).code, 1);
    let host = "raw-on-lvm-with-virtio-scsi.facts=/**";
    let run = place.run(&[&lint[..], &["--host", host]].concat());
    assert_eq!(run.code, 0, "{run:?}");
}

#[test]
fn many_unknown_keys_are_one_line_and_few_have_a_line_each() {
    let facts = |keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| format!(r#""{key}":1"#)).collect();
        format!(
            r#"{{"schema_version":"1.0","kernel":{{"release":"6.1.0",{}}}}}"#,
            keys.join(",")
        )
    };
    let many = ["qqa", "qqb", "qqc", "qqd", "qqe", "qqf", "qqg", "qqh"];
    let place = Place::with(&[
        ("a.xml", CLEAN),
        ("many facts.json", &facts(&many)),
        ("few.json", &facts(&many[..3])),
    ]);
    let lint = |facts: &str| place.run(&["lint", "a.xml", "--facts", facts]);
    let summed = "warning: many facts.json: 8 keys are not known and were not read: `kernel.qqa`, `kernel.qqb`, `kernel.qqc` and \
                  5 more\n |\n = help: `vmdisk facts check 'many facts.json'` lists them\n";
    let many = lint("many facts.json").stderr;
    assert!(
        many.starts_with(summed) && !many.contains("kernel.qqd"),
        "{many}"
    );
    assert_eq!(
        lint("few.json")
            .stderr
            .matches("not known and was not read")
            .count(),
        3
    );
    let check = place.run(&["facts", "check", "many facts.json"]);
    assert_eq!(
        (check.code, check.stdout.lines().count()),
        (1, 8),
        "{check:?}"
    );
}
