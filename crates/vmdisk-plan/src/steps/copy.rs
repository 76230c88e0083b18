//! The steps that fill new storage with the data of an image of a guest.

use vmdisk_model::{Bytes, Format, Image};

use super::{Condition, Step, StepKind, words};

/// The source of a copy.
pub(crate) struct CopySource<'a> {
    pub(crate) path: &'a str,
    pub(crate) format: Format,
    /// Bytes that the copy takes at least.
    pub(crate) allocated: Bytes,
}

/// The copy into what a step makes, and the comparison of both. The formats are given, so that QEMU looks at
/// no header; the copy is written to the drive before `qemu-img` ends, which needs no `O_DIRECT`.
pub(crate) fn copied(made: &Step, new: &Image, source: &CopySource<'_>) -> [Step; 2] {
    // Programs find a volume of a pool by what libvirt says of its name.
    let target = match new.host_path() {
        Some(path) => path.to_owned(),
        None => made.makes(),
    };
    let driver = |format: Format| format.qemu_driver().unwrap_or(format.as_str());
    let format = new.format.unwrap_or(Format::Raw);
    let mut copy = words(&["qemu-img", "convert", "-n", "-t", "writeback"]);
    if made.makes_file() {
        copy.push("--target-is-zero".to_owned());
    }
    copy.extend(words(&["-f", driver(source.format), "-O", driver(format)]));
    let mut comparison = words(&["qemu-img", "compare", "-f", driver(source.format)]);
    comparison.extend(words(&["-F", driver(format)]));
    let is_named = |it: &&Condition| match it {
        Condition::NothingAt(path) => *path == made.makes(),
        Condition::Missing(_) => true,
        _ => false,
    };
    let named: Vec<Condition> = made.conditions.iter().filter(is_named).cloned().collect();
    let step = |kind, mut argv: Vec<String>, conditions| {
        argv.extend(words(&["--", source.path, &target]));
        Step {
            disk: made.disk,
            kind,
            argv,
            why: format!("the data of {}", source.path),
            notes: Vec::new(),
            conditions,
            equality: Vec::new(),
            resize: None,
        }
    };
    let has_room = |it: &Condition| matches!(it, Condition::Room { .. });
    let directory = made.conditions.iter().find_map(|it| match it {
        Condition::DirectoryAt(directory) => Some(directory.clone()),
        _ => None,
    });
    let directory = directory.filter(|_| !made.conditions.iter().any(has_room));
    let room = directory.map(|directory| Condition::Room {
        directory,
        size: source.allocated,
    });
    let conditions = named.iter().cloned().chain(room).collect();
    [
        step(StepKind::Copy, copy, conditions),
        step(StepKind::Compare, comparison, named),
    ]
}
