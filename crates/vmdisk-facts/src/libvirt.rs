//! libvirt on a host: its version, and the settings of its QEMU driver that decide over disks.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;
use crate::version::Version;

/// libvirt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Libvirt {
    /// The library's version.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub version: Fact<Version>,
    /// The distribution's package version.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub package: Fact<String>,
    /// Settings of the QEMU driver, from `/etc/libvirt/qemu.conf`, which only root may read on most distributions.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub qemu_conf: Fact<QemuConf>,
    /// Whom QEMU runs as; absent when neither the settings nor the accounts of this host name anybody.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub qemu_user: Fact<QemuUser>,
    /// Capabilities that libvirt itself reported, by the names of `Capability`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub capabilities: BTreeMap<String, bool>,
}

/// Settings of libvirt's QEMU driver; absent where the file does not set it, so that libvirt's own default holds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QemuConf {
    /// `user`: the user that QEMU runs as.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub user: Fact<String>,
    /// `group`: its group.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub group: Fact<String>,
    /// `dynamic_ownership`: whether libvirt gives images to that user while the guest runs; yes by default.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub dynamic_ownership: Fact<bool>,
    /// `remember_owner`: whether libvirt restores the owner of images afterwards; yes by default.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub remember_owner: Fact<bool>,
    /// `security_driver`: `selinux`, `apparmor`, `none`; by default the one the host has.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub security_driver: Fact<Vec<String>>,
    /// `namespaces`: the private namespaces of each QEMU (`mount`); an empty list disables them.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub namespaces: Fact<Vec<String>>,
    /// `lock_manager`: `lockd` or `sanlock`; nothing by default.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub lock_manager: Fact<String>,
    /// `seccomp_sandbox`: 1 on, 0 off, -1 as QEMU has it.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub seccomp_sandbox: Fact<i64>,
    /// `cgroup_device_acl`: the device nodes every guest may open besides its own.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub cgroup_device_acl: Fact<Vec<String>>,
    /// `hugetlbfs_mount`: the mounts for huge pages; an empty list means none.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub hugetlbfs_mount: Fact<Vec<String>>,
    /// `pr_helper`: the program that makes SCSI reservations for guests.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub pr_helper: Fact<String>,
}

/// The user that QEMU runs as when libvirt starts it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QemuUser {
    /// Whether the settings name this user; if not, it is the account that distributions make for it.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub is_configured: Fact<bool>,
    /// The account's name.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub name: Fact<String>,
    /// The account's number.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub uid: Fact<u32>,
    /// The group's number.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub gid: Fact<u32>,
    /// All its groups by their numbers, its own included, in order.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub groups: Fact<Vec<u32>>,
}

impl QemuUser {
    /// Whether it is in a group.
    pub fn is_in(&self, group: u32) -> Fact<bool> {
        self.groups.as_ref().map(|groups| groups.contains(&group))
    }
}
