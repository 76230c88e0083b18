//! libvirt's guests as specs: the plan of a spec is the same guest, except for what the conversion names.

use std::collections::BTreeSet;

use vmdisk::model::{
    Address, Controller, Disk, DiskField, Domain, DomainField, DriveAddress, FieldPath, Fields,
    FrontendKind, TargetBus,
};
use vmdisk::plan::{NotCarried, Spec, plan};
use vmdisk::{Facts, Target, read};
use vmdisk_fields::{DISK_FIELDS, disk as row};
use vmdisk_tests::corpus;

/// The properties of a disk that the guest sees, each with the field under which a loss is named.
fn properties(domain: &Domain, nth: usize) -> Vec<(FieldPath, String)> {
    let disk = &domain.disks[nth];
    let at = |field| FieldPath::Disk(nth, field);
    let frontend = &disk.frontend;
    let is_scsi = frontend.effective_bus() == TargetBus::Scsi;
    let own = domain.scsi_controller_of(disk);
    let iothread = own.map_or(frontend.iothread, |own| own.iothread);
    let queues = own.map_or(frontend.queues, |own| own.queues);
    let is_virtio = matches!(
        domain.frontend_kind(disk),
        FrontendKind::VirtioBlk | FrontendKind::VirtioScsi | FrontendKind::VhostUserBlk
    );
    let mut properties = vec![
        (
            at(DiskField::Cache),
            disk.backend.effective_cache().to_string(),
        ),
        (at(DiskField::IoThread), iothread.is_some().to_string()),
    ];
    if is_virtio {
        let queues = queues.unwrap_or(domain.queues_by_default());
        properties.push((at(DiskField::Queues), queues.to_string()));
    }
    if is_scsi {
        let model = domain.scsi_model_of(disk).to_string();
        properties.push((at(DiskField::TargetBus), model));
        properties.push((at(DiskField::Address), format!("{:?}", place(disk))));
    }
    let written = DISK_FIELDS.iter().filter(|field| {
        row(**field).spec.is_some()
            && !matches!(
                field,
                DiskField::Cache | DiskField::Queues | DiskField::IoThread | DiskField::TargetBus
            )
    });
    properties.extend(written.filter_map(|field| {
        let value = disk.get(*field)?;
        Some((at(*field), format!("{value:?}")))
    }));
    properties
}

fn place(disk: &Disk) -> Option<DriveAddress> {
    let target = disk.frontend.target.as_deref().unwrap_or_default();
    match &disk.frontend.address {
        Some(Address::Drive(place)) => Some(*place),
        _ => DriveAddress::of_target(TargetBus::Scsi, target),
    }
}

/// True if the conversion names a difference at a field of a disk, or of its controller.
fn is_named(domain: &Domain, named: &[NotCarried], at: FieldPath) -> bool {
    let nth = at.disk().expect("it is a field of a disk");
    let own = domain.scsi_controller_of(&domain.disks[nth]);
    let controllers = domain.controllers.iter();
    let own_index = controllers
        .enumerate()
        .find(|(_, controller)| own.is_some_and(|own| std::ptr::eq::<Controller>(own, *controller)))
        .map(|(index, _)| index);
    let is_of_controller = |other: FieldPath| match (other, at) {
        (FieldPath::Controller(index, _), FieldPath::Disk(_, field)) => {
            Some(index) == own_index && field == DiskField::TargetBus
        }
        // One controller is named once, with its first disk.
        (FieldPath::Disk(_, DiskField::TargetBus), FieldPath::Disk(_, DiskField::TargetBus)) => {
            true
        }
        (FieldPath::Domain(DomainField::IoThreads), FieldPath::Disk(_, DiskField::IoThread)) => {
            true
        }
        _ => false,
    };
    named
        .iter()
        .any(|one| one.at == at || is_of_controller(one.at))
}

#[test]
fn plans_of_converted_guests_differ_only_in_what_the_conversion_names() {
    let Some(folder) = corpus("plans of converted guests", "qemuxmlconf") else {
        return;
    };
    let files = std::fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    paths.sort();
    let (mut compared, mut unplanned, mut differences) = (0, 0, BTreeSet::new());
    for path in paths
        .iter()
        .filter(|path| path.extension().is_some_and(|it| it == "xml"))
    {
        let Ok(document) = read(&std::fs::read_to_string(path).unwrap()) else {
            continue;
        };
        let before = document.domain();
        let (spec, named) = Spec::of_domain(before);
        if named.iter().any(|one| one.changes_guest) {
            continue;
        }
        let name = path.file_name().unwrap().to_string_lossy();
        let Ok(planned) = plan(&spec, &Facts::default(), &Target::default()) else {
            // These two have an SD card in a PC, which QEMU refuses.
            unplanned += usize::from(!name.starts_with("disk-serial."));
            continue;
        };
        let after = planned.domain;
        assert_eq!(before.disks.len(), after.disks.len(), "{name}");
        compared += 1;
        for nth in 0..before.disks.len() {
            let known = properties(&after, nth);
            for (at, value) in properties(before, nth) {
                let is_same = known.contains(&(at, value.clone()));
                if !is_same && !is_named(before, &named, at) {
                    let found = known.iter().find(|(other, _)| *other == at);
                    differences.insert(format!("{name}: {at:?}: {value} became {found:?}"));
                }
            }
        }
    }
    println!("{compared} guests compared, {unplanned} cannot be planned");
    assert!(compared > 500, "{compared}");
    assert!(unplanned < 20, "{unplanned}");
    let differences: Vec<String> = differences.into_iter().collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}
