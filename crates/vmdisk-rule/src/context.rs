//! The inputs of a rule.

use std::collections::BTreeSet;

use vmdisk_facts::{Answer, Capability, Component, Fact, HostIndex, Missing, Target, Version};
use vmdisk_model::{Disk, Domain, DomainField, FieldPath, Image, Scope};
use vmdisk_source::VersionedSyntax;

use crate::Policy;

/// A configuration with the known facts about its surroundings.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The configuration.
    pub domain: &'a Domain,
    /// The versions to check for.
    pub target: &'a Target,
    /// Facts of the host; `None` if none were given.
    pub host: Option<&'a HostIndex<'a>>,
    /// The users who share the host.
    pub policy: Policy,
    /// Used attributes and elements that some libvirt releases do not support.
    pub versioned_syntax: &'a [VersionedSyntax<FieldPath>],
    /// The program that receives the configuration.
    pub consumer: Consumer,
    /// True if [`Missing::what`] is filled in; otherwise only the reason is.
    pub names_missing: bool,
    /// Fields whose values a shell or systemd fills in later; `None` where nothing is filled in.
    pub open_fields: Option<&'a BTreeSet<FieldPath>>,
}

/// The program that first receives a configuration, and may refuse it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Consumer {
    /// libvirt, which starts QEMU.
    #[default]
    Libvirt,
    /// QEMU, without libvirt.
    Qemu,
}

impl<'a> Context<'a> {
    /// A configuration without facts about its host.
    pub const fn new(domain: &'a Domain, target: &'a Target) -> Self {
        Context {
            domain,
            target,
            host: None,
            policy: Policy::MultiTenant,
            versioned_syntax: &[],
            consumer: Consumer::Libvirt,
            names_missing: true,
            open_fields: None,
        }
    }

    /// The same configuration on this host.
    #[must_use]
    pub const fn on_host(mut self, host: &'a HostIndex<'a>) -> Self {
        self.host = Some(host);
        self
    }

    /// Selects the text for users of libvirt or for users of a command line.
    pub const fn for_consumer<'w>(&self, libvirt: &'w str, qemu: &'w str) -> &'w str {
        match self.consumer {
            Consumer::Libvirt => libvirt,
            Consumer::Qemu => qemu,
        }
    }

    /// True if QEMU itself makes a temporary overlay for the disk (`snapshot=on`), and ignores all flushes of it. For a transient
    /// disk, libvirt makes an overlay with the cache mode of the disk.
    pub fn has_unflushed_overlay(&self, disk: &Disk) -> bool {
        self.consumer == Consumer::Qemu && disk.backend.is_transient && disk.is_writable()
    }

    /// Disks with their indexes.
    pub fn disks(&self) -> impl Iterator<Item = (usize, &'a Disk)> + use<'a> {
        self.domain.disks.iter().enumerate()
    }

    /// Disks whose backend is an image, with that image.
    pub fn images(&self) -> impl Iterator<Item = (usize, &'a Disk, &'a Image)> + use<'a> {
        self.disks()
            .filter_map(|(index, disk)| disk.backend.image().map(|image| (index, disk, image)))
    }

    /// The facts of the host; `what` names the missing fact in the error.
    ///
    /// # Errors
    /// Fails if no facts were given.
    pub fn host(&self, what: impl FnOnce() -> String) -> Result<&'a HostIndex<'a>, Missing> {
        self.host
            .ok_or_else(|| self.missing(what, Missing::NO_FACTS))
    }

    /// A missing input; `what` names it if the run wants names.
    pub fn missing(&self, what: impl FnOnce() -> String, why: &'static str) -> Missing {
        let what = self.names_missing.then(what);
        Missing::new(what.unwrap_or_default(), why)
    }

    /// A known value; `None` if it is known to be absent.
    ///
    /// # Errors
    /// Fails if the fact is unknown or was not collected.
    pub fn known<T>(fact: Fact<T>, what: impl FnOnce() -> String) -> Result<Option<T>, Missing> {
        fact.needed(what)
    }

    /// True if the target's libvirt is older than a version; `None` if the target has none, or libvirt is not involved.
    pub fn libvirt_is_before(&self, version: Version) -> Option<bool> {
        let libvirt = self.target.libvirt.filter(|_| self.is_for_libvirt())?;
        Some(libvirt < version)
    }

    /// The availability of a capability in the target; unknown for libvirt if libvirt is not involved.
    pub fn can(&self, capability: Capability) -> Answer {
        match capability.row().component {
            Component::Libvirt if !self.is_for_libvirt() => Answer::Unknown,
            Component::Libvirt | Component::Qemu | Component::Kernel | Component::Machine => {
                self.target.can(capability)
            }
        }
    }

    /// True if libvirt receives the configuration.
    pub fn is_for_libvirt(&self) -> bool {
        self.consumer == Consumer::Libvirt
    }

    /// Fails if the machine of the disks is not known.
    ///
    /// # Errors
    /// Fails if the configuration contains only disks.
    pub fn whole_guest(&self, what: impl FnOnce() -> String) -> Result<&'a Domain, Missing> {
        match self.domain.scope {
            Scope::WholeGuest => Ok(self.domain),
            Scope::DisksOnly => Err(self.missing(what, Missing::DISKS_ONLY)),
        }
    }

    /// The number of vCPUs.
    ///
    /// # Errors
    /// Fails if the configuration contains only disks, or a variable sets the number.
    pub fn vcpus(&self) -> Result<u32, Missing> {
        let what = || "the number of vCPUs".to_owned();
        let domain = self.whole_guest(what)?;
        let at = FieldPath::Domain(DomainField::Vcpus);
        match self.open_fields.is_some_and(|open| open.contains(&at)) {
            true => Err(self.missing(what, Missing::OPEN_VALUE)),
            false => Ok(domain.effective_vcpus()),
        }
    }
}
