//! Disks and the places that they get in a guest that exists.

use vmdisk_facts::{Facts, Target};
use vmdisk_model::{
    Address, Change, Controller, Disk, Domain, DomainField, FieldPath, Image, TargetBus,
};

use super::change::DefinitionChange;
use crate::plan::{Plan, PlanErrors, plan_into};
use crate::spec::{DiskSpec, Spec, SpecSegment, bus_of};

/// A disk with its place in a guest that exists.
pub(super) struct PlacedDisk {
    pub(super) disk: Disk,
    /// New controllers that it needs.
    controllers: Vec<Controller>,
}

impl PlacedDisk {
    /// The controllers and iothreads that the guest lacks for the disk.
    pub(super) fn surroundings(&self, guest: &Domain) -> DefinitionChange {
        let mapped = self.disk.frontend.iothread_mapping.iter();
        let used = mapped.map(|row| row.iothread);
        let used = used.chain(self.disk.frontend.iothread);
        let mapped = self.controllers.iter().flat_map(|it| &it.iothread_mapping);
        let used = used.chain(mapped.map(|row| row.iothread));
        let used = used.chain(self.controllers.iter().filter_map(|it| it.iothread));
        let last = used.map(|id| id.0).max().unwrap_or_default();
        DefinitionChange {
            changes: threads(usize::try_from(last).unwrap_or_default(), guest),
            controllers: self.controllers.clone(),
            ..DefinitionChange::default()
        }
    }
}

/// Disks of a plan, placed around the disks that a guest keeps.
pub(super) fn place(
    wanted: &[usize],
    guest: &Domain,
    (spec, want): (&Spec, &Plan),
    (facts, target): (&Facts, &Target),
) -> Result<Vec<PlacedDisk>, PlanErrors> {
    if wanted.is_empty() {
        return Ok(Vec::new());
    }
    let disk = |nth: &usize| {
        let planned = &want.domain.disks[*nth];
        DiskSpec {
            target: planned.frontend.target.clone(),
            bus: bus_of(&want.domain, planned),
            ..spec.disks[*nth].clone()
        }
    };
    let disks: Vec<DiskSpec> = wanted.iter().map(disk).collect();
    let mut errors = match plan_into(&Spec::new(disks), guest, facts, target) {
        Ok(new) => return Ok(placed_disks(new, wanted, want)),
        Err(errors) => errors,
    };
    for error in errors.0.iter_mut() {
        if let [_, SpecSegment::Index(nth), ..] = error.at.0.as_mut_slice()
            && let Some(of_spec) = wanted.get(*nth)
        {
            *nth = *of_spec;
        }
    }
    Err(errors)
}

fn placed_disks(new: Plan, wanted: &[usize], want: &Plan) -> Vec<PlacedDisk> {
    let controllers = &new.domain.controllers;
    let disks = new.domain.disks.into_iter().zip(wanted);
    let placed = disks.map(|(placed, nth)| {
        let bus = placed.frontend.effective_bus();
        let place = match &placed.frontend.address {
            Some(Address::Drive(place)) => Some(place.controller),
            _ => None,
        };
        let is_own = |it: &&Controller| {
            it.controller_type.as_str() == bus.as_str() && (place.is_none() || it.index == place)
        };
        let controllers = controllers.iter().filter(is_own).cloned().collect();
        // A disk of this bus needs no place, and is as in a new guest.
        let disk = match bus {
            TargetBus::Virtio => want.domain.disks[*nth].clone(),
            _ => placed,
        };
        PlacedDisk { disk, controllers }
    });
    placed.collect()
}

/// The change that gives the guest this many iothreads; none if it has them.
pub(super) fn threads(count: usize, guest: &Domain) -> Vec<Change> {
    let is_numbered = guest
        .iothreads
        .iter()
        .zip(1..)
        .all(|(it, nth)| it.id.0 == nth);
    let at = FieldPath::Domain(DomainField::IoThreads);
    match u32::try_from(count) {
        Ok(count) if is_numbered && guest.iothreads.len() < usize::try_from(count).unwrap_or(0) => {
            vec![Change::set(at, count)]
        }
        _ => Vec::new(),
    }
}

/// The storage of a disk, for a person.
pub(super) fn storage_of(disk: &Disk) -> String {
    let path = disk.backend.image().and_then(Image::host_path);
    path.unwrap_or("its disk").to_owned()
}
