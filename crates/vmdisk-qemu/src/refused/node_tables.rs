//! Which members nodes have, and of which type: `query-qmp-schema` of QEMU 5.2, 7.2, 10.0 and 11.1 together.

use super::device_tables::Table;
use super::wants::Wants::{Any, Bool, Integer, Text};

/// What every node has.
const NODE: Table = &[
    ("active", Bool),
    ("auto-read-only", Bool),
    ("cache", Any),
    ("detect-zeroes", Any),
    ("discard", Any),
    ("driver", Any),
    ("force-share", Bool),
    ("node-name", Text),
    ("read-only", Bool),
];

/// What a node of driver `file` has besides.
const FILE: Table = &[
    ("aio", Any),
    ("aio-max-batch", Integer),
    ("drop-cache", Bool),
    ("filename", Text),
    ("locking", Any),
    ("pr-manager", Text),
];

/// What a node of driver `host_device` has besides.
const HOST_DEVICE: Table = &[
    ("aio", Any),
    ("aio-max-batch", Integer),
    ("drop-cache", Bool),
    ("filename", Text),
    ("locking", Any),
    ("pr-manager", Text),
];

/// What a node of driver `raw` has besides.
const RAW: Table = &[("file", Any), ("offset", Integer), ("size", Integer)];

/// What a node of driver `qcow2` has besides.
const QCOW2: Table = &[
    ("backing", Any),
    ("cache-clean-interval", Integer),
    ("cache-size", Integer),
    ("data-file", Any),
    ("discard-no-unref", Bool),
    ("encrypt", Any),
    ("file", Any),
    ("l2-cache-entry-size", Integer),
    ("l2-cache-size", Integer),
    ("lazy-refcounts", Bool),
    ("overlap-check", Any),
    ("pass-discard-other", Bool),
    ("pass-discard-request", Bool),
    ("pass-discard-snapshot", Bool),
    ("refcount-cache-size", Integer),
];

/// What a node of driver `luks` has besides.
const LUKS: Table = &[("file", Any), ("header", Any), ("key-secret", Text)];

/// What a node of driver `throttle` has besides.
const THROTTLE: Table = &[("file", Any), ("throttle-group", Text)];

/// What a node of driver `copy-on-read` has besides.
const COPY_ON_READ: Table = &[("bottom", Text), ("file", Any)];
/// What a node of a format without options of its own has besides.
const FORMAT: Table = &[("file", Any)];

/// The same of a format that may have a backing image.
const FORMAT_WITH_BACKING: Table = &[("backing", Any), ("file", Any)];

/// The members of a node; `None` for a driver that is not listed here.
pub(super) fn tables_of(driver: &str) -> Option<[Table; 2]> {
    let own = match driver {
        "file" => FILE,
        "host_device" => HOST_DEVICE,
        "raw" => RAW,
        "qcow2" => QCOW2,
        "luks" => LUKS,
        "throttle" => THROTTLE,
        "copy-on-read" => COPY_ON_READ,
        "host_cdrom" => HOST_DEVICE,
        "compress" | "bochs" | "cloop" | "dmg" | "parallels" | "vdi" | "vhdx" | "vpc" => FORMAT,
        "qed" | "vmdk" => FORMAT_WITH_BACKING,
        _ => return None,
    };
    Some([NODE, own])
}
