//! The first phase of writing: the guest and its machine.

use vmdisk_facts::{Capability, Target};
use vmdisk_model::{Domain, FieldPath};

use crate::board::Machine;
use crate::boot::boot_indexes;
use crate::options::{Medium, Options};
use crate::problem::WriteProblem;

/// A guest to write, with the facts that the writers need.
pub(crate) struct Guest<'a> {
    domain: &'a Domain,
    target: &'a Target,
    medium: Medium,
    machine: Machine,
    /// The place of each disk in the boot order.
    boot_indexes: Vec<Option<u32>>,
}

impl<'a> Guest<'a> {
    pub(crate) fn new(domain: &'a Domain, options: &'a Options, medium: Medium) -> Self {
        let Options { target } = options;
        Guest {
            domain,
            target,
            medium,
            machine: Machine::of(domain, target),
            boot_indexes: boot_indexes(domain),
        }
    }

    pub(crate) const fn domain(&self) -> &'a Domain {
        self.domain
    }

    pub(crate) const fn machine(&self) -> &Machine {
        &self.machine
    }

    pub(crate) const fn medium(&self) -> Medium {
        self.medium
    }

    /// True unless the target is known to lack it: a recent QEMU is assumed.
    pub(crate) fn can(&self, capability: Capability) -> bool {
        !self.target.can(capability).is_no()
    }

    /// True if an option is written as JSON, which the target must support.
    pub(crate) fn takes_json(&self, capability: Capability) -> bool {
        match self.medium {
            Medium::CommandLine => self.can(capability),
            Medium::Monitor => true,
        }
    }

    /// The place of a disk in the boot order.
    pub(crate) fn boot_index(&self, nth: usize) -> Option<u32> {
        self.boot_indexes.get(nth).copied().flatten()
    }

    /// A note about a field, with the disk's name.
    pub(crate) fn note(&self, at: FieldPath, message: String, help: Option<&str>) -> WriteProblem {
        let disk = at.disk().and_then(|nth| self.domain.disks.get(nth));
        WriteProblem {
            at,
            disk: disk.map(|disk| disk.name().to_owned()),
            message,
            help: help.map(str::to_owned),
        }
    }
}
