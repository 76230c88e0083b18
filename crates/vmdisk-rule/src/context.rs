//! The inputs of a rule.

use std::borrow::Cow;

use vmdisk_facts::{Answer, Capability, Component, Fact, HostIndex, Target, Version};
use vmdisk_model::{Disk, Domain, FieldPath, Image, Scope};
use vmdisk_source::LaterWord;

use crate::Policy;

/// A missing input of a rule.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Missing {
    /// The missing fact, such as `file system of /srv/a.img`; empty where nobody reads it.
    pub what: String,
    /// Why it is not there, such as `no facts were given` or `permission`.
    pub why: Cow<'static, str>,
}

impl Missing {
    /// Something that is not there, and why.
    pub fn new(what: impl Into<String>, why: impl Into<Cow<'static, str>>) -> Self {
        Missing {
            what: what.into(),
            why: why.into(),
        }
    }

    /// The reason for everything about the host when no facts were given.
    pub const NO_FACTS: &'static str = "no facts were given";

    /// The reason for everything about QEMU when neither facts nor target give its version.
    pub const NO_QEMU: &'static str = "the version of QEMU is not known";

    /// The reason for everything about the machine when only disks are known.
    pub const DISKS_ONLY: &'static str = "the file holds disks without their machine";

    /// The reason for everything but the text itself where another hypervisor runs the guest.
    pub const NOT_QEMU: &'static str = "QEMU does not run this guest, and the rule is about QEMU";
}

/// One configuration, and what is known around it.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The configuration.
    pub domain: &'a Domain,
    /// The versions to check for.
    pub target: &'a Target,
    /// Facts of the host; `None` if no facts were given.
    pub host: Option<&'a HostIndex<'a>>,
    /// Who shares the host.
    pub policy: Policy,
    /// Attributes and elements in use that some libvirt releases do not know.
    pub later_words: &'a [LaterWord<FieldPath>],
    /// Who takes the configuration.
    pub taken_by: TakenBy,
    /// False if nobody reads what was missing: [`Missing::what`] is empty then, and only the reason is there.
    pub names_missing: bool,
}

/// Who takes a configuration first, and may refuse it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum TakenBy {
    /// libvirt, which hands it on to QEMU.
    #[default]
    Libvirt,
    /// QEMU itself.
    Qemu,
}

impl<'a> Context<'a> {
    /// A configuration about whose host nothing is known.
    pub const fn new(domain: &'a Domain, target: &'a Target) -> Self {
        Context {
            domain,
            target,
            host: None,
            policy: Policy::MultiTenant,
            later_words: &[],
            taken_by: TakenBy::Libvirt,
            names_missing: true,
        }
    }

    /// The same configuration on this host.
    #[must_use]
    pub const fn on_host(mut self, host: &'a HostIndex<'a>) -> Self {
        self.host = Some(host);
        self
    }

    /// The text for users of libvirt, or for users of a command line.
    pub const fn for_taker<'w>(&self, libvirt: &'w str, qemu: &'w str) -> &'w str {
        match self.taken_by {
            TakenBy::Libvirt => libvirt,
            TakenBy::Qemu => qemu,
        }
    }

    /// Disks with their numbers.
    pub fn disks(&self) -> impl Iterator<Item = (usize, &'a Disk)> + use<'a> {
        self.domain.disks.iter().enumerate()
    }

    /// Disks whose backend is an image, with that image.
    pub fn images(&self) -> impl Iterator<Item = (usize, &'a Disk, &'a Image)> + use<'a> {
        self.disks()
            .filter_map(|(index, disk)| disk.backend.image().map(|image| (index, disk, image)))
    }

    /// The facts of the host, or an error if none were given; `what` names the needed fact.
    ///
    /// # Errors
    /// If no facts were given.
    pub fn host(&self, what: impl FnOnce() -> String) -> Result<&'a HostIndex<'a>, Missing> {
        self.host
            .ok_or_else(|| self.missing(what, Missing::NO_FACTS))
    }

    fn missing(&self, what: impl FnOnce() -> String, why: &'static str) -> Missing {
        let what = self.names_missing.then(what);
        Missing::new(what.unwrap_or_default(), why)
    }

    /// A known value; absent counts as `None`.
    ///
    /// # Errors
    /// If the fact is unknown or was not collected.
    pub fn known<T>(fact: Fact<T>, what: impl FnOnce() -> String) -> Result<Option<T>, Missing> {
        match fact {
            Fact::Known(value) => Ok(Some(value)),
            Fact::Absent => Ok(None),
            Fact::Unknown(unknown) => Err(Missing::new(what(), unknown.to_string())),
            Fact::NotCollected => Err(Missing::new(what(), "not collected")),
        }
    }

    /// Whether the libvirt that it is meant for is older than a version; `None` if none is named, or none takes it.
    pub fn libvirt_is_before(&self, version: Version) -> Option<bool> {
        let libvirt = self.target.libvirt.filter(|_| self.is_taken_by_libvirt())?;
        Some(libvirt < version)
    }

    /// Whether what it is meant for can do something; of a libvirt that has no part in it nothing is known.
    pub fn can(&self, capability: Capability) -> Answer {
        match capability.row().component {
            Component::Libvirt if !self.is_taken_by_libvirt() => Answer::Unknown,
            Component::Libvirt | Component::Qemu | Component::Kernel | Component::Machine => {
                self.target.can(capability)
            }
        }
    }

    /// Whether libvirt has a part in it.
    pub fn is_taken_by_libvirt(&self) -> bool {
        self.taken_by == TakenBy::Libvirt
    }

    /// Fails where the machine around the disks is not known.
    ///
    /// # Errors
    /// If the configuration is disks alone.
    pub fn whole_guest(&self, what: impl FnOnce() -> String) -> Result<&'a Domain, Missing> {
        match self.domain.scope {
            Scope::WholeGuest => Ok(self.domain),
            Scope::DisksOnly => Err(self.missing(what, Missing::DISKS_ONLY)),
        }
    }
}
