//! Values that QEMU, libvirt or the tools always refuse, reported before anything is planned.
//!
//! The limits are the limits of qemu-img, QEMU, libvirt and LVM, which report only the first problem, and
//! some of them only when the guest starts.

use std::collections::BTreeMap;

use vmdisk_fields as fields;
use vmdisk_model::{Bytes, Fields, Preallocation, Qcow2Preallocation};

use super::backend::{BackendSpec, LvmThinSpec};
use super::check_backend::check_backend;
use super::check_iotune::check_iotune;
use super::disk::{DiskSpec, IoThreadSpec, MediaSpec};
use super::faults::{Faults, is_uuid};
use super::guest::{GuestSpec, HugePagesSpec, IoThreadCount};
use super::node::shortened;
use super::{Spec, SpecError, SpecPath};

impl Spec {
    /// Every problem in the spec that no choice of the planner can fix.
    pub fn check(&self) -> Vec<SpecError> {
        let Spec {
            version: _,
            guest,
            disks,
        } = self;
        let mut faults = Faults(Vec::new());
        if let Some(guest) = guest {
            check_guest(guest, &SpecPath::default().key("guest"), &mut faults);
        }
        for (index, disk) in disks.iter().enumerate() {
            check_disk(disk, &SpecPath::disk(index), &mut faults);
        }
        check_together(disks, &mut faults);
        check_chains(disks, &mut faults);
        faults.0
    }
}

impl DiskSpec {
    /// Every problem in this disk alone that no choice of the planner can fix.
    pub(crate) fn check(&self, at: &SpecPath) -> Vec<SpecError> {
        let mut faults = Faults(Vec::new());
        check_disk(self, at, &mut faults);
        faults.0
    }
}

fn check_guest(guest: &GuestSpec, at: &SpecPath, faults: &mut Faults) {
    let GuestSpec {
        name,
        uuid,
        guest_type: _,
        arch: _,
        os: _,
        drivers: _,
        machine,
        firmware: _,
        vcpus,
        cpu: _, // with the chosen type
        memory,
        iothreads,
        hugepages,
        network: _,
        console: _,
        channel: _,
        tpm: _,
        rng: _,
    } = guest;
    if let Some(name) = name {
        // libvirt makes file names of it.
        let is_fit = !name.contains('/') && !name.trim().is_empty();
        faults.refuse_unless(
            is_fit && !name.chars().any(char::is_control),
            at.key("name"),
            format!(
                "`{}` is not a valid name of a guest: libvirt names files after it, so it has no `/` and no control characters",
                shortened(name)
            ),
        );
    }
    if let Some(uuid) = uuid {
        faults.refuse_unless(
            is_uuid(uuid),
            at.key("uuid"),
            format!("`{}` is not a UUID", shortened(uuid)),
        );
    }
    if let Some(machine) = machine {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-+".contains(c);
        faults.refuse_unless(
            machine.chars().all(is_fit),
            at.key("machine"),
            format!("`{}` is not a valid machine type", shortened(machine)),
        );
    }
    faults.refuse_unless(
        *vcpus != Some(0),
        at.key("vcpus"),
        "a guest needs at least one vCPU",
    );
    if let Some(memory) = memory.filter(|memory| memory.0 < Bytes::MIB) {
        let message =
            format!("{memory} of memory start no guest; write a unit, such as 2048M or 2G");
        faults.refuse_unless(false, at.key("memory"), message);
    }
    if let Some(count) = iothreads.as_ref().and_then(IoThreadCount::number) {
        let message = format!("{count} iothreads are more than any host has use for");
        faults.refuse_unless(count <= 1024, at.key("iothreads"), message);
    }
    if let Some(HugePagesSpec::Size(size)) = hugepages {
        faults.refuse_unless(
            size.0.is_power_of_two() && size.0 >= 4096,
            at.key("hugepages"),
            format!("{size} is not a valid page size"),
        );
    }
}

fn check_disk(disk: &DiskSpec, at: &SpecPath, faults: &mut Faults) {
    let DiskSpec {
        backend,
        bus: _,
        target,
        media: _,
        cache: _,
        io: _,
        discard: _,
        detect_zeroes: _,
        copy_on_read: _,
        discard_no_unref,
        metadata_cache_size,
        queues: _,
        queue_size: _,
        iothread,
        logical_block_size,
        physical_block_size,
        discard_granularity,
        error_policy: _,
        read_error_policy: _,
        serial: _,
        wwn: _,
        vendor: _,
        product: _,
        rotation_rate,
        removable: _,
        boot: _,
        readonly: _,
        shareable: _,
        transient: _,
        iotune,
    } = disk;
    check_backend(backend, &at.key(backend.kind()), faults);
    if let Some(target) = target {
        faults.refuse_unless(
            is_target(target),
            at.key("target"),
            format!(
                "`{}` is not a valid disk name, such as vda or sdb",
                shortened(target)
            ),
        );
    }
    let is_qcow2 = backend.is_qcow2();
    for (is_there, key) in [
        (discard_no_unref.is_some(), "discard-no-unref"),
        (metadata_cache_size.is_some(), "metadata-cache-size"),
    ] {
        let message = format!("only qcow2 has {key}");
        faults.refuse_unless(is_qcow2 || !is_there, at.key(key), message);
    }
    check_values(disk, at, faults);
    check_iothread(iothread.as_ref(), at, faults);
    check_block_sizes(
        *logical_block_size,
        *physical_block_size,
        *discard_granularity,
        at,
        faults,
    );
    faults.refuse_unless(
        rotation_rate.is_none_or(|rate| rate == 1 || (1025..=65534).contains(&rate)),
        at.key("rotation-rate"),
        "expected 1 for an SSD, or 1025 to 65534 revolutions per minute",
    );
    if let Some(iotune) = iotune {
        check_iotune(iotune, &at.key("iotune"), faults);
    }
}

/// Checks what the table of fields says about single values.
fn check_values(disk: &DiskSpec, at: &SpecPath, faults: &mut Faults) {
    for field in DiskSpec::FIELDS {
        let row = fields::disk(*field);
        let Some(key) = row.spec else { continue };
        let value = disk.get(*field);
        if let Some(why) = value.and_then(|value| row.values.refusal(&value)) {
            faults.refuse(at.key(key), why);
        }
    }
}

fn check_iothread(iothread: Option<&IoThreadSpec>, at: &SpecPath, faults: &mut Faults) {
    match iothread {
        Some(IoThreadSpec::Number(0)) => {
            faults.refuse(at.key("iothread"), "iothreads are numbered from 1");
        }
        Some(IoThreadSpec::Several(numbers)) => {
            let mut unique = numbers.clone();
            unique.sort_unstable();
            unique.dedup();
            let is_fit = unique.len() == numbers.len() && !unique.contains(&0);
            let message = "a list names each iothread once, and they are numbered from 1";
            faults.refuse_unless(is_fit && !unique.is_empty(), at.key("iothread"), message);
        }
        Some(IoThreadSpec::Number(_) | IoThreadSpec::Auto) | None => {}
    }
}

fn check_block_sizes(
    logical: Option<Bytes>,
    physical: Option<Bytes>,
    granularity: Option<Bytes>,
    at: &SpecPath,
    faults: &mut Faults,
) {
    let [logical, physical] = [logical, physical].map(|size| size.filter(|size| size.0 > 0));
    if let (Some(logical), Some(physical)) = (logical, physical) {
        faults.refuse_unless(
            logical <= physical,
            at.key("logical-block-size"),
            format!("a logical block of {logical} does not fit a physical one of {physical}"),
        );
    }
    if let Some(granularity) = granularity {
        let logical = logical.unwrap_or(Bytes(512));
        faults.refuse_unless(
            granularity.0.is_multiple_of(logical.0) && granularity.0 <= u32::MAX.into(),
            at.key("discard-granularity"),
            format!("expected a multiple of the logical block of {logical}, below 4 GiB"),
        );
    }
}

/// A name that libvirt takes, `[a-z]+` behind the prefix of a bus, or `nvme0n1`.
fn is_target(target: &str) -> bool {
    let is_number = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if let Some(rest) = target.strip_prefix("nvme") {
        return rest
            .split_once('n')
            .is_some_and(|(controller, namespace)| is_number(controller) && is_number(namespace));
    }
    ["xvd", "ubd", "hd", "sd", "vd", "fd"].iter().any(|prefix| {
        target.strip_prefix(prefix).is_some_and(|letters| {
            (1..=3).contains(&letters.len())
                && letters.bytes().all(|byte| byte.is_ascii_lowercase())
        })
    })
}

/// A name for the same bus that no disk has: `vdb` for `vda`.
fn free_name(target: &str, disks: &[DiskSpec]) -> Option<String> {
    let bus = ["vd", "sd", "hd", "xvd"]
        .into_iter()
        .find(|bus| target.starts_with(bus))?;
    let mut names = ('a'..='z').map(|letter| format!("{bus}{letter}"));
    names.find(|name| disks.iter().all(|disk| disk.target.as_ref() != Some(name)))
}

/// Checks what two disks must not both say.
fn check_together(disks: &[DiskSpec], faults: &mut Faults) {
    let mut targets: BTreeMap<&str, usize> = BTreeMap::new();
    let mut boots: BTreeMap<u32, usize> = BTreeMap::new();
    let mut storage: BTreeMap<String, usize> = BTreeMap::new();
    let mut pools: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    for (index, disk) in disks.iter().enumerate() {
        let at = SpecPath::disk(index);
        if let Some(target) = &disk.target {
            let first = *targets.entry(target).or_insert(index);
            if first != index {
                let message = format!("disks[{first}] has the same name `{}`", shortened(target));
                faults.refuse(at.key("target"), message).help =
                    free_name(target, disks).map(|name| format!("`{name}` is free"));
            }
        }
        if let Some(boot) = disk.boot {
            let first = *boots.entry(boot).or_insert(index);
            let message = format!("disks[{first}] has place {boot} in the boot order too");
            faults.refuse_unless(first == index, at.key("boot"), message);
        }
        for (key, opened) in opened_by(&disk.backend) {
            let first = *storage.entry(opened).or_insert(index);
            if first == index || may_share(&disks[first], disk) {
                continue;
            }
            let message = format!("disks[{first}] and disks[{index}] write to the same storage");
            let both = [&disks[first].backend, &disk.backend];
            let at = at.key(disk.backend.kind());
            let at = key.map_or(at.clone(), |key| at.key(key));
            let help = if both.iter().any(|backend| backend.is_made()) {
                "give one of them another place"
            } else if both.iter().all(|backend| backend.can_be_shared()) {
                "use separate storage, or write `shareable: true` for both"
            } else {
                "use separate storage for each disk"
            };
            faults.refuse(at, message).help = Some(help.to_owned());
        }
        if let BackendSpec::LvmThin(LvmThinSpec {
            group,
            pool: Some(pool),
            pool_size: Some(_),
            ..
        }) = &disk.backend
        {
            let first = *pools.entry((group, pool)).or_insert(index);
            let message =
                format!("disks[{first}] already creates this pool; write `pool-size` once");
            faults.refuse_unless(first == index, at.key("lvm-thin").key("pool-size"), message);
        }
    }
}

/// Checks that no image lies on one that the spec makes: it would be made first, and be empty.
fn check_chains(disks: &[DiskSpec], faults: &mut Faults) {
    let made: BTreeMap<String, usize> = disks
        .iter()
        .enumerate()
        .filter(|(_, disk)| disk.backend.is_made())
        .map(|(index, disk)| (storage_of(&disk.backend), index))
        .collect();
    for (index, disk) in disks.iter().enumerate() {
        let backing = match &disk.backend {
            BackendSpec::Qcow2(qcow2) => qcow2.backing.as_ref(),
            _ => None,
        };
        let source = disk.backend.new_file().source;
        let images = [("backing", backing), ("source", source)];
        for (key, image) in images {
            if let Some(below) = image.and_then(|image| made.get(&image.path))
                && *below != index
            {
                let at = SpecPath::disk(index).key(disk.backend.kind()).key(key);
                let message =
                    format!("disks[{below}] is made here, and an empty disk cannot be its {key}");
                faults.refuse(at.key("path"), message);
            }
        }
    }
}

/// Everything that a backend opens for the data of a disk, each with the key that names it beside the main one.
fn opened_by(backend: &BackendSpec) -> Vec<(Option<&'static str>, String)> {
    let other = match backend {
        BackendSpec::Qcow2(qcow2) => qcow2.data_file.clone().map(|path| ("data-file", path)),
        BackendSpec::VhostUserBlk(socket) => {
            let served = socket.serves.as_ref();
            served.map(|served| ("serves", served.path.clone()))
        }
        _ => None,
    };
    let main = (None, storage_of(backend));
    let other = other.map(|(key, path)| (Some(key), path));
    std::iter::once(main).chain(other).collect()
}

/// A name for the main storage of a backend: equal names are the same storage.
fn storage_of(backend: &BackendSpec) -> String {
    match backend {
        BackendSpec::Raw(raw) => raw.path.clone(),
        BackendSpec::Qcow2(qcow2) => qcow2.path.clone(),
        BackendSpec::Lvm(lvm) => lvm.name().device_path(),
        BackendSpec::LvmThin(thin) => thin.name().device_path(),
        BackendSpec::Device(device) => device.path.clone(),
        BackendSpec::VhostUserBlk(socket) => socket.socket.clone(),
        BackendSpec::Network(network) => network.storage(),
        BackendSpec::Zvol(zvol) => zvol.device_path(),
        BackendSpec::Nvme(nvme) => nvme.storage(),
        BackendSpec::VhostVdpa(vdpa) => vdpa.path.clone(),
        BackendSpec::Directory(directory) => directory.path.clone(),
        BackendSpec::Seed(seed) => seed.path.clone(),
        BackendSpec::Volume(volume) => format!("volume:{}\n{}", volume.pool, volume.volume),
        // No path, and shared by all.
        BackendSpec::Empty(_) => String::new(),
    }
}

/// True if two disks may open the same storage: neither makes it, and both only read or both share it.
fn may_share(first: &DiskSpec, second: &DiskSpec) -> bool {
    let only_reads = |disk: &DiskSpec| {
        disk.readonly == Some(true)
            || disk.media() == MediaSpec::Cdrom
            || disk.backend.only_read_because().is_some()
            || matches!(disk.backend, BackendSpec::Empty(_))
    };
    let shares = |disk: &DiskSpec| disk.shareable == Some(true);
    !first.backend.is_made()
        && !second.backend.is_made()
        && ((only_reads(first) && only_reads(second)) || (shares(first) && shares(second)))
}

impl Spec {
    /// Takes the paths of the images that new ones are copies of. Without them, new images have any size.
    pub fn take_sources(&mut self) -> Vec<String> {
        let mut paths = Vec::new();
        for disk in &mut self.disks {
            let (source, size) = match &mut disk.backend {
                BackendSpec::Raw(raw) => (raw.source.take(), &mut raw.size),
                BackendSpec::Qcow2(qcow2) => (qcow2.source.take(), &mut qcow2.size),
                _ => continue,
            };
            if let Some(source) = source {
                size.get_or_insert(Bytes(Bytes::GIB));
                paths.push(source.path);
            }
        }
        paths
    }

    /// Gives each image file that a plan makes sparse and from nothing another name, which ends like this; returns true if
    /// there is one.
    pub fn beside(&mut self, ending: &str) -> bool {
        let mut has_some = false;
        for disk in &mut self.disks {
            let (path, source, is_sparse) = match &mut disk.backend {
                BackendSpec::Raw(raw) => {
                    let is_sparse = matches!(raw.preallocation, None | Some(Preallocation::Off));
                    (
                        &mut raw.path,
                        &mut raw.source,
                        raw.size.is_some() && is_sparse,
                    )
                }
                BackendSpec::Qcow2(qcow2) => {
                    let is_sparse = !matches!(
                        qcow2.preallocation,
                        Some(Qcow2Preallocation::Falloc | Qcow2Preallocation::Full)
                    );
                    (
                        &mut qcow2.path,
                        &mut qcow2.source,
                        qcow2.size.is_some() && is_sparse,
                    )
                }
                _ => continue,
            };
            if is_sparse {
                path.push_str(ending);
                *source = None;
                has_some = true;
            }
        }
        has_some
    }
}

impl BackendSpec {
    /// True if the storage must be created, false if it exists.
    pub fn is_made(&self) -> bool {
        match self {
            BackendSpec::Raw(raw) => raw.size.is_some() || raw.source.is_some(),
            BackendSpec::Qcow2(qcow2) => {
                qcow2.size.is_some() || qcow2.backing.is_some() || qcow2.source.is_some()
            }
            BackendSpec::Seed(_) => true,
            BackendSpec::Zvol(zvol) => zvol.size.is_some(),
            BackendSpec::Volume(volume) => volume.size.is_some(),
            BackendSpec::Lvm(lvm) => lvm.size.is_some(),
            BackendSpec::LvmThin(thin) => thin.size.is_some(),
            _ => false,
        }
    }
}
