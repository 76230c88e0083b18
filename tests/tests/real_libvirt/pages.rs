//! The examples of rules about libvirt are what libvirt refuses and takes.

use vmdisk::rules::{Evidence, RULES, Rule};
use vmdisk::{LintOptions, lint, read};
use vmdisk_tests::{LibvirtBuild, Verdict, libvirts};

/// A guest around an example, which may be a disk alone.
fn guest(example: &str, number: usize) -> String {
    let name = format!("<name>example{number}</name>");
    let emulator = "<emulator>/usr/bin/qemu-system-x86_64</emulator>";
    if !example.trim_start().starts_with("<domain") {
        let memory = if example.contains("vhostuser") {
            "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>"
        } else {
            ""
        };
        return format!(
            "<domain type='qemu'>{name}<memory>65536</memory>{memory}\
             <os><type arch='x86_64' machine='q35'>hvm</type></os>\
             <devices>{emulator}{example}</devices></domain>"
        );
    }
    let mut text = example
        .replace("<domain type='kvm'>", "<domain type='qemu'>")
        .replace(
            "<name>web1</name>",
            &format!("{name}<memory>65536</memory>"),
        );
    if !text.contains("<os>") {
        let os = "<os><type arch='x86_64' machine='q35'>hvm</type></os>";
        text = text.replace("</memory>", &format!("</memory>{os}"));
    }
    if text.contains("<devices>") {
        text.replace("<devices>", &format!("<devices>{emulator}"))
    } else {
        text.replace(
            "</domain>",
            &format!("<devices>{emulator}</devices></domain>"),
        )
    }
}

/// Whether the rule reports the guest for this libvirt.
fn is_reported(rule: &Rule, xml: &str, libvirt: &LibvirtBuild) -> bool {
    let options = LintOptions {
        target: libvirt.target(),
        ..LintOptions::default()
    };
    let document = read(xml).expect("examples are XML");
    let report = lint(&document, &options);
    let mut found = report.diagnostics.iter();
    found.any(|diagnostic| diagnostic.rule == rule)
}

#[test]
fn libvirt_refuses_what_pages_call_refused_and_takes_the_rest() {
    let rules: Vec<&Rule> = RULES
        .iter()
        .copied()
        .filter(|rule| rule.is_about_libvirt)
        .collect();
    let mut cases = Vec::new();
    for rule in rules {
        for example in rule.examples() {
            let xml = guest(&example.text, cases.len());
            cases.push((rule, xml));
        }
    }
    assert!(cases.len() > 40, "{}", cases.len());
    for libvirt in libvirts("pages of rules about libvirt") {
        let verdicts = libvirt.verdicts(cases.iter().map(|(_, xml)| xml.as_str()));
        let mut wrong = Vec::new();
        let mut reported = 0;
        for ((rule, xml), verdict) in cases.iter().zip(verdicts) {
            // What is newer than this libvirt it drops, and the rule is silent.
            let is_refused = &is_reported(rule, xml, &libvirt);
            reported += usize::from(*is_refused);
            let is_right = match &verdict {
                Verdict::Accepted => !is_refused,
                Verdict::Crashed => false,
                Verdict::Refused(message) => {
                    let said = |evidence: &Evidence| evidence.is_said_by("libvirt", message);
                    *is_refused && rule.evidence.iter().any(said)
                }
            };
            if !is_right {
                wrong.push(format!("{}: {verdict:?}\n{xml}", rule.name));
            }
        }
        assert!(
            wrong.is_empty(),
            "libvirt {}:\n{}",
            libvirt.version,
            wrong.join("\n")
        );
        println!(
            "libvirt {}: {} examples, {reported} of them refused",
            libvirt.version,
            cases.len()
        );
        assert!(reported > 20, "{reported}");
    }
}
