//! What a guest comes to once it has been a command line: the list of what does not come back as it was.

mod image;

use vmdisk_model::*;

/// The guest as a command line can say it, given the guest `as_written` that it was written from.
pub(crate) fn normal(domain: &Domain, as_written: &Domain) -> Domain {
    let mut domain = domain.clone();
    // Devices of the host are no disks, and no command line of disks has them.
    domain.scsi_host_devices.clear();
    domain.boots_from_others = false;
    domain.pci_room = None;
    domain.emulator = None;
    domain.tuned_iothreads.clear();
    // Everything has an architecture and a machine once it is started.
    if as_written.architecture.is_none() || is_renamed(as_written.architecture) {
        domain.architecture = None;
    }
    if as_written.machine.is_none() {
        domain.machine = None;
    }
    // QEMU has ACPI unless it is switched off.
    domain.acpi = domain.acpi.filter(|acpi| *acpi == Switch::Off);
    // QEMU rounds, and bare disks have no memory.
    domain.memory = match as_written.scope {
        Scope::WholeGuest => domain
            .memory
            .map(|size| Bytes(size.0.next_multiple_of(8192))),
        Scope::DisksOnly => None,
    };
    // Shared memory without a kind becomes a memfd, and cells one piece; whether it is shared is asked
    // for by `shares_memory`.
    domain.memory_backing = MemoryBacking::default();
    // Controllers that disks need are written, and so are iothreads that bare disks speak of.
    domain.controllers.clear();
    domain.iothreads.truncate(as_written.iothreads.len());
    for thread in &mut domain.iothreads {
        thread.is_listed = false;
    }
    if as_written.scope == Scope::DisksOnly {
        (domain.name, domain.uuid, domain.domain_type, domain.vcpus) = (None, None, None, None);
        (domain.machine, domain.architecture) = (None, None);
    }
    // libvirt writes them in small letters with dashes.
    domain.uuid = None;
    // What the firmware looks for has become an order of devices, and shares are the cgroup's.
    if !as_written.boot_devices.is_empty() {
        for disk in &mut domain.disks {
            disk.frontend.boot_order = None;
        }
    }
    domain.boot_devices.clear();
    // Files on flash say it, which libvirt chooses.
    domain.firmware = None;
    domain.blkiotune = None;
    domain.default_iothread = domain
        .default_iothread
        .filter(|thread| *thread != DefaultIoThread::default());
    for (disk, as_written) in domain.disks.iter_mut().zip(&as_written.disks) {
        normal_disk(disk, as_written);
    }
    domain
}

/// True if a program's name stands for another architecture too.
fn is_renamed(architecture: Option<Architecture>) -> bool {
    matches!(
        architecture,
        Some(Architecture::Armv6l | Architecture::Ppc64le)
    )
}

fn normal_disk(disk: &mut Disk, as_written: &Disk) {
    let written = &as_written.frontend;
    let frontend = &mut disk.frontend;
    frontend.device = Some(written.effective_device());
    frontend.bus = Some(written.effective_bus());
    // Ids are names within QEMU's limits; a target that is one is asked for by `keeps_its_name`.
    (frontend.target, frontend.alias) = (None, None);
    frontend.model = frontend.model.filter(|model| *model != VirtioModel::Virtio);
    // Every disk has a place; QEMU chooses those of other kinds.
    if matches!(
        written.address,
        Some(Address::Other(_) | Address::VirtioMmio) | None
    ) {
        frontend.address = None;
    }
    // Rights of the process, and what is done over QMP after the start.
    (frontend.rawio, frontend.sgio, frontend.tray) = (None, None, None);
    frontend.statistics.histograms.clear();
    frontend.geometry = frontend
        .geometry
        .filter(|geometry| *geometry != Geometry::default());
    // A failed read does what a failed write does, and QEMU wants both sector sizes.
    if written.read_error_policy.is_none() {
        frontend.read_error_policy = None;
    }
    if written.physical_block_size.is_none() {
        frontend.physical_block_size = None;
    }
    // The disks of an NVMe controller share its serial number.
    if written.effective_bus() == TargetBus::Nvme {
        frontend.serial = None;
    }
    frontend.wwn = frontend.wwn.take().and_then(|wwn| {
        let digits = wwn.strip_prefix("0x").unwrap_or(&wwn);
        u64::from_str_radix(digits, 16)
            .ok()
            .map(|wwn| format!("{wwn:016x}"))
    });
    // Off is what QEMU has without a word.
    let on = |switch: &Switch| *switch == Switch::On;
    frontend.removable = frontend.removable.filter(on);
    let backend = &mut disk.backend;
    backend.copy_on_read = backend.copy_on_read.filter(on);
    // What a snapshot of the guest does is libvirt's, and so is looking for a source.
    (backend.snapshot, backend.startup_policy) = (None, None);
    // The write cache of a unit that is passed through is the unit's, and that of a drive without a
    // medium all that is left of its mode.
    let has_mode = match as_written.backend.source {
        BackendSource::Image(_) => written.effective_device() != Device::Lun,
        BackendSource::Empty | BackendSource::VhostUser(_) => false,
    };
    backend.cache = has_mode.then(|| backend.effective_cache());
    if as_written.backend.source == BackendSource::Empty {
        *backend = Backend {
            is_shareable: backend.is_shareable,
            ..Backend::new(BackendSource::Empty)
        };
    }
    if backend.detect_zeroes == Some(DetectZeroes::Unmap)
        && as_written.backend.discard != Some(Discard::Unmap)
    {
        backend.detect_zeroes = Some(DetectZeroes::On);
    }
    if let Some(iotune) = &mut backend.iotune {
        // Only a letter may begin a name, and only a few bytes may be in it.
        iotune.group = iotune.group.take().map(|_| "group".to_owned());
    }
    if written.effective_device() == Device::Cdrom {
        backend.is_read_only = false;
    }
    if let BackendSource::Image(image) = &mut backend.source {
        // Only files and block devices have a choice of how requests are made.
        backend.aio = backend.aio.filter(|_| image.protocol.on_host().is_some());
        image::normal(image);
    }
}

/// True if both guests have memory that other processes may map, or neither.
pub(crate) fn shares_memory(domain: &Domain, as_written: &Domain) -> bool {
    as_written.scope == Scope::DisksOnly
        || domain.memory_backing.is_shared() == as_written.memory_backing.is_shared()
}
