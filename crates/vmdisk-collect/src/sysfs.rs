//! Attributes of block devices in sysfs.

use vmdisk_facts::blockdev::{LoopFile, Md, Queue};
use vmdisk_facts::{BlockKind, Fact};

use crate::obstacle::{fact_of, missing, obstacle};
use crate::root::Root;

pub(crate) fn directory(name: &str) -> String {
    // The kernel replaces slashes in device names by exclamation marks.
    format!("/sys/class/block/{name}")
}

pub(crate) fn names_in(root: &Root, directory: &str) -> Fact<Vec<String>> {
    match root.names(directory) {
        Ok(names) => Fact::Known(names),
        Err(error) if missing(&error) => Fact::Known(Vec::new()),
        Err(error) => Fact::Unknown(obstacle(directory, &error)),
    }
}

/// Returns the partitions of a disk: its subdirectories with a file `partition`.
pub(crate) fn partitions(root: &Root, name: &str) -> Fact<Vec<String>> {
    let at = directory(name);
    names_in(root, &at).map(|names| {
        let own = names.into_iter().filter(|entry| entry.starts_with(name));
        own.filter(|entry| root.exists(format!("{at}/{entry}/partition")))
            .collect()
    })
}

pub(crate) fn sectors(root: &Root, file: &str) -> Fact<u64> {
    root.fact(file, |text| text.parse::<u64>().ok()?.checked_mul(512))
}

pub(crate) fn flag(root: &Root, file: &str) -> Fact<bool> {
    root.fact(file, |text| match text {
        "0" => Some(false),
        "1" => Some(true),
        _ => None,
    })
}

pub(crate) fn queue(root: &Root, name: &str) -> Queue {
    let at = |file: &str| format!("{}/queue/{file}", directory(name));
    let number = |file: &str| root.number(&at(file));
    Queue {
        logical: number("logical_block_size"),
        physical: number("physical_block_size"),
        io_opt: number("optimal_io_size"),
        discard_granularity: number("discard_granularity"),
        discard_max: number("discard_max_bytes"),
        rotational: flag(root, &at("rotational")),
        scheduler: root.fact(&at("scheduler"), scheduler),
        read_ahead_kb: number("read_ahead_kb"),
        write_cache: root.word(&at("write_cache")),
        zoned: root.word(&at("zoned")),
        nr_requests: number("nr_requests"),
        // Without writeback throttling in the kernel, the file exists but cannot be read.
        wbt_lat_usec: match root.text(at("wbt_lat_usec")) {
            Err(error) if error.raw_os_error() == Some(rustix::io::Errno::INVAL.raw_os_error()) => {
                Fact::Absent
            }
            read => fact_of(&at("wbt_lat_usec"), read, |text| text.parse().ok()),
        },
    }
}

/// Returns the scheduler in brackets of `none [mq-deadline] kyber`; a single word is the scheduler.
fn scheduler(text: &str) -> Option<String> {
    match text
        .split_once('[')
        .and_then(|(_, rest)| rest.split_once(']'))
    {
        Some((chosen, _)) => Some(chosen.to_owned()),
        None => (!text.is_empty() && !text.contains(' ')).then(|| text.to_owned()),
    }
}

pub(crate) fn md(root: &Root, name: &str) -> Fact<Md> {
    let at = format!("{}/md", directory(name));
    if !root.exists(&at) {
        return Fact::Absent;
    }
    let file = |file: &str| format!("{at}/{file}");
    Fact::Known(Md {
        level: root.word(&file("level")),
        state: root.word(&file("array_state")),
        degraded: root.number(&file("degraded")),
        raid_disks: root.fact(&file("raid_disks"), |text| {
            // During a reshape the old number follows in parentheses.
            text.split_whitespace().next()?.parse().ok()
        }),
        chunk: root.number(&file("chunk_size")),
        sync: root.word(&file("sync_action")),
    })
}

/// The file under a loop device, as the kernel names it.
pub(crate) fn backing_file(root: &Root, name: &str) -> Fact<String> {
    root.word(&format!("{}/loop/backing_file", directory(name)))
}

pub(crate) fn loop_file(root: &Root, name: &str, kind: &BlockKind) -> Fact<LoopFile> {
    if *kind != BlockKind::Loop {
        return Fact::Absent;
    }
    let at = format!("{}/loop", directory(name));
    let backing = backing_file(root, name);
    if backing.is_absent() {
        // The loop device is not set up.
        return Fact::Absent;
    }
    const DELETED: &str = " (deleted)";
    let deleted = backing.as_ref().map(|path| path.ends_with(DELETED));
    Fact::Known(LoopFile {
        backing_file: backing.map(|path| {
            path.strip_suffix(DELETED)
                .map_or(path.clone(), str::to_owned)
        }),
        deleted,
        dio: flag(root, &format!("{at}/dio")),
        offset: root.number(&format!("{at}/offset")),
    })
}

pub(crate) fn model(root: &Root, name: &str) -> Fact<String> {
    let part = |file: &str| {
        root.text(format!("{}/device/{file}", directory(name)))
            .unwrap_or_default()
    };
    let model = part("model");
    if model.is_empty() {
        return Fact::Absent;
    }
    // The vendor of virtio is a meaningless number.
    let vendor = part("vendor");
    if vendor.is_empty() || vendor.starts_with("0x") {
        Fact::Known(model)
    } else {
        Fact::Known(format!("{vendor} {model}"))
    }
}

/// Counts the running paths of a multipath device.
pub(crate) fn running(root: &Root, slaves: &[String]) -> u32 {
    let running = slaves.iter().filter(|slave| {
        let state = root.text(format!("{}/device/state", directory(slave)));
        matches!(state.as_deref(), Ok("running" | "live"))
    });
    u32::try_from(running.count()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scheduler_in_brackets_is_the_one_in_use() {
        assert_eq!(
            scheduler("none [mq-deadline] kyber").as_deref(),
            Some("mq-deadline")
        );
        assert_eq!(scheduler("[none] mq-deadline").as_deref(), Some("none"));
        assert_eq!(scheduler("none").as_deref(), Some("none"));
        assert_eq!(scheduler("none kyber"), None);
        assert_eq!(scheduler(""), None);
    }
}
