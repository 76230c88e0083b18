//! libvirt on a host: its version, and the settings of its QEMU driver that decide over disks.

use std::collections::BTreeMap;

use crate::fact::Fact;
use crate::record::facts;
use crate::version::Version;

facts! {
    /// libvirt.
    pub struct Libvirt {
        /// The library's version.
        pub version: Fact<Version>,
        /// The distribution's package version.
        pub package: Fact<String>,
        /// Settings of the QEMU driver, from `/etc/libvirt/qemu.conf`, which only root may read on most distributions.
        pub qemu_conf: Fact<QemuConf>,
        /// Whom QEMU runs as; absent when neither the settings nor the accounts of this host name anybody.
        pub qemu_user: Fact<QemuUser>,
        /// Capabilities that libvirt itself reported, by the names of `Capability`.
        #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
        pub capabilities: BTreeMap<String, bool>,
    }
}

facts! {
    /// Settings of libvirt's QEMU driver; absent where the file does not set it, so that libvirt's own default holds.
    pub struct QemuConf {
        /// `user`: the user that QEMU runs as.
        pub user: Fact<String>,
        /// `group`: its group.
        pub group: Fact<String>,
        /// `dynamic_ownership`: whether libvirt gives images to that user while the guest runs; yes by default.
        pub dynamic_ownership: Fact<bool>,
        /// `security_driver`: `selinux`, `apparmor`, `none`; by default the one the host has.
        pub security_driver: Fact<Vec<String>>,
        /// `namespaces`: the private namespaces of each QEMU (`mount`); an empty list disables them.
        pub namespaces: Fact<Vec<String>>,
    }
}

facts! {
    /// The user that QEMU runs as when libvirt starts it.
    pub struct QemuUser {
        /// Whether the settings name this user; if not, it is the account that distributions make for it.
        pub is_configured: Fact<bool>,
        /// The account's name.
        pub name: Fact<String>,
        /// The account's number.
        pub uid: Fact<u32>,
        /// The group's number.
        pub gid: Fact<u32>,
        /// All its groups by their numbers, its own included, in order.
        pub groups: Fact<Vec<u32>>,
    }
}

impl QemuUser {
    /// Whether it is in a group.
    pub fn is_in(&self, group: u32) -> Fact<bool> {
        self.groups.as_ref().map(|groups| groups.contains(&group))
    }
}
