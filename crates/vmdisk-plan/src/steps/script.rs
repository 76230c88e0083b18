//! The steps as a POSIX shell script, for a person to read and to run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use vmdisk_model::{Bytes, LogicalVolumeName};

use super::quote::{comment, quote};
use super::{Condition, Step};
use crate::Plan;

/// Writes the steps of a plan as a POSIX shell script.
///
/// The script checks everything first, free space included, and changes nothing if a check fails: it never
/// overwrites. If a command fails or a signal stops the script, it removes what it made, so that it can be run again.
/// A value never becomes shell syntax or an option of a command. The same plan gives the same bytes.
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
            "# Creates the storage of {}. Written by vmdisk.",
            comment(name)
        )?,
        None => writeln!(
            out,
            "# Creates the storage of the disks. Written by vmdisk."
        )?,
    }
    writeln!(out, "set -eu")?;
    if steps.is_empty() {
        writeln!(
            out,
            "\n# Nothing to create: every disk is on existing storage."
        )?;
        return Ok(());
    }
    writeln!(
        out,
        "# Only root and the hypervisor need the images; other users must not read them."
    )?;
    writeln!(out, "umask 077")?;
    writeln!(out, "PATH=\"${{PATH:-/usr/bin:/bin}}:/usr/sbin:/sbin\"")?;
    writeln!(out, "export PATH")?;
    writeln!(out, "\nrefuse() {{")?;
    writeln!(out, "    printf '%s\\n' \"refused: $1\" >&2")?;
    writeln!(out, "    exit 1")?;
    writeln!(out, "}}")?;
    writeln!(out, "\n# Check all preconditions before changing anything.")?;
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
        if let Some(check) = check(condition)
            && checks.insert(check.clone())
        {
            writeln!(out, "{check}")?;
        }
    }
    write_room(steps, out)?;
    write_undo(steps, out)?;
    for (index, step) in steps.iter().enumerate() {
        let Step {
            disk,
            argv,
            why,
            notes,
            conditions: _,
        } = step;
        let number = index + 1;
        let name = plan.domain.disks.get(*disk).map_or("", |disk| disk.name());
        writeln!(out, "\n# {number}. {}: {}", comment(name), comment(why))?;
        for note in notes {
            writeln!(out, "#    {}", comment(note))?;
        }
        let command: Vec<String> = argv.iter().map(|word| quote(word)).collect();
        writeln!(out, "begun={number}")?;
        writeln!(out, "{}", command.join(" "))?;
    }
    Ok(())
}

/// Sizes by directory or volume group, each with the sum of the steps.
fn rooms<'p>(
    steps: &'p [Step],
    of: impl Fn(&'p Condition) -> Option<(&'p str, Bytes)>,
) -> BTreeMap<&'p str, Bytes> {
    let mut rooms = BTreeMap::new();
    for condition in steps.iter().flat_map(|step| &step.conditions) {
        if let Some((place, size)) = of(condition) {
            let sum: &mut Bytes = rooms.entry(place).or_insert(Bytes(0));
            sum.0 = sum.0.saturating_add(size.0);
        }
    }
    rooms
}

/// Checks of the free space. Directories of one file system share it.
fn write_room(steps: &[Step], out: &mut String) -> std::fmt::Result {
    let in_directories = rooms(steps, |condition| match condition {
        Condition::Room { directory, size } => Some((directory, *size)),
        _ => None,
    });
    if !in_directories.is_empty() {
        writeln!(
            out,
            "room() {{ # DIRECTORY BYTES MESSAGE: free space on its file system, with the earlier calls"
        )?;
        writeln!(out, "    device=$(stat -c %d -- \"$1\")")?;
        writeln!(out, "    free=$(($(stat -f -c '%a * %S' -- \"$1\")))")?;
        writeln!(
            out,
            "    eval \"needed=\\$((\\${{needed_$device:-0}} + $2)); needed_$device=\\$needed\""
        )?;
        writeln!(out, "    [ \"$needed\" -le \"$free\" ] || refuse \"$3\"")?;
        writeln!(out, "}}")?;
    }
    for (directory, size) in in_directories {
        let refusal = format!("{} has too little space for {size}", comment(directory));
        let (directory, refusal) = (quote(directory), quote(&refusal));
        writeln!(out, "room {directory} {} {refusal}", size.0)?;
    }
    let in_groups = rooms(steps, |condition| match condition {
        Condition::RoomInGroup { group, size } => Some((group, *size)),
        _ => None,
    });
    for (group, size) in in_groups {
        let refusal = format!(
            "volume group {} has too little space for {size}",
            comment(group)
        );
        writeln!(
            out,
            "[ \"$(vgs --noheadings --nosuffix --units b -o vg_free -- {})\" -ge {} ] || refuse {}",
            quote(group),
            size.0,
            quote(&refusal)
        )?;
    }
    Ok(())
}

/// The function that is run if the script stops before its end.
fn write_undo(steps: &[Step], out: &mut String) -> std::fmt::Result {
    writeln!(
        out,
        "\n# If a command fails, remove what this script created, so that it can be run again."
    )?;
    writeln!(out, "begun=0")?;
    writeln!(out, "undo() {{")?;
    writeln!(out, "    status=$?")?;
    writeln!(out, "    trap - EXIT")?;
    writeln!(out, "    [ \"$status\" -ne 0 ] || exit 0")?;
    for (index, step) in steps.iter().enumerate().rev() {
        for condition in &step.conditions {
            if let Some((number, command)) = removal(step, condition, index + 1) {
                writeln!(out, "    [ \"$begun\" -lt {number} ] || {command} || :")?;
            }
        }
    }
    writeln!(out, "    exit \"$status\"")?;
    writeln!(out, "}}")?;
    writeln!(out, "trap undo EXIT")?;
    writeln!(out, "trap 'exit 130' INT")?;
    writeln!(out, "trap 'exit 143' TERM HUP")
}

/// The command that removes what a step made, and the number of the step from which on it is there.
fn removal(step: &Step, condition: &Condition, number: usize) -> Option<(usize, String)> {
    match condition {
        // A failed `qemu-img` leaves an incomplete file.
        Condition::NothingAt(path) => {
            let path = quote(path);
            Some((number, format!("rm -f -- {path}")))
        }
        // A failed `lvcreate` leaves nothing, and what has the name then is somebody else's.
        Condition::NoVolume(name) => {
            let name = quote(&name.to_string());
            let remove = format!("lvremove --yes -- {name}");
            let is_pool = step.argv.iter().any(|word| word == "thin-pool");
            // The removal of a pool would remove volumes that others made in it meanwhile.
            let command = match is_pool {
                true => format!(
                    "{{ [ \"$(lvs --noheadings -o thin_count -- {name})\" -eq 0 ] && {remove}; }}"
                ),
                false => remove,
            };
            Some((number + 1, command))
        }
        _ => None,
    }
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
                Condition::VolumeGroup(_) | Condition::RoomInGroup { .. } => need("vgs"),
                Condition::NoVolume(_) | Condition::Volume(_) => need("lvs"),
                Condition::Room { .. } => need("stat"),
                Condition::NothingAt(_) | Condition::SomethingAt(_) | Condition::DirectoryAt(_) => {
                }
            }
        }
    }
    programs
}

/// A line that stops the script unless the condition holds; none for space, which is added up first.
fn check(condition: &Condition) -> Option<String> {
    let volume = |name: &LogicalVolumeName| comment(&name.to_string());
    let lists = |program: &str, name: &str| {
        format!("{program} --noheadings -- {} >/dev/null 2>&1", quote(name))
    };
    let unless = |test: String, refusal: String| format!("{test} || refuse {}", quote(&refusal));
    Some(match condition {
        Condition::NothingAt(path) => {
            let refusal = format!("{} exists, and nothing is overwritten", comment(path));
            let path = quote(path);
            unless(
                format!("{{ [ ! -e {path} ] && [ ! -L {path} ]; }}"),
                refusal,
            )
        }
        Condition::SomethingAt(path) => unless(
            format!("[ -e {} ]", quote(path)),
            format!("{} does not exist", comment(path)),
        ),
        Condition::DirectoryAt(path) => unless(
            format!("[ -d {} ]", quote(path)),
            format!("{} is not a directory", comment(path)),
        ),
        Condition::VolumeGroup(group) => unless(
            lists("vgs", group),
            format!("volume group {} does not exist", comment(group)),
        ),
        Condition::NoVolume(name) => {
            let there = lists("lvs", &name.to_string());
            let refusal = format!(
                "the volume {} exists, and nothing is overwritten",
                volume(name)
            );
            // `! a || b` is what is meant, and easy to misread.
            format!("if {there}; then refuse {}; fi", quote(&refusal))
        }
        Condition::Volume(name) => unless(
            lists("lvs", &name.to_string()),
            format!("volume {} does not exist", volume(name)),
        ),
        Condition::Room { .. } | Condition::RoomInGroup { .. } => return None,
    })
}
