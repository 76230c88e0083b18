//! The open options of one disk that exists.

use std::collections::{BTreeMap, BTreeSet};

use vmdisk_facts::{Facts, Target};
use vmdisk_model::{
    Change, Disk, DiskField, Domain, DomainField, FieldPath, FieldValue, Fields, IoThreadId,
    TargetBus,
};

use super::choice::{Choice, ChoiceSource, Plan};
use super::{PlanError, PlanErrors, plan, plan_into};
use crate::spec::{DiskSpec, Spec, SpecPath, SpecSegment, disk_as_set};

/// The options of a disk: those that it sets, and those that were chosen where it leaves them open.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The disk with all of them.
    pub disk: Disk,
    /// Each option with its reason, in the order of the decisions. An option that the disk sets is kept.
    pub choices: Vec<Choice>,
    /// The changes of the guest that make it so.
    pub changes: Vec<Change>,
}

/// The options that are decided for a disk that exists. Its place in the guest and the layout of its storage stay.
const DECIDED: &[DiskField] = &[
    DiskField::Cache,
    DiskField::Aio,
    DiskField::Discard,
    DiskField::DiscardNoUnref,
    DiskField::DiscardGranularity,
    DiskField::ErrorPolicy,
    DiskField::ReadErrorPolicy,
    DiskField::MetadataCacheSize,
    DiskField::LogicalBlockSize,
    DiskField::PhysicalBlockSize,
    DiskField::Queues,
    DiskField::QueueSize,
    DiskField::IoThread,
];

/// Chooses the options that some disks of a guest leave open, as [`plan`](super::plan) chooses them for new disks.
///
/// `wanted` has the numbers of the disks, ascending. Options that a disk sets are kept, and decide others. The rest of
/// the guest is as it is; for disks alone, `guest` is a domain of
/// [`Scope::DisksOnly`](vmdisk_model::Scope::DisksOnly). The result has one entry for each number.
///
/// ```
/// use vmdisk_facts::{Facts, Target};
/// use vmdisk_model::{AioMode, CacheMode, Disk, Domain, Format, Frontend, Image, Scope, TargetBus};
///
/// let frontend = Frontend::new("vda", TargetBus::Virtio);
/// let disk = Disk::new(frontend, Image::file("/srv/web1.qcow2", Format::Qcow2));
/// let guest = Domain { scope: Scope::DisksOnly, disks: vec![disk], ..Domain::default() };
/// let facts = Facts::from_yaml("
/// schema_version: '1.0'
/// mounts: [{id: m1, point: /srv, fs: f1}]
/// filesystems: [{id: f1, kind: xfs}]
/// ").unwrap().facts;
///
/// let decided = &vmdisk_plan::decide(&guest, &[0], &facts, &Target::default())[0];
/// let decided = decided.as_ref().unwrap();
/// assert_eq!(decided.disk.backend.cache, Some(CacheMode::None));
/// // Nothing is known of the kernel and of QEMU.
/// assert_eq!(decided.disk.backend.aio, Some(AioMode::Threads));
/// assert!(decided.choices[0].reason.starts_with("xfs does direct I/O"));
/// ```
///
/// # Errors
/// For a disk that the guest does not have, for storage of a kind that is not decided, and where options that a disk sets
/// exclude each other.
pub fn decide(
    guest: &Domain,
    wanted: &[usize],
    facts: &Facts,
    target: &Target,
) -> Vec<Result<Decided, PlanErrors>> {
    let mut specs: Vec<Result<DiskSpec, PlanErrors>> = wanted
        .iter()
        .map(|index| match guest.disks.get(*index) {
            Some(disk) => disk_as_set(guest, *index, disk)
                .map_err(|what| refused(format!("no options are chosen for {what}"))),
            None => Err(refused(format!("the guest has no disk number {index}"))),
        })
        .collect();
    let mut others = guest.clone();
    let mut index = 0..;
    let mut stays = |_: &Disk| {
        index
            .next()
            .is_some_and(|it| wanted.binary_search(&it).is_err())
    };
    others.disks.retain(&mut stays);
    let mut plan = loop {
        let disks: Vec<DiskSpec> = specs.iter().flatten().cloned().collect();
        match plan_into(&Spec::new(disks), &others, facts, target) {
            Ok(plan) => break plan,
            Err(errors) => blame(&mut specs, errors),
        }
    };
    let added = match guest.iothreads[..] {
        [] => number_iothreads(&mut plan),
        // They have their numbers.
        _ => plan.domain.iothreads.iter().map(|it| it.id.0).max(),
    };
    let mut planned = Vec::new();
    planned.resize_with(plan.domain.disks.len(), Vec::new);
    for choice in plan.choices {
        if let Some(of_disk) = choice.at.disk().and_then(|nth| planned.get_mut(nth)) {
            of_disk.push(choice);
        }
    }
    let mut planned = plan.domain.disks.into_iter().zip(planned);
    let pairs = wanted.iter().zip(specs);
    pairs
        .map(|(index, spec)| {
            spec?;
            let (disk, choices) = planned.next().expect("each disk of a spec is planned");
            Ok(decided(guest, *index, &disk, choices, added))
        })
        .collect()
}

/// A SCSI disk has the queues and the iothread of its controller, which serves others too.
fn has_those_of_its_controller(disk: &Disk) -> bool {
    disk.frontend.effective_bus() == TargetBus::Scsi
}

/// Leaves out new iothreads that only SCSI disks would use, and returns the number of those that the guest then has.
fn number_iothreads(plan: &mut Plan) -> Option<u32> {
    let new: BTreeSet<u32> = plan.domain.iothreads.iter().map(|it| it.id.0).collect();
    let disks = plan.domain.disks.iter().enumerate();
    let used = disks.filter(|(_, disk)| !has_those_of_its_controller(disk));
    let used = used.filter_map(|(nth, disk)| Some((nth, disk.frontend.iothread?.0)));
    let used: Vec<(usize, u32)> = used.filter(|(_, id)| new.contains(id)).collect();
    let taken: BTreeSet<u32> = used.iter().map(|(_, id)| *id).collect();
    let numbers: BTreeMap<u32, u32> = taken.into_iter().zip(new).collect();
    for (nth, id) in used {
        plan.domain.disks[nth].frontend.iothread = Some(IoThreadId(numbers[&id]));
    }
    for choice in &mut plan.choices {
        if let FieldPath::Disk(nth, DiskField::IoThread) = choice.at
            && let Some(IoThreadId(id)) = plan.domain.disks[nth].frontend.iothread
        {
            choice.value = id.to_string();
        }
    }
    numbers.into_values().max()
}

/// The disk of a spec with the options that the spec sets, for [`decide`].
///
/// # Errors
/// As [`plan`](super::plan), and if the storage is still to be made.
pub fn set_options(spec: &DiskSpec) -> Result<Disk, PlanErrors> {
    let spec = Spec::new(vec![spec.clone()]);
    let mut plan = plan(&spec, &Facts::default(), &Target::default())?;
    if !plan.steps.is_empty() {
        let message = "the storage is still to be made, and only existing storage is decided";
        let mut errors = refused(message.to_owned());
        errors.0[0].help = Some("remove `size`; `vmdisk generate` plans new storage".to_owned());
        return Err(errors);
    }
    let mut disk = plan.domain.disks.remove(0);
    for choice in &plan.choices {
        if let FieldPath::Disk(0, field) = choice.at
            && choice.source != ChoiceSource::Asked
            && DECIDED.contains(&field)
            && let Some(field) = disk.field_mut(field)
        {
            field.clear();
        }
    }
    Ok(disk)
}

fn refused(message: String) -> PlanErrors {
    vec![PlanError {
        at: SpecPath::default(),
        message,
        help: None,
    }]
    .into()
}

/// Gives each error to the disk that it is about, which is not planned again; one about no disk to all of them.
fn blame(specs: &mut [Result<DiskSpec, PlanErrors>], errors: PlanErrors) {
    let places: Vec<usize> = (0..specs.len()).filter(|at| specs[*at].is_ok()).collect();
    for mut error in errors {
        let nth = match error.at.0.as_slice() {
            [SpecSegment::Key(_), SpecSegment::Index(nth), ..] => Some(*nth),
            _ => None,
        };
        error.at = SpecPath::default();
        let of_all = 0..places.len();
        for nth in nth.map_or(of_all, |nth| nth..nth + 1) {
            match places.get(nth).map(|at| &mut specs[*at]) {
                Some(Err(others)) => others.0.push(error.clone()),
                Some(spec) => *spec = Err(vec![error.clone()].into()),
                None => {}
            }
        }
    }
}

/// The disk with the options that are chosen in its plan, for which the guest gets so many iothreads.
fn decided(
    guest: &Domain,
    index: usize,
    planned: &Disk,
    choices: Vec<Choice>,
    iothreads: Option<u32>,
) -> Decided {
    let disk = &guest.disks[index];
    let mut decided = Decided {
        disk: disk.clone(),
        choices: Vec::new(),
        changes: Vec::new(),
    };
    let is_scsi = has_those_of_its_controller(disk);
    let is_the_controllers =
        |field: DiskField| is_scsi && matches!(field, DiskField::Queues | DiskField::IoThread);
    for choice in choices {
        let FieldPath::Disk(_, field) = choice.at else {
            continue;
        };
        if !DECIDED.contains(&field) || is_the_controllers(field) {
            continue;
        }
        let at = FieldPath::Disk(index, field);
        if choice.source != ChoiceSource::Asked
            && let Some(value) = planned.get(field)
        {
            if let (FieldValue::IoThread(_), Some(count)) = (&value, iothreads) {
                let threads = FieldPath::Domain(DomainField::IoThreads);
                decided.changes.push(Change::set(threads, count));
            }
            decided.disk.set(field, value.clone());
            decided.changes.push(Change::set(at, value));
        }
        decided.choices.push(Choice { at, ..choice });
    }
    decided
}
