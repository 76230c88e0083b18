//! Which disks libvirt lets have a field.

use vmdisk_model::{Device, TargetBus};

use crate::Since;

/// Which disks libvirt lets have a field; by default all.
#[derive(Clone, Copy, Debug)]
pub struct Takers {
    buses: &'static [TargetBus],
    /// True if `buses` lists the buses without the field.
    is_all_but: bool,
    /// Where it would be right, for people: `the bus virtio`.
    buses_in_words: &'static str,
    later: Option<(Since, &'static [TargetBus], &'static [Device])>,
    devices: &'static [Device],
    devices_in_words: &'static str,
    /// The libvirt that first refused it elsewhere; older ones ignored it.
    refused_since: Since,
}

impl Takers {
    /// Every disk.
    pub(crate) const ALL: Takers = Takers::all_but(&[], "");

    /// Disks on these buses.
    pub(crate) const fn only(buses: &'static [TargetBus], in_words: &'static str) -> Self {
        Takers {
            buses,
            is_all_but: false,
            buses_in_words: in_words,
            later: None,
            devices: &[],
            devices_in_words: "",
            refused_since: (0, 0, 0),
        }
    }

    /// Disks on other buses than these.
    pub(crate) const fn all_but(buses: &'static [TargetBus], in_words: &'static str) -> Self {
        Takers {
            is_all_but: true,
            ..Takers::only(buses, in_words)
        }
    }

    /// Of these, only devices of these kinds.
    pub(crate) const fn devices(
        mut self,
        devices: &'static [Device],
        in_words: &'static str,
    ) -> Self {
        self.devices = devices;
        self.devices_in_words = in_words;
        self
    }

    /// Devices of these kinds (all, if there are none) on further buses since a later libvirt.
    pub(crate) const fn later(
        mut self,
        since: Since,
        buses: &'static [TargetBus],
        devices: &'static [Device],
    ) -> Self {
        self.later = Some((since, buses, devices));
        self
    }

    /// Says which libvirt first refused it elsewhere.
    pub(crate) const fn refused_since(mut self, since: Since) -> Self {
        self.refused_since = since;
        self
    }

    /// True if every disk may have the field.
    pub const fn is_everywhere(&self) -> bool {
        self.is_all_but && self.buses.is_empty() && self.devices.is_empty()
    }

    /// Where the field would be right, if a disk on this bus may not have it.
    ///
    /// `is_before` says whether the libvirt is older than a version; `None` where it is not known which it is, and
    /// the newest is assumed.
    pub fn elsewhere(
        &self,
        bus: TargetBus,
        device: Device,
        is_before: impl Fn(Since) -> Option<bool>,
    ) -> Option<&'static str> {
        let elsewhere = self.elsewhere_today(bus, device, &is_before)?;
        (is_before(self.refused_since) != Some(true)).then_some(elsewhere)
    }

    /// As [`elsewhere`](Self::elsewhere), of a libvirt that refuses it.
    fn elsewhere_today(
        &self,
        bus: TargetBus,
        device: Device,
        is_before: impl Fn(Since) -> Option<bool>,
    ) -> Option<&'static str> {
        let has = |devices: &[Device]| devices.is_empty() || devices.contains(&device);
        let is_taken_later = self.later.is_some_and(|(since, buses, devices)| {
            is_before(since) != Some(true) && buses.contains(&bus) && has(devices)
        });
        let is_taken = is_taken_later || self.buses.contains(&bus) != self.is_all_but;
        if !is_taken {
            return Some(self.buses_in_words);
        }
        (!has(self.devices)).then_some(self.devices_in_words)
    }
}
