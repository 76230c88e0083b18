//! A facts file is read in both syntaxes, mistakes have places, and nothing is lost silently.

use vmdisk_facts::blockdev::Percent;
use vmdisk_facts::{
    Answer, Basis, Capability, DeviceNumber, Fact, Facts, FactsError, FsKind, MAX_BYTES, Reason,
    Target, Unknown, Version,
};

const SAMPLE: &str = r#"{
  "schema_version": "1.0",
  "_note": "written by hand",
  "kernel": {"release": "6.18.44", "version": [6, 18, 44], "vendor": "debian"},
  "kvm": {"dev_kvm": true, "access": {"unknown": "permission"}, "nested": null},
  "limits": {"io_uring_disabled": 0, "aio_max_nr": 65536},
  "memory": {"hugepages": {"2048": {"nr": 0, "free": 0}, "1048576": {"nr": 4, "free": 1}}},
  "qemu": [{"path": "/usr/bin/qemu-system-x86_64", "version": [7, 2, 22], "aio": ["threads", "io_uring"]}],
  "libvirt": {"version": [9, 0, 0]},
  "mounts": [{"id": "m1", "fstype": "btrfs", "point": "/srv/images", "fs": "f1",
              "options": {"compress": null, "discard": "async", "ro": false, "noatime": true}}],
  "filesystems": [{"id": "f1", "kind": "btrfs", "magic": "0x9123683e", "free_bytes": 936000000,
                   "btrfs": {"data_profile": ["single"], "checksum": "crc32c", "sectorsize": 4096}, "devices": ["b1"]}],
  "dirs": [{"path": "/srv/images", "mount": "m1", "nocow": false,
            "dio": {"open": "ok", "dioalign": "unset", "nowait_overwrite": "EAGAIN", "w512": "ok", "_how": "probed"}}],
  "files": [{"path": "/srv/images/a.qcow2", "mount": "m1", "mode": "0600", "size": 196624, "nocow": false,
             "image": {"format": "qcow2", "version": 3, "virtual_size": 1073741824, "backing": {"path": "base.img", "format": null}}},
            {"path": "/srv/images/gone.img", "present": false}],
  "blockdevs": [{"id": "b1", "dev": "253:5", "kind": "lvm-thin", "paths": ["/dev/dm-5", "/dev/vg/thin1"],
                 "queue": {"logical": 512, "rotational": true, "scheduler": null},
                 "lvm": {"zero": false, "chunk": 4194304, "data_percent": 87.53}, "slaves": [], "by_id": null}],
  "errors": [{"what": "lvs", "reason": "permission", "detail": "open failed"}]
}"#;

fn sample() -> Facts {
    let read = Facts::from_json(SAMPLE).expect("the sample is valid");
    assert_eq!(read.warnings, []);
    read.facts
}

#[test]
fn every_state_of_a_value_survives_a_round_trip() {
    let facts = sample();
    assert_eq!(facts.kernel.version, Fact::Known(Version(6, 18, 44)));
    assert_eq!(facts.kvm.nested, Fact::Absent);
    assert_eq!(facts.kvm.access, Fact::unknown(Reason::Permission, ""));
    assert_eq!(facts.kvm.proven, Fact::NotCollected);
    assert_eq!(facts.filesystems[0].kind, FsKind::Btrfs);
    assert_eq!(facts.memory.hugepages[&1_048_576].nr, Fact::Known(4));
    assert_eq!(facts.errors[0].reason, Reason::Permission);
    assert!(facts.files[1].is_missing());
    assert!(!facts.files[0].is_missing());
}

#[test]
fn a_mount_option_is_set_unset_or_not_collected() {
    let facts = sample();
    let mount = &facts.mounts[0];
    assert_eq!(mount.has_option("noatime"), Fact::Known(true));
    assert_eq!(mount.has_option("compress"), Fact::Known(false));
    assert_eq!(mount.has_option("ro"), Fact::Known(false));
    assert_eq!(mount.has_option("nodatasum"), Fact::NotCollected);
    assert!(mount.option("discard").known().unwrap().is_text("async"));
    assert_eq!(mount.read_only(), Fact::Known(false));
}

#[test]
fn json_and_yaml_carry_the_same_facts() {
    let facts = sample();
    assert_eq!(Facts::from_json(&facts.to_json()).unwrap().facts, facts);
    assert_eq!(Facts::from_yaml(&facts.to_yaml()).unwrap().facts, facts);
    assert_eq!(Facts::parse(&facts.to_yaml()).unwrap().facts, facts);
    assert_eq!(Facts::parse(&facts.to_json()).unwrap().facts, facts);
}

#[test]
fn keys_are_written_in_order_and_twice_the_same() {
    let text = sample().to_json();
    assert_eq!(text, sample().to_json());
    let top: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("  \"")?.split('"').next())
        .collect();
    assert!(top.len() > 10);
    assert!(top.is_sorted(), "{top:?}");
    assert!(text.ends_with("}\n"));
}

#[test]
fn a_wrong_value_is_reported_by_its_path() {
    let cases = [
        (
            r#"{"files":[{"path":"/a"},{"path":"/b","size":"big"}]}"#,
            "files[1].size",
            "expected u64, found text",
        ),
        (
            r#"{"files":[{"size":1}]}"#,
            "files[0]",
            "missing field `path`",
        ),
        (
            r#"{"kernel":{"version":"6.18"}}"#,
            "kernel.version",
            "expected a sequence",
        ),
        (
            r#"{"kernel":{"version":[1,2,3,4]}}"#,
            "kernel.version",
            "one to three numbers",
        ),
        (
            r#"{"memory":{"hugepages":{"2M":{}}}}"#,
            "memory.hugepages.2M",
            "expected a number as the key",
        ),
        (
            r#"{"files":[{"path":"/a","mode":"rw"}]}"#,
            "files[0].mode",
            "'rw' is not permission bits in octal",
        ),
        (
            r#"{"blockdevs":[{"id":"b","kind":"disk","dev":"8"}]}"#,
            "blockdevs[0].dev",
            "'8' is not a device number",
        ),
        (
            r#"{"dirs":[{"path":"/","dio":{"dioalign":"maybe"}}]}"#,
            "dirs[0].dio.dioalign",
            "unknown variant `maybe`",
        ),
        (
            r#"{"kvm":{"dev_kvm":{"detail":"x"}}}"#,
            "kvm.dev_kvm",
            "a detail without the reason",
        ),
        (
            r#"{"kernel":{"cmdline":{"a b":7}}}"#,
            "kernel.cmdline[\"a b\"]",
            "expected a string",
        ),
        (r"[1]", "", "expected keys such as"),
        (
            r#"{"filesystems":[{"id":"f","kind":"btrfs","btrfs":[["single"]]}]}"#,
            "filesystems[0].btrfs",
            "found a list",
        ),
        (
            r#"{"schema_version":"one"}"#,
            "schema_version",
            "expected a version",
        ),
        (
            r#"{"schema_version":null}"#,
            "schema_version",
            "expected a version",
        ),
    ];
    for (text, place, complaint) in cases {
        match Facts::from_json(text) {
            Err(FactsError::Value { path, message, .. }) => {
                assert_eq!(path, place, "{text}: {message}");
                assert!(message.contains(complaint), "{text}: {message}");
            }
            other => panic!("{text}: {other:?}"),
        }
        // The same mistake has the same place in YAML, of which JSON is a part.
        assert_eq!(Facts::from_yaml(text), Facts::from_json(text), "{text}");
    }
}

#[test]
fn a_wrong_value_is_reported_with_line_and_column() {
    let text = "files:\n- path: /a\n- path: /b\n  size: big\n";
    assert_eq!(
        Facts::parse(text).unwrap_err().to_string(),
        "line 4, column 9: files[1].size: expected u64, found text"
    );
    let warnings = Facts::parse("kernel: {relaese: x, release: y}\n")
        .unwrap()
        .warnings;
    assert_eq!(
        warnings[1].to_string(),
        "kernel.relaese: this key is not known and was not read; did you mean `release`?"
    );
}

#[test]
fn a_newer_major_version_is_refused_with_both_numbers() {
    // Nothing else in it is complained about: its shape may be entirely different.
    let error = Facts::from_json(r#"{"schema_version":"2.0","files":7}"#).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the facts file has schema version 2.0, and this program reads 1.0: use a newer vmdisk, or collect the facts with this one"
    );
    assert!(matches!(
        Facts::from_yaml("schema_version: 2.0\n").unwrap_err(),
        FactsError::Version { .. }
    ));
    assert!(matches!(
        Facts::from_yaml("schema_version: 0.9\n").unwrap_err(),
        FactsError::Version { .. }
    ));
}

#[test]
fn a_newer_minor_version_is_read_with_a_warning() {
    let read =
        Facts::from_json(r#"{"schema_version":"1.7","kernel":{"flavour":"rt","release":"7.1"}}"#)
            .unwrap();
    assert_eq!(read.facts.kernel.release, Fact::Known("7.1".to_owned()));
    let warnings: Vec<String> = read.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "schema_version: 1.7 is newer than 1.0: its additions are not read",
            "kernel.flavour: this key is not known and was not read"
        ]
    );
}

#[test]
fn an_unknown_key_is_warned_about_at_any_depth() {
    let text = r#"{"schema_version":"1.0","files":[{"path":"/a","sise":1,"image":{"fromat":"raw","_how":"read"}}],
                   "libvirt":{"unknown":"permission","whose":"root"}}"#;
    let mut paths: Vec<String> = Facts::from_json(text)
        .unwrap()
        .warnings
        .into_iter()
        .map(|warning| warning.path)
        .collect();
    paths.sort();
    assert_eq!(
        paths,
        ["files[0].image.fromat", "files[0].sise", "libvirt.whose"]
    );
}

#[test]
fn a_number_or_version_is_digits() {
    for text in ["1:+2", "+1:2", "1", "1:", "x:2"] {
        assert_eq!(DeviceNumber::parse(text), None, "{text}");
    }
    for (percent, text) in [
        (8750, "87.50 %"),
        (101, "1.01 %"),
        (100, "1 %"),
        (1, "0.01 %"),
    ] {
        assert_eq!(Percent(percent).to_string(), text);
    }
    for text in ["", "7..2", "+7.2", "7.2.1.0", "7.x"] {
        assert!(text.parse::<Version>().is_err(), "{text}");
    }
    assert_eq!("7".parse(), Ok(Version(7, 0, 0)));
    for (detail, shown) in [("", "permission"), ("why", "permission: why")] {
        assert_eq!(Unknown::new(Reason::Permission, detail).to_string(), shown);
    }
}

#[test]
fn a_target_is_open_until_something_is_known_and_a_key_needs_a_value() {
    assert!(Target::default().is_open());
    for text in ["qemu=7.2", "libvirt=9.0", "kernel=6.1"] {
        assert!(!text.parse::<Target>().unwrap().is_open(), "{text}");
        let key = text.split_once('=').unwrap().0;
        let message = format!("{key}=").parse::<Target>().unwrap_err().to_string();
        assert!(message.contains("has no value"), "{message}");
    }
    for machine_or_arch in ["machine=q35", "arch=x86_64"] {
        assert!(machine_or_arch.parse::<Target>().unwrap().is_open());
    }
    let mut probed = Target::default();
    probed.probed.insert(Capability::AioIoUring, false);
    assert!(!probed.is_open());
}

#[test]
fn the_libraries_of_qemu_say_whether_it_has_io_uring() {
    for (aio, has) in [("[threads]", false), ("[threads, io_uring]", true)] {
        let text = format!(
            "qemu: [{{path: /usr/bin/qemu-system-x86_64, version: [7, 2, 0], aio: {aio}}}]\n"
        );
        let target = Target::from_facts(&Facts::parse(&text).unwrap().facts);
        assert_eq!(
            target.probed.get(&Capability::AioIoUring),
            Some(&has),
            "{aio}"
        );
    }
}

#[test]
fn a_file_without_a_key_of_facts_is_refused() {
    for text in [
        r#"{"name": 1}"#,
        r#"{"_note": 1}"#,
        r#"{"_note": 1, "name": 1}"#,
    ] {
        let message = Facts::from_json(text).unwrap_err().to_string();
        assert!(
            message.contains("none of the keys is a key of a facts file"),
            "{message}"
        );
    }
    for text in ["{}", r#"{"_note": 1, "kernel": {}}"#] {
        Facts::from_json(text).unwrap();
    }
}

#[test]
fn an_id_without_an_object_is_warned_about() {
    let text = r#"{"schema_version":"1.0","mounts":[{"id":"m1","point":"/","fs":"f9"},{"id":"m1","point":"/b"}],
                   "files":[{"path":"/a","mount":"m7"}],
                   "blockdevs":[{"id":"b1","kind":"md","slaves":["b8"],"holders":["b9"],"partition":{"parent":"b7"}}]}"#;
    let paths: Vec<String> = Facts::from_json(text)
        .unwrap()
        .warnings
        .into_iter()
        .map(|warning| warning.path)
        .collect();
    assert_eq!(
        paths,
        [
            "mounts[1].id",
            "mounts[0].fs",
            "files[0].mount",
            "blockdevs[0].slaves",
            "blockdevs[0].holders",
            "blockdevs[0].partition.parent"
        ]
    );
}

#[test]
fn broken_text_is_an_error_with_a_line() {
    let message = Facts::from_json("{\n \"kernel\": {,}\n}")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("not valid JSON") && message.contains("line 2"),
        "{message}"
    );
    assert!(
        Facts::from_yaml("a: [1")
            .unwrap_err()
            .to_string()
            .contains("not valid YAML")
    );
    assert!(Facts::from_json("{} {}").is_err());
    assert!(
        Facts::from_json(r#"{"kernel":{},"kernel":{}}"#)
            .unwrap_err()
            .to_string()
            .contains("written twice")
    );
    for text in [
        "",
        "\u{feff}",
        "null",
        "7",
        "\"text\"",
        "---\n---\n",
        "{",
        "[",
        "\0",
        "!tag x",
    ] {
        assert!(Facts::parse(text).is_err(), "{text:?}");
    }
}

#[test]
fn a_file_without_limits_is_stopped_early() {
    let long = " ".repeat(MAX_BYTES + 1);
    assert_eq!(
        Facts::parse(&long),
        Err(FactsError::TooLarge {
            bytes: MAX_BYTES + 1
        })
    );
    let deep = "[".repeat(20_000);
    assert!(Facts::from_json(&deep).is_err());
    assert!(Facts::from_yaml(&deep).is_err());
    // Nine lines that describe a thousand million values.
    let mut bomb = "a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n".to_owned();
    for level in 1..9 {
        let before = format!("*a{}", level - 1);
        bomb.push_str(&format!(
            "a{level}: &a{level} [{}]\n",
            vec![before; 10].join(",")
        ));
    }
    assert!(Facts::from_yaml(&bomb).is_err());
}

#[test]
fn a_byte_order_mark_is_skipped() {
    assert!(Facts::parse("\u{feff}{\"schema_version\":\"1.0\"}").is_ok());
}

#[test]
fn the_schema_describes_every_state_of_a_value() {
    let schema = serde_json::to_string(&Facts::json_schema()).unwrap();
    assert!(
        schema.contains("\"blockdevs\"")
            && schema.contains("\"unknown\"")
            && schema.contains("\"null\"")
    );
}

#[test]
fn another_schema_is_read_with_a_warning() {
    let text = r#"{"schema": "https://example.org/other/1", "schema_version": "1.0"}"#;
    let warnings = Facts::from_json(text)
        .expect("the version is ours")
        .warnings;
    assert_eq!(warnings.len(), 1);
    assert_eq!(warnings[0].path, "schema");
}

#[test]
fn the_qemu_of_a_host_is_the_newest_for_its_own_architecture() {
    let text = r#"{"schema_version": "1.0", "cpu": {"arch": "x86_64"}, "qemu": [
        {"arch": "aarch64", "version": [11, 0, 0]}, {"arch": "x86_64", "version": [9, 2, 0]},
        {"arch": "x86_64", "version": [10, 0, 2], "aio": ["threads"]}, {"arch": "x86_64", "version": {"unknown": "timeout"}}]}"#;
    let facts = Facts::from_json(text).expect("readable").facts;
    assert_eq!(facts.qemu_version(), Fact::Known(Version(10, 0, 2)));
    let target = Target::from_facts(&facts);
    assert_eq!(target.qemu, Some(Version(10, 0, 2)));
    // This build has no io_uring, whatever its version.
    assert_eq!(
        target.can(Capability::AioIoUring),
        Answer::No(Basis::Probed)
    );
    let foreign =
        r#"{"cpu": {"arch": "x86_64"}, "qemu": [{"arch": "s390x", "version": [10, 0, 2]}]}"#;
    let facts = Facts::from_json(foreign).expect("readable").facts;
    assert_eq!(facts.qemu_version(), Fact::Known(Version(10, 0, 2)));
    let none = Facts::from_json(r#"{"qemu": []}"#).expect("readable").facts;
    assert_eq!(none.qemu_version(), Fact::Absent);
}

#[test]
fn deep_brackets_are_refused_at_the_first_that_is_too_deep() {
    for unit in ["[", "{a: ", "[\"]\","] {
        let text = format!("files:\n{}", unit.repeat(100_000));
        let error = Facts::from_yaml(&text).unwrap_err().to_string();
        assert!(error.contains("limit exceeded at line 2"), "{error}");
    }
}

#[test]
fn a_fact_that_is_no_longer_collected_is_read_over_without_a_warning() {
    let of = |text: &str| Facts::from_json(text).unwrap().warnings;
    let old = r#"{"schema_version": "1.0", "memory": {"thp": "never"}, "services": {"fstrim.timer": "enabled"}}"#;
    assert_eq!(of(old), []);
    let typo = old.replace("thp", "thq");
    assert_eq!(of(&typo).len(), 1);
}
