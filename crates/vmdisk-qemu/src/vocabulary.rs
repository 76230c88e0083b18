//! Keys of all QEMU releases, to distinguish a misspelt key from a key outside the model.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use vmdisk_facts::{MemberTable, Owner};

/// Members of nodes and of nested objects, in any recorded release.
static NODE: LazyLock<BTreeSet<&'static str>> = LazyLock::new(|| {
    let owners = MemberTable::recorded().owners();
    let nodes = owners.filter(|(owner, _)| matches!(owner, Owner::Node(_)));
    let members = nodes.flat_map(|(_, members)| members.keys());
    members
        .flat_map(|name| name.split('.'))
        .chain(IN_LISTS.iter().copied())
        .collect()
});

/// Members of alternatives and of items of lists, such as those of `overlap-check` and `inject-error`, which the table does
/// not have.
const IN_LISTS: &[&str] = &[
    "active-l1",
    "active-l2",
    "bitmap-directory",
    "delay-ns",
    "errno",
    "event",
    "immediately",
    "inactive-l1",
    "inactive-l2",
    "iotype",
    "main-header",
    "new_state",
    "once",
    "refcount-block",
    "refcount-table",
    "sector",
    "snapshot-table",
    "state",
    "template",
];

/// Options of `-drive` that are not options of its nodes.
const DRIVE: &[&str] = &[
    "addr",
    "aio",
    "auto-read-only",
    "boot",
    "bps",
    "bps-read",
    "bps-read-max",
    "bps-read-max-length",
    "bps-total",
    "bps-total-max",
    "bps-total-max-length",
    "bps-write",
    "bps-write-max",
    "bps-write-max-length",
    "bps_max",
    "bps_rd",
    "bps_rd_max",
    "bps_wr",
    "bps_wr_max",
    "bus",
    "cache",
    "copy-on-read",
    "cyls",
    "detect-zeroes",
    "discard",
    "driver",
    "error",
    "file",
    "force-share",
    "format",
    "group",
    "heads",
    "id",
    "if",
    "index",
    "iops",
    "iops-read",
    "iops-read-max",
    "iops-read-max-length",
    "iops-size",
    "iops-total",
    "iops-total-max",
    "iops-total-max-length",
    "iops-write",
    "iops-write-max",
    "iops-write-max-length",
    "iops_max",
    "iops_rd",
    "iops_rd_max",
    "iops_size",
    "iops_wr",
    "iops_wr_max",
    "media",
    "node-name",
    "read-only",
    "readonly",
    "rerror",
    "secs",
    "serial",
    "share-rw",
    "snapshot",
    "stats-account-failed",
    "stats-account-invalid",
    "stats-intervals",
    "throttling",
    "trans",
    "unit",
    "werror",
    "writeback",
];

/// The keys of `-blockdev` or `-drive` in any release of QEMU, by the name of the option without its dash; empty for
/// other options, whose keys depend on a device or an object.
pub fn words(option: &str) -> impl Iterator<Item = &'static str> {
    let of_drive = (option == "drive").then_some(DRIVE);
    let of_node = matches!(option, "blockdev" | "drive").then(|| NODE.iter());
    let of_drive = of_drive.into_iter().flatten();
    of_drive.chain(of_node.into_iter().flatten()).copied()
}

/// True for options of `-drive` that are not options of its nodes.
pub(crate) fn is_of_drive(key: &str) -> bool {
    DRIVE.binary_search(&key).is_ok()
}

/// True if an option supports this key, or if its keys are not known. Names that QEMU marks as unstable (`x-…`) are not
/// checked.
pub(crate) fn knows(option: &str, key: &str) -> bool {
    if !matches!(option, "blockdev" | "drive") {
        return true;
    }
    let is_known = |part: &str| {
        part.starts_with("x-")
            || part.bytes().all(|byte| byte.is_ascii_digit())
            || NODE.contains(part)
            || option == "drive" && is_of_drive(part)
    };
    is_known(key) || key.split('.').all(is_known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_a_key_inside_another_is_known_by_its_parts() {
        assert!(DRIVE.windows(2).all(|pair| pair[0] < pair[1]));
        assert!(NODE.len() > 150, "{NODE:?}");
        assert!(knows("blockdev", "file.filename") && knows("blockdev", "server.0.host"));
        assert!(knows("drive", "cache.writeback") && knows("drive", "x-image-timeout"));
        assert!(knows("blockdev", "overlap-check.main-header") && knows("blockdev", "conf"));
        assert!(!knows("blockdev", "bps") && knows("drive", "bps"));
        assert!(!knows("blockdev", "discrad") && !knows("drive", "fiel"));
        assert!(knows("netdev", "whatever"));
    }
}
