//! The steps as a POSIX shell script, for a person to read and to run.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use vmdisk_model::Bytes;

use super::comment::comment;
use super::{Condition, Equality, Named, Step, StepKind, not_installed};
use crate::Plan;
use vmdisk_fields::shell_word as quote;

/// Writes the steps of a plan as a POSIX shell script.
///
/// The script checks everything first, free space included, and changes nothing if a check fails: it never
/// overwrites. What is there and as planned is done already. It exits with 1 if it refuses, and with 2 if a command fails. If a command fails or a signal stops the script, it removes what it made, so that it can be run again.
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
    writeln!(out, "{HELPERS}")?;
    let mut checks: BTreeSet<String> = BTreeSet::new();
    for program in programs(steps) {
        let quoted = quote(&program);
        let refusal = quote(&comment(&not_installed(&program)));
        writeln!(
            out,
            "command -v {quoted} >/dev/null 2>&1 || refuse {refusal}"
        )?;
    }
    for (index, step) in steps.iter().enumerate() {
        if !step.completes() {
            write_done(index + 1, step, out)?;
        }
        let made = step.makes();
        let others = step.conditions.iter().filter(|condition| match condition {
            // What a step completes is in the private directory then.
            Condition::NothingAt(path) => *path != made && step.makes_file(),
            _ => true,
        });
        for condition in others {
            // What only the making needs may be gone later.
            let is_for_making = step.completes()
                || matches!(
                    condition,
                    Condition::PrivateFile(_) | Condition::NothingAt(_)
                );
            let unless = match is_for_making {
                true => format!("{} ", unless_done(leader(steps, index))),
                false => String::new(),
            };
            if let Some(check) = check(condition).map(|check| unless + &check)
                && checks.insert(check.clone())
            {
                writeln!(out, "{check}")?;
            }
        }
    }
    write_room(steps, out)?;
    if steps.iter().any(Step::makes_file) {
        writeln!(out, "{FILES}")?;
    }
    write_undo(steps, out)?;
    write_steps(plan, out)
}

/// The commands, each unless it is done already.
fn write_steps(plan: &Plan, out: &mut String) -> std::fmt::Result {
    for (index, step) in plan.steps.iter().enumerate() {
        let Step {
            disk,
            argv,
            why,
            notes,
            kind,
            conditions: _,
            equality: _,
            resize: _, // a script makes new things only
        } = step;
        let number = index + 1;
        let name = plan.domain.disks.get(*disk).map_or("", |disk| disk.name());
        writeln!(out, "\n# {number}. {}: {}", comment(name), comment(why))?;
        for note in notes {
            writeln!(out, "#    {}", comment(note))?;
        }
        let leader = leader(&plan.steps, index);
        let unless_done = unless_done(leader);
        let path = quote(&step.makes());
        if step.makes_file() {
            writeln!(out, "{unless_done} private {path}")?;
        }
        if step.makes_named().is_some() {
            let command = quoted(argv);
            writeln!(out, "{unless_done} {{ {command}; made_{number}=yes; }}")?;
        } else if *kind != StepKind::Rename {
            writeln!(out, "{unless_done} {}", quoted(&step.argv_at(MADE)))?;
        }
        let is_last = plan.steps.get(index + 1).is_none_or(|it| !it.completes());
        if is_last && step.makes_named().is_none() {
            writeln!(out, "{unless_done} publish {leader} {path}")?;
        }
    }
    Ok(())
}

/// The file in the directory that `private` enters.
const MADE: &str = "./image";

/// A file is made in a directory of its own, which the shell enters, so that nobody can put a link in its way, and is
/// given its name when it is complete.
const FILES: &str = r#"private() { # PATH: enters a new directory beside it, into which only this user can write
    mkdir -m 700 -- "$1.part"
    cd -P -- "$1.part"
    case "$(stat -c '%u %A' .)" in
    "$(id -u)"\ d????-??-*) ;;
    *) refuse "$1.part does not belong to this user alone" ;;
    esac
    (set -C && : > ./image) || refuse "$1.part is not empty"
    inside=$1.part
}
publish() { # NUMBER PATH: names the file, and replaces nothing
    made=$(stat -c %d:%i ./image)
    ln -T -- ./image "$2" 2>/dev/null || mv -nT -- ./image "$2" || :
    is_made "$made" "$2" || refuse "$2 exists, and nothing is overwritten"
    eval "made_$1=\$made"
    leave
}
leave() { # removes the private directory
    rm -f -- ./image
    cd /
    rmdir -- "$inside"
    inside=
}
is_made() { # DEVICE:INODE PATH: true if the path leads to what this script made
    [ -n "$1" ] && [ "$(stat -c %d:%i -- "$2" 2>/dev/null)" = "$1" ]
}"#;

/// Free space for all steps that need it on one file system.
const ROOM: &str = r#"room() { # DIRECTORY BYTES MESSAGE: free space on its file system, with the earlier calls
    device=$(stat -c %d -- "$1")
    free=$(($(stat -f -c '%a * %S' -- "$1")))
    eval "needed=\$((\${needed_$device:-0} + $2)); needed_$device=\$needed"
    [ "$needed" -le "$free" ] || refuse "$3"
}"#;

/// What a failure removes: the commands of the steps stand between the two parts.
const UNDO_BEGINS: &str = r#"
# If a command fails, remove what this script created, so that it can be run again.
inside=
undo() {
    status=$?
    trap - EXIT
    [ "$status" -ne 0 ] || exit 0"#;

const UNDO_ENDS: &str = r#"    [ -z "${refused:-}" ] || exit 1
    [ "$status" -gt 128 ] || exit 2
    exit "$status"
}
trap undo EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP"#;

/// The number of the step that a step completes, or its own.
fn leader(steps: &[Step], index: usize) -> usize {
    let of = steps[..=index].iter().rposition(|step| !step.completes());
    of.unwrap_or(index) + 1
}

/// The beginning of a line for what is not done already.
fn unless_done(number: usize) -> String {
    format!("[ -n \"${{done_{number}:-}}\" ] ||")
}

/// The functions of every script.
const HELPERS: &str = r#"# Only root and the hypervisor need the images; other users must not read them.
umask 077
PATH="${PATH:-/usr/bin:/bin}:/usr/sbin:/sbin"
export PATH

refuse() {
    printf '%s\n' "refused: $1" >&2
    refused=yes
    exit 1
}
says() { # TEXT COMMAND…: true if the command prints the text; a comma at the end of a line does not count
    text=$1
    shift
    said=$("$@" 2>/dev/null) || return 1
    case "
$(printf '%s\n' "$said" | sed 's/,$//')
" in *"$text"*) ;; *) return 1 ;; esac
}
lacks() { # TEXT COMMAND…: true if the command succeeds, and does not print the text
    without=$1
    shift
    says '' "$@" && ! says "$without" "$@"
}

# Check all preconditions before changing anything."#;

/// Asks whether a step is done already: what it makes is there, and as planned.
fn write_done(number: usize, step: &Step, out: &mut String) -> std::fmt::Result {
    let made = step.makes();
    let (there, name) = match step.makes_named() {
        None => {
            let path = quote(&made);
            (format!("[ -e {path} ] || [ -L {path} ]"), comment(&made))
        }
        Some(thing) => (lists(thing), format!("the {}", comment(&thing.to_string()))),
    };
    writeln!(out, "if {there}; then")?;
    let refusal = quote(&format!(
        "{name} exists, and nothing is overwritten: it is not as planned"
    ));
    if step.makes_named().is_none() {
        let path = quote(&made);
        let not_regular = quote(&format!(
            "{name} exists, and nothing is overwritten: it is not a regular file"
        ));
        writeln!(
            out,
            "    [ -f {path} ] && [ ! -L {path} ] || refuse {not_regular}"
        )?;
        let not_readable = quote(&format!("{name} exists, and may not be read"));
        writeln!(out, "    [ -r {path} ] || refuse {not_readable}")?;
    }
    for equality in &step.equality {
        let test = match equality {
            Equality::Says { argv, text } => {
                format!("says {} {}", quote(text), quoted(argv))
            }
            Equality::Lacks { argv, text } => {
                format!("lacks {} {}", quote(text), quoted(argv))
            }
            Equality::Size {
                argv,
                before,
                size,
                after,
            } => {
                let text = format!("{before}{}{after}", size.0);
                format!("says {} {}", quote(&text), quoted(argv))
            }
            Equality::Unlocks { argv, key_file } => format!(
                "[ ! -e {} ] || {} >/dev/null 2>&1",
                quote(key_file),
                quoted(argv)
            ),
            Equality::Allocated { path, size } => {
                let allocated = format!("$(($(stat -c '%b * %B' -- {})))", quote(path));
                format!("[ \"{allocated}\" -ge {} ]", size.0)
            }
            Equality::VolumeSize { name, size } => {
                let fields = "lvs --noheadings --nosuffix --units b -o lv_size,vg_extent_size --";
                format!(
                    "{{ set -- $({fields} {}) && [ \"${{1:-0}}\" -ge {} ] && [ \"$1\" -lt $(({} + $2)) ]; }}",
                    quote(&name.to_string()),
                    size.0,
                    size.0
                )
            }
        };
        writeln!(out, "    {test} || refuse {refusal}")?;
    }
    writeln!(out, "    done_{number}=yes")?;
    let done = quote(&format!("done already: {}", comment(&made)));
    writeln!(out, "    printf '%s\\n' {done}\nfi")
}

/// Sizes by directory or volume group: their sum, of the steps that are not done, as an expression, and the text for all.
fn rooms<'p>(
    steps: &'p [Step],
    of: impl Fn(&'p Condition) -> Option<(&'p str, Bytes)>,
) -> BTreeMap<&'p str, (String, Bytes)> {
    let mut rooms: BTreeMap<&str, (String, Bytes)> = BTreeMap::new();
    for (index, step) in steps.iter().enumerate() {
        for (place, size) in step.conditions.iter().filter_map(&of) {
            let (sum, all) = rooms.entry(place).or_default();
            let plus = if sum.is_empty() { "" } else { " + " };
            let _ = write!(sum, "{plus}${{done_{}:+0 * }}{}", index + 1, size.0);
            all.0 = all.0.saturating_add(size.0);
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
        writeln!(out, "{ROOM}")?;
    }
    for (directory, (sum, size)) in in_directories {
        let refusal = format!("{} has too little space for {size}", comment(directory));
        let (directory, refusal) = (quote(directory), quote(&refusal));
        writeln!(out, "room {directory} $(({sum})) {refusal}")?;
    }
    let in_groups = rooms(steps, |condition| match condition {
        Condition::RoomInGroup { group, size } => Some((group, *size)),
        _ => None,
    });
    for (group, (sum, size)) in in_groups {
        let refusal = format!(
            "volume group {} has too little space for {size}",
            comment(group)
        );
        writeln!(
            out,
            "[ \"$(vgs --noheadings --nosuffix --units b -o vg_free -- {})\" -ge $(({sum})) ] || refuse {}",
            quote(group),
            quote(&refusal)
        )?;
    }
    Ok(())
}

/// The function that is run if the script stops before its end.
fn write_undo(steps: &[Step], out: &mut String) -> std::fmt::Result {
    writeln!(out, "{UNDO_BEGINS}")?;
    for (index, step) in steps.iter().enumerate().rev() {
        let number = index + 1;
        let undo = match step.makes_named() {
            None if !step.makes_file() => continue,
            None => {
                let path = quote(&step.makes());
                format!("! is_made \"${{made_{number}:-}}\" {path} || rm -f -- {path}")
            }
            Some(_) => {
                let undo = quoted(&step.undo());
                // The removal of a pool would remove volumes that others made in it meanwhile.
                let undo = match step.kind {
                    StepKind::ThinPool => format!(
                        "{{ [ \"$(lvs --noheadings -o thin_count -- {})\" -eq 0 ] && {undo}; }}",
                        quote(&step.makes())
                    ),
                    _ => undo,
                };
                // A failed `lvcreate` leaves nothing, and what has the name then is somebody else's.
                format!("[ -z \"${{made_{number}:-}}\" ] || {undo}")
            }
        };
        writeln!(out, "    {undo} || :")?;
    }
    if steps.iter().any(Step::makes_file) {
        writeln!(out, "    [ -z \"$inside\" ] || leave || :")?;
    }
    writeln!(out, "{UNDO_ENDS}")
}

/// The programs that steps and their checks need, each once, in order.
fn programs(steps: &[Step]) -> Vec<String> {
    let mut programs: Vec<String> = Vec::new();
    let mut need = |program: String| {
        if !programs.contains(&program) {
            programs.push(program);
        }
    };
    for step in steps {
        need(step.argv[0].clone());
        for condition in &step.conditions {
            match condition {
                Condition::RoomInGroup { .. } => need("vgs".to_owned()),
                Condition::Exists(thing) | Condition::Missing(thing) => {
                    need(thing.listing().swap_remove(0));
                }
                Condition::Room { .. } | Condition::PrivateFile(_) => need("stat".to_owned()),
                Condition::NothingAt(_) | Condition::SomethingAt(_) | Condition::DirectoryAt(_) => {
                }
            }
        }
    }
    programs
}

/// A command of the shell.
fn quoted(argv: &[String]) -> String {
    let words: Vec<String> = argv.iter().map(|word| quote(word)).collect();
    words.join(" ")
}

/// A test whether something is there.
fn lists(thing: &Named) -> String {
    format!("{} >/dev/null 2>&1", quoted(&thing.listing()))
}

/// A line that stops the script unless the condition holds; none for space, which is added up first, and for what a
/// step makes, which `write_done` looks at.
fn check(condition: &Condition) -> Option<String> {
    let refusal = quote(&comment(&condition.refusal()?));
    let test = match condition {
        Condition::NothingAt(path) => format!("[ ! -e {} ]", quote(path)),
        Condition::SomethingAt(path) => format!("[ -e {} ]", quote(path)),
        Condition::DirectoryAt(path) => format!("[ -d {} ]", quote(path)),
        Condition::PrivateFile(path) => {
            let path = quote(path);
            format!("case \"$(stat -L -c %a -- {path})\" in *00) ;; *) false ;; esac")
        }
        Condition::Exists(thing) => lists(thing),
        Condition::Missing(_) | Condition::Room { .. } | Condition::RoomInGroup { .. } => {
            return None;
        }
    };
    Some(format!("{test} || refuse {refusal}"))
}
