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
        let is_reassigned = |one: &NotCarried| one.at == FieldPath::Domain(DomainField::IoThreads);
        if !not_carried.iter().any(is_reassigned) {
            let around = |domain: Domain| Domain { disks: Vec::new(), ..domain };
            prop_assert_eq!(around(replanned.domain), around(planned.domain), "{}", again.to_yaml());
        }
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
            (FieldPath::Disk(0, DiskField::IoEventFd), false),
            (FieldPath::Image(1, 0, ImageField::Source), true),
            (FieldPath::Controller(0, ControllerField::Controller), false),
        ]
    );
}

fn scsi_disk(target: &str) -> Disk {
    Disk::new(
        Frontend::new(target, TargetBus::Scsi),
        Image::file(format!("/{target}"), Format::Raw),
    )
}

#[test]
fn a_scsi_controller_of_another_model_is_reported_with_both_models() {
    let mut domain = Domain {
        architecture: Some(Architecture::X86_64),
        ..Domain::default()
    };
    domain.disks.push(scsi_disk("sda"));
    domain.disks.push(scsi_disk("sdb"));
    let told = |domain: &Domain| -> Vec<(FieldPath, String)> {
        let (spec, not_carried) = Spec::of_domain(domain);
        let planned = plan(&spec, &Facts::default(), &Target::default())
            .unwrap()
            .domain;
        assert_eq!(
            planned.controllers,
            [Controller {
                queues: planned.controllers[0].queues,
                ..Controller::virtio_scsi(0)
            }]
        );
        not_carried
            .into_iter()
            .map(|one| (one.at, one.what))
            .collect()
    };
    let what = |model: &str, default: &str| {
        format!(
            "the SCSI controller model `{model}`{default}, which the spec replaces with `virtio-scsi`,"
        )
    };
    let default = " (libvirt's default)";
    let at_disk = FieldPath::Disk(0, DiskField::TargetBus);
    assert_eq!(told(&domain), [(at_disk, what("lsilogic", default))]);
    let at_model = FieldPath::Controller(0, ControllerField::Model);
    for (model, name, default) in [
        (None, "lsilogic", default),
        (Some(ScsiControllerModel::Auto), "lsilogic", default),
        (Some(ScsiControllerModel::Lsilogic), "lsilogic", ""),
        (
            Some(ScsiControllerModel::VirtioTransitional),
            "virtio-transitional",
            "",
        ),
    ] {
        domain.controllers = vec![Controller {
            scsi_model: model,
            ..Controller::virtio_scsi(0)
        }];
        assert_eq!(told(&domain), [(at_model, what(name, default))]);
    }
    domain.controllers = vec![Controller::virtio_scsi(0)];
    assert_eq!(told(&domain), []);
    domain.architecture = Some(Architecture::Aarch64);
    domain.controllers.clear();
    let replaced = told(&domain);
    assert_eq!(replaced.len(), 1, "{replaced:?}");
    assert!(replaced[0].1.contains("replaces with `efi`"));
    domain.firmware = Some(Firmware::Efi);
    assert_eq!(told(&domain), []);
}

#[test]
fn settings_of_a_controller_are_carried_or_reported_even_without_a_guest() {
    let mut domain = Domain {
        scope: Scope::DisksOnly,
        ..Domain::default()
    };
    domain.disks.push(scsi_disk("sda"));
    domain.controllers.push(Controller {
        queues: Some(4),
        max_sectors: Some(2048),
        ..Controller::virtio_scsi(0)
    });
    let (spec, not_carried) = Spec::of_domain(&domain);
    assert_eq!(spec.disks[0].queues, Some(4));
    let told: Vec<FieldPath> = not_carried.iter().map(|one| one.at).collect();
    assert_eq!(
        told,
        [FieldPath::Controller(0, ControllerField::MaxSectors)]
    );
}

#[test]
fn iothreads_are_numbered_from_1_as_a_plan_does() {
    let mut disk = Disk::new(
        Frontend::new("vda", TargetBus::Virtio),
        Image::file("/a", Format::Raw),
    );
    disk.frontend.iothread = Some(IoThreadId(5));
    let domain = Domain {
        iothreads: vec![IoThread::new(IoThreadId(5))],
        disks: vec![disk],
        ..Domain::default()
    };
    let (spec, not_carried) = Spec::of_domain(&domain);
    assert_eq!(spec.disks[0].iothread, Some(IoThreadSpec::Number(1)));
    let told: Vec<FieldPath> = not_carried.iter().map(|one| one.at).collect();
    assert_eq!(told, [FieldPath::IoThread(0, IoThreadField::Id)]);
    let planned = plan(&spec, &Facts::default(), &Target::default());
    assert_eq!(planned.unwrap().domain.iothreads.len(), 1);
}

#[test]
fn queues_that_qemu_chooses_are_written_where_a_plan_chooses_others() {
    for (machine, served, expected) in [
        ("pc-q35-4.2", false, Some(1)),
        ("pc-q35-10.0", false, None),
        ("pc-q35-4.2", true, Some(1)),
        ("pc-q35-10.0", true, Some(4)),
    ] {
        let mut disk = Disk::new(
            Frontend::new("vda", TargetBus::Virtio),
            Image::file("/a", Format::Raw),
        );
        if served {
            disk.backend.source = BackendSource::VhostUser(VhostUserSocket::new("/run/a"));
        }
        let domain = Domain {
            vcpus: Some(4),
            machine: Some(MachineType(machine.to_owned())),
            disks: vec![disk],
            ..Domain::default()
        };
        let (spec, _) = Spec::of_domain(&domain);
        assert_eq!(spec.disks[0].queues, expected, "{machine}");
        let planned = plan(&spec, &Facts::default(), &Target::default())
            .unwrap()
            .domain;
        let effective = planned.disks[0]
            .frontend
            .queues
            .unwrap_or(planned.queues_by_default());
        assert_eq!(effective, domain.queues_by_default(), "{machine}");
    }
}

#[test]
fn scsi_disks_keep_their_places_or_are_reported() {
    let mut domain = Domain {
        controllers: vec![Controller::virtio_scsi(0)],
        disks: ["sda", "sdc", "sdb"].map(scsi_disk).to_vec(),
        ..Domain::default()
    };
    let units = |domain: &Domain| -> Vec<Option<u32>> {
        let disks = domain.disks.iter();
        disks
            .map(|disk| match disk.frontend.address {
                Some(Address::Drive(place)) => Some(place.controller * 100 + place.unit),
                _ => None,
            })
            .collect()
    };
    let (spec, not_carried) = Spec::of_domain(&domain);
    assert_eq!(not_carried, []);
    let planned = plan(&spec, &Facts::default(), &Target::default()).unwrap();
    assert_eq!(units(&planned.domain), [Some(0), Some(2), Some(1)]);
    // The eighth name is on a second controller, which a plan does not have.
    domain.disks.push(scsi_disk("sdh"));
    domain.controllers.push(Controller::virtio_scsi(1));
    let (_, not_carried) = Spec::of_domain(&domain);
    let told: Vec<FieldPath> = not_carried.iter().map(|one| one.at).collect();
    assert_eq!(told, [FieldPath::Disk(3, DiskField::Address)]);
}

#[test]
fn an_encrypted_image_that_no_spec_expresses_is_told_wherever_it_is() {
    let secret = Secret {
        secret_type: Some("passphrase".to_owned()),
        reference: SecretReference::Usage("u".to_owned()),
    };
    let plain = Encryption {
        format: Some(EncryptionFormat::Luks),
        secrets: vec![secret],
        ..Encryption::default()
    };
    let strange = Encryption {
        ivgen: Some(EncryptionVector::default()),
        ..plain.clone()
    };
    let path = || "/a".to_owned();
    let nvme = NvmeSource {
        address: PciAddress::default(),
        namespace: 1,
        managed: None,
    };
    for (protocol, encryption, is_told) in [
        (Protocol::File { path: path() }, &plain, false),
        (Protocol::File { path: path() }, &strange, true),
        (Protocol::Nvme(nvme), &plain, true),
        (Protocol::VhostVdpa { path: path() }, &plain, true),
        (Protocol::Directory { path: path() }, &plain, true),
    ] {
        let mut image = Image::new(Some(Format::Raw), protocol);
        image.encryption = Some(Box::new(encryption.clone()));
        let disk = Disk::new(Frontend::new("vda", TargetBus::Virtio), image);
        let mut domain = Domain {
            scope: Scope::DisksOnly,
            disks: vec![disk],
            ..Domain::default()
        };
        let (_, not_carried) = Spec::of_domain(&domain);
        let at = FieldPath::Image(0, 0, ImageField::Encryption);
        let told = not_carried.iter().any(|one| one.at == at);
        assert_eq!(told, is_told, "{:?}", domain.disks[0].backend);
        if let BackendSource::Image(image) = &mut domain.disks[0].backend.source {
            image.encryption = None;
        }
        let (spec, _) = Spec::of_domain(&domain);
        assert_eq!(spec.disks.len(), 1, "{:?}", domain.disks[0].backend);
    }
}

#[test]
fn options_of_iothreads_are_told_where_no_guest_has_them() {
    let mut thread = IoThread::new(IoThreadId(1));
    thread.polling.max = Some(0);
    let domain = Domain {
        scope: Scope::DisksOnly,
        iothreads: vec![thread],
        ..Domain::default()
    };
    let (_, not_carried) = Spec::of_domain(&domain);
    let told: Vec<FieldPath> = not_carried.iter().map(|one| one.at).collect();
    assert_eq!(told, [FieldPath::IoThread(0, IoThreadField::Polling)]);
}

#[test]
fn a_guest_without_a_machine_keeps_the_default_of_libvirt() {
    let (spec, _) = Spec::of_domain(&Domain::default());
    assert_eq!(spec.guest.unwrap().machine.as_deref(), Some("pc"));
}

#[test]
fn the_cache_mode_of_an_empty_drive_is_planned_as_asked() {
    let mut disk = Disk::new(
        Frontend::new("sda", TargetBus::Sata),
        Image::file("/a", Format::Raw),
    );
    disk.frontend.device = Some(Device::Cdrom);
    disk.backend.source = BackendSource::Empty;
    disk.backend.cache = Some(CacheMode::None);
    let mut domain = Domain {
        scope: Scope::DisksOnly,
        disks: vec![disk],
        ..Domain::default()
    };
    let (spec, _) = Spec::of_domain(&domain);
    let planned = plan(&spec, &Facts::default(), &Target::default())
        .unwrap()
        .domain;
    assert_eq!(planned.disks[0].backend.cache, Some(CacheMode::None));
    // With a medium, nothing is written about requests that a CD drive does not get.
    domain.disks[0].backend.source = Image::file("/a", Format::Raw).into();
    let (spec, _) = Spec::of_domain(&domain);
    assert_eq!((spec.disks[0].io, spec.disks[0].discard), (None, None));
}

#[test]
fn what_a_spec_decides_otherwise_is_written_or_told() {
    let mut disk = Disk::new(
        Frontend::new("vda", TargetBus::Virtio),
        Image::file("/a", Format::Raw),
    );
    disk.frontend.logical_block_size = Some(4096);
    let mut domain = Domain {
        architecture: Some(Architecture::X86_64),
        disks: vec![disk],
        ..Domain::default()
    };
    let at = FieldPath::Domain(DomainField::Firmware);
    for (firmware, size, is_told) in [
        (None, 4096, true),
        (Some(Firmware::Efi), 4096, false),
        (None, 512, false),
    ] {
        domain.firmware = firmware;
        domain.disks[0].frontend.logical_block_size = Some(size);
        let (_, not_carried) = Spec::of_domain(&domain);
        let told = not_carried.iter().find(|one| one.at == at);
        assert_eq!(told.is_some_and(|one| one.changes_guest), is_told, "{size}");
    }

    // A spec that says nothing reconnects.
    domain.disks[0].backend.source = BackendSource::VhostUser(VhostUserSocket::new("/run/a"));
    let (spec, _) = Spec::of_domain(&domain);
    assert!(
        spec.to_yaml().contains("reconnect: false"),
        "{}",
        spec.to_yaml()
    );
}

#[test]
fn the_boot_order_of_the_machine_is_that_of_the_first_disk_by_name() {
    let disk = |target: &str| {
        let image = Image::file(format!("/{target}.img"), Format::Raw);
        Disk::new(Frontend::new(target, TargetBus::Virtio), image)
    };
    let domain = Domain {
        boot_devices: vec![BootDevice::Disk],
        disks: vec![disk("vdc"), disk("vda")],
        ..Domain::default()
    };
    let (spec, _) = Spec::of_domain(&domain);
    let boot: Vec<_> = spec.disks.iter().map(|disk| disk.boot).collect();
    assert_eq!(boot, [None, Some(1)]);
}
