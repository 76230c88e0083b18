//! The steps as a POSIX shell script, for a person to read and to run.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;

use vmdisk_model::Bytes;

use super::comment::comment;
use super::guest::{GuestPart, ScriptWork, quoted};
use super::{Condition, Equality, Named, Step, StepKind, not_installed};
use crate::{Plan, PlannedChange, StorageChange};
use vmdisk_fields::shell_word as quote;

/// A step of a script.
pub(super) struct Item<'a> {
    pub(super) step: Cow<'a, Step>,
    /// The change of what is there, in place of making it.
    growth: Option<&'a StorageChange>,
}

impl<'a> Item<'a> {
    fn makes_file(&self) -> bool {
        self.growth.is_none() && self.step.makes_file()
    }

    /// The change of a size; none if the change is another one.
    fn of_growth(change: &'a PlannedChange, plan: &'a Plan) -> Option<Self> {
        let growth = change.command.as_ref()?;
        let made = &plan.steps[growth.step];
        let name = |it: &&Condition| match it {
            Condition::NothingAt(path) => *path == made.makes(),
            Condition::Missing(_) => true,
            _ => false,
        };
        let name = made.conditions.iter().filter(name);
        let step = Step {
            argv: growth.argv.clone(),
            why: change.what.clone(),
            notes: change.afterwards.iter().cloned().collect(),
            conditions: name.chain(&growth.room).cloned().collect(),
            ..made.clone()
        };
        Some(Item {
            step: Cow::Owned(step),
            growth: Some(growth),
        })
    }
}

/// Writes changes of what is there as a POSIX shell script, with the steps that make what is missing. See [`script`].
///
/// Before it changes anything, the script also checks that everything is as it was when it was written: the sizes, the
/// definition of the guest, and that it runs or is off. It holds the definition with its passwords.
pub fn change_script(plan: &Plan, work: &ScriptWork<'_>) -> String {
    let steps = work.steps.iter().map(|step| Item {
        step: Cow::Borrowed(*step),
        growth: None,
    });
    let growths = work.changes.iter();
    let growths = growths.filter_map(|change| Item::of_growth(change, plan));
    written(
        plan,
        steps.chain(growths).collect(),
        GuestPart::of(plan, work),
    )
}

fn written(plan: &Plan, items: Vec<Item<'_>>, guest: GuestPart<'_>) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = write_script(plan, &items, &guest, &mut out);
    out
}

/// Writes the steps of a plan as a POSIX shell script.
///
/// The script checks everything first, free space included, and changes nothing if a check fails: it never
/// overwrites. What is there and as planned is done already. It exits with 1 if it refuses, and with 2 if a command fails. If a command fails or a signal stops the script, it removes what it made, so that it can be run again.
/// A value never becomes shell syntax or an option of a command. The same plan gives the same bytes.
pub fn script(plan: &Plan) -> String {
    let items = plan.steps.iter().map(|step| Item {
        step: Cow::Borrowed(step),
        growth: None,
    });
    written(plan, items.collect(), GuestPart::default())
}

fn write_script(
    plan: &Plan,
    items: &[Item<'_>],
    guest: &GuestPart<'_>,
    out: &mut String,
) -> std::fmt::Result {
    let whose = plan
        .domain
        .name
        .as_deref()
        .map_or("the disks".to_owned(), comment);
    let does = match guest.is_empty() && items.iter().all(|it| it.growth.is_none()) {
        true => format!("Creates the storage of {whose}"),
        false => format!("Changes the guest {whose}"),
    };
    writeln!(out, "#!/bin/sh\n# {does}. Written by vmdisk.\nset -eu")?;
    if items.is_empty() && guest.is_empty() {
        writeln!(
            out,
            "\n# Nothing to create: every disk is on existing storage."
        )?;
        return Ok(());
    }
    writeln!(out, "{HELPERS}")?;
    let mut checks: BTreeSet<String> = BTreeSet::new();
    for program in programs(items, guest) {
        let quoted = quote(&program);
        let refusal = quote(&comment(&not_installed(&program)));
        writeln!(
            out,
            "command -v {quoted} >/dev/null 2>&1 || refuse {refusal}"
        )?;
    }
    for (index, item) in items.iter().enumerate() {
        let step = &item.step;
        match item.growth {
            Some(growth) => write_size(index + 1, step, growth, out)?,
            None if step.completes() => {}
            None => write_done(index + 1, step, out)?,
        }
        let made = step.makes();
        let others = step.conditions.iter().filter(|condition| match condition {
            // What a step completes is in the private directory then.
            Condition::NothingAt(path) => *path != made && item.makes_file(),
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
                true => format!("{} ", unless_done(leader(items, index))),
                false => String::new(),
            };
            if let Some(check) = check(condition).map(|check| unless + &check)
                && checks.insert(check.clone())
            {
                writeln!(out, "{check}")?;
            }
        }
    }
    write_room(items, out)?;
    guest.write_checks(out)?;
    if items.iter().any(Item::makes_file) {
        writeln!(out, "{FILES}")?;
    }
    write_undo(items, out)?;
    write_steps(plan, items, out)?;
    guest.write_changes(out)
}

/// The commands, each unless it is done already.
fn write_steps(plan: &Plan, items: &[Item<'_>], out: &mut String) -> std::fmt::Result {
    for (index, item) in items.iter().enumerate() {
        let Step {
            disk,
            argv,
            why,
            notes,
            kind,
            conditions: _,
            equality: _,
            resize: _, // the command of a change
        } = &*item.step;
        let step = &item.step;
        let number = index + 1;
        let name = plan.domain.disks.get(*disk).map_or("", |disk| disk.name());
        writeln!(out, "\n# {number}. {}: {}", comment(name), comment(why))?;
        for note in notes {
            writeln!(out, "#    {}", comment(note))?;
        }
        let leader = leader(items, index);
        let unless_done = unless_done(leader);
        let path = quote(&step.makes());
        if item.makes_file() {
            writeln!(out, "{unless_done} private {path}")?;
        }
        let is_named = step.makes_named().is_some();
        if *kind == StepKind::Compare {
            write_comparison(step, leader, out)?;
        } else if is_named && step.completes() {
            writeln!(out, "{unless_done} {}", quoted_on(step))?;
        } else if item.growth.is_some() {
            writeln!(out, "{unless_done} {}", quoted(argv))?;
        } else if is_named {
            let command = quoted(argv);
            writeln!(out, "{unless_done} {{ {command}; made_{number}=yes; }}")?;
        } else if *kind != StepKind::Rename {
            writeln!(out, "{unless_done} {}", quoted(&step.argv_at(MADE)))?;
        }
        let is_last = items.get(number).is_none_or(|it| !it.step.completes());
        if is_last && !is_named && item.growth.is_none() && items[leader - 1].makes_file() {
            writeln!(out, "{unless_done} publish {leader} {path}")?;
        }
    }
    Ok(())
}

/// Compares a copy, which has no name yet unless it was there before.
fn write_comparison(step: &Step, leader: usize, out: &mut String) -> std::fmt::Result {
    let refusal = format!(
        "{} does not have {}, and nothing is overwritten",
        step.makes(),
        step.why
    );
    let refusal = quote(&comment(&refusal));
    if step.makes_named().is_some() {
        return writeln!(out, "{} || refuse {refusal}", quoted_on(step));
    }
    let (named, made) = (quoted(&step.argv), quoted(&step.argv_at(MADE)));
    writeln!(
        out,
        "if [ -n \"${{done_{leader}:-}}\" ]; then\n    {named} || refuse {refusal}"
    )?;
    writeln!(out, "else\n    {made} || refuse {refusal}\nfi")
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
fn leader(items: &[Item<'_>], index: usize) -> usize {
    let mut until = items[..=index].iter();
    let of = until.rposition(|item| !item.step.completes());
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
LC_ALL=C
export PATH LC_ALL

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
        writeln!(out, "    {} || refuse {refusal}", test(equality, None))?;
    }
    writeln!(out, "    done_{number}=yes")?;
    let done = quote(&format!("done already: {}", comment(&made)));
    writeln!(out, "    printf '%s\\n' {done}\nfi")
}

/// Checks that what gets another size has the one that it had, unless the change is done already.
fn write_size(
    number: usize,
    step: &Step,
    growth: &StorageChange,
    out: &mut String,
) -> std::fmt::Result {
    let made = comment(&step.makes());
    if step.makes_named().is_none() {
        let path = quote(&step.makes());
        let refusal = quote(&format!("{made} is not a regular file"));
        writeln!(out, "[ -f {path} ] && [ ! -L {path} ] || refuse {refusal}")?;
    }
    let is_open = growth.is_live();
    let equality = step.equality.iter();
    let equality: Vec<&Equality> = equality
        .filter(|it| !(is_open && it.is_suspended_by_a_running_guest()))
        .collect();
    let all = |size| {
        let tests: Vec<String> = equality.iter().map(|it| test(it, size)).collect();
        tests.join(" && ")
    };
    let done = quote(&format!("done already: {made}"));
    writeln!(out, "if {}; then", all(None))?;
    writeln!(
        out,
        "    done_{number}=yes\n    printf '%s\\n' {done}\nelse"
    )?;
    let refusal = quote(&format!("{made} was changed since this script was written"));
    writeln!(
        out,
        "    {{ {}; }} || refuse {refusal}",
        all(Some(growth.before))
    )?;
    for (equality, why) in &growth.needs {
        let refusal = quote(&format!("{made} is not made larger: {}", comment(why)));
        writeln!(out, "    {} || refuse {refusal}", test(equality, None))?;
    }
    writeln!(out, "fi")
}

/// The test of something that holds, or of what holds with another size.
fn test(equality: &Equality, other: Option<Bytes>) -> String {
    let size = |planned: &Bytes| other.unwrap_or(*planned).0;
    match equality {
        Equality::Says { argv, text } => format!("says {} {}", quote(text), quoted(argv)),
        Equality::Lacks { argv, text } => format!("lacks {} {}", quote(text), quoted(argv)),
        Equality::Size {
            argv,
            before,
            size: planned,
            after,
        } => {
            let text = format!("{before}{}{after}", size(planned));
            format!("says {} {}", quote(&text), quoted(argv))
        }
        Equality::Unlocks { argv, key_file } => format!(
            "{{ [ ! -e {} ] || {} >/dev/null 2>&1; }}",
            quote(key_file),
            quoted(argv)
        ),
        Equality::Allocated {
            path,
            size: planned,
        } => {
            let allocated = format!("$(($(stat -c '%b * %B' -- {})))", quote(path));
            let size = size(planned).min(planned.0);
            format!("[ \"{allocated}\" -ge {size} ]")
        }
        Equality::VolumeSize {
            name,
            size: planned,
        } => {
            let fields = "lvs --noheadings --nosuffix --units b -o lv_size,vg_extent_size --";
            let (name, size) = (quote(&name.to_string()), size(planned));
            format!(
                "{{ set -- $({fields} {name}) && [ \"${{1:-0}}\" -ge {size} ] && [ \"$1\" -lt $(({size} + $2)) ]; }}"
            )
        }
    }
}

/// Sizes by directory or volume group: their sum, of the steps that are not done, as an expression, and the text for all.
fn rooms<'p>(
    items: &'p [Item<'_>],
    of: impl Fn(&'p Condition) -> Option<(&'p str, Bytes)>,
) -> BTreeMap<&'p str, (String, Bytes)> {
    let mut rooms: BTreeMap<&str, (String, Bytes)> = BTreeMap::new();
    for (index, item) in items.iter().enumerate() {
        for (place, size) in item.step.conditions.iter().filter_map(&of) {
            let (sum, all) = rooms.entry(place).or_default();
            let plus = if sum.is_empty() { "" } else { " + " };
            let leader = leader(items, index);
            let _ = write!(sum, "{plus}${{done_{leader}:+0 * }}{}", size.0);
            all.0 = all.0.saturating_add(size.0);
        }
    }
    rooms
}

/// Checks of the free space. Directories of one file system share it.
fn write_room(items: &[Item<'_>], out: &mut String) -> std::fmt::Result {
    let in_directories = rooms(items, |condition| match condition {
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
    let in_groups = rooms(items, |condition| match condition {
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
fn write_undo(items: &[Item<'_>], out: &mut String) -> std::fmt::Result {
    writeln!(out, "{UNDO_BEGINS}")?;
    for (index, item) in items.iter().enumerate().rev() {
        let (number, step) = (index + 1, &item.step);
        let undo = match step.makes_named() {
            _ if item.growth.is_some() || step.completes() => continue,
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
    if items.iter().any(Item::makes_file) {
        writeln!(out, "    [ -z \"$inside\" ] || leave || :")?;
    }
    writeln!(out, "{UNDO_ENDS}")
}

/// The programs that steps and their checks need, each once, in order.
fn programs(items: &[Item<'_>], guest: &GuestPart<'_>) -> Vec<String> {
    let mut programs: Vec<String> = Vec::new();
    let mut need = |program: String| {
        if !programs.contains(&program) {
            programs.push(program);
        }
    };
    for Item { step, .. } in items {
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
    if !guest.is_empty() {
        need("virsh".to_owned());
    }
    programs
}

/// The command of a step that completes a volume, on the path of the volume.
fn quoted_on(step: &Step) -> String {
    let made = step.makes();
    let word = |word: &String| match step.makes_named() {
        Some(Named::PoolVolume { pool, volume }) if *word == made => format!(
            "\"$(virsh vol-path --pool {} -- {})\"",
            quote(pool),
            quote(volume)
        ),
        _ => quote(word),
    };
    step.argv.iter().map(word).collect::<Vec<_>>().join(" ")
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
