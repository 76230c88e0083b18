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
fn a_command_line_has_no_comments_and_keeps_its_findings() {
    let line = "qemu-system-x86_64 -drive file=/a.qcow2,format=qcow2,cache=unsafe";
    let place = Place::with(&[("a.args", line)]);
    let run = place.run(&["lint", "a.args", "--add-allowances", "x"]);
    assert_eq!(run.code, 1, "{run:?}");
    assert_eq!(place.read("a.args"), line);
    let why = "no comment was written for 2 findings: command lines and JSON have no comments";
    assert!(run.stderr.contains(why), "{run:?}");
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
