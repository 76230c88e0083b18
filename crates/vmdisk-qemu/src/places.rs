//! Unique resources of devices, nodes and objects: ids, PCI slots, throttle groups.

use std::collections::{HashMap, HashSet};

use vmdisk_model::Iotune;

use crate::guest::Guest;
use crate::names::Ids;
use crate::pci_slots::PciSlots;

/// Ids and slots, each assigned once.
pub(crate) struct Places<'a> {
    ids: Ids,
    pci: PciSlots,
    /// Ids of the guest's throttle groups, by name.
    filter_groups: HashMap<&'a str, String>,
    /// Throttle groups that several disks share, by their configured name.
    shared_groups: HashMap<&'a str, SharedGroup<'a>>,
    /// Ids of the helpers for persistent reservations.
    helpers: HashSet<String>,
}

/// A throttle group that several disks share.
pub(crate) struct SharedGroup<'a> {
    /// Its id.
    pub(crate) id: String,
    /// Its limits, which every disk of the group must have.
    pub(crate) limits: &'a Iotune,
}

impl<'a> Places<'a> {
    pub(crate) fn new(guest: &Guest<'a>) -> Self {
        Places {
            ids: Ids::default(),
            pci: PciSlots::new(guest.domain(), guest.machine().board),
            filter_groups: HashMap::new(),
            shared_groups: HashMap::new(),
            helpers: HashSet::new(),
        }
    }

    /// Reserves an id, or a similar one that is free.
    pub(crate) fn take_id(&mut self, wanted: &str) -> String {
        self.ids.take(wanted)
    }

    /// The slots of the PCI buses.
    pub(crate) const fn pci(&mut self) -> &mut PciSlots {
        &mut self.pci
    }

    /// The id of a throttle group of the guest.
    pub(crate) fn filter_group(&self, name: &str) -> Option<&str> {
        self.filter_groups.get(name).map(String::as_str)
    }

    /// The names of the guest's throttle groups.
    pub(crate) fn filter_group_names(&self) -> impl Iterator<Item = &'a str> {
        self.filter_groups.keys().copied()
    }

    /// Reserves an id for a throttle group of the guest.
    pub(crate) fn take_filter_group(&mut self, name: &'a str, wanted: &str) -> String {
        let id = self.ids.take(wanted);
        self.filter_groups.insert(name, id.clone());
        id
    }

    /// The shared throttle group of a name.
    pub(crate) fn shared_group(&self, name: &str) -> Option<&SharedGroup<'a>> {
        self.shared_groups.get(name)
    }

    /// The number of shared throttle groups.
    pub(crate) fn shared_groups(&self) -> usize {
        self.shared_groups.len()
    }

    /// Adds a throttle group that later disks of the same name share.
    pub(crate) fn share_group(&mut self, name: &'a str, group: SharedGroup<'a>) {
        self.shared_groups.insert(name, group);
    }

    /// True for the first disk that needs a helper for persistent reservations.
    pub(crate) fn is_first_with_helper(&mut self, id: &str) -> bool {
        self.helpers.insert(id.to_owned())
    }
}
