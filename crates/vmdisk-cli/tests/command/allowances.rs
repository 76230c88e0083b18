//! `--add-allowances`: comments in XML and specs, and nothing else.

use crate::{CLEAN, Place, UNSAFE};

#[test]
fn every_finding_is_allowed_and_a_second_run_is_clean() {
    let spec = "version: 1\ndisks:\n- raw: {path: /srv/a.img}\n  cache: unsafe\n";
    let place = Place::with(&[("d/a.xml", UNSAFE), ("d/b.yaml", spec), ("d/c.xml", CLEAN)]);
    let run = place.run(&["lint", "d", "--add-allowances", "scratch data"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    assert!(run.stderr.contains("allowed"), "{run:?}");
    let text = place.read("d/a.xml");
    let without: String = text
        .split_inclusive('\n')
        .filter(|line| !line.contains("<!-- vmdisk: allow("))
        .collect();
    assert_eq!(without, UNSAFE);
    assert!(text.contains(") scratch data -->\n  <driver"), "{text}");
    let yaml = place.read("d/b.yaml");
    assert!(
        yaml.contains("# vmdisk: allow(cache-unsafe) scratch data\n  cache: unsafe"),
        "{yaml}"
    );
    let again = place.run(&["lint", "d", "--add-allowances", "another reason"]);
    assert_eq!(again.code, 0, "{again:?}");
    assert_eq!(place.read("d/a.xml"), text);
    let clean = place.run(&["lint", "d"]);
    assert_eq!((clean.code, clean.stdout.as_str()), (0, ""), "{clean:?}");
}

#[test]
fn only_selected_findings_are_allowed_and_standard_output_has_the_text_of_standard_input() {
    let place = Place::with(&[]);
    let words = [
        "lint",
        "-",
        "--add-allowances",
        "x",
        "--select",
        "cache-unsafe",
    ];
    let run = place.run_with_input(&words, UNSAFE.as_bytes());
    assert_eq!(run.code, 0, "{run:?}");
    let expected = UNSAFE.replace(
        "  <driver",
        "  <!-- vmdisk: allow(cache-unsafe) x -->\n  <driver",
    );
    assert_eq!(run.stdout, expected);
}

#[test]
fn json_has_no_comments_and_keeps_its_findings() {
    let line = r#"["qemu-system-x86_64", "-drive", "file=/a.qcow2,format=qcow2,cache=unsafe"]"#;
    let place = Place::with(&[("a.json", line)]);
    let run = place.run(&["lint", "a.json", "--add-allowances", "x"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(place.read("a.json"), line);
    let why = "no comment was written for 2 findings: JSON has no comments";
    assert!(run.stderr.contains(why), "{run:?}");
}

#[test]
fn a_comment_of_a_script_covers_the_lines_up_to_an_empty_one() {
    let script = "#!/bin/sh\nrun() {\n  qemu-system-x86_64 -m 1G \\\n    -drive file=/a.img,format=raw,if=virtio,cache=unsafe \"$@\"\n}\n\
                  run -S\n\nqemu-system-x86_64 -drive file=/b.img,format=raw,if=virtio,cache=unsafe\n";
    let select = ["lint", "a.sh", "--select", "cache-unsafe,clarity"];
    let place = Place::with(&[("a.sh", script)]);
    assert_eq!(place.run(&select).code, 1);
    let run = place.run(&[&select[..], &["--add-allowances", "scratch"]].concat());
    assert_eq!(run.code, 0, "{run:?}");
    let comment = "# vmdisk: allow(cache-unsafe) scratch\n";
    let expected = script.replace("sh\nrun", &format!("sh\n{comment}run"));
    let expected = expected.replace("\n\nqemu", &format!("\n\n{comment}qemu"));
    assert_eq!(place.read("a.sh"), expected);
    // Each start needs its own one, and none of both.
    for (text, says) in [
        (expected.replacen(comment, "", 1), "cache-unsafe"),
        (
            expected.replacen(" scratch", "", 1),
            "allowance-without-reason",
        ),
        (expected.replace("unsafe \"", "none \""), "allowance-unused"),
        (
            expected.replace("(cache-unsafe)", "(cache-unsave)"),
            "allowance-unknown-rule",
        ),
    ] {
        place.write("a.sh", text.as_bytes());
        let run = place.run(&["lint", "a.sh"]);
        assert!(run.stdout.contains(says), "{text}: {run:?}");
    }
}

#[test]
fn a_comment_at_the_end_of_a_line_covers_it() {
    let line = "qemu-system-x86_64 -drive file=/a.img,format=raw,if=virtio,cache=unsafe";
    for (text, code) in [
        (format!("{line} # vmdisk: allow(cache-unsafe) x\n"), 0),
        (format!("{line}\ntrue # vmdisk: allow(cache-unsafe) x\n"), 1),
        (format!("{line} '#vmdisk: allow(cache-unsafe) x'\n"), 1),
    ] {
        let place = Place::with(&[("a.sh", &text)]);
        let run = place.run(&["lint", "a.sh", "--select", "cache-unsafe"]);
        assert_eq!(run.code, code, "{text}: {run:?}");
    }
}

#[test]
fn the_findings_of_templates_are_allowed() {
    let plain = UNSAFE.replacen("type='qcow2'", "type='VALUE'", 1);
    assert_ne!(plain, UNSAFE);
    for (name, before, value) in [
        ("a.xml.erb", "<%# a comment -%>\n", "<%= d['format'] %>"),
        ("a.xml.php", "<?php $d = 1; ?>\n", "<?= $d ?>"),
        ("a.xml.j2", "{# a comment #}\n", "{{ format }}"),
        ("a.xml.tmpl", "{{- /* a comment */ -}}\n", "{{ .format }}"),
        ("b.xml.j2", "", "{% if raw %}raw{% else %}qcow2{% endif %}"),
    ] {
        let text = format!("{before}{}", plain.replace("VALUE", value));
        let place = Place::with(&[(name, &text)]);
        let arguments = ["lint", name, "--select", "cache-unsafe"];
        assert_eq!(place.run(&arguments).code, 1, "{name}");
        let run = place.run(&[&arguments[..], &["--add-allowances", "x"]].concat());
        assert_eq!(run.code, 0, "{name}: {run:?}");
        assert_eq!(place.read(name).lines().count(), text.lines().count() + 1);
        assert_eq!(place.run(&arguments).code, 0, "{name}");
    }
}

#[test]
fn a_reason_that_is_no_comment_is_refused() {
    let place = Place::with(&[("a.xml", UNSAFE)]);
    for reason in ["", " ", "a -- b", "a-", "a\nb"] {
        let run = place.run(&["lint", "a.xml", &format!("--add-allowances={reason}")]);
        assert_eq!(run.code, 2, "{reason:?}: {run:?}");
        assert_eq!(place.read("a.xml"), UNSAFE);
    }
}
