//! From the guest and the storage that are there to those that a spec asks for: a list of changes, each with what it costs.

mod bus;
mod change;
mod guest;
mod live;
mod moved;
mod place;
mod reclaim;

use std::collections::BTreeSet;

use vmdisk_facts::{Facts, Target};
use vmdisk_model::{Bytes, Disk, Domain};

pub use change::{
    ChangeKind, ChangePlan, DefinitionChange, DownTime, KeptImage, LiveChange, LiveCopy,
    PlannedChange, PresentImage, PresentState, StorageChange, StorageCopy,
};

use crate::plan::{Plan, PlanErrors};
use crate::spec::Spec;
use crate::steps::{Condition, Named, StepKind};
use change::{AFTER_GROWTH, empty};

/// The changes that make what is there as planned.
///
/// `want` is the plan of `spec` for the same facts and target. A disk is the planned one with its image, or else
/// with its target. A bus is changed only in a guest whose operating system is known: in
/// Windows, the driver must be loaded already. Data moves only to storage that a step of the plan makes, which is compared with
/// the old one before the definition changes. A key that the spec leaves open keeps its value; only the cache
/// mode, the I/O interface and discards change where facts decide them, or with the storage.
///
/// # Errors
/// If a disk cannot be added to the guest.
pub fn plan_changes(
    have: &PresentState<'_>,
    spec: &Spec,
    want: &Plan,
    facts: &Facts,
    target: &Target,
) -> Result<ChangePlan, PlanErrors> {
    let mut plan = ChangePlan {
        changes: sizes(have, want),
        unchanged: Vec::new(),
    };
    if let Some(guest) = have.guest {
        guest::compare(have, guest, spec, want, (facts, target), &mut plan)?;
        // What has another size there is not the storage of the guest.
        let is_copy = |it: &&PlannedChange| it.kind == ChangeKind::Move;
        let of_copies = plan.changes.iter().filter(is_copy);
        let moved: BTreeSet<String> = of_copies.map(|it| it.disk.clone()).collect();
        let is_size = |it: &PlannedChange| matches!(it.kind, ChangeKind::Grow | ChangeKind::Shrink);
        plan.changes
            .retain(|it| !is_size(it) || !moved.contains(&it.disk));
        if have.is_reclaiming {
            plan.changes.retain(|it| it.kind == ChangeKind::Reclaim);
            let trimmed = have.is_running.then(|| reclaim::trimmed(have, guest));
            plan.changes.extend(trimmed);
        }
    }
    Ok(plan)
}

/// The changes of sizes.
fn sizes(have: &PresentState<'_>, want: &Plan) -> Vec<PlannedChange> {
    let changes = have.sizes.iter().filter_map(|(nth, before)| {
        let step = want.steps.get(*nth)?;
        let resize = step.resize.as_ref()?;
        let name = want.domain.disks.get(step.disk)?.name();
        let made = step.makes();
        let mut change = PlannedChange {
            what: format!("{made} from {before} to {}", resize.size),
            ..empty(ChangeKind::Grow, name)
        };
        if *before >= resize.size {
            change.kind = ChangeKind::Shrink;
            change.refusal = Some(format!(
                "{made} has {before}, and the plan has {}: what the guest wrote beyond would be lost; add a smaller disk and \
                 copy in the guest, or write the size that it has",
                resize.size
            ));
            return Some(change);
        }
        let more = Bytes(resize.size.0 - before.0);
        let file = step.makes_named().is_none();
        let own = want.domain.disks[step.disk].backend.image();
        let is_own = |disk: &Disk| {
            let protocol = disk.backend.image().map(|image| &image.protocol);
            protocol == own.map(|image| &image.protocol)
        };
        let has = |guest: &Domain| guest.disks.iter().any(is_own);
        let is_open = have.is_running && have.guest.is_none_or(has);
        change.bytes = Some(more);
        change.down_time = if file { DownTime::None } else { DownTime::Off };
        let guest = want.domain.name.as_deref().unwrap_or_default();
        let argv = match (is_open, file) {
            (false, _) => resize.argv.clone(),
            (true, true) => {
                let size = format!("{}b", resize.size.0);
                let words = ["virsh", "blockresize", "--", guest, &made, &size];
                words.map(str::to_owned).to_vec()
            }
            (true, false) => {
                change.refusal = Some(format!(
                    "the guest {guest} runs, and does not see a larger volume before its next start: shut it off first"
                ));
                resize.argv.clone()
            }
        };
        change.is_final = Some("storage is never made smaller; a larger disk does the guest no harm");
        change.afterwards = Some(AFTER_GROWTH.to_owned());
        let room = match (step.makes_named(), step.kind) {
            (Some(Named::Volume(name)), StepKind::Volume) => Some(Condition::RoomInGroup {
                group: name.group.clone(),
                size: more,
            }),
            _ => step.conditions.iter().find_map(|it| match it {
                Condition::Room { directory, .. } => Some(Condition::Room {
                    directory: directory.clone(),
                    size: more,
                }),
                _ => None,
            }),
        };
        change.command = Some(StorageChange {
            step: *nth,
            before: *before,
            argv,
            needs: resize.needs.clone(),
            room,
        });
        Some(change)
    });
    changes.collect()
}
