//! Images: their headers, what they stand on, and what is wrong with either.

use serde_json::Value;

use crate::Place;

/// A qcow2 image of 64 KiB, version 3, by hand.
pub(crate) fn qcow2(backing: Option<(&str, Option<&str>)>) -> Vec<u8> {
    let mut image = vec![0; 4 * 65536];
    let mut put = |at: usize, bytes: &[u8]| image[at..at + bytes.len()].copy_from_slice(bytes);
    put(0, b"QFI\xfb\x00\x00\x00\x03");
    put(20, &16u32.to_be_bytes());
    put(24, &65536u64.to_be_bytes());
    put(36, &1u32.to_be_bytes());
    put(40, &(3u64 * 65536).to_be_bytes());
    put(48, &65536u64.to_be_bytes());
    put(56, &1u32.to_be_bytes());
    put(96, &4u32.to_be_bytes());
    put(100, &104u32.to_be_bytes());
    let mut at = 104;
    let Some((name, format)) = backing else {
        return image;
    };
    if let Some(format) = format {
        put(at, &[0xe2, 0x79, 0x2a, 0xca]);
        put(at + 4, &(format.len() as u32).to_be_bytes());
        put(at + 8, format.as_bytes());
        at += 8 + format.len().next_multiple_of(8);
    }
    at += 8;
    put(at, name.as_bytes());
    put(8, &(at as u64).to_be_bytes());
    put(16, &(name.len() as u32).to_be_bytes());
    image
}

fn over(name: &str) -> Vec<u8> {
    qcow2(Some((name, Some("qcow2"))))
}

fn names(report: &Value) -> Vec<&str> {
    report["images"][0]["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| finding["name"].as_str().unwrap())
        .collect()
}

/// Looks at `top.qcow2` and what it stands on.
fn chain(files: &[(&str, Vec<u8>)]) -> (i32, Value) {
    let place = Place::with(&[]);
    for (name, bytes) in files {
        place.write(name, bytes);
    }
    let run = place.run(&["image", "--chain", "--format", "json", "top.qcow2"]);
    assert_eq!(run.stderr, "", "{run:?}");
    (run.code, serde_json::from_str(&run.stdout).unwrap())
}

#[test]
fn a_header_is_shown_and_nothing_it_names_is_touched() {
    let place = Place::with(&[]);
    place.write("top.qcow2", &over("gone.qcow2"));
    let run = place.run(&["image", "top.qcow2"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    assert!(
        run.stdout.starts_with("top.qcow2: qcow2, version 3\n"),
        "{run:?}"
    );
    for line in [
        "  virtual size    64 KiB (65536 bytes)",
        "  backing file    gone.qcow2 (recorded as qcow2)",
        "  L2 tables       64 KiB map the whole disk",
    ] {
        assert!(
            run.stdout.lines().any(|found| found == line),
            "{line}: {run:?}"
        );
    }
    assert!(!run.stdout.contains("missing"), "{run:?}");
}

#[test]
fn an_empty_file_is_a_finding() {
    let place = Place::with(&[("a.img", "")]);
    let run = place.run(&["image", "a.img"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout.contains("the image is empty (0 bytes)"),
        "{run:?}"
    );
}

#[test]
fn formats_whose_fields_are_not_checked_name_the_command_that_does() {
    let place = Place::with(&[]);
    let mut qed = vec![0; 3 * 4096];
    qed[..4].copy_from_slice(b"QED\0");
    qed[48..52].copy_from_slice(&65536u32.to_le_bytes());
    let mut vhd = vec![0; 1024];
    vhd[512..520].copy_from_slice(b"conectix");
    place.write("a.qed", &qed);
    place.write("a.vhd", &vhd);
    let run = place.run(&["image", "a.qed", "a.vhd"]);
    assert_eq!((run.code, run.stderr.as_str()), (0, ""), "{run:?}");
    for line in [
        "  virtual size    64 KiB (65536 bytes)",
        "  header          not checked: run `qemu-img check`",
        "  header          not checked: run `qemu-img info`",
    ] {
        assert!(
            run.stdout.lines().any(|found| found == line),
            "{line}: {run:?}"
        );
    }
}

#[test]
fn a_chain_is_followed_to_its_base_with_formats_recorded_and_found() {
    let (code, report) = chain(&[
        ("top.qcow2", over("middle.qcow2")),
        ("middle.qcow2", qcow2(Some(("base.img", Some("raw"))))),
        ("base.img", vec![0; 65536]),
    ]);
    assert_eq!((code, names(&report)), (0, vec![]), "{report:#}");
    let links = report["images"][0]["chain"].as_array().unwrap();
    let told: Vec<_> = links
        .iter()
        .map(|link| (&link["path"], &link["recorded"], &link["format"]))
        .map(|(path, recorded, format)| {
            (path.as_str().unwrap(), recorded.as_str(), format.as_str())
        })
        .collect();
    assert_eq!(
        told,
        [
            ("top.qcow2", None, Some("qcow2")),
            ("middle.qcow2", Some("qcow2"), Some("qcow2")),
            ("base.img", Some("raw"), Some("raw")),
        ]
    );
    assert_eq!(report["images"][0]["end"]["kind"], "base");
}

#[test]
fn chains_that_do_not_end_well_say_how() {
    type Files<'a> = &'a [(&'a str, Vec<u8>)];
    let cases: &[(Files<'_>, &str, &[&str])] = &[
        (
            &[("top.qcow2", over("gone.qcow2"))],
            "missing",
            &["backing-missing"],
        ),
        (
            &[
                ("top.qcow2", over("b.qcow2")),
                ("b.qcow2", over("top.qcow2")),
            ],
            "loop",
            &["backing-loop"],
        ),
        (
            &[("top.qcow2", over("./top.qcow2"))],
            "loop",
            &["backing-loop"],
        ),
        (
            &[("top.qcow2", over("b.img")), ("b.img", vec![0; 512])],
            "not-opened",
            &["backing-format-mismatch"],
        ),
        (
            &[
                ("top.qcow2", qcow2(Some(("b.qcow2", Some("raw"))))),
                ("b.qcow2", qcow2(None)),
            ],
            "base",
            &["backing-format-mismatch"],
        ),
        (
            &[
                ("top.qcow2", qcow2(Some(("b.qcow2", None)))),
                ("b.qcow2", qcow2(None)),
            ],
            "base",
            &["backing-format-missing"],
        ),
        (
            &[("top.qcow2", over("nbd://joe:hunter2@host/a"))],
            "not-followed",
            &["backing-protocol-url"],
        ),
        (
            &[("top.qcow2", over("json:{\"driver\":\"nbd\"}"))],
            "not-followed",
            &["backing-protocol-url"],
        ),
    ];
    for (files, end, expected) in cases {
        let (code, report) = chain(files);
        assert_eq!((code, names(&report)), (1, expected.to_vec()), "{report:#}");
        assert_eq!(report["images"][0]["end"]["kind"], *end, "{report:#}");
        assert!(!report.to_string().contains("hunter2"), "{report:#}");
    }
}

#[test]
fn a_chain_of_300_is_followed_as_far_as_libvirt_would() {
    let mut files: Vec<(String, Vec<u8>)> = (1..300)
        .map(|depth| {
            (
                format!("{depth}.qcow2"),
                over(&format!("{}.qcow2", depth + 1)),
            )
        })
        .collect();
    files.push(("top.qcow2".to_owned(), over("1.qcow2")));
    files.push(("300.qcow2".to_owned(), qcow2(None)));
    let files: Vec<(&str, Vec<u8>)> = files
        .iter()
        .map(|(name, bytes)| (name.as_str(), bytes.clone()))
        .collect();
    let (code, report) = chain(&files);
    assert_eq!(code, 1);
    assert_eq!(names(&report), ["chain-too-deep", "chain-too-long"]);
    assert_eq!(report["images"][0]["chain"].as_array().unwrap().len(), 200);
}

#[test]
fn a_truncated_header_is_told_with_its_place() {
    let place = Place::with(&[]);
    place.write("cut.qcow2", &qcow2(None)[..60]);
    let run = place.run(&["image", "cut.qcow2"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(
        run.stdout
            .contains("error[header]: the image ends after 60 bytes, within a header of 104\n  --> cut.qcow2, byte "),
        "{run:?}"
    );
    let lenient = place.run(&["image", "--fail-on", "error", "cut.qcow2"]);
    assert_eq!(lenient.code, 1);
}

#[test]
fn an_external_data_file_is_looked_at_only_when_asked_for() {
    let mut image = qcow2(None);
    image[79] |= 4;
    image[104..108].copy_from_slice(&0x4441_5441u32.to_be_bytes());
    image[108..112].copy_from_slice(&8u32.to_be_bytes());
    image[112..120].copy_from_slice(b"data.raw");
    let place = Place::with(&[]);
    place.write("top.qcow2", &image);
    assert_eq!(place.run(&["image", "top.qcow2"]).code, 0);
    let run = place.run(&["image", "--chain", "top.qcow2"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.stdout.contains("error[data-file-missing]"), "{run:?}");
    place.write("data.raw", &[0; 65536]);
    let run = place.run(&["image", "--chain", "top.qcow2"]);
    assert_eq!(run.code, 0, "{run:?}");
    assert!(
        run.stdout.contains("  data file       data.raw (raw)\n"),
        "{run:?}"
    );
}

#[test]
fn what_is_no_image_file_is_a_failure_and_the_others_are_shown() {
    let place = Place::with(&[("a.img", "x")]);
    let run = place.run(&["image", "gone.img", "/dev/null", ".", "a.img"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(
        run.stdout.starts_with("a.img: raw, judging by its bytes\n"),
        "{run:?}"
    );
    for why in ["no such file", "a character device", "a directory"] {
        assert!(run.stderr.contains(why), "{why}: {run:?}");
    }
}

#[test]
fn the_report_is_what_its_schema_says() {
    let place = Place::with(&[("a.img", "x")]);
    place.write("top.qcow2", &over("gone.qcow2"));
    let schema: Value = serde_json::from_str(&place.run(&["schema", "image"]).stdout).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let run = place.run(&[
        "image",
        "--chain",
        "--format",
        "json",
        "a.img",
        "top.qcow2",
        "gone",
    ]);
    assert_eq!(run.code, 2);
    let report: Value = serde_json::from_str(&run.stdout).unwrap();
    assert_eq!(report["schema_version"], "1.0");
    assert_eq!(report["failed"][0]["path"], "gone");
    let errors: Vec<String> = validator
        .iter_errors(&report)
        .map(|error| error.to_string())
        .collect();
    assert_eq!(errors, Vec::<String>::new());
}
