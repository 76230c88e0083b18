//! The facts file: everything known of one host, as plain data.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::blockdev::BlockDevice;
use crate::cgroup::Cgroups;
use crate::fact::{Fact, Reason, Unknown};
use crate::filesystem::Filesystem;
use crate::firmware::UefiFirmware;
use crate::host::{Cpu, Kernel, Kvm, Limits, Memory, Qemu, Security};
use crate::libvirt::Libvirt;
use crate::lvm_config::LvmConfig;
use crate::measured::MeasuredStorage;
use crate::mount::Mount;
use crate::path::{Directory, File};
use crate::record::facts;
use crate::version::Version;

/// The identifier written into `schema`; its last part is the major version.
pub const SCHEMA: &str = "https://github.com/vmdisk/vmdisk/facts/1";

/// The version of the shape that this crate writes: a reader of the same major number can read it.
pub const SCHEMA_VERSION: &str = "1.0";

/// The facts of one host, for rules, plans and people.
///
/// Mounts, filesystems and block devices form a graph through short local ids (`m1`, `f1`, `b1`), so that
/// each fact is written once. Sizes are bytes, versions are arrays, and a list holds what was collected:
/// a path that is not in `files` is not collected, a path that does not exist is in `files` with `"present": false`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Facts {
    /// The identifier of the shape, [`SCHEMA`].
    #[serde(default = "our_schema")]
    pub schema: String,
    /// The version of the shape: another minor number adds keys, another major number is refused.
    #[serde(default = "our_schema_version")]
    pub schema_version: String,
    /// The collector, and its privileges.
    #[serde(default, skip_serializing_if = "is_default")]
    pub collector: Collector,
    /// When they were collected, RFC 3339 in UTC (`2026-11-20T05:00:00Z`).
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub collected_at: Fact<String>,
    /// Which host, or class of hosts, they describe.
    #[serde(default, skip_serializing_if = "is_default")]
    pub host: HostName,
    /// The redaction before sharing; absent without one.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub redaction: Fact<Redaction>,
    /// The running kernel.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kernel: Kernel,
    /// The processors.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cpu: Cpu,
    /// Hardware virtualisation.
    #[serde(default, skip_serializing_if = "is_default")]
    pub kvm: Kvm,
    /// Limits on asynchronous I/O.
    #[serde(default, skip_serializing_if = "is_default")]
    pub limits: Limits,
    /// Memory and huge pages.
    #[serde(default, skip_serializing_if = "is_default")]
    pub memory: Memory,
    /// The QEMU programs found; an empty list means none is installed.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub qemu: Fact<Vec<Qemu>>,
    /// libvirt; absent means it is not installed.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub libvirt: Fact<Libvirt>,
    /// UEFI for guests, in the order in which it is chosen; empty if the host has none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub firmware: Vec<UefiFirmware>,
    /// How security modules are set.
    #[serde(default, skip_serializing_if = "is_default")]
    pub security: Security,
    /// Control groups, and what they limit.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cgroups: Cgroups,
    /// The configuration of LVM, which its tools show to root.
    #[serde(default, skip_serializing_if = "is_default")]
    pub lvm_config: LvmConfig,
    /// The mounts that hold the paths in question.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mounts: Vec<Mount>,
    /// The filesystems those mounts show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub filesystems: Vec<Filesystem>,
    /// Directories that hold images, or will.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dirs: Vec<Directory>,
    /// Images and device nodes, present or missed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<File>,
    /// Block devices, from those in question down to the disks under them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub blockdevs: Vec<BlockDevice>,
    /// Figures that `vmdisk bench` measured on this host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub measured: Vec<MeasuredStorage>,
    /// Failures of the collector.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub errors: Vec<CollectError>,
}

fn our_schema() -> String {
    SCHEMA.to_owned()
}

fn our_schema_version() -> String {
    SCHEMA_VERSION.to_owned()
}

/// Whether a group holds nothing, so that its key is left out.
fn is_default<T: Default + PartialEq>(group: &T) -> bool {
    *group == T::default()
}

impl Default for Facts {
    fn default() -> Self {
        Self {
            schema: our_schema(),
            schema_version: our_schema_version(),
            collector: Collector::default(),
            collected_at: Fact::default(),
            host: HostName::default(),
            redaction: Fact::default(),
            kernel: Kernel::default(),
            cpu: Cpu::default(),
            kvm: Kvm::default(),
            limits: Limits::default(),
            memory: Memory::default(),
            qemu: Fact::default(),
            libvirt: Fact::default(),
            firmware: Vec::default(),
            security: Security::default(),
            cgroups: Cgroups::default(),
            lvm_config: LvmConfig::default(),
            mounts: Vec::default(),
            filesystems: Vec::default(),
            dirs: Vec::default(),
            files: Vec::default(),
            blockdevs: Vec::default(),
            measured: Vec::default(),
            errors: Vec::default(),
        }
    }
}

impl Facts {
    /// The UEFI of a machine, as libvirt chooses it for a guest that says nothing about secure boot.
    pub fn uefi_of(&self, arch: &str, machine: &str) -> Option<&UefiFirmware> {
        UefiFirmware::of_machine(&self.firmware, arch, machine)
    }

    /// The QEMU that guests would most likely run on: of those for the host's own architecture the newest, and of these
    /// the one without a suffix, as builds for special machines have one.
    pub fn newest_qemu(&self) -> Fact<&Qemu> {
        self.qemu.as_ref().and_then(|all| {
            let own = |qemu: &&Qemu| match (self.cpu.arch.value(), qemu.arch.value()) {
                (Some(host), Some(guest)) => host == guest,
                // Nothing speaks against it: on some distributions the only QEMU has no architecture in its name.
                (Some(_) | None, Some(_) | None) => true,
            };
            let newest = |qemu: &&Qemu| {
                let name = qemu.path.value().and_then(|path| path.rsplit('/').next());
                let suffixed = name
                    .and_then(|name| name.strip_prefix("qemu-system-"))
                    .is_some_and(|arch| arch.contains('-'));
                (qemu.version.value().copied(), !suffixed)
            };
            let of_host = all.iter().filter(own).max_by_key(newest);
            of_host
                .or_else(|| all.iter().max_by_key(newest))
                .map_or(Fact::Absent, Fact::Known)
        })
    }

    /// The version of the QEMU from [`Facts::newest_qemu`].
    pub fn qemu_version(&self) -> Fact<Version> {
        self.newest_qemu().and_then(|qemu| qemu.version.clone())
    }
}

facts! {
    /// The collector.
    pub struct Collector {
        /// The program's name.
        pub name: Fact<String>,
        /// The program's version, as it writes it.
        pub version: Fact<String>,
        /// Whether it ran with the rights of root.
        pub privileged: Fact<bool>,
        /// The requested groups (`core`, `lvm`).
        pub groups: Fact<Vec<String>>,
        /// Whether direct I/O was tried with an unnamed file.
        pub probed_dio: Fact<bool>,
        /// The inspected mount namespace: `self`, `libvirtd`, `container`.
        pub namespace: Fact<String>,
    }
}

facts! {
    /// Which host, or class of hosts.
    #[cfg_attr(feature = "schema", schemars(rename = "Host"))]
    pub struct HostName {
        /// A stable name or token of the host.
        pub id: Fact<String>,
        /// The class of hosts that it represents, when a file describes many.
        pub class: Fact<String>,
        /// A token of the boot the facts were collected in.
        pub boot: Fact<String>,
    }
}

facts! {
    /// The redaction of the facts before they were shared.
    pub struct Redaction {
        /// `full`, `shareable` or `minimal`.
        pub level: Fact<String>,
        /// How tokens were made (`hmac-sha256/6`).
        pub tokens: Fact<String>,
        /// Which salt was used; never the salt.
        pub salt_id: Fact<String>,
    }
}

/// A failure of the collector.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CollectError {
    /// The attempt (`lvs`, `/proc/self/mountinfo`).
    pub what: String,
    /// The kind of obstacle, a word of [`Reason`].
    #[serde(with = "reason_word")]
    #[cfg_attr(feature = "schema", schemars(with = "String"))]
    pub reason: Reason,
    /// The details.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub detail: String,
}

impl CollectError {
    /// Something that could not be collected, why, and the details.
    pub fn new(what: impl Into<String>, reason: Reason, detail: impl Into<String>) -> Self {
        CollectError {
            what: what.into(),
            reason,
            detail: detail.into(),
        }
    }

    /// The reason why a fact is unknown, as an error of the collection.
    pub fn of(what: impl Into<String>, unknown: Unknown) -> Self {
        Self::new(what, unknown.reason().clone(), unknown.detail())
    }
}

mod reason_word {
    use serde::{Deserialize, Deserializer, Serializer};

    use crate::fact::Reason;

    pub(super) fn serialize<S: Serializer>(
        reason: &Reason,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(reason.as_str())
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Reason, D::Error> {
        String::deserialize(deserializer).map(|word| Reason::from(word.as_str()))
    }
}
