//! Files of `-readconfig`: groups of options with quoted values, a form that has no escapes and no JSON.
//!
//! What QEMU takes is `qemu_config_foreach` in `util/qemu-config.c`, and the same from 5.2 to 11.1: a `[group]` or
//! `[group "id"]`, and under it lines of `key = "value"`, each shorter than 1023 bytes. There is no group for
//! `-blockdev` in any of them, so that the nodes of a disk are written as one `-drive`.

pub(crate) mod read;
mod write;

pub use read::begins_with_group;
pub use write::{ConfigFile, write_config_file};

/// Longest line with its end: QEMU reads into 1024 bytes with a zero at the end.
const LONGEST_LINE: usize = 1023;

/// Longest name of a group or key, and longest id.
const LONGEST_NAME: usize = 63;

/// Groups that some QEMU has: `query-command-line-options` of 5.2, 7.2, 10.0 and 11.1, and `audiodev`, which is taken
/// without being told there.
const GROUPS: &[&str] = &[
    "accel",
    "acpi",
    "action",
    "add-fd",
    "audiodev",
    "boot-opts",
    "chardev",
    "device",
    "drive",
    "fsdev",
    "fw_cfg",
    "global",
    "icount",
    "iscsi",
    "machine",
    "memory",
    "mon",
    "msg",
    "name",
    "net",
    "netdev",
    "nic",
    "numa",
    "object",
    "option-rom",
    "overcommit",
    "plugin",
    "realtime",
    "rtc",
    "run-with",
    "sandbox",
    "semihosting-config",
    "smbios",
    "smp-opts",
    "spice",
    "tpmdev",
    "trace",
    "virtfs",
    "vnc",
];

/// The option of a group, without its dash.
fn option_of(group: &str) -> &str {
    match group {
        "memory" => "m",
        "smp-opts" => "smp",
        "boot-opts" => "boot",
        other => other,
    }
}
