//! Files of `-readconfig`: groups of options with quoted values, a form that has no escapes and no JSON.
//!
//! The syntax is that of `qemu_config_foreach` in `util/qemu-config.c`, identical from 5.2 to 11.1: `[group]` or
//! `[group "id"]`, followed by lines of `key = "value"`, each shorter than 1023 bytes. No release has a group for
//! `-blockdev`.

pub(crate) mod read;

pub use read::begins_with_group;

/// Maximum length of a line with its end: QEMU reads into 1024 bytes with a terminating zero.
const MAX_LINE: usize = 1023;

/// Maximum length of the name of a group or key, and of an id.
const MAX_NAME: usize = 63;

/// Groups that some QEMU has: `query-command-line-options` of 5.2, 7.2, 10.0 and 11.1, and `audiodev`, which works but
/// is not listed there.
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
