//! The steps as a POSIX shell script, for a person to read and to run.

use std::collections::BTreeSet;
use std::fmt::Write;

use vmdisk_model::LogicalVolumeName;

use super::quote::{comment, quote};
use super::{Condition, Step};
use crate::Plan;

/// Writes the steps of a plan as a POSIX shell script.
///
/// The script checks everything first and changes nothing if a check fails: it never
/// overwrites. A value never becomes shell syntax or an option of a command. The
/// same plan gives the same bytes.
pub fn script(plan: &Plan) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_script(plan, &mut out);
    out
}

fn write_script(plan: &Plan, out: &mut String) -> std::fmt::Result {
    let steps = &plan.steps;
    writeln!(out, "#!/bin/sh")?;
    match plan.domain.name.as_deref() {
        Some(name) => writeln!(
            out,
            "# Makes the storage of {}. Written by vmdisk.",
            comment(name)
        )?,
        None => writeln!(out, "# Makes the storage of the disks. Written by vmdisk.")?,
    }
    writeln!(out, "set -eu")?;
    if steps.is_empty() {
        writeln!(
            out,
            "\n# There is nothing to make: every disk is on storage that exists."
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "# An image is for the hypervisor, which gets it from root; other users have no business in it."
    )?;
    writeln!(out, "umask 077")?;
    writeln!(out, "PATH=\"${{PATH:-/usr/bin:/bin}}:/usr/sbin:/sbin\"")?;
    writeln!(out, "export PATH")?;
    writeln!(out, "\nrefuse() {{")?;
    writeln!(out, "    printf '%s\\n' \"refused: $1\" >&2")?;
    writeln!(out, "    exit 1")?;
    writeln!(out, "}}")?;
    writeln!(
        out,
        "\n# Nothing is changed before all of this has been found in order."
    )?;
    let mut checks: BTreeSet<String> = BTreeSet::new();
    for program in programs(steps) {
        let quoted = quote(program);
        let refusal = quote(&format!("{} is not installed", comment(program)));
        writeln!(
            out,
            "command -v {quoted} >/dev/null 2>&1 || refuse {refusal}"
        )?;
    }
    for condition in steps.iter().flat_map(|step| &step.conditions) {
        let check = check(condition);
        if checks.insert(check.clone()) {
            writeln!(out, "{check}")?;
        }
    }
    for (index, step) in steps.iter().enumerate() {
        let Step {
            disk,
            argv,
            why,
            notes,
            conditions: _,
        } = step;
        let name = plan.domain.disks.get(*disk).map_or("", |disk| disk.name());
        writeln!(
            out,
            "\n# {}. {}: {}",
            index + 1,
            comment(name),
            comment(why)
        )?;
        for note in notes {
            writeln!(out, "#    {}", comment(note))?;
        }
        let command: Vec<String> = argv.iter().map(|word| quote(word)).collect();
        writeln!(out, "{}", command.join(" "))?;
    }
    Ok(())
}

/// The programs that steps and their checks need, each once, in order.
fn programs(steps: &[Step]) -> Vec<&str> {
    let mut programs: Vec<&str> = Vec::new();
    let mut need = |program| {
        if !programs.contains(&program) {
            programs.push(program);
        }
    };
    for step in steps {
        if let Some(program) = step.argv.first() {
            need(program);
        }
        for condition in &step.conditions {
            match condition {
                Condition::VolumeGroup(_) => need("vgs"),
                Condition::NoVolume(_) | Condition::Volume(_) => need("lvs"),
                Condition::NothingAt(_) | Condition::SomethingAt(_) | Condition::DirectoryAt(_) => {
                }
            }
        }
    }
    programs
}

/// A command that succeeds if the condition holds.
fn test(condition: &Condition) -> String {
    let lists = |program: &str, name: &str| {
        format!("{program} --noheadings -- {} >/dev/null 2>&1", quote(name))
    };
    match condition {
        Condition::NothingAt(path) => {
            let path = quote(path);
            format!("{{ [ ! -e {path} ] && [ ! -L {path} ]; }}")
        }
        Condition::SomethingAt(path) => format!("[ -e {} ]", quote(path)),
        Condition::DirectoryAt(path) => format!("[ -d {} ]", quote(path)),
        Condition::VolumeGroup(group) => lists("vgs", group),
        Condition::NoVolume(name) => format!("! {}", lists("lvs", &name.to_string())),
        Condition::Volume(name) => lists("lvs", &name.to_string()),
    }
}

/// Lines that stop the script unless the condition holds.
fn check(condition: &Condition) -> String {
    let volume = |name: &LogicalVolumeName| comment(&name.to_string());
    let refusal = match condition {
        Condition::NothingAt(path) => {
            format!("{} exists, and nothing is overwritten", comment(path))
        }
        Condition::SomethingAt(path) => format!("{} does not exist", comment(path)),
        Condition::DirectoryAt(path) => format!("{} is not a directory", comment(path)),
        Condition::VolumeGroup(group) => format!("volume group {} does not exist", comment(group)),
        Condition::NoVolume(name) => {
            format!(
                "the volume {} exists, and nothing is overwritten",
                volume(name)
            )
        }
        Condition::Volume(name) => format!("volume {} does not exist", volume(name)),
    };
    let refusal = quote(&refusal);
    match condition {
        // `! a || b` is what is meant, and easy to misread.
        Condition::NoVolume(name) => {
            let there = test(&Condition::Volume(name.clone()));
            format!("if {there}; then refuse {refusal}; fi")
        }
        Condition::NothingAt(_)
        | Condition::SomethingAt(_)
        | Condition::DirectoryAt(_)
        | Condition::VolumeGroup(_)
        | Condition::Volume(_) => format!("{} || refuse {refusal}", test(condition)),
    }
}
