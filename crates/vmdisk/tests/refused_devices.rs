//! Gives the installed libvirt and QEMU what the rules about devices call refused, and holds their words to
//! what the findings say.
#![allow(
    clippy::disallowed_methods,
    clippy::disallowed_types,
    clippy::print_stderr,
    reason = "tests make files and start programs, and say what they skip; the library does neither"
)]

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use vmdisk::rules::{Context, Evidence, Text, check, find};
use vmdisk_facts::Target;
use vmdisk_libvirt::XmlSpeller;
use vmdisk_testing::{installed, libvirt_driver, needed};

/// An empty folder for one test.
fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    if folder.exists() {
        std::fs::remove_dir_all(&folder).expect("what an earlier run left can be removed");
    }
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// What a program says when it refuses; it must end by itself and fail.
fn refusal(command: &mut Command) -> String {
    let output = command
        .env("LC_ALL", "C")
        .stdin(Stdio::null())
        .output()
        .expect("the program was started before");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(!output.status.success(), "{command:?} is accepted: {said}");
    said
}

/// What a finding of this rule quotes: the words behind the first colon of each note.
fn quoted(rule: &str, text: &str) -> Vec<String> {
    let rule = find(rule).unwrap_or_else(|| panic!("there is no rule {rule}"));
    let document = vmdisk_libvirt::read(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    let target = Target::default();
    let outcome = check(
        Text::Xml(&document, text),
        &Context::new(&document.domain, &target),
    );
    let finding = outcome
        .findings
        .iter()
        .find(|finding| finding.rule == rule)
        .unwrap_or_else(|| panic!("{} says nothing about\n{text}", rule.name));
    let notes = finding.render(&XmlSpeller(&document.domain)).notes;
    notes
        .iter()
        .filter_map(|note| note.split_once(": "))
        .map(|(_, words)| words.trim_matches('`').to_owned())
        .collect()
}

#[test]
fn libvirt_refuses_in_the_words_that_findings_quote() {
    let folder = folder("devices-refused-by-libvirt");
    // The driver inside virsh itself: no daemon, nothing of the machine is touched.
    let root = folder.join("libvirt");
    std::fs::create_dir_all(root.join("etc")).expect("folders can be made");
    // As another user QEMU could not enter the folder, and libvirt would ask it for its capabilities again
    // for each guest, which takes seconds.
    let settings =
        "stdio_handler=\"file\"\nsecurity_driver=\"none\"\nuser=\"root\"\ngroup=\"root\"\n";
    std::fs::write(root.join("etc/qemu.conf"), settings).expect("files can be written");
    if needed(libvirt_driver(&root)).is_none() {
        return;
    }
    let mut cases: Vec<(&str, String)> = Vec::new();
    for name in [
        "duplicate-target",
        "iothread-undefined",
        "iothread-unsupported-bus",
        "vhost-user-needs-shared-mem",
    ] {
        let rule = find(name).unwrap_or_else(|| panic!("there is no rule {name}"));
        let examples = rule.examples();
        // Hidden ones hold conditions, also of releases that are not here.
        let reported = examples
            .iter()
            .filter(|example| example.says("reported") && !example.says("hidden"));
        cases.extend(reported.map(|example| (name, example.text.clone())));
    }
    cases.push((
        "iothread-undefined",
        "<domain type='kvm'><name>a</name><devices><controller type='scsi' index='0' model='virtio-scsi'>\
         <driver iothread='3'/></controller></devices></domain>"
            .to_owned(),
    ));
    for (rule, text) in cases {
        let path = folder.join("guest.xml");
        std::fs::write(&path, complete(&text)).expect("files can be written");
        let said = refusal(
            Command::new("virsh")
                .arg("-c")
                .arg(format!("qemu:///embed?root={}", root.display()))
                .arg("define")
                .arg(&path)
                .env("XDG_RUNTIME_DIR", &folder),
        );
        let quoted = quoted(rule, &text);
        assert!(
            quoted.iter().any(|words| said.contains(words.as_str())),
            "{rule} quotes {quoted:?}, and libvirt says: {said}\n{text}"
        );
    }
}

/// An example with what libvirt needs besides and machines without KVM can run.
fn complete(text: &str) -> String {
    let machine = "<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features><devices>";
    let mut text = text
        .replace("type='kvm'", "type='qemu'")
        .replacen("<devices>", machine, 1);
    if !text.contains("<memory ") {
        let memory = "</name><memory unit='MiB'>64</memory>";
        text = text.replacen("</name>", memory, 1);
    }
    text
}

#[test]
fn qemu_refuses_in_the_words_that_rules_quote() {
    if needed(installed("qemu-system-x86_64")).is_none() {
        return;
    }
    let folder = folder("devices-refused-by-qemu");
    std::fs::write(folder.join("a.img"), vec![0; 1 << 20]).expect("files can be written");
    let node = |name: &str| format!("driver=file,filename=a.img,node-name={name}");
    let device = |name: &str| format!("virtio-blk-pci,drive={name}");
    let twice = [
        "-blockdev",
        &node("f0"),
        "-blockdev",
        &node("f1"),
        "-device",
        &device("f0"),
        "-device",
        &device("f1"),
    ]
    .map(str::to_owned);
    let threaded = [
        "-object",
        "iothread,id=io0",
        "-blockdev",
        &node("f0"),
        "-device",
        "ide-hd,drive=f0,iothread=io0",
    ]
    .map(str::to_owned);
    for (rule, arguments) in [
        ("duplicate-disk-source", &twice[..]),
        ("iothread-unsupported-bus", &threaded[..]),
    ] {
        let said = refusal(
            Command::new("qemu-system-x86_64")
                .args([
                    "-S",
                    "-nodefaults",
                    "-display",
                    "none",
                    "-machine",
                    "q35",
                    "-accel",
                    "tcg",
                ])
                .args(arguments)
                .current_dir(&folder),
        );
        let rule = find(rule).unwrap_or_else(|| panic!("there is no rule {rule}"));
        let texts = rule.evidence.iter().filter_map(|evidence| match evidence {
            Evidence::Refused { by, text, .. } if by.starts_with("QEMU") => Some(*text),
            Evidence::Refused { .. }
            | Evidence::Measured { .. }
            | Evidence::Source(_)
            | Evidence::Cve(_)
            | Evidence::NotMeasuredHere(_) => None,
        });
        let texts: Vec<&str> = texts.collect();
        assert!(!texts.is_empty(), "{} quotes nothing of QEMU", rule.name);
        for text in texts {
            assert!(
                said.contains(text),
                "{} quotes `{text}`, and QEMU says: {said}",
                rule.name
            );
        }
    }
}

#[test]
fn an_engine_that_reaches_no_driver_is_removed_and_the_cache_stays() {
    let text = "<disk type='network' device='disk'><driver name='qemu' type='raw' io='native'/><source protocol='rbd' \
                name='vms/web1'/><target dev='vda' bus='virtio'/></disk>";
    let report = vmdisk::lint(
        &vmdisk::read(text).unwrap(),
        &vmdisk::LintOptions::default(),
    );
    let of = |name: &str| report.diagnostics.iter().find(|it| it.rule.name == name);
    assert!(of("native-without-direct").unwrap().fix.is_none());
    assert!(of("aio-ignored").unwrap().fix.is_some());
}

#[test]
fn a_cd_of_virtio_is_a_disk_that_cannot_be_written() {
    let text = "qemu-system-x86_64 -drive file=/srv/a.iso,format=raw,if=virtio,media=cdrom";
    let document = vmdisk::read(text).unwrap();
    let disk = &document.domain().disks[0];
    assert_eq!(
        disk.frontend.effective_device(),
        vmdisk::model::Device::Disk
    );
    assert!(!disk.is_writable());
}
