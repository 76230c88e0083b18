//! The examples of rules about libvirt are what libvirt refuses and takes.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk::rules::{Evidence, Rule};
use vmdisk::{LintOptions, lint, read};
use vmdisk_tests::{LibvirtBuild, Step, Verdict, libvirts};

use crate::quoted::{quoted, said_at_definition};

/// A guest around an example, which may be a disk alone.
pub(crate) fn guest(example: &str, number: usize) -> String {
    let name = format!("<name>example{number}</name>");
    let emulator = "<emulator>/usr/bin/qemu-system-x86_64</emulator>";
    if !example.trim_start().starts_with("<domain") {
        let memory = if example.contains("type='vhost") {
            "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>"
        } else {
            ""
        };
        return format!(
            "<domain type='qemu'>{name}<memory>65536</memory>{memory}\
             <os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>\
             <devices>{emulator}{example}</devices></domain>"
        );
    }
    let mut text = example
        .replace("<domain type='kvm'>", "<domain type='qemu'>")
        .replace("<domain>", "<domain type='qemu'>")
        .replace(
            "<name>web1</name>",
            &format!("{name}<memory>65536</memory>"),
        );
    if !text.contains("<memory>") && !text.contains("<memory ") {
        // A guest with another name, or with none.
        let start = text.find("<domain").expect("it is a domain");
        let end = start + text[start..].find('>').expect("the tag ends") + 1;
        let name = if text.contains("<name>") {
            ""
        } else {
            name.as_str()
        };
        text.insert_str(end, &format!("{name}<memory>65536</memory>"));
    }
    if !text.contains("<os>") {
        let os =
            "<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>";
        text = text.replace("</memory>", &format!("</memory>{os}"));
    }
    if text.contains("<emulator>") {
        text
    } else if text.contains("<devices>") {
        text.replace("<devices>", &format!("<devices>{emulator}"))
    } else {
        text.replace(
            "</domain>",
            &format!("<devices>{emulator}</devices></domain>"),
        )
    }
}

/// The rules that report the guest for this libvirt.
fn reported(xml: &str, libvirt: &LibvirtBuild) -> BTreeSet<&'static str> {
    let options = LintOptions::default().target(libvirt.target());
    let document = read(xml).expect("examples are XML");
    let report = lint(&document, &options);
    let found = report.diagnostics.iter();
    found.map(|diagnostic| diagnostic.rule.name).collect()
}

/// Whether the rule quotes what this libvirt says against a definition.
fn quotes(rule: &Rule, libvirt: &LibvirtBuild) -> bool {
    let said = said_at_definition(libvirt);
    quoted().any(|quoted| quoted.rule == rule && said.contains(quoted.text))
}

#[test]
fn libvirt_refuses_what_pages_call_refused_and_takes_the_rest() {
    let rules: BTreeMap<&str, &Rule> = quoted()
        .map(|quoted| (quoted.rule.name, quoted.rule))
        .collect();
    let mut cases = Vec::new();
    for rule in rules.into_values() {
        // What hangs on facts of a host is tried where the files are.
        let examples = rule.examples().into_iter();
        for example in examples.filter(|example| example.text.trim_start().starts_with('<')) {
            let xml = guest(&example.text, cases.len());
            cases.push((rule, xml));
        }
    }
    assert!(cases.len() > 40, "{}", cases.len());
    let mut refused: BTreeSet<&str> = BTreeSet::new();
    let libvirts = libvirts("pages of rules about libvirt");
    for libvirt in &libvirts {
        let verdicts = libvirt
            .session()
            .verdicts(Step::Define, cases.iter().map(|(_, xml)| xml.as_str()));
        let mut wrong = Vec::new();
        let mut count = 0;
        for ((rule, xml), verdict) in cases.iter().zip(verdicts) {
            // What is newer than this libvirt it drops, and the rule is silent.
            let rules = reported(xml, libvirt);
            let is_reported = rules.contains(rule.name);
            count += usize::from(is_reported);
            let is_right = match &verdict {
                // Others report what QEMU refuses too, and libvirt reads no arguments for QEMU.
                Verdict::Accepted => {
                    let is_for_qemu = xml.contains("<qemu:commandline>");
                    let is_quoted = rule.libvirt_only && quotes(rule, libvirt);
                    !is_reported || is_for_qemu || !is_quoted
                }
                Verdict::Crashed => false,
                Verdict::Refused(message) => {
                    let said = |evidence: &Evidence| evidence.is_said_by("libvirt", message);
                    let is_quoted = is_reported && rule.evidence.iter().any(said);
                    if is_quoted {
                        refused.insert(rule.name);
                    }
                    // What it has no word for it refuses, and that is another rule's.
                    let is_too_new = !is_reported && rules.contains("unsupported-by-target");
                    is_quoted || is_too_new || !rule.libvirt_only
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
            "libvirt {}: {} examples, {count} of them refused",
            libvirt.version,
            cases.len()
        );
        assert!(count > 20, "{count}");
    }
    if libvirts.is_empty() {
        return;
    }
    println!(
        "{} rules have an example that a libvirt refuses in their words",
        refused.len()
    );
    let without: BTreeSet<&str> = quoted()
        .map(|quoted| quoted.rule)
        .filter(|rule| libvirts.iter().any(|libvirt| quotes(rule, libvirt)))
        .filter(|rule| !refused.contains(rule.name))
        .map(|rule| rule.name)
        .collect();
    assert!(
        without.is_empty(),
        "no libvirt refuses an example on the pages of {without:?} in their words"
    );
}

#[test]
fn uefi_without_acpi_is_an_error_where_libvirt_refuses_it() {
    let flash = "<loader readonly='yes' type='pflash'>/code.fd</loader><nvram>/vars.fd</nvram>";
    let guests = ["", "<features><acpi/></features>"].map(|features| {
        let os = format!("<os><type arch='x86_64' machine='q35'>hvm</type>{flash}</os>{features}");
        let disk = "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/a'/><target dev='vda' bus='virtio'/></disk>";
        guest(&format!("<domain><name>web1</name>{os}<devices>{disk}</devices></domain>"), 0)
    });
    for libvirt in &libvirts("UEFI without ACPI") {
        let all = guests.iter().map(String::as_str);
        let verdicts = libvirt.session().verdicts(Step::Define, all);
        for (xml, verdict) in guests.iter().zip(verdicts) {
            let is_refused =
                matches!(&verdict, Verdict::Refused(why) if why.contains("UEFI requires ACPI"));
            let document = read(xml).expect("it is XML");
            let found = lint(&document, &LintOptions::default().target(libvirt.target()));
            let mut found = found.diagnostics.iter();
            let is_error = |it: &vmdisk::Diagnostic| {
                it.rule.name == "acpi-missing" && it.severity == vmdisk::Severity::Error
            };
            assert_eq!(found.any(is_error), is_refused, "{verdict:?}\n{xml}");
            assert_eq!(is_refused, !xml.contains("<acpi/>"), "{verdict:?}");
        }
    }
}
