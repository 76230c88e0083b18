//! What libvirt takes without a word and does not do, and what it leaves out without a word.
#![allow(clippy::print_stdout, reason = "a test says how much it looked at")]

#[path = "silent/rows.rs"]
mod rows;
#[path = "silent/words.rs"]
mod words;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use rows::{CONVERTED, Definition, SILENT};
use vmdisk::{Diagnostic, LintOptions, lint, read};
use vmdisk_tests::{LibvirtBuild, libvirts};
use words::WORDS;

/// An image on virtio with more in its driver.
macro_rules! driver {
    ($attributes:literal, $inside:literal) => {
        concat!(
            "<disk type='file' device='disk'><driver name='qemu' type='qcow2' ",
            $attributes,
            ">",
            $inside,
            "</driver><source file='/a.img'/><target dev='vda' bus='virtio'/></disk>"
        )
    };
}

/// A disk on virtio with this source.
macro_rules! source {
    ($kind:literal, $source:literal) => {
        concat!(
            "<disk type='",
            $kind,
            "' device='disk'><driver name='qemu' type='raw' cache='none'/>",
            $source,
            "<target dev='vda' bus='virtio'/></disk>"
        )
    };
}

/// A raw image with this inside, and this target.
macro_rules! disk {
    ($inside:literal, $target:literal) => {
        concat!(
            "<disk type='file' device='disk'><driver name='qemu' type='raw'/><source file='/a.img'/>",
            $inside,
            $target,
            "</disk>"
        )
    };
}

/// An image on virtio with more behind its target.
macro_rules! behind {
    ($inside:literal) => {
        concat!(
            "<disk type='file' device='disk'><driver name='qemu' type='qcow2'/><source file='/a.img'/>",
            "<target dev='vda' bus='virtio'/>",
            $inside,
            "</disk>"
        )
    };
}

use {behind, disk, driver, source};

const PLAIN: &str = behind!("");
const IOTHREADS: &str = "<iothreads>2</iothreads>";
const SHARED: &str = "<memoryBacking><source type='memfd'/><access mode='shared'/></memoryBacking>";

/// A guest around some devices.
fn guest(number: usize, around: &str, devices: &str) -> String {
    format!(
        "<domain type='qemu' xmlns:qemu='http://libvirt.org/schemas/domain/qemu/1.0'><name>silent{number}</name>\
         <memory unit='MiB'>64</memory><vcpu>2</vcpu>{around}<os><type arch='x86_64' machine='q35'>hvm</type></os><features><acpi/></features>\
         <devices><emulator>/usr/bin/qemu-system-x86_64</emulator>{devices}</devices></domain>"
    )
}

/// What a libvirt makes of guests: the definition it keeps, or what it says against it.
fn defined(libvirt: &LibvirtBuild, guests: &[String], then: &str) -> Vec<Result<String, String>> {
    let session = libvirt.session();
    let mut commands = String::new();
    for (number, xml) in guests.iter().enumerate() {
        let file = session.folder().join(format!("{number}.xml"));
        std::fs::write(&file, xml).unwrap();
        let file = file.display();
        let then = then.replace("{}", &format!("silent{number}"));
        let _ = writeln!(
            commands,
            "echo BEGIN {number}\ndefine {file}\n{then}\necho END {number}"
        );
    }
    let said = session.say(&commands).expect("virsh can be started");
    (0..guests.len())
        .map(|number| {
            let part = said.split_once(&format!("\nBEGIN {number}\n"));
            let part = part.and_then(|(_, rest)| rest.split_once(&format!("\nEND {number}\n")));
            let (part, _) = part.unwrap_or_else(|| panic!("libvirt ended before {number}: {said}"));
            if part.contains("defined from") {
                Ok(part.to_owned())
            } else {
                Err(part.to_owned())
            }
        })
        .collect()
}

/// What the linter says of a guest for a libvirt.
fn lint_for(xml: &str, libvirt: &LibvirtBuild) -> Vec<Diagnostic> {
    let options = LintOptions::default().target(libvirt.target());
    lint(&read(xml).unwrap(), &options).diagnostics
}

#[test]
fn what_libvirt_is_silent_about_the_linter_speaks_of() {
    let parts = WORDS.iter().map(|word| (word.around, word.devices));
    let parts = parts.chain(SILENT.iter().map(|row| (row.around, row.devices)));
    let parts = parts.chain(CONVERTED.iter().map(|row| ("", row.devices)));
    let guests: Vec<String> = parts
        .enumerate()
        .map(|(number, (around, devices))| guest(number, around, devices))
        .collect();
    for libvirt in libvirts("what libvirt is silent about") {
        let then = "dumpxml --inactive {}\ndomxml-to-native qemu-argv --domain {}";
        // One driver for all: it takes seconds to start.
        let verdicts = defined(&libvirt, &guests, then);
        let mut cases = guests.iter().zip(&verdicts);
        let mut wrong = Vec::new();
        words_are_known_as_the_linter_says(&libvirt, &mut cases, &mut wrong);
        silence_is_broken(&libvirt, &mut cases, &mut wrong);
        conversions_are_as_the_linter_says(&libvirt, &mut cases, &mut wrong);
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }
}

type Verdict = Result<String, String>;

fn words_are_known_as_the_linter_says<'a>(
    libvirt: &LibvirtBuild,
    cases: &mut impl Iterator<Item = (&'a String, &'a Verdict)>,
    wrong: &mut Vec<String>,
) {
    let (mut kept, mut left_out, mut refused) = (0, 0, 0);
    for (word, (xml, verdict)) in WORDS.iter().zip(cases) {
        let said: Vec<String> = lint_for(xml, libvirt)
            .into_iter()
            .filter(|found| {
                found.rule.name == "unsupported-by-target" && found.title.contains("which libvirt")
            })
            .map(|found| found.title)
            .collect();
        let expected = match verdict {
            Ok(definition) if definition.contains(word.kept) => {
                kept += 1;
                ""
            }
            Ok(_) => {
                left_out += 1;
                "silently ignores"
            }
            // It knows the word, and its QEMU does not.
            Err(error) if error.contains("QEMU") => {
                println!(
                    "libvirt {}: {}: {}",
                    libvirt.version,
                    word.kept,
                    error.trim()
                );
                kept += 1;
                ""
            }
            Err(_) => {
                refused += 1;
                "does not support"
            }
        };
        let is_right = match said.as_slice() {
            [] => expected.is_empty(),
            said => !expected.is_empty() && said.iter().any(|said| said.ends_with(expected)),
        };
        if !is_right {
            wrong.push(format!("{}: {verdict:?}\nbut: {said:?}", word.kept));
        }
    }
    println!(
        "libvirt {}: {kept} words kept, {left_out} left out without a word, {refused} refused",
        libvirt.version
    );
}

fn silence_is_broken<'a>(
    libvirt: &LibvirtBuild,
    cases: &mut impl Iterator<Item = (&'a String, &'a Verdict)>,
    wrong: &mut Vec<String>,
) {
    for (row, (xml, verdict)) in SILENT.iter().zip(cases) {
        let found = lint_for(xml, libvirt);
        if !found.iter().any(|found| found.rule.name == row.rule) {
            let found: Vec<_> = found.iter().map(|found| found.rule.name).collect();
            wrong.push(format!("{}: only {found:?} for {xml}", row.rule));
        }
        let is_silent = verdict.as_ref().is_ok_and(|said| {
            let (definition, _) = said.split_once("</domain>").unwrap();
            match row.definition {
                Definition::Keeps(word) => definition.contains(word),
                Definition::LeavesOut(word) => xml.contains(word) && !definition.contains(word),
                Definition::Adds(word) => !xml.contains(word) && definition.contains(word),
            }
        });
        if !is_silent {
            wrong.push(format!("{}: libvirt is not silent: {verdict:?}", row.rule));
        }
    }
    println!(
        "libvirt {}: {} guests taken without a word, each with its finding",
        libvirt.version,
        SILENT.len()
    );
}

fn conversions_are_as_the_linter_says<'a>(
    libvirt: &LibvirtBuild,
    cases: &mut impl Iterator<Item = (&'a String, &'a Verdict)>,
    wrong: &mut Vec<String>,
) {
    let rules: BTreeSet<&str> = CONVERTED.iter().filter_map(|row| row.rule).collect();
    for (row, (xml, verdict)) in CONVERTED.iter().zip(cases) {
        let found: Vec<&str> = lint_for(xml, libvirt)
            .iter()
            .map(|found| found.rule.name)
            .filter(|rule| rules.contains(rule))
            .collect();
        if found != Vec::from_iter(row.rule) {
            wrong.push(format!("{found:?} for {xml}"));
        }
        let is_right = verdict.as_ref().is_ok_and(|said| {
            let (_, line) = said.split_once("</domain>").unwrap();
            line.contains(row.has) && !line.contains(row.lacks)
        });
        if !is_right {
            wrong.push(format!("{}: {verdict:?}", row.has));
        }
    }
}
