//! What is there of the things that steps make, and what is in the way of making the others.

use std::collections::BTreeMap;
use std::fs;
use std::os::fd::{AsRawFd as _, OwnedFd};
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use vmdisk::model::Bytes;
use vmdisk::plan::{Condition, Equality, Step, not_installed, renamed};
use vmdisk_collect::{Request, collect};

use super::guest;
use super::program::{ask, is_installed, output, succeeds};
use crate::stop::plain;

/// The thing that a step makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is not there.
    Missing,
    /// It is there, as planned.
    Done,
    /// It is there, as planned but for its size, which is this.
    Sized(Bytes, String),
    /// It is there, and this differs from the plan.
    Differs(String),
    /// It is there, and this keeps it from being compared with the plan.
    Unknown(String),
}

/// Looks at what a step makes for a guest.
pub(super) fn of(step: &Step, guest: Option<&str>) -> State {
    if let Some(thing) = step.makes_named() {
        return match succeeds(&thing.listing()) {
            true => compare(step, None, &[]),
            false => State::Missing,
        };
    }
    let path = step.makes();
    let file = match opened(&path) {
        Ok(Some(file)) => file,
        Ok(None) => return State::Missing,
        Err(state) => return state,
    };
    let is_open = is_open_for_writing(&path);
    if is_open && !guest.is_some_and(|guest| guest::runs_with(guest, &path)) {
        let guest = guest.map_or_else(String::new, |guest| {
            format!(", and it is not the guest {guest} of libvirt")
        });
        return State::Differs(format!("a QEMU has it open for writing{guest}"));
    }
    let suspended: Vec<&Equality> = match is_open {
        true => step
            .equality
            .iter()
            .filter(|it| it.is_suspended_by_a_running_guest())
            .collect(),
        false => Vec::new(),
    };
    compare(
        step,
        Some(&format!("/proc/self/fd/{}", file.as_raw_fd())),
        &suspended,
    )
}

/// The regular file at a path, for this run and its programs; a pipe or a device is not opened.
pub(super) fn opened(path: &str) -> Result<Option<OwnedFd>, State> {
    let unknown =
        |error: Errno| State::Unknown(format!("it may not be read: {}", plain(&error.into())));
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let found = match rustix::fs::open(path, flags, Mode::empty()) {
        Ok(found) => found,
        Err(Errno::NOENT | Errno::NOTDIR) => return Ok(None),
        Err(error) => return Err(unknown(error)),
    };
    let stat = rustix::fs::fstat(&found).map_err(unknown)?;
    let kind = match FileType::from_raw_mode(stat.st_mode) {
        FileType::RegularFile => {
            let name = format!("/proc/self/fd/{}", found.as_raw_fd());
            let file = rustix::fs::open(name, OFlags::RDONLY | OFlags::NONBLOCK, Mode::empty());
            return file.map(Some).map_err(unknown);
        }
        FileType::Symlink => "a symbolic link",
        FileType::Directory => "a directory",
        FileType::BlockDevice | FileType::CharacterDevice => "a device",
        FileType::Fifo => "a named pipe",
        _ => "no regular file",
    };
    Err(State::Differs(format!("it is {kind}")))
}

/// True if a QEMU has an image open for writing.
pub(super) fn is_open_for_writing(path: &str) -> bool {
    let mut request = Request::new("");
    request.paths.push(path.into());
    let facts = collect(&request);
    let mut locks = facts.files.iter().filter_map(|file| file.lock.value());
    locks.any(|lock| lock.writer.is_true())
}

/// Compares what is there, which programs find under a `name`, with the plan.
fn compare(step: &Step, name: Option<&str>, without: &[&Equality]) -> State {
    let path = step.makes();
    let equality = step.equality.iter().filter(|it| !without.contains(it));
    let (sizes, others): (Vec<&Equality>, Vec<&Equality>) =
        equality.partition(|it| matches!(it, Equality::Size { .. } | Equality::VolumeSize { .. }));
    let states = |all: Vec<&Equality>, size| {
        let mut states = all.into_iter().map(|it| difference(it, &path, name, size));
        states.find(|it| *it != State::Done).unwrap_or(State::Done)
    };
    match states(sizes, None) {
        State::Done => states(others, None),
        State::Sized(has, what) => match states(others, Some(has)) {
            State::Done => State::Sized(has, what),
            differs => differs,
        },
        differs => differs,
    }
}

/// True if something holds of what a step makes, which programs find under a `name`.
pub(super) fn holds(equality: &Equality, path: &str, name: &str) -> bool {
    difference(equality, path, Some(name), None) == State::Done
}

/// What is not as planned, of something that may have another size.
fn difference(equality: &Equality, path: &str, name: Option<&str>, has: Option<Bytes>) -> State {
    let renamed =
        |argv: &[String]| name.map_or_else(|| argv.to_vec(), |name| renamed(argv, path, name));
    let differs = match equality {
        Equality::Says { argv, text } => said(&renamed(argv)).map(|said| {
            let has = line_of(
                &said,
                text.trim().split_inclusive(": ").next().unwrap_or_default(),
            );
            (!said.contains(text.as_str())).then(|| match has {
                Some(has) if text.contains(": ") => {
                    format!("it has {has}, and not {}", text.trim())
                }
                _ => format!("`{}` does not print `{}`", argv.join(" "), text.trim()),
            })
        }),
        Equality::Lacks { argv, text } => said(&renamed(argv)).map(|said| {
            let has = said
                .contains(text.as_str())
                .then(|| line_of(&said, text.trim()));
            has.map(|has| {
                format!(
                    "it has {}, which is not planned",
                    has.unwrap_or(text.trim())
                )
            })
        }),
        Equality::Unlocks { argv, key_file } => match Path::new(key_file).exists() {
            true => said(&renamed(argv)).map(|_| None),
            false => Ok(None),
        },
        Equality::Size {
            argv,
            before,
            size,
            after,
        } => match said(&renamed(argv)).map(|said| number_after(&said, before, after)) {
            Ok(Some(has)) if has != *size => {
                let what = match before.trim() {
                    "" => format!("it has {} bytes, and not {}", has.0, size.0),
                    key => format!("it has {key} {}, and not {key} {}", has.0, size.0),
                };
                return State::Sized(has, what);
            }
            Ok(Some(_)) => Ok(None),
            Ok(None) => Ok(Some(format!(
                "`{}` does not print its size",
                argv.join(" ")
            ))),
            Err(why) => Err(why),
        },
        Equality::Allocated { path, size } => {
            let path = name.unwrap_or(path);
            let size = has.map_or(*size, |has| has.min(*size));
            let bytes = fs::metadata(path).map_or(0, |metadata| metadata.blocks() * 512);
            let what = || format!("{bytes} bytes are allocated, and not {}", size.0);
            Ok((bytes < size.0).then(what))
        }
        Equality::VolumeSize { name, size } => match volume_size(&name.to_string(), size.0) {
            Some((has, what)) if has.0 > 0 => return State::Sized(has, what),
            other => Ok(other.map(|(_, what)| what)),
        },
    };
    match differs {
        Ok(None) => State::Done,
        Ok(Some(what)) => State::Differs(what),
        // The file is readable, so that it is what the program does not understand.
        Err(why) if name.is_none() => State::Unknown(why),
        Err(why) => State::Differs(why),
    }
}

/// The output of a program after a line feed, without commas at the ends of lines.
fn said(argv: &[String]) -> Result<String, String> {
    let answer = ask(argv)?;
    if !answer.is_success {
        return Err(format!("{} fails: {}", argv[0], answer.stderr.trim()));
    }
    Ok(format!("\n{}", answer.stdout).replace(",\n", "\n"))
}

/// The first line of a text that begins like this.
fn line_of<'t>(said: &'t str, beginning: &str) -> Option<&'t str> {
    said.lines()
        .map(str::trim)
        .find(|line| line.starts_with(beginning))
}

/// The number between two texts.
fn number_after(said: &str, before: &str, after: &str) -> Option<Bytes> {
    let (_, rest) = said.split_once(before)?;
    let (number, _) = rest.split_once(after)?;
    number.parse().ok().map(Bytes)
}

fn volume_size(name: &str, size: u64) -> Option<(Bytes, String)> {
    let fields = "lv_size,vg_extent_size";
    let argv = [
        "lvs",
        "--noheadings",
        "--nosuffix",
        "--units",
        "b",
        "-o",
        fields,
        "--",
        name,
    ];
    let said = output(&argv).unwrap_or_default();
    let mut numbers = said
        .split_whitespace()
        .map(|word| word.parse().unwrap_or(0));
    let (has, extent): (u64, u64) = (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
    let is_so = has >= size && has < size.saturating_add(extent);
    (!is_so).then(|| (Bytes(has), format!("it has {has} bytes, and not {size}")))
}

/// What keeps commands from being run: a condition that does not hold, or too little space for all of them.
pub(super) fn obstacles<'a>(
    commands: impl IntoIterator<Item = (&'a [String], &'a [Condition])>,
) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rooms: BTreeMap<u64, (u64, u64, &str)> = BTreeMap::new();
    let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
    for (argv, conditions) in commands {
        if !is_installed(&argv[0]) {
            found.push(not_installed(&argv[0]));
        }
        for condition in conditions {
            let holds = match condition {
                Condition::Missing(_) => continue,
                // The result of the step is missing, and so must be its temporary file.
                Condition::NothingAt(path) => fs::symlink_metadata(path).is_err(),
                Condition::SomethingAt(path) => Path::new(path).exists(),
                Condition::DirectoryAt(path) => Path::new(path).is_dir(),
                Condition::PrivateFile(path) => fs::metadata(path)
                    .is_ok_and(|file| file.is_file() && file.mode().trailing_zeros() >= 6),
                Condition::Exists(thing) => succeeds(&thing.listing()),
                Condition::Room { directory, size } => {
                    if let (Ok(metadata), Ok(space)) =
                        (fs::metadata(directory), rustix::fs::statvfs(directory))
                    {
                        let free = space.f_bavail.saturating_mul(space.f_frsize);
                        let room = rooms.entry(metadata.dev()).or_insert((0, free, directory));
                        room.0 = room.0.saturating_add(size.0);
                    }
                    continue;
                }
                Condition::RoomInGroup { group, size } => {
                    let sum = groups.entry(group).or_default();
                    *sum = sum.saturating_add(size.0);
                    continue;
                }
            };
            if !holds {
                found.extend(condition.refusal());
            }
        }
    }
    for (needed, free, directory) in rooms.into_values() {
        if needed > free {
            found.push(format!(
                "{directory} has too little space: {needed} bytes are needed, and {free} are free"
            ));
        }
    }
    for (group, needed) in groups {
        let argv = [
            "vgs",
            "--noheadings",
            "--nosuffix",
            "--units",
            "b",
            "-o",
            "vg_free",
            "--",
            group,
        ];
        let free = output(&argv).and_then(|free| free.trim().parse::<u64>().ok());
        if free.is_some_and(|free| free < needed) {
            found.push(format!(
                "volume group {group} has too little space for {needed} bytes"
            ));
        }
    }
    found.dedup();
    found
}
