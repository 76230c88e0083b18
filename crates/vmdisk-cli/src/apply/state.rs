//! What is there of the things that steps make, and what is in the way of making the others.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;
use std::process::{Command, Stdio};

use vmdisk::plan::{Condition, Equality, Step, not_installed};

/// The thing that a step makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is not there.
    Missing,
    /// It is there, as planned.
    Done,
    /// It is there, and this differs from the plan.
    Differs(String),
}

/// A program that is started without a shell, and finds those of the administrator.
pub(super) fn command(argv: &[String]) -> Command {
    let mut command = Command::new(&argv[0]);
    command
        .args(&argv[1..])
        .env("PATH", search_path())
        .env("LC_ALL", "C")
        .stdin(Stdio::null());
    command
}

fn search_path() -> String {
    let path = std::env::var("PATH").unwrap_or_else(|_| "/usr/bin:/bin".to_owned());
    format!("{path}:/usr/sbin:/sbin")
}

/// The output of a program, if it succeeds.
pub(super) fn output(argv: &[&str]) -> Option<String> {
    let argv: Vec<String> = argv.iter().map(|word| (*word).to_owned()).collect();
    let output = command(&argv).output().ok()?;
    let is_success = output.status.success();
    is_success.then(|| String::from_utf8_lossy(&output.stdout).into_owned())
}

pub(super) fn succeeds(argv: &[String]) -> bool {
    command(argv)
        .output()
        .is_ok_and(|output| output.status.success())
}

/// Looks at what a step makes.
pub(super) fn of(step: &Step) -> State {
    let made = step.makes();
    let is_there = match step.makes_named() {
        None => fs::symlink_metadata(&made).is_ok(),
        Some(thing) => succeeds(&thing.listing()),
    };
    if !is_there {
        return State::Missing;
    }
    let differs = step.equality.iter().find_map(difference);
    differs.map_or(State::Done, State::Differs)
}

/// What is not as planned.
fn difference(equality: &Equality) -> Option<String> {
    match equality {
        Equality::Says { argv, text } => {
            let words: Vec<&str> = argv.iter().map(String::as_str).collect();
            let said = output(&words).map(|said| format!("\n{said}"));
            let is_so = said
                .as_ref()
                .is_some_and(|said| said.contains(text.as_str()));
            (!is_so).then(|| match said {
                Some(_) => format!("`{}` does not print `{}`", argv.join(" "), text.trim()),
                None => format!("`{}` fails", argv.join(" ")),
            })
        }
        Equality::Allocated { path, size } => {
            let bytes = fs::metadata(path).map_or(0, |metadata| metadata.blocks() * 512);
            let what = || format!("{bytes} bytes are allocated, and not {}", size.0);
            (bytes < size.0).then(what)
        }
        Equality::VolumeSize { name, size } => {
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
            ];
            let said = output(&[&argv[..], &[&name.to_string()]].concat()).unwrap_or_default();
            let mut numbers = said
                .split_whitespace()
                .map(|word| word.parse().unwrap_or(0));
            let (has, extent): (u64, u64) =
                (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0));
            let is_so = has >= size.0 && has < size.0.saturating_add(extent);
            (!is_so).then(|| format!("it has {has} bytes, and not {}", size.0))
        }
    }
}

/// What keeps steps from being run: a condition that does not hold, or too little space for all of them.
pub(super) fn obstacles(steps: &[&Step]) -> Vec<String> {
    let mut found: Vec<String> = Vec::new();
    let mut rooms: BTreeMap<u64, (u64, u64, &str)> = BTreeMap::new();
    let mut groups: BTreeMap<&str, u64> = BTreeMap::new();
    for step in steps {
        if !is_installed(&step.argv[0]) {
            found.push(not_installed(&step.argv[0]));
        }
        for condition in &step.conditions {
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

fn is_installed(program: &str) -> bool {
    let path = search_path();
    path.split(':')
        .any(|folder| Path::new(folder).join(program).is_file())
}
