//! The host as a whole: kernel, processors, memory, limits, and the programs that run VMs.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::path::TrialOutcome;
use crate::record::facts;
use crate::version::Version;

facts! {
    /// The running kernel; the effect of O_DIRECT on btrfs depends on it.
    pub struct Kernel {
        /// `uname -r`, whole.
        pub release: Fact<String>,
        /// The version it is built from: where the release hides the stable one (Debian's 6.1.0-28, Ubuntu's 6.8.0-45), the
        /// one that `uname -v` or `/proc/version_signature` names.
        pub version: Fact<Version>,
        /// Who built it, as `ID` in os-release spells it (`debian`, `ubuntu`, `rhel`).
        pub vendor: Fact<String>,
        /// Boot parameters from a short allow-list; null means not given.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub cmdline: BTreeMap<String, Fact<String>>,
    }
}

facts! {
    /// The processors.
    pub struct Cpu {
        /// The machine's name as `uname -m` gives it (`x86_64`, `aarch64`).
        pub arch: Fact<String>,
        /// Virtualisation flags (`vmx`, `svm`); empty when there are none. Absent on machines that have no such flags.
        pub virt: Fact<Vec<String>>,
        /// Processors online.
        pub count: Fact<u32>,
        /// NUMA nodes online.
        pub numa_nodes: Fact<u32>,
        /// Each NUMA node by its number.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub nodes: BTreeMap<u64, NumaNode>,
    }
}

facts! {
    /// One NUMA node: processors and memory that are close to each other.
    pub struct NumaNode {
        /// Its processors, as a list (`0-3,8`); empty when it has memory only.
        pub cpus: Fact<String>,
    }
}

facts! {
    /// Hardware virtualisation: a device node, the right to open it, and whether a VM was ever seen to run.
    pub struct Kvm {
        /// Whether `/dev/kvm` exists. A node alone proves nothing.
        pub dev_kvm: Fact<bool>,
        /// Whether the collector may open it for reading and writing.
        pub access: Fact<bool>,
        /// The obstacle to KVM; absent if there is none.
        pub obstacle: Fact<KvmObstacle>,
        /// The module that drives the processor (`kvm_intel`, `kvm_amd`, or `kvm_pvm`, which needs no help of it); absent when none is loaded, or it is built into the kernel.
        pub module: Fact<String>,
        /// Whether a VM was seen to run with it: true when one did, false when one was tried and did not. Not collected means
        /// that nobody tried: present, unproven.
        pub proven: Fact<bool>,
        /// The end of the trial VM, in words.
        pub trial: Fact<String>,
        /// Whether guests may use virtualisation (nesting); absent if the module parameter does not exist.
        pub nested: Fact<bool>,
    }
}

/// The obstacle to KVM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum KvmObstacle {
    /// The processor shows no virtualisation (vmx, svm): it has none, or the firmware or the host above has it off.
    ProcessorOrFirmware,
    /// No module of KVM is loaded. AMD's refuses to load where the firmware has virtualisation off.
    Module,
    /// KVM is there and the device node is not, as in a container.
    Node,
    /// The collector may not open the device node.
    Permission,
}

facts! {
    /// Limits on asynchronous I/O.
    pub struct Limits {
        /// `kernel.io_uring_disabled`: 0 everyone, 1 only the group below, 2 nobody. Absent before Linux 6.6: not restricted.
        pub io_uring_disabled: Fact<u32>,
        /// `kernel.io_uring_group`: who may use io_uring when the above is 1; -1 is nobody.
        pub io_uring_group: Fact<i64>,
        /// What io_uring_setup(2) gave the collector: `ok`, `EPERM` where the kernel denies it, `ENOSYS` or `EPERM` where a
        /// seccomp filter does. QEMU's own user and filter may be others.
        pub io_uring_setup: Fact<TrialOutcome>,
        /// `fs.aio-max-nr`: requests all native AIO contexts may hold together. QEMU takes 1024 for each.
        pub aio_max_nr: Fact<u64>,
        /// `fs.aio-nr`: requests taken when the facts were collected.
        pub aio_nr: Fact<u64>,
        /// RLIMIT_MEMLOCK of the collector in bytes; absent means no limit.
        pub memlock_bytes: Fact<u64>,
    }
}

facts! {
    /// Memory, and the huge pages set aside.
    pub struct Memory {
        /// All memory, in bytes.
        pub total_bytes: Fact<u64>,
        /// What could be used without swapping when the facts were collected, in bytes.
        pub available_bytes: Fact<u64>,
        /// Huge pages by size in KiB (`2048`, `1048576`).
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub hugepages: BTreeMap<u64, HugePagePool>,
    }
}

facts! {
    /// Huge pages of one size.
    #[cfg_attr(feature = "schema", schemars(rename = "HugePages"))]
    pub struct HugePagePool {
        /// How many exist.
        pub nr: Fact<u64>,
        /// How many are free.
        pub free: Fact<u64>,
        /// The number of free pages that are reserved already.
        pub reserved: Fact<u64>,
        /// The number of further pages that the kernel may allocate on demand.
        pub overcommit: Fact<u64>,
        /// Those of each NUMA node by its number.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub nodes: BTreeMap<u64, NodePages>,
    }
}

facts! {
    /// Huge pages of one size on one NUMA node.
    pub struct NodePages {
        /// How many exist there.
        pub nr: Fact<u64>,
        /// How many are free there.
        pub free: Fact<u64>,
    }
}

facts! {
    /// How security modules are set.
    pub struct Security {
        /// SELinux: `enforcing` or `permissive`; absent when it is not active.
        pub selinux: Fact<String>,
        /// The booleans of SELinux's policy that decide on the storage of guests (`virt_use_nfs`); of an active SELinux.
        pub selinux_booleans: Fact<BTreeMap<String, bool>>,
        /// Whether AppArmor is switched on; absent when the kernel has none.
        pub apparmor: Fact<bool>,
    }
}

facts! {
    /// One QEMU program.
    pub struct Qemu {
        /// Its path.
        pub path: Fact<String>,
        /// The architecture it emulates (`x86_64`).
        pub arch: Fact<String>,
        /// Its version.
        pub version: Fact<Version>,
        /// The distribution's package version, which identifies backports.
        pub package: Fact<String>,
        /// The ways of host I/O built in (`threads`, `native`, `io_uring`).
        pub aio: Fact<Vec<String>>,
        /// Capabilities that the program itself reported, by the names of `Capability`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub capabilities: BTreeMap<String, bool>,
    }
}
