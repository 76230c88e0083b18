//! A guest that exists as a spec: planned again, it is the same guest.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic")]

use crate::common;
use proptest::prelude::*;
use vmdisk_facts::{Facts, Target};
use vmdisk_model::*;
use vmdisk_plan::*;

/// A disk without what only a storage that is to be made has, or that headers say.
fn existing(disk: &Disk) -> Disk {
    let mut disk = disk.clone();
    if let BackendSource::Image(image) = &mut disk.backend.source {
        image.creation = None;
        // The header of the last image that is named decides what lies below it.
        let is_open = |image: &Image| {
            image.backing == Backing::Unspecified && image.format.is_some_and(Format::has_backing)
        };
        if image.chain().any(is_open) {
            image.backing = Backing::Unspecified;
        }
    }
    // What nobody wrote, and what comes out the same.
    disk.backend.aio = disk.backend.aio.or(Some(AioMode::Threads));
    disk.backend.discard = disk.backend.discard.or(Some(Discard::Ignore));
    disk.backend.cache = Some(disk.backend.effective_cache());
    // A place follows from the target.
    disk.frontend.address = None;
    disk
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(300) })]

    #[test]
    fn a_planned_guest_comes_back_as_a_spec_that_plans_it_again(spec in common::open_spec()) {
        let (facts, target) = (Facts::default(), Target::default());
        let Ok(planned) = plan(&spec, &facts, &target) else { return Ok(()) };
        let (again, not_carried) = Spec::of_domain(&planned.domain);
        prop_assert!(not_carried.iter().all(|one| !one.changes_guest), "{:?}", not_carried);
        prop_assert_eq!(again.check(), []);
        let replanned = plan(&again, &facts, &target);
        let replanned = match replanned {
            Ok(replanned) => replanned,
            Err(errors) => return Err(TestCaseError::fail(format!("{errors:?}\n{}", again.to_yaml()))),
        };
        let disks = |domain: &Domain| domain.disks.iter().map(existing).collect::<Vec<_>>();
        prop_assert_eq!(disks(&replanned.domain), disks(&planned.domain), "{}", again.to_yaml());
        prop_assert_eq!(replanned.domain.firmware, planned.domain.firmware, "{}", again.to_yaml());
    }
}

#[test]
fn what_no_spec_has_a_word_for_is_told_with_its_field() {
    let mut domain = Domain::default();
    let mut disk = Disk::new(
        Frontend::new("vda", TargetBus::Virtio),
        Image::file("/a", Format::Raw),
    );
    disk.frontend.ioeventfd = Some(Switch::Off);
    domain.disks.push(disk);
    let far = Image::new(None, Protocol::Other("fat".to_owned()));
    domain
        .disks
        .push(Disk::new(Frontend::new("vdb", TargetBus::Virtio), far));
    domain.controllers.push(Controller::virtio_scsi(0));
    let (spec, not_carried) = Spec::of_domain(&domain);
    assert_eq!(spec.disks.len(), 1);
    let told: Vec<(FieldPath, bool)> = not_carried
        .iter()
        .map(|one| (one.at, one.changes_guest))
        .collect();
    assert_eq!(
        told,
        [
            (FieldPath::Domain(DomainField::Devices), false),
            (FieldPath::Disk(0, DiskField::IoEventFd), false),
            (FieldPath::Image(1, 0, ImageField::Source), true),
        ]
    );
}
