//! The open options of one disk that exists.

use vmdisk_facts::{Facts, Target};
use vmdisk_model::{
    Change, Disk, DiskField, Domain, DomainField, FieldPath, FieldValue, Fields, TargetBus,
};

use super::choice::{Choice, ChoiceSource};
use super::{PlanError, plan_into};
use crate::spec::{Spec, SpecPath, disk_as_set};

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

/// Chooses the options that the disk with this number leaves open, as [`plan`](super::plan) chooses them for a new disk.
///
/// Options that the disk sets are kept, and decide others. The rest of the guest is as it is; for a disk alone, `guest` is
/// a domain of [`Scope::DisksOnly`](vmdisk_model::Scope::DisksOnly).
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
/// let decided = vmdisk_plan::decide(&guest, 0, &facts, &Target::default()).unwrap();
/// assert_eq!(decided.disk.backend.cache, Some(CacheMode::None));
/// // Nothing is known of the kernel and of QEMU.
/// assert_eq!(decided.disk.backend.aio, Some(AioMode::Threads));
/// assert!(decided.choices[0].reason.starts_with("xfs does direct I/O"));
/// ```
///
/// # Errors
/// If the guest has no such disk, if its storage is of a kind that is not decided, and if options that it sets exclude
/// each other.
pub fn decide(
    guest: &Domain,
    index: usize,
    facts: &Facts,
    target: &Target,
) -> Result<Decided, Vec<PlanError>> {
    let refused = |message: String| {
        vec![PlanError {
            at: SpecPath::default(),
            message,
            help: None,
        }]
    };
    let Some(disk) = guest.disks.get(index) else {
        return Err(refused(format!("the guest has no disk number {index}")));
    };
    let spec = disk_as_set(guest, index, disk)
        .map_err(|what| refused(format!("no options are chosen for {what}")))?;
    let mut others = guest.clone();
    others.disks.remove(index);
    let plan = plan_into(&Spec::new(vec![spec]), &others, facts, target)?;
    let mut decided = Decided {
        disk: disk.clone(),
        choices: Vec::new(),
        changes: Vec::new(),
    };
    // A SCSI disk has the queues and the iothread of its controller, which serves others too.
    let is_scsi = disk.frontend.effective_bus() == TargetBus::Scsi;
    let is_the_controllers =
        |field: DiskField| is_scsi && matches!(field, DiskField::Queues | DiskField::IoThread);
    for choice in plan.choices {
        let FieldPath::Disk(_, field) = choice.at else {
            continue;
        };
        if !DECIDED.contains(&field) || is_the_controllers(field) {
            continue;
        }
        let at = FieldPath::Disk(index, field);
        if choice.source != ChoiceSource::Asked
            && let Some(value) = plan.domain.disks[0].get(field)
        {
            if let FieldValue::IoThread(id) = value
                && guest.iothreads.is_empty()
            {
                let threads = FieldPath::Domain(DomainField::IoThreads);
                decided.changes.push(Change::set(threads, id.0));
            }
            decided.disk.set(field, value.clone());
            decided.changes.push(Change::set(at, value));
        }
        decided.choices.push(Choice { at, ..choice });
    }
    Ok(decided)
}
