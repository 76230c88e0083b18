//! Generate: from one line or a spec to every form.

use serde_json::Value;

use crate::{Place, Run};

const DISK: &str = "qcow2:/srv/web1.qcow2,size=40G";

fn generate(arguments: &[&str]) -> Run {
    Place::with(&[]).run(&[&["generate", "--disk", DISK], arguments].concat())
}

fn text(run: Run) -> String {
    assert_eq!(run.code, 0, "{run:?}");
    run.stdout
}

#[test]
fn every_form_names_the_disk_and_says_nothing_else() {
    for form in ["libvirt-xml", "disk-xml", "qemu", "blockdev-json", "script"] {
        let run = generate(&["--to", form]);
        let again = generate(&["--to", form]);
        assert!(run.stdout.contains("/srv/web1.qcow2"), "{form}: {run:?}");
        assert_eq!(run.stdout, again.stdout, "{form}");
    }
    assert!(text(generate(&["--to", "libvirt-xml"])).starts_with("<domain type='kvm'>"));
    assert!(text(generate(&["--to", "disk-xml"])).starts_with("<disk type='file'"));
    assert!(text(generate(&["--to", "script"])).starts_with("#!/bin/sh\n"));
    let blockdevs: Value =
        serde_json::from_str(&text(generate(&["--to", "blockdev-json"]))).unwrap();
    assert!(!blockdevs.as_array().unwrap().is_empty());
}

#[test]
fn the_forms_of_a_qemu_command_line_hold_the_same_arguments() {
    let form = |format: &str| text(generate(&["--to", "qemu", "--qemu-format", format]));
    let json: Vec<String> = serde_json::from_str(&form("json")).unwrap();
    let lines: Vec<String> = form("args").lines().map(str::to_owned).collect();
    assert_eq!(json, lines);
    let shell = std::process::Command::new("sh")
        .args([
            "-c",
            &format!("set -- {}\nprintf '%s\\n' \"$@\"", form("lines")),
        ])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(shell.stdout).unwrap(), form("args"));
}

#[test]
fn what_is_generated_lints_without_errors_and_warnings() {
    let place = Place::with(&[]);
    let xml = text(generate(&[
        "--name", "web1", "--memory", "4G", "--vcpus", "4",
    ]));
    assert!(xml.contains("<name>web1</name>"), "{xml}");
    let run = place.run_with_input(&["lint", "-"], xml.as_bytes());
    assert_eq!(run.code, 0, "{xml}\n{run:?}");
}

#[test]
fn reasons_are_given_beside_the_text() {
    let run = generate(&["--explain"]);
    assert!(run.stderr.contains("vda: cache="), "{run:?}");
    assert_eq!(run.stdout, generate(&[]).stdout);
    assert_eq!(generate(&[]).stderr, "");
}

#[test]
fn a_spec_and_further_disks_make_one_guest() {
    let spec = "version: 1\nguest:\n  name: db1\n  uuid: 4dea22b3-1d52-d8f3-2516-782e98ab3fa0\ndisks:\n  - qcow2:\n      path: /srv/db1.qcow2\n      size: 10G\n";
    let place = Place::with(&[("spec.yaml", spec)]);
    let from_file = place.run(&["generate", "spec.yaml", "--disk", DISK]);
    let xml = text(from_file);
    assert!(
        xml.contains("<uuid>4dea22b3-1d52-d8f3-2516-782e98ab3fa0</uuid>"),
        "{xml}"
    );
    let qemu = place.run(&["generate", "spec.yaml", "--to", "qemu"]);
    assert!(
        text(qemu).contains("-uuid 4dea22b3-1d52-d8f3-2516-782e98ab3fa0"),
        "the identity goes to QEMU too"
    );
    assert!(xml.find("/srv/db1.qcow2").unwrap() < xml.find("/srv/web1.qcow2").unwrap());
    let piped = place.run_with_input(&["generate", "-", "--disk", DISK], spec.as_bytes());
    assert_eq!(piped.stdout, xml);
    let renamed = place.run(&["generate", "spec.yaml", "--name", "other"]);
    assert!(text(renamed).contains("<name>other</name>"));
}

#[test]
fn mistakes_are_shown_at_their_places_and_nothing_is_printed() {
    let place = Place::with(&[(
        "spec.yaml",
        "version: 1\ndisks:\n  - qcow3:\n      path: /srv/a\n",
    )]);
    let spec = place.run(&["generate", "spec.yaml"]);
    assert_eq!((spec.code, spec.stdout.as_str()), (2, ""), "{spec:?}");
    assert!(spec.stderr.contains("spec.yaml:3:5"), "{spec:?}");
    let disk = place.run(&["generate", "--disk", "raw:/srv/a.img,sise=1G"]);
    assert_eq!((disk.code, disk.stdout.as_str()), (2, ""), "{disk:?}");
    assert!(
        disk.stderr.contains("--disk:1:16") && disk.stderr.contains("did you mean `size`?"),
        "{disk:?}"
    );
    let clash =
        "version: 1\ndisks:\n  - raw: {path: /srv/a, size: 1G}\n    bus: ide\n    queues: 4\n";
    place.write("clash.yaml", clash.as_bytes());
    let planned = place.run(&["generate", "clash.yaml"]);
    assert!(planned.stderr.contains("clash.yaml:5:13"), "{planned:?}");
    for arguments in [
        &["generate"][..],
        &["generate", "missing.yaml"],
        &["generate", "--disk", ""],
        &["generate", "--disk", DISK, "--memory", "many"],
        &["generate", "--disk", DISK, "--to", "floppy"],
        &["generate", "--disk", "qcow2:/a,bus=ide,queues=4,size=1G"],
    ] {
        let run = place.run(arguments);
        assert_eq!(
            (run.code, run.stdout.as_str()),
            (2, ""),
            "{arguments:?}: {run:?}"
        );
        assert!(!run.stderr.is_empty(), "{arguments:?}");
    }
}

#[test]
fn a_file_is_written_whole() {
    let place = Place::with(&[]);
    let run = place.run(&["generate", "--disk", DISK, "--output", "web1.xml"]);
    assert_eq!((run.code, run.stdout.as_str()), (0, ""), "{run:?}");
    assert_eq!(place.read("web1.xml"), generate(&[]).stdout);
}

#[test]
fn a_path_never_becomes_syntax() {
    let nasty = "raw:/srv/a,,file.filename=b 'c' \"d\" json:{}\u{e9}.img,size=1G";
    let run = Place::with(&[]).run(&["generate", "--disk", nasty, "--to", "blockdev-json"]);
    let blockdevs: Value = serde_json::from_str(&text(run)).unwrap();
    let filename = "/srv/a,file.filename=b 'c' \"d\" json:{}\u{e9}.img";
    assert!(
        blockdevs
            .as_array()
            .unwrap()
            .iter()
            .any(|node| node["filename"] == filename),
        "{blockdevs}"
    );
}
