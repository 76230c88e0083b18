//! Changes of the definition of a guest.

use vmdisk_facts::{Facts, Target};
use vmdisk_fields::disk as row_of;
use vmdisk_model::{Change, Disk, DiskField, Domain, FieldPath, Fields as _, Image};

use super::bus::Buses;
use super::change::{
    ChangeKind, ChangePlan, DefinitionChange, DownTime, PlannedChange, PresentState, empty,
};
use super::live::{key_of, live};
use super::moved::Moves;
use super::place::{PlacedDisk, place, storage_of, threads};
use crate::plan::{Plan, PlanErrors};
use crate::spec::{Difference, Spec, with_planned_names};

/// The options that a change sets. The bus, the target, the kind of drive and the sector size decide whether the guest
/// finds its data, and stay.
const OPTIONS: &[DiskField] = &[
    DiskField::Cache,
    DiskField::Aio,
    DiskField::Discard,
    DiskField::DetectZeroes,
    DiskField::CopyOnRead,
    DiskField::DiscardNoUnref,
    DiskField::DiscardGranularity,
    DiskField::MetadataCacheSize,
    DiskField::ErrorPolicy,
    DiskField::ReadErrorPolicy,
    DiskField::Queues,
    DiskField::QueueSize,
    DiskField::IoThread,
    DiskField::Serial,
    DiskField::Wwn,
    DiskField::Vendor,
    DiskField::Product,
    DiskField::RotationRate,
    DiskField::Removable,
    DiskField::BootOrder,
    DiskField::ReadOnly,
    DiskField::Shareable,
    DiskField::Transient,
];

/// Adds the changes of the definition, and what no change makes equal.
pub(super) fn compare(
    have: &PresentState<'_>,
    guest: &Domain,
    spec: &Spec,
    want: &Plan,
    host: (&Facts, &Target),
    plan: &mut ChangePlan,
) -> Result<(), PlanErrors> {
    let down_time = match have.is_running {
        true => DownTime::Restart,
        false => DownTime::None,
    };
    let mut added = Vec::new();
    let mut changes: Vec<PlannedChange> = Vec::new();
    let named = with_planned_names(&want.domain, guest);
    let mut buses = Buses::of(&want.domain, guest, &named);
    let mut moves = Moves::of(want, guest, &named);
    for difference in spec.differences(want, guest) {
        let (new, old) = match &difference.disk {
            Some(name) => (find(&want.domain, name), find(&named, name)),
            None => (None, None),
        };
        let own = difference.own_key();
        let made = match (new, old) {
            (Some((nth, new)), None) if !is_elsewhere(new, guest) => {
                added.push((nth, difference));
                continue;
            }
            (None, Some((nth, old))) if !is_elsewhere(old, &want.domain) => {
                changes.push(removed_disk((nth, old), difference));
                continue;
            }
            (Some((new, _)), Some(_)) if buses.takes(new, own) => {
                buses.note(new, difference);
                continue;
            }
            (Some((new, _)), Some(_)) if moves.takes(new, own) => {
                moves.note(new, difference);
                continue;
            }
            (Some((_, new)), Some((nth, old))) => option(own, new, (nth, old), guest),
            (None, None) if own == "iothreads" => threads(want.domain.iothreads.len(), guest),
            _ => Vec::new(),
        };
        if made.is_empty() {
            plan.unchanged.push(difference);
            continue;
        }
        let name = difference.disk.as_deref().unwrap_or_default();
        let is_same = |it: &&mut PlannedChange| it.kind == ChangeKind::Options && it.disk == name;
        let change = match changes.iter_mut().find(is_same) {
            Some(change) => change,
            None => {
                changes.push(empty(ChangeKind::Options, name));
                changes.last_mut().expect("one was pushed")
            }
        };
        let comma = if change.what.is_empty() { "" } else { ", " };
        let (before, after) = (&difference.existing, &difference.planned);
        change.what += &format!("{comma}{own} from {before} to {after}");
        change.definition.changes.extend(made);
        change.differences.push(difference);
    }
    let planned = added.iter().map(|(nth, _)| *nth);
    let placed: Vec<usize> = planned.chain(buses.planned()).collect();
    let placed = place(&placed, &buses.others(guest), (spec, want), host)?;
    let (new, on_buses) = placed.split_at(added.len());
    let new = new.iter().zip(added);
    let new = new.map(|(disk, (_, difference))| added_disk(disk, difference, guest));
    let os = spec.guest.as_ref().and_then(|it| it.os).or(have.os);
    let on_buses = buses.changes(on_buses.iter(), (os, host.1));
    let at_start = |change| PlannedChange {
        down_time,
        ..change
    };
    let at_once = |change| match have.is_running {
        true => live(at_start(change), guest),
        false => change,
    };
    plan.changes.extend(new.map(at_once));
    plan.changes.extend(changes.into_iter().map(at_once));
    plan.changes.extend(moves.changes(have, spec));
    plan.changes.extend(on_buses.map(at_start));
    refuse_bus_of_copies(&mut plan.changes);
    Ok(())
}

/// libvirt gives the definition a copy by the name of its disk, which goes with the bus.
fn refuse_bus_of_copies(changes: &mut [PlannedChange]) {
    let copied = changes.iter().filter_map(PlannedChange::live_copy);
    let copied: Vec<usize> = copied.map(|copy| copy.disk).collect();
    for change in changes {
        let is_copied = |(nth, _): &(usize, _)| copied.contains(nth);
        if change.definition.frontend.as_ref().is_some_and(is_copied) {
            let why =
                "the guest runs, and its data moves first (`--change move`): change the bus then";
            change.refusal.get_or_insert_with(|| why.to_owned());
        }
    }
}

fn removed_disk((nth, disk): (usize, &Disk), difference: Difference) -> PlannedChange {
    PlannedChange {
        what: format!("{} from the guest; its storage stays", storage_of(disk)),
        differences: vec![difference],
        definition: DefinitionChange {
            removed: Some(nth),
            ..DefinitionChange::default()
        },
        ..empty(ChangeKind::Remove, disk.name())
    }
}

fn added_disk(placed: &PlacedDisk, difference: Difference, guest: &Domain) -> PlannedChange {
    PlannedChange {
        what: format!("{} to the guest", storage_of(&placed.disk)),
        differences: vec![difference],
        definition: DefinitionChange {
            disks: vec![placed.disk.clone()],
            ..placed.surroundings(guest)
        },
        ..empty(ChangeKind::Add, placed.disk.name())
    }
}

fn find<'a>(guest: &'a Domain, target: &str) -> Option<(usize, &'a Disk)> {
    let mut disks = guest.disks.iter().enumerate();
    disks.find(|(_, disk)| disk.frontend.target.as_deref() == Some(target))
}

/// True if another guest has the image of a disk under another target: the disk would be there twice.
fn is_elsewhere(disk: &Disk, guest: &Domain) -> bool {
    let path = |disk: &'_ Disk| {
        disk.backend
            .image()
            .and_then(Image::host_path)
            .map(str::to_owned)
    };
    let own = path(disk);
    own.is_some() && guest.disks.iter().any(|other| path(other) == own)
}

/// The changes that give a disk the planned value of a key; none if a change does not reach it.
fn option(key: &str, new: &Disk, (nth, old): (usize, &Disk), guest: &Domain) -> Vec<Change> {
    if key == "iotune" || key.starts_with("iotune.") {
        return limits(new, (nth, old), key.strip_prefix("iotune."));
    }
    let mut fields = OPTIONS.iter();
    let Some(field) = fields.find(|field| row_of(**field).spec == Some(key)) else {
        return Vec::new();
    };
    let at = FieldPath::Disk(nth, *field);
    let value = new.get(*field);
    if value == old.get(*field) {
        // It belongs to the controller, or is more than one value.
        return Vec::new();
    }
    let mut changes = match new.frontend.iothread {
        Some(thread) if *field == DiskField::IoThread => {
            threads(usize::try_from(thread.0).unwrap_or_default(), guest)
        }
        _ => Vec::new(),
    };
    changes.push(match value {
        Some(value) => Change::set(at, value),
        None => Change::remove(at),
    });
    changes
}

/// The limits that differ, of all or of one key.
fn limits(new: &Disk, (nth, old): (usize, &Disk), key: Option<&str>) -> Vec<Change> {
    let of = |disk: &Disk| {
        disk.backend
            .iotune
            .as_deref()
            .cloned()
            .unwrap_or_default()
            .limits()
    };
    let pairs = of(new).into_iter().zip(of(old));
    let changes = pairs.filter_map(|((field, new), (_, old))| {
        let is_meant = key.is_none_or(|key| key == key_of(field));
        let at = FieldPath::Iotune(nth, field);
        (is_meant && new != old).then(|| match new {
            Some(value) => Change::set(at, value),
            None => Change::remove(at),
        })
    });
    changes.collect()
}
