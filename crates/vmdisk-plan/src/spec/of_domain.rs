//! From a guest that exists to the spec that asks for the same disks.

use vmdisk_fields::{DISK_FIELDS, Label, disk as disk_row};
use vmdisk_model::{
    Address, AioMode, BootDevice, Device, Discard, Disk, DiskField, Domain, DomainField,
    DomainType, DriveAddress, FieldPath, Fields, Frontend, FrontendKind, HugePages, IoThread,
    IoThreadField, IoThreadId, MemoryBacking, Polling, Scope, Switch, TargetBus, libvirt_order,
};

use crate::plan::{is_pc, machine_of, needs_uefi, plan};
use vmdisk_facts::{Facts, Target};

use super::dropped::{DroppedFields, NotCarried};
use super::of_controllers::report_controllers;
use super::of_image::backend_of;
use super::{
    BackendSpec, BusSpec, DiskSpec, GuestSpec, GuestType, HugePagesSpec, IoThreadCount,
    IoThreadOptions, IoThreadSpec, IotuneSpec, MediaSpec, Spec,
};

impl Spec {
    /// The spec that requests the disks of a guest unchanged, and the parts that it cannot express.
    ///
    /// A plan chooses the options that a spec leaves unset. Options that a guest leaves to libvirt and QEMU
    /// are therefore written with their effective values if a plan would choose other values.
    ///
    /// ```
    /// use vmdisk_model::{Disk, Domain, Format, Frontend, Image, Scope, TargetBus};
    /// use vmdisk_plan::Spec;
    ///
    /// let mut domain = Domain { scope: Scope::DisksOnly, ..Domain::default() };
    /// let frontend = Frontend::new("vda", TargetBus::Virtio);
    /// domain.disks.push(Disk::new(frontend, Image::file("/srv/web1.qcow2", Format::Qcow2)));
    /// let (spec, not_carried) = Spec::of_domain(&domain);
    /// assert_eq!(not_carried, []);
    /// assert_eq!(spec.to_yaml(), "version: 1
    /// disks:
    /// - qcow2:
    ///     path: /srv/web1.qcow2
    ///   bus: virtio
    ///   target: vda
    ///   cache: writeback
    ///   io: threads
    ///   discard: ignore
    /// ");
    /// ```
    pub fn of_domain(domain: &Domain) -> (Self, Vec<NotCarried>) {
        let mut report = DroppedFields::default();
        let guest = match domain.scope {
            Scope::WholeGuest => Some(guest_of(domain, &mut report)),
            Scope::DisksOnly => None,
        };
        let mut disks = Vec::with_capacity(domain.disks.len());
        for (nth, disk) in domain.disks.iter().enumerate() {
            disks.push(disk_of(domain, nth, disk, &mut report));
        }
        boot_in_order(domain, &mut disks);
        let disks = disks.into_iter().flatten().collect();
        report_controllers(domain, &mut report);
        report_iothreads(domain, guest.as_ref(), &mut report);
        let spec = Spec {
            guest,
            ..Spec::new(disks)
        };
        report_scsi_places(domain, &spec, &mut report);
        (spec, report.0)
    }
}

/// Sets boot orders that match `<boot dev=…>`: of each kind that the firmware looks for, libvirt has the first disk.
fn boot_in_order(domain: &Domain, disks: &mut [Option<DiskSpec>]) {
    if disks.iter().flatten().any(|disk| disk.boot.is_some()) {
        return;
    }
    let order = libvirt_order(&domain.disks);
    let mut place = 0;
    for kind in &domain.boot_devices {
        let media = match kind {
            BootDevice::Disk => None,
            BootDevice::Cdrom => Some(MediaSpec::Cdrom),
            BootDevice::Floppy => Some(MediaSpec::Floppy),
            BootDevice::Network => continue,
        };
        let is_free = |disk: &DiskSpec| disk.boot.is_none() && disk.media == media;
        let first = order
            .iter()
            .find(|nth| disks[**nth].as_ref().is_some_and(is_free));
        if let Some(disk) = first.and_then(|nth| disks[*nth].as_mut()) {
            place += 1;
            disk.boot = Some(place);
        }
    }
}

fn guest_of(domain: &Domain, report: &mut DroppedFields) -> GuestSpec {
    let Domain {
        scope: _,
        name,
        uuid,
        domain_type,
        architecture,
        machine: _, // `machine_of`
        vcpus,
        memory,
        memory_backing,
        firmware,
        cpu,
        // In `report_dropped`.
        acpi: _,
        boot_devices: _,
        blkiotune: _,
        throttle_groups: _,
        default_iothread: _,
        iothreads: _,   // counted by `iothreads_of`
        controllers: _, // in `report_controllers`
        disks: _,
        scsi_host_devices: _, // no disks
        boots_from_others: _,
        emulator: _,        // of the host
        pci_room: _,        // of the other devices, too
        manager: _,         // a mark in `<metadata>`
        system: _,          // another
        tuned_iothreads: _, // in `<cputune>`, of which nothing else is read
    } = domain;
    let guest_type = guest_type_of(domain_type.as_ref(), report);
    let hugepages = memory_backing
        .huge_pages
        .as_ref()
        .map(|pages| huge_pages_of(pages, report));
    report_dropped(domain, report);
    if firmware.is_none() && (has_large_sectors(domain) || needs_uefi(domain)) {
        let what = "the machine's own firmware, which a spec replaces with `efi`,";
        report.report_dropped(FieldPath::Domain(DomainField::Firmware), what, true);
    }
    GuestSpec {
        name: name.clone(),
        uuid: uuid.clone(),
        guest_type,
        arch: *architecture,
        drivers: None,
        os: None, // chosen already: the buses
        machine: machine_of(domain),
        firmware: *firmware,
        vcpus: *vcpus,
        cpu: *cpu,
        memory: *memory,
        iothreads: iothreads_of(domain, report),
        hugepages,
        // Devices that the model does not have.
        network: None,
        console: None,
        channel: None,
        tpm: None,
        rng: None,
    }
}

/// Reports settings of a guest that no spec has.
fn report_dropped(domain: &Domain, report: &mut DroppedFields) {
    let MemoryBacking {
        huge_pages: _, // in `guest_of`
        source,
        access,
        cell_access,
    } = &domain.memory_backing;
    for (field, is_set, what) in [
        (
            DomainField::MemorySource,
            source.is_some() || access.is_some(),
            "the kind of memory, which follows from the disks,",
        ),
        (
            DomainField::NumaCells,
            !cell_access.is_empty(),
            "the memory of NUMA cells",
        ),
        (
            DomainField::BootDevices,
            domain.boot_devices.contains(&BootDevice::Network),
            "booting from the network",
        ),
        (
            DomainField::Machine,
            domain.acpi == Some(Switch::Off),
            "ACPI, which is switched off,",
        ),
        (
            DomainField::Blkiotune,
            domain.blkiotune.is_some(),
            "blkiotune",
        ),
        (
            DomainField::ThrottleGroups,
            !domain.throttle_groups.is_empty(),
            "throttle groups",
        ),
        (
            DomainField::DefaultIoThread,
            domain.default_iothread.is_some(),
            "the threads of QEMU's main loop",
        ),
    ] {
        if is_set {
            report.report_dropped(FieldPath::Domain(field), what, false);
        }
    }
}

/// True for a PC with a disk that SeaBIOS does not boot from: a spec has another firmware then.
fn has_large_sectors(domain: &Domain) -> bool {
    let is_pc = domain.scope == Scope::WholeGuest && is_pc(domain.architecture);
    let mut sizes = domain
        .disks
        .iter()
        .map(|disk| disk.frontend.logical_block_size);
    is_pc && sizes.any(|size| size.is_some_and(|size| size > 512))
}

fn huge_pages_of(pages: &HugePages, report: &mut DroppedFields) -> HugePagesSpec {
    if pages.page_sizes.len() > 1 {
        let what = "several sizes of huge pages";
        report.report_dropped(FieldPath::Domain(DomainField::HugePages), what, false);
    }
    match pages.page_sizes.first() {
        Some(size) => HugePagesSpec::Size(*size),
        None => HugePagesSpec::DefaultSize,
    }
}

fn guest_type_of(
    domain_type: Option<&DomainType>,
    report: &mut DroppedFields,
) -> Option<GuestType> {
    match domain_type? {
        DomainType::Kvm => Some(GuestType::Kvm),
        DomainType::Qemu => Some(GuestType::Qemu),
        DomainType::Other(word) => {
            let what = format!("the type of guest '{word}'");
            report.report_dropped(FieldPath::Domain(DomainField::DomainType), what, false);
            None
        }
    }
}

/// Number of iothreads that a plan must create; none if a disk has no iothread, because the plan
/// assigns an iothread to each disk.
fn iothreads_of(domain: &Domain, report: &mut DroppedFields) -> Option<IoThreadCount> {
    let has_none = |disk: &&Disk| {
        let may_have_one = matches!(
            domain.frontend_kind(disk),
            FrontendKind::VirtioBlk | FrontendKind::VirtioScsi
        );
        may_have_one && iothread_of(domain, disk).is_none()
    };
    let count = domain.iothreads.len();
    if count > 0 && domain.disks.iter().any(|disk| has_none(&disk)) {
        let what = "the list of iothreads, which a spec assigns to disks that have none here,";
        report.report_dropped(FieldPath::Domain(DomainField::IoThreads), what, false);
        return None;
    }
    let mut threads: Vec<&IoThread> = domain.iothreads.iter().collect();
    threads.sort_by_key(|thread| thread.id);
    let options: Vec<_> = threads.into_iter().map(IoThreadOptions::of_model).collect();
    if options.iter().any(|it| *it != IoThreadOptions::default()) {
        return Some(IoThreadCount::Each(options));
    }
    Some(IoThreadCount::Number(
        u32::try_from(count).unwrap_or(u32::MAX),
    ))
}

/// Reports the parts of iothreads that the spec does not have.
fn report_iothreads(domain: &Domain, guest: Option<&GuestSpec>, report: &mut DroppedFields) {
    let has_options =
        guest.is_some_and(|guest| matches!(guest.iothreads, Some(IoThreadCount::Each(_))));
    for (nth, thread) in domain.iothreads.iter().enumerate() {
        let number = number_of(domain, thread.id);
        if number != thread.id.0 {
            let at = FieldPath::IoThread(nth, IoThreadField::Id);
            let what = format!("the id {}, which becomes {number} in a spec,", thread.id);
            report.report_dropped(at, what, false);
        }
        if has_options {
            continue;
        }
        if thread.polling != Polling::default() {
            let at = FieldPath::IoThread(nth, IoThreadField::Polling);
            report.report_dropped(at, "how long the iothread polls", false);
        }
        if thread.thread_pool_min.is_some() || thread.thread_pool_max.is_some() {
            let at = FieldPath::IoThread(nth, IoThreadField::ThreadPoolMax);
            report.report_dropped(at, "the size of the iothread's pool", false);
        }
    }
}

/// The number of an iothread in a spec, which counts them from 1 in the order of their ids; the id of one that is not in
/// the list.
fn number_of(domain: &Domain, id: IoThreadId) -> u32 {
    let threads = &domain.iothreads;
    if threads.iter().all(|thread| thread.id != id) {
        return id.0;
    }
    let place = threads.iter().filter(|thread| thread.id <= id).count();
    u32::try_from(place).unwrap_or(id.0)
}

/// The iothreads of a disk, which a SCSI disk has from its controller.
fn iothread_of(domain: &Domain, disk: &Disk) -> Option<IoThreadSpec> {
    let frontend = &disk.frontend;
    let (iothread, mapping) = match domain.scsi_controller_of(disk) {
        Some(controller) => (&controller.iothread, &controller.iothread_mapping),
        None => (&frontend.iothread, &frontend.iothread_mapping),
    };
    match (iothread, mapping.as_slice()) {
        (Some(id), []) => Some(IoThreadSpec::Number(number_of(domain, *id))),
        (_, rows @ [_, ..]) => {
            let numbers = rows.iter().map(|row| number_of(domain, row.iothread));
            Some(IoThreadSpec::Several(numbers.collect()))
        }
        (None, []) => None,
    }
}

/// A disk whose unset options are written with their effective values where a plan would choose others.
fn disk_of(
    domain: &Domain,
    nth: usize,
    disk: &Disk,
    report: &mut DroppedFields,
) -> Option<DiskSpec> {
    let mut spec = set_options_of(domain, nth, disk, report)?;
    spec.queues = spec.queues.or(queues_of(domain, disk));
    if matches!(
        spec.backend,
        BackendSpec::VhostUserBlk(_) | BackendSpec::Empty(_)
    ) {
        return Some(spec);
    }
    spec.cache = Some(disk.backend.effective_cache());
    if disk.frontend.effective_device() == Device::Disk {
        spec.io = spec.io.or((!has_no_aio(&spec)).then_some(AioMode::Threads));
        spec.discard = spec.discard.or(Some(Discard::Ignore));
    }
    Some(spec)
}

/// True if the storage of a disk is opened without a choice of asynchronous I/O.
const fn has_no_aio(spec: &DiskSpec) -> bool {
    matches!(
        spec.backend,
        BackendSpec::Network(_)
            | BackendSpec::Nvme(_)
            | BackendSpec::VhostVdpa(_)
            | BackendSpec::Directory(_)
    )
}

/// A disk with the options that are set, and no others.
///
/// # Errors
/// What it is, if no spec can express it.
pub(crate) fn disk_as_set(domain: &Domain, nth: usize, disk: &Disk) -> Result<DiskSpec, String> {
    let mut report = DroppedFields::default();
    set_options_of(domain, nth, disk, &mut report).ok_or_else(|| {
        let changes = report.0.into_iter().rfind(|dropped| dropped.changes_guest);
        changes.map_or_else(|| "such a disk".to_owned(), |dropped| dropped.what)
    })
}

/// A disk with the options that are set, and no others; `None` if no spec can express it.
fn set_options_of(
    domain: &Domain,
    nth: usize,
    disk: &Disk,
    report: &mut DroppedFields,
) -> Option<DiskSpec> {
    let at = |field| FieldPath::Disk(nth, field);
    let Disk {
        frontend,
        backend: _,
    } = disk;
    let device = frontend.effective_device();
    let backend_spec = backend_of(nth, disk, report)?;
    let Some(bus) = bus_of(domain, disk) else {
        report.report_dropped(
            at(DiskField::TargetBus),
            format!("a disk on bus '{}'", frontend.effective_bus()),
            true,
        );
        return None;
    };
    let mut spec = DiskSpec::new(backend_spec);
    spec.bus = Some(bus);
    spec.media = match device {
        // A file called *.iso would be planned as a CD.
        Device::Disk => (spec.media() != MediaSpec::Disk).then_some(MediaSpec::Disk),
        Device::Lun => None,
        Device::Cdrom => Some(MediaSpec::Cdrom),
        Device::Floppy => Some(MediaSpec::Floppy),
    };
    spec.iothread = iothread_of(domain, disk);
    fields_of(nth, disk, &mut spec, report);
    if bus == BusSpec::VirtioScsi {
        // A SCSI disk has the queues of its controller.
        let controller = domain.scsi_controller_of(disk);
        spec.queues = controller.and_then(|controller| controller.queues);
    }
    if has_no_aio(&spec) && spec.io.take().is_some() {
        let what = "`io`, which only affects files and devices,";
        report.report_dropped(at(DiskField::Aio), what, false);
    }
    if matches!(spec.backend, BackendSpec::VhostUserBlk(_)) {
        spec.cache = None;
    }
    Some(spec)
}

/// The bus of a disk in the words of a spec; none if it has no word for it.
pub(crate) fn bus_of(domain: &Domain, disk: &Disk) -> Option<BusSpec> {
    Some(match disk.frontend.effective_bus() {
        TargetBus::Virtio => BusSpec::Virtio,
        TargetBus::Scsi if domain.frontend_kind(disk) == FrontendKind::VirtioScsi => {
            BusSpec::VirtioScsi
        }
        TargetBus::Scsi => BusSpec::Scsi,
        TargetBus::Sata => BusSpec::Sata,
        TargetBus::Ide => BusSpec::Ide,
        TargetBus::Usb => BusSpec::Usb,
        TargetBus::Nvme => BusSpec::Nvme,
        TargetBus::Fdc => BusSpec::Fdc,
        TargetBus::Sd => BusSpec::Sd,
        TargetBus::Xen | TargetBus::Uml => return None,
    })
}

/// The queues that QEMU gives a disk which sets none, if a plan would choose others.
fn queues_of(domain: &Domain, disk: &Disk) -> Option<u32> {
    let vcpus = domain.effective_vcpus();
    let queues = domain.queues_by_default();
    let is_other = match domain.frontend_kind(disk) {
        FrontendKind::VirtioBlk | FrontendKind::VirtioScsi => queues != vcpus,
        // A plan does not know how many the daemon has.
        FrontendKind::VhostUserBlk => vcpus > 1,
        _ => false,
    };
    is_other.then_some(queues)
}

/// The options with a spec key, and those without.
fn fields_of(nth: usize, disk: &Disk, spec: &mut DiskSpec, report: &mut DroppedFields) {
    let Disk { frontend, backend } = disk;
    let mut rows = frontend.iothread_mapping.iter();
    if rows.any(|row| !row.queues.is_empty()) {
        let at = FieldPath::Disk(nth, DiskField::IoThreadMapping);
        report.report_dropped(at, "the mapping of queues to iothreads", false);
    }
    spec.iotune = backend.iotune.as_deref().map(IotuneSpec::of_model);
    for field in DISK_FIELDS {
        if let (Some(slot), Some(value)) = (spec.field_mut(*field), disk.get(*field))
            && let Some(value) = value.to_kind(slot.kind())
        {
            slot.set(value);
        }
        let is_told_elsewhere = matches!(
            field,
            // With the backend, above, or with the geometry.
            DiskField::Source
                | DiskField::ConfigWce
                | DiskField::IoThreadMapping
                | DiskField::GeometryTranslation
        );
        let is_usual = *field == DiskField::Address && !is_placed(frontend);
        if disk.has(*field) && disk_row(*field).spec.is_none() && !is_told_elsewhere && !is_usual {
            report.report_dropped(
                FieldPath::Disk(nth, *field),
                format!("`{}`", field.label()),
                false,
            );
        }
    }
}

/// True if a disk is somewhere else than where libvirt puts it by its target's name; of SCSI disks, the plan decides.
fn is_placed(frontend: &Frontend) -> bool {
    let target = frontend.target.as_deref().unwrap_or_default();
    let bus = frontend.effective_bus();
    match &frontend.address {
        Some(Address::Drive(_)) if bus == TargetBus::Scsi => false,
        Some(Address::Drive(place)) => DriveAddress::of_target(bus, target) != Some(*place),
        Some(_) => true,
        None => false,
    }
}

/// Reports each SCSI disk that a plan of the spec puts elsewhere.
fn report_scsi_places(domain: &Domain, spec: &Spec, report: &mut DroppedFields) {
    let Ok(planned) = plan(spec, &Facts::default(), &Target::default()) else {
        return;
    };
    let planned = &planned.domain.disks;
    if planned.len() != domain.disks.len() {
        // A disk is refused.
        return;
    }
    for (nth, (disk, planned)) in domain.disks.iter().zip(planned).enumerate() {
        let frontend = &disk.frontend;
        if frontend.effective_bus() != TargetBus::Scsi {
            continue;
        }
        let target = frontend.target.as_deref().unwrap_or_default();
        let by_name = || DriveAddress::of_target(TargetBus::Scsi, target).map(Address::Drive);
        let own = frontend.address.clone().or_else(by_name);
        if own.is_some() && own != planned.frontend.address {
            let at = FieldPath::Disk(nth, DiskField::Address);
            report.report_dropped(at, format!("`{}`", DiskField::Address.label()), false);
        }
    }
}
