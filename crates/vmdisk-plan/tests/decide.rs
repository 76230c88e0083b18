//! What is decided for a disk that exists is what a plan chooses for it.

use vmdisk_facts::{Facts, Target};
use vmdisk_model::{
    CacheMode, Disk, DiskField, Domain, FieldPath, FieldType, Fields, IoThread, IoThreadId, Scope,
};
use vmdisk_plan::*;

use crate::common::host::{host, planned, spec};

/// Disks on storage that exists, with none of the options that are decided.
const DISKS: [&str; 14] = [
    "raw:/ext4/sparse.img",
    "raw:/ext4/full.img",
    "qcow2:/ext4/large.qcow2",
    "raw:/xfs4k/a.img",
    "raw:/btrfs/a.img",
    "raw:/btrfs/nocow/a.img",
    "raw:/mirror/a.img",
    "raw:/zfs/a.img",
    "raw:/tmp/a.img",
    "raw:/squash/a.iso,media=cdrom",
    "device:/dev/nvme0n1",
    "device:/dev/sda",
    "lvm:fast/thin",
    "nbd://store.example/web1",
];

/// Options that a disk may set itself.
const OPTIONS: [&str; 14] = [
    "",
    ",cache=none",
    ",cache=writeback",
    ",cache=unsafe",
    ",io=threads",
    ",io=native",
    ",io=io_uring",
    ",discard=unmap",
    ",discard=ignore",
    ",readonly=on",
    ",bus=virtio-scsi",
    ",bus=sata",
    ",queues=2",
    ",error-policy=report",
];

const CHOSEN: [DiskField; 12] = [
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
];

/// What is decided for the first disk.
fn one(guest: &Domain, facts: &Facts, target: &Target) -> Result<Decided, PlanErrors> {
    decide(guest, &[0], facts, target).remove(0)
}

/// The disk without its event loops, of which a plan for a new guest makes more.
fn without_loops(disk: &Disk) -> Disk {
    let mut disk = disk.clone();
    disk.frontend.iothread = None;
    disk.frontend.iothread_mapping.clear();
    disk
}

#[test]
fn decisions_are_those_of_a_plan() {
    let (facts, target) = (host(), Target::from_facts(&host()));
    let mut compared = 0;
    for disk in DISKS {
        for option in OPTIONS {
            let text = format!("{disk}{option}");
            let Ok(plan) = plan(&spec(&[&text]), &facts, &target) else {
                continue;
            };
            let mut guest = plan.domain.clone();
            for field in CHOSEN {
                let at = FieldPath::Disk(0, field);
                let mut choices = plan.choices.iter();
                let is_chosen =
                    |choice: &Choice| choice.at == at && choice.source != ChoiceSource::Asked;
                if choices.any(is_chosen)
                    && let Some(field) = guest.disks[0].field_mut(field)
                {
                    FieldType::clear(field);
                }
            }
            let decided =
                one(&guest, &facts, &target).unwrap_or_else(|errors| panic!("{text}: {errors:?}"));
            let (was, is) = (
                without_loops(&plan.domain.disks[0]),
                without_loops(&decided.disk),
            );
            assert_eq!(is, was, "{text}");
            compared += 1;
        }
    }
    assert!(compared > 150, "only {compared}");
}

fn alone(disk: &Disk) -> Domain {
    Domain {
        scope: Scope::DisksOnly,
        disks: vec![disk.clone()],
        ..Domain::default()
    }
}

#[test]
fn what_a_disk_sets_is_kept_and_decides_the_rest() {
    let mut disk = planned(&["raw:/ext4/full.img"]).domain.disks[0].clone();
    disk.backend.cache = Some(CacheMode::Writethrough);
    disk.backend.aio = None;
    let decided = one(&alone(&disk), &host(), &Target::default()).unwrap();
    assert_eq!(decided.disk.backend.cache, Some(CacheMode::Writethrough));
    let of = |option: &str| {
        decided
            .choices
            .iter()
            .find(|it| it.option == option)
            .unwrap()
    };
    assert_eq!(of("cache").source, ChoiceSource::Asked);
    assert_eq!(of("io").rule, Some("native-without-direct"));
    assert_eq!(of("io").value, "threads");
}

#[test]
fn the_iothread_of_a_guest_serves_a_disk_that_has_none() {
    let mut guest = planned(&["raw:/ext4/full.img"]).domain;
    guest.disks[0] = without_loops(&guest.disks[0]);
    guest.iothreads = vec![IoThread::new(IoThreadId(3))];
    let decided = one(&guest, &host(), &Target::default()).unwrap();
    assert_eq!(decided.disk.frontend.iothread, Some(IoThreadId(3)));
    // Without any, one is added with its definition.
    guest.iothreads.clear();
    let decided = one(&guest, &host(), &Target::default()).unwrap();
    assert_eq!(decided.disk.frontend.iothread, Some(IoThreadId(1)));
    let of_guest = |change: &&vmdisk_model::Change| format!("{change:?}").contains("IoThreads");
    assert_eq!(decided.changes.iter().filter(of_guest).count(), 1);
}

#[test]
fn no_options_are_chosen_for_what_no_spec_expresses() {
    let guest = alone(&planned(&["raw:/ext4/full.img"]).domain.disks[0]);
    let refused = |guest: &Domain, index| {
        let decided = decide(guest, &[index], &Facts::default(), &Target::default());
        decided[0].as_ref().unwrap_err()[0].to_string()
    };
    assert_eq!(refused(&guest, 1), "the guest has no disk number 1");
    let mut xen = guest;
    xen.disks[0].frontend.bus = Some(vmdisk_model::TargetBus::Xen);
    assert_eq!(
        refused(&xen, 0),
        "no options are chosen for a disk on bus 'xen'"
    );
}

#[test]
fn a_new_iothread_is_not_for_scsi_disks_which_have_that_of_their_controller() {
    let mut guest = planned(&["raw:/ext4/full.img,bus=virtio-scsi", "device:/dev/nvme0n1"]).domain;
    for disk in &mut guest.disks {
        *disk = without_loops(disk);
    }
    for controller in &mut guest.controllers {
        controller.iothread = None;
        controller.iothread_mapping.clear();
    }
    guest.iothreads.clear();
    let decided = decide(&guest, &[0, 1], &host(), &Target::default());
    let of = |nth: usize| &decided[nth].as_ref().unwrap().disk.frontend.iothread;
    assert_eq!((of(0), of(1)), (&None, &Some(IoThreadId(1))));
}

#[test]
fn a_disk_that_is_refused_leaves_the_others_decided() {
    let mut guest = planned(&["raw:/ext4/full.img", "raw:/xfs4k/a.img", "device:/dev/sda"]).domain;
    guest.disks[1].backend.cache = Some(CacheMode::Writeback);
    guest.disks[1].backend.aio = Some(vmdisk_model::AioMode::Native);
    guest.disks[2].backend.cache = None;
    let decided = decide(&guest, &[0, 1, 2], &host(), &Target::default());
    let errors = decided[1].as_ref().unwrap_err();
    assert_eq!(
        errors[0].to_string(),
        "QEMU refuses native AIO with cache writeback; write `cache: none`, or `io: threads`"
    );
    assert_eq!(decided[0].as_ref().unwrap().disk.name(), "vda");
    assert_eq!(
        decided[2].as_ref().unwrap().disk.backend.cache,
        Some(CacheMode::None)
    );
    // A disk that no spec expresses does not shift the errors of the others.
    guest.disks[0].frontend.bus = Some(vmdisk_model::TargetBus::Xen);
    let decided = decide(&guest, &[0, 1, 2], &host(), &Target::default());
    let refused: Vec<bool> = decided.iter().map(Result::is_err).collect();
    assert_eq!(refused, [true, true, false]);
    let errors = decided[1].as_ref().unwrap_err();
    assert!(errors[0].to_string().contains("native AIO"), "{errors:?}");
}

#[test]
fn a_file_with_the_header_of_another_format_is_not_taken_for_allocated() {
    let mut facts = host();
    let guest = alone(&planned(&["raw:/ext4/full.img,cache=none"]).domain.disks[0]);
    let aio = |facts: &Facts| {
        let mut guest = guest.clone();
        guest.disks[0].backend.aio = None;
        one(&guest, facts, &Target::default())
            .unwrap()
            .disk
            .backend
            .aio
    };
    assert_eq!(aio(&facts), Some(vmdisk_model::AioMode::Native));
    let large = facts
        .files
        .iter()
        .find(|file| file.path.ends_with("large.qcow2"))
        .unwrap();
    let header = large.image.clone();
    let full = facts
        .files
        .iter_mut()
        .find(|file| file.path.ends_with("full.img"))
        .unwrap();
    full.image = header;
    assert_ne!(aio(&facts), Some(vmdisk_model::AioMode::Native));
}
