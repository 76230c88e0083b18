//! The host as a whole: kernel, processors, memory, limits, and the programs that run VMs.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::version::Version;

/// The running kernel; what O_DIRECT does on btrfs hangs on it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kernel {
    /// `uname -r`, whole.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub release: Fact<String>,
    /// The version it is built from: where the release hides the stable one (Debian's 6.1.0-28, Ubuntu's 6.8.0-45), the
    /// one that `uname -v` or `/proc/version_signature` names.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub version: Fact<Version>,
    /// Who built it, as `ID` in os-release spells it (`debian`, `ubuntu`, `rhel`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub vendor: Fact<String>,
    /// Boot parameters from a short allow-list; null means not given.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub cmdline: BTreeMap<String, Fact<String>>,
}

/// The processors, as far as disks care.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cpu {
    /// The machine's name as `uname -m` gives it (`x86_64`, `aarch64`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub arch: Fact<String>,
    /// Virtualisation flags (`vmx`, `svm`); empty when there are none. Absent on machines that have no such flags.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub virt: Fact<Vec<String>>,
    /// Processors online.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub count: Fact<u32>,
    /// NUMA nodes online.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub numa_nodes: Fact<u32>,
}

/// Hardware virtualisation: a device node, the right to open it, and whether a VM was ever seen to run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Kvm {
    /// Whether `/dev/kvm` exists. A node alone proves nothing.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub dev_kvm: Fact<bool>,
    /// Whether the collector may open it for reading and writing.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub access: Fact<bool>,
    /// Whether a VM was seen to run with it; not collected means present but unproven.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub proven: Fact<bool>,
    /// Whether guests may themselves use virtualisation; absent when the module parameter is not there.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub nested: Fact<bool>,
}

/// Limits that asynchronous I/O runs into.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Limits {
    /// `kernel.io_uring_disabled`: 0 everyone, 1 only the group below, 2 nobody. Absent before Linux 6.6: not restricted.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub io_uring_disabled: Fact<u32>,
    /// `kernel.io_uring_group`: who may use io_uring when the above is 1; -1 is nobody.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub io_uring_group: Fact<i64>,
    /// `fs.aio-max-nr`: requests all native AIO contexts may hold together. QEMU takes 1024 for each.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub aio_max_nr: Fact<u64>,
    /// `fs.aio-nr`: requests taken when the facts were collected.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub aio_nr: Fact<u64>,
    /// RLIMIT_MEMLOCK in bytes, of the collector unless a service is named; absent means no limit.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub memlock_bytes: Fact<u64>,
}

/// Memory, and the huge pages set aside.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Memory {
    /// All memory, in bytes.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub total_bytes: Fact<u64>,
    /// What could be used without swapping when the facts were collected, in bytes.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub available_bytes: Fact<u64>,
    /// Transparent huge pages: `always`, `madvise`, `never`; absent when the kernel has none.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub thp: Fact<String>,
    /// Huge pages by size in KiB (`2048`, `1048576`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub hugepages: BTreeMap<u64, HugePages>,
}

/// Huge pages of one size.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct HugePages {
    /// How many exist.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub nr: Fact<u64>,
    /// How many are free.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub free: Fact<u64>,
    /// How many free ones are promised already.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub reserved: Fact<u64>,
}

/// One QEMU program.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Qemu {
    /// Its path.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub path: Fact<String>,
    /// The architecture it emulates (`x86_64`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub arch: Fact<String>,
    /// Its version.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub version: Fact<Version>,
    /// The distribution's package version, which tells backports apart.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub package: Fact<String>,
    /// The ways of host I/O built in (`threads`, `native`, `io_uring`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub aio: Fact<Vec<String>>,
    /// Capabilities that were asked of the program itself, by the names of `Capability`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capabilities: BTreeMap<String, bool>,
}

/// libvirt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Libvirt {
    /// The library's version.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub version: Fact<Version>,
    /// The distribution's package version.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub package: Fact<String>,
    /// Capabilities that were asked of libvirt itself, by the names of `Capability`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capabilities: BTreeMap<String, bool>,
}
