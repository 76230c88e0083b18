//! Mistakes of facts as a whole, such as ids that refer to nothing, where every value is well formed.

use std::collections::HashSet;

use crate::fact::Fact;
use crate::facts::{Facts, SCHEMA};
use crate::warning::Warning;

/// Warns of another schema, of ids used twice and of references to ids that do not exist.
pub(crate) fn check(facts: &Facts, warnings: &mut Vec<Warning>) {
    if facts.schema != SCHEMA {
        warnings.push(Warning::new(
            "schema",
            format!("read as {SCHEMA}, although the file says it is something else"),
        ));
    }
    let mounts = ids(
        facts.mounts.iter().map(|mount| mount.id.as_str()),
        "mounts",
        warnings,
    );
    let filesystems = ids(
        facts.filesystems.iter().map(|fs| fs.id.as_str()),
        "filesystems",
        warnings,
    );
    let devices = ids(
        facts.blockdevs.iter().map(|device| device.id.as_str()),
        "blockdevs",
        warnings,
    );

    let mut refer = |known: &HashSet<&str>, list: &str, index: usize, key: &str, id: &str| {
        if !known.contains(id) {
            warnings.push(Warning::new(
                format!("{list}[{index}].{key}"),
                format!("the id \"{id}\" does not exist"),
            ));
        }
    };
    for (index, mount) in facts.mounts.iter().enumerate() {
        if let Fact::Known(id) = &mount.fs {
            refer(&filesystems, "mounts", index, "fs", id);
        }
    }
    for (index, filesystem) in facts.filesystems.iter().enumerate() {
        for id in filesystem.devices.value().into_iter().flatten() {
            refer(&devices, "filesystems", index, "devices", id);
        }
    }
    for (index, directory) in facts.dirs.iter().enumerate() {
        if let Fact::Known(id) = &directory.mount {
            refer(&mounts, "dirs", index, "mount", id);
        }
    }
    for (index, file) in facts.files.iter().enumerate() {
        if let Fact::Known(id) = &file.mount {
            refer(&mounts, "files", index, "mount", id);
        }
    }
    for (index, device) in facts.blockdevs.iter().enumerate() {
        for id in &device.slaves {
            refer(&devices, "blockdevs", index, "slaves", id);
        }
        for id in device.holders.value().into_iter().flatten() {
            refer(&devices, "blockdevs", index, "holders", id);
        }
        for id in device.partitions.value().into_iter().flatten() {
            refer(&devices, "blockdevs", index, "partitions", id);
        }
        if let Fact::Known(partition) = &device.partition
            && let Fact::Known(id) = &partition.parent
        {
            refer(&devices, "blockdevs", index, "partition.parent", id);
        }
    }
}

fn ids<'a>(
    all: impl Iterator<Item = &'a str>,
    list: &str,
    warnings: &mut Vec<Warning>,
) -> HashSet<&'a str> {
    let mut seen = HashSet::new();
    for (index, id) in all.enumerate() {
        if !seen.insert(id) {
            warnings.push(Warning::new(
                format!("{list}[{index}].id"),
                format!("the id \"{id}\" is used twice, and this one is not found by it"),
            ));
        }
    }
    seen
}
