//! Tuning properties: without them a guest still has the same disks with the same data.

/// Properties of devices that determine the set of disks, and the meaning of their bytes.
const OF_DEVICES: &[&str] = &[
    "chardev", "drive", "ms", "mset", "pi", "pif", "pil", "subsys", "zoned",
];

/// Tuning members of nodes and options of `-drive`: caching, delays, locking, logging and discards.
const OF_NODES: &[&str] = &[
    "active",
    "addr",
    "aio",
    "aio-max-batch",
    "auto-read-only",
    "boot",
    "cache-clean-interval",
    "cache-size",
    "copy-on-read",
    "cyls",
    "detect-zeroes",
    "direct",
    "discard",
    "discard-no-unref",
    "drop-cache",
    "error",
    "extent-size-hint",
    "force-share",
    "heads",
    "ipv4",
    "ipv6",
    "keep-alive",
    "keep-alive-count",
    "keep-alive-idle",
    "keep-alive-interval",
    "l2-cache-entry-size",
    "l2-cache-size",
    "lazy-refcounts",
    "locking",
    "mptcp",
    "no-flush",
    "node-name",
    "numeric",
    "open-timeout",
    "page-cache-size",
    "pass-discard-other",
    "pass-discard-request",
    "pass-discard-snapshot",
    "prealloc-align",
    "prealloc-size",
    "readahead",
    "readahead-size",
    "reconnect-delay",
    "refcount-cache-size",
    "secs",
    "stats-account-failed",
    "stats-account-invalid",
    "stats-intervals",
    "tight",
    "timeout",
    "to",
    "trans",
];

/// True for a property that tunes or secures, but does not affect data.
pub(crate) fn is_tuning(option: &str, key: &str) -> bool {
    let outer = key.split('.').next().unwrap_or(key);
    let last = key.rsplit('.').next().unwrap_or(key);
    if last.starts_with("x-") || outer.starts_with("overlap-check") || outer == "stats-intervals" {
        return true;
    }
    match option {
        "device" => OF_DEVICES.binary_search(&outer).is_err(),
        "blockdev" | "drive" => OF_NODES.binary_search(&last).is_ok(),
        // Parts of a chardev or an object that the disk still has.
        "chardev" => matches!(
            last,
            "ipv4"
                | "ipv6"
                | "logappend"
                | "logfile"
                | "mux"
                | "server"
                | "wait"
                | "delay"
                | "nodelay"
                | "type"
        ),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_sorted_and_what_decides_over_the_data_is_in_none() {
        for list in [OF_DEVICES, OF_NODES] {
            assert!(list.windows(2).all(|pair| pair[0] < pair[1]));
        }
        assert!(is_tuning("device", "max_ioqpairs") && is_tuning("blockdev", "l2-cache-size"));
        assert!(
            is_tuning("blockdev", "file.locking") && is_tuning("blockdev", "x-check-cache-dropped")
        );
        assert!(!is_tuning("device", "zoned.zasl") && !is_tuning("blockdev", "offset"));
    }
}
