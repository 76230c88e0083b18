//! The target of a configuration: the QEMU, libvirt, machine type and kernel that will run it.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use crate::capability::{Answer, Basis, Capability, Component};
use crate::fact::Fact;
use crate::facts::Facts;
use crate::version::{Version, VersionError};

/// The QEMU, libvirt, machine type and kernel of a configuration; `None` means unknown.
///
/// ```
/// use vmdisk_facts::{Target, Version};
/// let target: Target = "qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12".parse()?;
/// assert_eq!(target.qemu, Some(Version(10, 0, 0)));
/// assert_eq!(target.machine_version(), Some(Version(10, 0, 0)));
/// # Ok::<(), vmdisk_facts::TargetError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Target {
    /// QEMU's version.
    pub qemu: Option<Version>,
    /// libvirt's version.
    pub libvirt: Option<Version>,
    /// The machine type, as QEMU spells it (`pc-q35-10.0`).
    pub machine: Option<String>,
    /// The host kernel's version.
    pub kernel: Option<Version>,
    /// The guest's architecture (`x86_64`).
    pub arch: Option<String>,
    /// Capabilities that the programs themselves were asked for; they win over versions.
    pub probed: BTreeMap<Capability, bool>,
    /// The machine types that QEMU itself names; empty where it was not asked.
    pub machines: BTreeSet<String>,
    /// Properties and members that QEMU itself named, by [`crate::Owner::key`]; `None` where it was not asked.
    pub members: Option<Arc<BTreeMap<String, BTreeMap<String, String>>>>,
}

/// Why the text of a target could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum TargetError {
    /// A part without `=`.
    #[error("'{0}' is not a key with a value; the keys are {keys}, as in {example}", keys = Target::KEYS.join(", "), example = Target::EXAMPLE)]
    NotAPair(String),
    /// A key that does not exist.
    #[error("a target has no key '{0}'; the keys are {keys}, as in {example}", keys = Target::KEYS.join(", "), example = Target::EXAMPLE)]
    UnknownKey(String),
    /// A key given twice.
    #[error("the key '{0}' is given twice")]
    Twice(&'static str),
    /// A value that is not a version.
    #[error("{key}: {error}")]
    Version {
        /// The key.
        key: &'static str,
        /// The mistake in its value.
        error: VersionError,
    },
    /// A value that is empty.
    #[error("the key '{0}' has no value, as in {example}", example = Target::EXAMPLE)]
    Empty(&'static str),
}

impl Target {
    /// The keys of a target's text.
    pub const KEYS: [&'static str; 5] = ["qemu", "libvirt", "machine", "kernel", "arch"];

    /// A target's text as an example for messages.
    pub const EXAMPLE: &'static str = "qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12";

    /// The target that a host is, as far as its facts are known.
    pub fn from_facts(facts: &Facts) -> Self {
        let mut probed = BTreeMap::new();
        let qemu = facts.newest_qemu().known();
        let libvirt = facts.libvirt.value();
        for (name, has) in qemu.into_iter().flat_map(|qemu| &qemu.capabilities) {
            if let Some(capability) = Capability::from_name(name) {
                probed.insert(capability, *has);
            }
        }
        for (name, has) in libvirt
            .into_iter()
            .flat_map(|libvirt| &libvirt.capabilities)
        {
            if let Some(capability) = Capability::from_name(name) {
                probed.insert(capability, *has);
            }
        }
        if let Some(Fact::Known(aio)) = qemu.map(|qemu| &qemu.aio) {
            for (capability, word) in [
                (Capability::AioIoUring, "io_uring"),
                (Capability::AioNative, "native"),
            ] {
                let has = aio.iter().any(|way| way == word);
                probed.entry(capability).or_insert(has);
            }
        }
        Self {
            qemu: facts.qemu_version().known(),
            libvirt: libvirt.and_then(|libvirt| libvirt.version.clone().known()),
            machine: None,
            kernel: facts.kernel.version.clone().known(),
            arch: facts.cpu.arch.clone().known(),
            probed,
            machines: BTreeSet::new(),
            members: None,
        }
    }

    /// This target, with its unset values taken from another, such as a requested target over the host's.
    ///
    /// Probed capabilities of the other hold only for its own programs: they are dropped where this one names
    /// another version.
    #[must_use]
    pub fn or(self, other: Self) -> Self {
        let same =
            |ours: Option<Version>, theirs: Option<Version>| ours.is_none() || ours == theirs;
        let same_qemu = same(self.qemu, other.qemu);
        let same_libvirt = same(self.libvirt, other.libvirt);
        let same_kernel = same(self.kernel, other.kernel);
        let mut probed = other.probed;
        probed.retain(|capability, _| match capability.row().component {
            Component::Qemu => same_qemu,
            Component::Libvirt => same_libvirt,
            Component::Kernel => same_kernel,
            Component::Machine => self.machine.is_none(),
        });
        probed.extend(self.probed);
        let machines = if self.machines.is_empty() && same_qemu {
            other.machines
        } else {
            self.machines
        };
        let members = self.members.or(other.members.filter(|_| same_qemu));
        Self {
            qemu: self.qemu.or(other.qemu),
            libvirt: self.libvirt.or(other.libvirt),
            machine: self.machine.or(other.machine),
            kernel: self.kernel.or(other.kernel),
            arch: self.arch.or(other.arch),
            probed,
            machines,
            members,
        }
    }

    /// The availability of a capability in this target: as probed, otherwise as its version implies.
    ///
    /// ```
    /// use vmdisk_facts::{Answer, Basis, Capability, Target, Version};
    /// let target: Target = "qemu=7.2".parse()?;
    /// assert_eq!(target.can(Capability::IothreadVqMappingBlk), Answer::No(Basis::Assumed(Version(7, 2, 0))));
    /// assert_eq!(target.can(Capability::LibvirtIothreadMapping), Answer::Unknown);
    /// # Ok::<(), vmdisk_facts::TargetError>(())
    /// ```
    pub fn can(&self, capability: Capability) -> Answer {
        if let Some(has) = self.probed.get(&capability) {
            return if *has {
                Answer::Yes(Basis::Probed)
            } else {
                Answer::No(Basis::Probed)
            };
        }
        let row = capability.row();
        let version = match row.component {
            Component::Qemu => self.qemu,
            Component::Libvirt => self.libvirt,
            Component::Kernel => self.kernel,
            Component::Machine => self.machine_version(),
        };
        version.map_or(Answer::Unknown, |version| row.answer(version))
    }
    /// True if nothing is known of QEMU, libvirt and the kernel.
    pub fn is_open(&self) -> bool {
        let versions = [self.qemu, self.libvirt, self.kernel];
        versions.iter().all(Option::is_none) && self.probed.is_empty()
    }

    /// The version in the machine type's name: `None` for aliases such as `q35` and for a distribution's own names.
    pub fn machine_version(&self) -> Option<Version> {
        self.machine.as_deref().and_then(machine_version)
    }
}

/// The QEMU version a machine type's name ends in.
///
/// `None` for an alias (`q35` is the newest of whatever QEMU runs it) and for a distribution's own numbering
/// (`pc-q35-rhel9.4.0`, `pc-q35-jammy`), which does not follow QEMU's.
pub fn machine_version(machine: &str) -> Option<Version> {
    let (_, last) = machine.rsplit_once('-')?;
    let version: Version = last.parse().ok()?;
    // Machine types are named by release, with a dot: a lone number is something else.
    last.contains('.').then_some(version)
}

impl std::str::FromStr for Target {
    type Err = TargetError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let mut target = Self::default();
        for part in text.split(',') {
            let part = part.trim();
            let Some((key, value)) = part.split_once('=') else {
                return Err(TargetError::NotAPair(part.to_owned()));
            };
            let value = value.trim();
            match key.trim() {
                "qemu" => version(&mut target.qemu, "qemu", value)?,
                "libvirt" => version(&mut target.libvirt, "libvirt", value)?,
                "kernel" => version(&mut target.kernel, "kernel", value)?,
                "machine" => word(&mut target.machine, "machine", value)?,
                "arch" => word(&mut target.arch, "arch", value)?,
                other => return Err(TargetError::UnknownKey(other.to_owned())),
            }
        }
        Ok(target)
    }
}

fn version(slot: &mut Option<Version>, key: &'static str, value: &str) -> Result<(), TargetError> {
    if value.is_empty() {
        return Err(TargetError::Empty(key));
    }
    let version = value
        .parse()
        .map_err(|error| TargetError::Version { key, error })?;
    if slot.replace(version).is_some() {
        Err(TargetError::Twice(key))
    } else {
        Ok(())
    }
}

fn word(slot: &mut Option<String>, key: &'static str, value: &str) -> Result<(), TargetError> {
    if value.is_empty() {
        return Err(TargetError::Empty(key));
    }
    if slot.replace(value.to_owned()).is_some() {
        Err(TargetError::Twice(key))
    } else {
        Ok(())
    }
}

impl fmt::Display for Target {
    /// Writes the text that parses as this target, without the probed capabilities.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            qemu,
            libvirt,
            machine,
            kernel,
            arch,
            probed: _,
            machines: _,
            members: _,
        } = self;
        let version = |version: &Option<Version>| version.map(|version| version.to_string());
        let parts = [
            version(qemu),
            version(libvirt),
            machine.clone(),
            version(kernel),
            arch.clone(),
        ];
        let mut first = true;
        for (key, value) in Self::KEYS.iter().zip(parts) {
            if let Some(value) = value {
                let comma = if first { "" } else { "," };
                write!(f, "{comma}{key}={value}")?;
                first = false;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_reads_back_from_its_own_text() {
        let text = "qemu=10.0.2,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12.77,arch=x86_64";
        assert_eq!(text.parse::<Target>().unwrap().to_string(), text);
    }

    #[test]
    fn a_mistake_names_the_known_keys() {
        let message = "qmeu=10".parse::<Target>().unwrap_err().to_string();
        assert_eq!(
            message,
            "a target has no key 'qmeu'; the keys are qemu, libvirt, machine, kernel, arch, \
             as in qemu=10.0,libvirt=11.3,machine=pc-q35-10.0,kernel=6.12"
        );
        assert!(
            "".parse::<Target>()
                .unwrap_err()
                .to_string()
                .contains("is not a key with a value")
        );
        assert!(
            "qemu=ten"
                .parse::<Target>()
                .unwrap_err()
                .to_string()
                .starts_with("qemu: 'ten' is not a version")
        );
        for (text, key) in [("qemu=10,qemu=11", "qemu"), ("arch=a,arch=a", "arch")] {
            assert_eq!(text.parse::<Target>(), Err(TargetError::Twice(key)));
        }
        assert_eq!(
            "machine=".parse::<Target>(),
            Err(TargetError::Empty("machine"))
        );
    }

    #[test]
    fn only_qemus_own_machine_types_have_a_version() {
        assert_eq!(machine_version("pc-q35-10.0"), Some(Version(10, 0, 0)));
        assert_eq!(machine_version("pc-i440fx-2.11"), Some(Version(2, 11, 0)));
        assert_eq!(
            machine_version("s390-ccw-virtio-9.2"),
            Some(Version(9, 2, 0))
        );
        for none in [
            "q35",
            "pc",
            "pc-q35-rhel9.4.0",
            "pc-i440fx-jammy",
            "virt",
            "fancy-board-2",
            "",
        ] {
            assert_eq!(machine_version(none), None, "{none}");
        }
    }

    #[test]
    fn machine_types_and_members_of_another_qemu_are_ignored() {
        let here = Target {
            qemu: Some(Version(7, 2, 0)),
            machines: ["q35".to_owned()].into(),
            members: Some(Default::default()),
            ..Target::default()
        };
        let asked = |text: &str| text.parse::<Target>().unwrap();
        for same in ["libvirt=9.0", "qemu=7.2"] {
            let target = asked(same).or(here.clone());
            assert_eq!(
                (target.machines, target.members),
                (here.machines.clone(), here.members.clone())
            );
        }
        let other = asked("qemu=10.0").or(here.clone());
        assert_eq!((other.machines, other.members), (Default::default(), None));
        let own = Target {
            machines: ["pc".to_owned()].into(),
            ..Target::default()
        };
        assert!(own.or(here).machines.contains("pc"));
    }

    #[test]
    fn probes_of_another_version_are_ignored() {
        let here = Target {
            qemu: Some(Version(7, 2, 0)),
            probed: BTreeMap::from([(Capability::AioIoUring, true)]),
            ..Target::default()
        };
        let asked: Target = "qemu=10.0".parse().unwrap();
        assert!(asked.or(here.clone()).probed.is_empty());
        let asked: Target = "libvirt=9.0".parse().unwrap();
        assert_eq!(asked.or(here.clone()).probed, here.probed);
    }
}
