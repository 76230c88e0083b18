//! libvirt's command lines are read, and written again with the same graphs and devices.

use std::collections::BTreeMap;

use vmdisk_qemu::{read, write};
use vmdisk_rule::{Consumer, Context, Outcome};

use super::support::*;
use crate::normal;

/// Guests that come out differently, and why.
const DIFFERENT: &[(&str, &str)] = &[
    (
        "disk-serial",
        "libvirt puts a backslash before a space, which is then part of the serial number",
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

#[test]
fn libvirts_command_lines_come_back_as_they_were() {
    let Some(directory) = corpus("qemuxmlconf") else {
        return;
    };
    let (mut same, mut total, mut refused) = (0, 0, 0);
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
        let ignored: Vec<&str> = PLACES.iter().copied().chain(["bootindex"]).collect();
        let expected = Line::new(&shell_words(&text)).comparable(&ignored);
        let exception = DIFFERENT.iter().find(|(case, _)| *case == name);
        match write(&document.domain, &options("qemu=10.0,libvirt=11.3")) {
            Ok(line) => {
                let ours = Line::new(&line.argv()).comparable(&ignored);
                if ours == expected {
                    assert!(exception.is_none(), "{name} is no longer different");
                    same += 1;
                } else if exception.is_none() {
                    wrong.push(format!("{name}:\n{}", differences(&ours, &expected)));
                }
            }
            Err(_) if exception.is_some() => {}
            Err(problems) if is_refused(&problems) => refused += 1,
            Err(problems) => wrong.push(format!("{name}: {problems}")),
        }
    }
    eprintln!("{same} of {total} are the same; beyond the model: {beyond:?}; {refused} refused");
    assert!(refused <= 5, "{refused} are refused");
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
    let options = options("qemu=10.0");
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
