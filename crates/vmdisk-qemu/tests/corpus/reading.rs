//! libvirt's command lines are read, and written again as they were.

use std::collections::BTreeMap;

use vmdisk_qemu::{read, write};
use vmdisk_rule::{Consumer, Context, Outcome};

use super::support::*;
use crate::normal;

/// The disks' options of a command line, in whatever order the disks stand.
fn disk_options(words: &[String]) -> Vec<String> {
    let mut options = comparable_line(words);
    options.sort();
    options
}

/// The text with libvirt's numbers of nodes replaced by their order of appearance.
fn renumbered(options: &[String]) -> Vec<String> {
    let mut names: BTreeMap<String, usize> = BTreeMap::new();
    options
        .iter()
        .map(|option| {
            let mut out = String::new();
            let mut rest = option.as_str();
            while let Some(at) = rest.find("\"libvirt-") {
                let (before, name) = rest.split_at(at + "\"libvirt-".len());
                let end = name.find('-').unwrap_or(name.len());
                let next = names.len();
                let number = *names.entry(name[..end].to_owned()).or_insert(next);
                out.push_str(&format!("{before}#{number}"));
                rest = &name[end..];
            }
            out.push_str(rest);
            out
        })
        .collect()
}

/// Guests that come out differently, and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "disk-serial",
        "libvirt puts a backslash before a space, which is then part of the serial number",
    ),
    (
        "disk-source-fd",
        "libvirt keeps raw nodes over passed file descriptors",
    ),
    (
        "qemu-ns-commandline",
        "the made-up ARGUMENT is an image to QEMU",
    ),
    ("qemu-ns-commandline-ns0", "the same"),
    ("qemu-ns-domain-commandline", "the same"),
    ("qemu-ns-domain-commandline-ns0", "the same"),
    ("qemu-ns-domain-ns0", "the same"),
];

/// libvirt gives a PC a USB controller unless told not to, and so does our libvirt style; whether the
/// guest had one is not in the model.
fn without_usb(options: Vec<String>) -> Vec<String> {
    let is_usb = |option: &String| {
        option.contains("usb-uhci\"") || option.contains("xhci\"") || option.contains("usb-ehci")
    };
    options
        .into_iter()
        .filter(|option| !is_usb(option))
        .collect()
}

#[test]
fn libvirts_command_lines_come_back_as_they_were() {
    let Some(directory) = corpus("qemuxmlconf") else {
        return;
    };
    let (mut same, mut total) = (0, 0);
    let mut beyond: BTreeMap<String, usize> = BTreeMap::new();
    let mut wrong = Vec::new();
    for (name, path) in files(&directory, ".x86_64-latest.args") {
        let text = std::fs::read_to_string(&path).unwrap();
        let document = read(&text).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        total += 1;
        if let Some(kept) = document.kept.first() {
            *beyond.entry(kept.key.clone()).or_default() += 1;
            continue;
        }
        let expected = without_usb(disk_options(&shell_words(&text)));
        let exception = DIFFERENT.iter().find(|(case, _)| *case == name);
        match write(&document.domain, &options("qemu=10.0,libvirt=11.3")) {
            Ok(line) => {
                let ours = without_usb(disk_options(&line.argv()));
                if renumbered(&ours) == renumbered(&expected) {
                    assert!(exception.is_none(), "{name} is no longer different");
                    same += 1;
                } else if exception.is_some() {
                    continue;
                } else {
                    let lacks = expected.iter().filter(|option| !ours.contains(option));
                    let more = ours.iter().filter(|option| !expected.contains(option));
                    let differences: Vec<String> = lacks
                        .map(|option| format!("  libvirt's {option}"))
                        .chain(more.map(|option| format!("  ours      {option}")))
                        .collect();
                    wrong.push(format!("{name}:\n{}", differences.join("\n")));
                }
            }
            Err(_) if exception.is_some() => {}
            Err(problems) => wrong.push(format!("{name}: {problems}")),
        }
    }
    eprintln!("{same} of {total} are the same; beyond the model: {beyond:?}");
    assert!(
        wrong.is_empty(),
        "{} differ:\n{}",
        wrong.len(),
        wrong.join("\n")
    );
}

#[test]
fn libvirts_guests_come_back_from_a_command_line() {
    let Some(directory) = corpus("qemuxmlconf") else {
        return;
    };
    let options = vmdisk_qemu::Options {
        target: "qemu=10.0".parse().unwrap(),
        style: vmdisk_qemu::Style::Readable,
    };
    let mut same = 0;
    for (name, path) in files(&directory, ".xml") {
        let text = std::fs::read_to_string(&path).unwrap();
        let Ok(xml) = vmdisk_libvirt::read(&text) else {
            continue;
        };
        let Ok(line) = write(&xml.domain, &options) else {
            continue;
        };
        let document = read(&line.to_shell()).unwrap_or_else(|failure| panic!("{name}: {failure}"));
        // A secret that only libvirt knows is still to be given, and libvirt has slices that no QEMU takes.
        let context = Context {
            consumer: Consumer::Qemu,
            ..Context::new(&document.domain, &options.target)
        };
        let mut outcome = Outcome::default();
        outcome.add_problems(&context, &document.problems);
        vmdisk_qemu::check(&document, &context, &mut outcome);
        outcome.findings.retain(|finding| {
            !matches!(
                finding.rule.name,
                "encryption-secret-missing" | "slice-unaligned"
            )
        });
        assert_eq!(outcome.findings, [], "{name}");
        assert!(
            normal::shares_memory(&document.domain, &xml.domain),
            "{name}"
        );
        assert_eq!(
            normal::normal(&document.domain, &xml.domain),
            normal::normal(&xml.domain, &xml.domain),
            "{name}"
        );
        same += 1;
    }
    eprintln!("{same} guests came back");
    assert!(same > 400, "only {same} guests were compared");
}
