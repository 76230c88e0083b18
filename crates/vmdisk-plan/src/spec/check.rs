//! Values that no tool of the field takes, told before anything is planned.
//!
//! The limits are those of qemu-img, QEMU, libvirt and LVM, which each tell only the first one, and
//! some of them only when the guest starts.

use std::collections::BTreeMap;

use vmdisk_model::{Bytes, Format, Qcow2Preallocation};

use super::backend::{BackendSpec, LvmThinSpec, Qcow2Spec, RawSpec, VhostUserBlkSpec};
use super::disk::{DiskSpec, IoThreadSpec, MediaSpec};
use super::guest::{GuestSpec, HugePagesSpec};
use super::iotune::IotuneSpec;
use super::node::shortened;
use super::{Spec, SpecError, SpecPath};

impl Spec {
    /// Everything in the spec that no choice of the planner can mend.
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
        faults.0
    }
}

impl DiskSpec {
    /// Everything in this disk alone that no choice of the planner can mend.
    pub(crate) fn check(&self, at: &SpecPath) -> Vec<SpecError> {
        let mut faults = Faults(Vec::new());
        check_disk(self, at, &mut faults);
        faults.0
    }
}

struct Faults(Vec<SpecError>);

impl Faults {
    fn refuse(&mut self, at: SpecPath, message: impl Into<String>) -> &mut SpecError {
        let index = self.0.len();
        self.0.push(SpecError::value(at, message));
        &mut self.0[index]
    }

    fn refuse_unless(&mut self, holds: bool, at: SpecPath, message: impl Into<String>) {
        if !holds {
            self.refuse(at, message);
        }
    }
}

fn check_guest(guest: &GuestSpec, at: &SpecPath, faults: &mut Faults) {
    let GuestSpec {
        name,
        uuid,
        guest_type: _,
        arch: _,
        machine,
        vcpus,
        memory,
        iothreads: _,
        hugepages,
    } = guest;
    if let Some(name) = name {
        // libvirt makes file names of it.
        let is_fit = !name.contains('/') && !name.trim().is_empty();
        faults.refuse_unless(
            is_fit && !name.chars().any(char::is_control),
            at.key("name"),
            format!("`{}` is no name for a guest", shortened(name)),
        );
    }
    if let Some(uuid) = uuid {
        faults.refuse_unless(
            is_uuid(uuid),
            at.key("uuid"),
            format!("`{}` is no UUID", shortened(uuid)),
        );
    }
    if let Some(machine) = machine {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
        faults.refuse_unless(
            machine.chars().all(is_fit),
            at.key("machine"),
            format!("`{}` is no name of a machine", shortened(machine)),
        );
    }
    faults.refuse_unless(
        *vcpus != Some(0),
        at.key("vcpus"),
        "a guest has a vCPU at least",
    );
    let no_memory = *memory == Some(Bytes(0));
    faults.refuse_unless(!no_memory, at.key("memory"), "a guest has some memory");
    if let Some(HugePagesSpec::Size(size)) = hugepages {
        faults.refuse_unless(
            size.0.is_power_of_two() && size.0 >= 4096,
            at.key("hugepages"),
            format!("{size} is no size of a page"),
        );
    }
}

/// The form 8-4-4-4-12 in hexadecimal digits.
fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
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
        queues,
        queue_size,
        iothread,
        logical_block_size,
        physical_block_size,
        discard_granularity,
        error_policy: _,
        read_error_policy: _,
        serial,
        wwn,
        vendor,
        product,
        rotation_rate,
        removable: _,
        boot,
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
                "`{}` is no name of a disk, such as vda or sdb",
                shortened(target)
            ),
        );
    }
    let is_qcow2 = matches!(backend, BackendSpec::Qcow2(_));
    for (is_there, key) in [
        (discard_no_unref.is_some(), "discard-no-unref"),
        (metadata_cache_size.is_some(), "metadata-cache-size"),
    ] {
        let message = format!("only qcow2 has {key}");
        faults.refuse_unless(is_qcow2 || !is_there, at.key(key), message);
    }
    // One more queue than this makes QEMU abort instead of telling.
    faults.refuse_unless(
        queues.is_none_or(|queues| (1..=1024).contains(&queues)),
        at.key("queues"),
        "a disk has 1 to 1024 queues",
    );
    faults.refuse_unless(
        queue_size.is_none_or(|size| size.is_power_of_two() && (4..=1024).contains(&size)),
        at.key("queue-size"),
        "a queue has a power of two of entries, from 4 to 1024",
    );
    match iothread {
        Some(IoThreadSpec::Number(0)) => {
            faults.refuse(at.key("iothread"), "iothreads are counted from 1");
        }
        Some(IoThreadSpec::Several(numbers)) => {
            let mut unique = numbers.clone();
            unique.sort_unstable();
            unique.dedup();
            let is_fit = unique.len() == numbers.len() && !unique.contains(&0);
            let message = "a list of iothreads names each once, counted from 1";
            faults.refuse_unless(is_fit && !unique.is_empty(), at.key("iothread"), message);
        }
        Some(IoThreadSpec::Number(_) | IoThreadSpec::Auto) | None => {}
    }
    check_block_sizes(
        *logical_block_size,
        *physical_block_size,
        *discard_granularity,
        at,
        faults,
    );
    check_identity(serial, wwn, vendor, product, at, faults);
    faults.refuse_unless(
        rotation_rate.is_none_or(|rate| rate == 1 || (1025..=65534).contains(&rate)),
        at.key("rotation-rate"),
        "a disk turns 1025 to 65534 times a minute, or is an SSD and says 1",
    );
    faults.refuse_unless(
        *boot != Some(0),
        at.key("boot"),
        "the boot order counts from 1",
    );
    if let Some(iotune) = iotune {
        check_iotune(iotune, &at.key("iotune"), faults);
    }
}

fn check_block_sizes(
    logical: Option<Bytes>,
    physical: Option<Bytes>,
    granularity: Option<Bytes>,
    at: &SpecPath,
    faults: &mut Faults,
) {
    let is_block = |size: Bytes| size.0.is_power_of_two() && (512..=2 << 20).contains(&size.0);
    for (size, key) in [
        (logical, "logical-block-size"),
        (physical, "physical-block-size"),
    ] {
        let message = "a block has a power of two of bytes, from 512 to 2 MiB";
        faults.refuse_unless(size.is_none_or(is_block), at.key(key), message);
    }
    if let (Some(logical), Some(physical)) = (logical, physical) {
        faults.refuse_unless(
            logical <= physical,
            at.key("logical-block-size"),
            format!("a logical block of {logical} does not fit a physical one of {physical}"),
        );
    }
    if let Some(granularity) = granularity {
        let logical = logical.filter(|size| size.0 > 0).unwrap_or(Bytes(512));
        faults.refuse_unless(
            granularity.0.is_multiple_of(logical.0) && granularity.0 <= u32::MAX.into(),
            at.key("discard-granularity"),
            format!("expected a multiple of the logical block of {logical}, below 4 GiB"),
        );
    }
}

fn check_identity(
    serial: &Option<String>,
    wwn: &Option<String>,
    vendor: &Option<String>,
    product: &Option<String>,
    at: &SpecPath,
    faults: &mut Faults,
) {
    if let Some(serial) = serial {
        let is_fit = |c: char| c.is_ascii_alphanumeric() || "_.+- ".contains(c);
        faults.refuse_unless(
            serial.chars().all(is_fit),
            at.key("serial"),
            "libvirt takes letters, digits, blanks and _.+- in a serial number",
        );
    }
    if let Some(wwn) = wwn {
        faults.refuse_unless(
            wwn.len() == 16 && wwn.bytes().all(|byte| byte.is_ascii_hexdigit()),
            at.key("wwn"),
            "a world wide name has 16 hexadecimal digits",
        );
    }
    for (text, key, most) in [(vendor, "vendor", 8), (product, "product", 40)] {
        if let Some(text) = text {
            faults.refuse_unless(
                text.len() <= most && text.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
                at.key(key),
                format!("a {key} has at most {most} characters, all of them printable ASCII"),
            );
        }
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

fn check_backend(backend: &BackendSpec, at: &SpecPath, faults: &mut Faults) {
    match backend {
        BackendSpec::Raw(raw) => check_raw(raw, at, faults),
        BackendSpec::Qcow2(qcow2) => check_qcow2(qcow2, at, faults),
        BackendSpec::Lvm(lvm) => {
            check_volume_name(&lvm.group, at.key("group"), faults);
            check_volume_name(&lvm.volume, at.key("volume"), faults);
            check_size(lvm.size, at.key("size"), faults);
        }
        BackendSpec::LvmThin(thin) => check_thin(thin, at, faults),
        BackendSpec::Device(device) => check_path(&device.path, at.key("path"), faults),
        BackendSpec::VhostUserBlk(socket) => {
            let VhostUserBlkSpec {
                socket: path,
                reconnect,
                reconnect_timeout,
            } = socket;
            check_path(path, at.key("socket"), faults);
            // sun_path of a UNIX socket address, less its closing zero byte.
            faults.refuse_unless(
                path.len() <= 107,
                at.key("socket"),
                "the path of a UNIX socket has at most 107 bytes",
            );
            let key = at.key("reconnect-timeout");
            match reconnect_timeout {
                Some(0) => {
                    faults.refuse(key, "expected a number of seconds from 1");
                }
                Some(_) if *reconnect == Some(false) => {
                    faults.refuse(key, "there is no timeout without `reconnect`");
                }
                Some(_) | None => {}
            }
        }
    }
}

fn check_path(path: &str, at: SpecPath, faults: &mut Faults) {
    if !path.starts_with('/') {
        let message = format!("`{}` does not begin at the root", shortened(path));
        faults.refuse(at, message).help =
            Some("write the whole path: libvirt and QEMU run elsewhere".to_owned());
    } else if path.contains('\0') {
        faults.refuse(at, "a zero byte ends every path on the host");
    }
}

/// Checks the path of an image file, which is no device and no directory.
fn check_file_path(path: &str, at: SpecPath, faults: &mut Faults) {
    check_path(path, at.clone(), faults);
    if path.ends_with('/') || path.ends_with("/.") || path.ends_with("/..") {
        faults.refuse(at, format!("`{}` is a directory", shortened(path)));
    } else if path.starts_with("/dev/") && !path.starts_with("/dev/shm/") {
        let message = format!("`{}` is a device, not a file", shortened(path));
        faults.refuse(at, message).help = Some(
            "write `device: {path: …}`, or `lvm: {group: …, volume: …}` for a volume".to_owned(),
        );
    }
}

fn check_size(size: Option<Bytes>, at: SpecPath, faults: &mut Faults) {
    if let Some(size) = size {
        // A sector is the smallest thing a guest can ask for, and file offsets are signed.
        faults.refuse_unless(
            size.0 > 0 && size.0.is_multiple_of(512) && i64::try_from(size.0).is_ok(),
            at,
            format!("{size} is no size of a disk, which has whole sectors of 512 bytes"),
        );
    }
}

/// Refuses options that only act when something is made, where nothing is.
fn check_creation(written: &[(&str, bool)], at: &SpecPath, faults: &mut Faults) {
    for (key, is_there) in written {
        if *is_there {
            let message = format!("`{key}` acts when storage is made, and without `size` none is");
            faults.refuse(at.key(*key), message);
        }
    }
}

fn check_raw(raw: &RawSpec, at: &SpecPath, faults: &mut Faults) {
    let RawSpec {
        path,
        size,
        preallocation,
        nocow,
    } = raw;
    check_file_path(path, at.key("path"), faults);
    check_size(*size, at.key("size"), faults);
    if size.is_none() {
        let written = [
            ("preallocation", preallocation.is_some()),
            ("nocow", nocow.is_some()),
        ];
        check_creation(&written, at, faults);
    }
}

fn check_qcow2(qcow2: &Qcow2Spec, at: &SpecPath, faults: &mut Faults) {
    let Qcow2Spec {
        path,
        size,
        preallocation,
        cluster_size,
        extended_l2,
        lazy_refcounts,
        backing,
        nocow,
    } = qcow2;
    check_file_path(path, at.key("path"), faults);
    check_size(*size, at.key("size"), faults);
    let is_preallocated = preallocation.is_some_and(|mode| mode != Qcow2Preallocation::Off);
    if size.is_none() && backing.is_none() {
        let written = [
            ("preallocation", preallocation.is_some()),
            ("cluster-size", cluster_size.is_some()),
            ("extended-l2", extended_l2.is_some()),
            ("lazy-refcounts", lazy_refcounts.is_some()),
            ("nocow", nocow.is_some()),
        ];
        check_creation(&written, at, faults);
    }
    if let Some(cluster) = cluster_size {
        let is_cluster = cluster.0.is_power_of_two() && (512..=2 << 20).contains(&cluster.0);
        let message =
            format!("a cluster has a power of two of bytes, from 512 to 2 MiB, not {cluster}");
        faults.refuse_unless(is_cluster, at.key("cluster-size"), message);
        let has_subclusters = *extended_l2 == Some(true);
        faults.refuse_unless(
            !(has_subclusters && is_cluster && cluster.0 < 16 << 10),
            at.key("extended-l2"),
            format!("subclusters need clusters of 16 KiB or more, not of {cluster}"),
        );
    }
    let Some(backing) = backing else { return };
    let below = at.key("backing");
    check_path(&backing.path, below.key("path"), faults);
    if backing.path == *path {
        faults.refuse(below.key("path"), "an image cannot lie below itself");
    }
    if is_preallocated && *extended_l2 != Some(true) {
        let message = "an image on a backing image is only preallocated with extended-l2";
        faults.refuse(at.key("preallocation"), message).help =
            Some("write `extended-l2: true`, or leave preallocation out".to_owned());
    }
    if !is_backing_format(backing.format) {
        let message = format!("QEMU opens no image as `{}`", backing.format);
        faults.refuse(below.key("format"), message).help =
            Some("an ISO or another plain image is `raw`".to_owned());
    }
}

/// True for formats that QEMU opens as an image below another one.
const fn is_backing_format(format: Format) -> bool {
    match format {
        Format::Raw
        | Format::Qcow2
        | Format::Qcow
        | Format::Qed
        | Format::Vmdk
        | Format::Vdi
        | Format::Vhd
        | Format::Vpc
        | Format::Luks
        | Format::Ploop
        | Format::Bochs
        | Format::Cloop
        | Format::Dmg => true,
        Format::Fat | Format::Iso | Format::Cow | Format::Dir => false,
    }
}

fn check_thin(thin: &LvmThinSpec, at: &SpecPath, faults: &mut Faults) {
    let LvmThinSpec {
        group,
        volume,
        size,
        pool,
        pool_size,
        chunk_size,
        zero,
    } = thin;
    check_volume_name(group, at.key("group"), faults);
    check_volume_name(volume, at.key("volume"), faults);
    check_size(*size, at.key("size"), faults);
    check_size(*pool_size, at.key("pool-size"), faults);
    if let Some(pool) = pool {
        check_volume_name(pool, at.key("pool"), faults);
        let message = "a pool and a volume in it have two names";
        faults.refuse_unless(pool != volume, at.key("pool"), message);
    } else if size.is_some() {
        let message = "a thin volume is made in a pool, and `pool` is missing";
        faults.refuse(at.clone(), message);
    }
    if size.is_none() {
        check_creation(&[("pool-size", pool_size.is_some())], at, faults);
    }
    if pool_size.is_none() {
        for (key, is_there) in [
            ("chunk-size", chunk_size.is_some()),
            ("zero", zero.is_some()),
        ] {
            let message =
                format!("`{key}` belongs to a pool, and without `pool-size` none is made");
            faults.refuse_unless(!is_there, at.key(key), message);
        }
    }
    if let Some(chunk) = chunk_size {
        let unit = 64 << 10;
        faults.refuse_unless(
            chunk.0.is_multiple_of(unit) && (unit..=Bytes::GIB).contains(&chunk.0),
            at.key("chunk-size"),
            format!("a chunk has a multiple of 64 KiB up to 1 GiB, not {chunk}"),
        );
    }
}

/// Checks the name of a group, volume or pool.
///
/// Source: lvm(8), "VALID NAMES".
fn check_volume_name(name: &str, at: SpecPath, faults: &mut Faults) {
    const RESERVED_STARTS: [&str; 2] = ["snapshot", "pvmove"];
    const RESERVED_PARTS: [&str; 16] = [
        "_cdata", "_cmeta", "_corig", "_cpool", "_cvol", "_wcorig", "_mimage", "_mlog", "_rimage",
        "_rmeta", "_tdata", "_tmeta", "_vdata", "_vorigin", "_imeta", "_iorig",
    ];
    let is_fit = |c: char| c.is_ascii_alphanumeric() || "+_.-".contains(c);
    let is_name = !name.is_empty()
        && name.len() <= 127
        && name.chars().all(is_fit)
        && !name.starts_with('-')
        && ![".", ".."].contains(&name);
    if !is_name {
        let message = format!("LVM has no name `{}`", shortened(name));
        faults.refuse(at, message).help =
            Some("it takes letters, digits and +_.- and no - in front".to_owned());
        return;
    }
    let reserved = RESERVED_STARTS
        .iter()
        .find(|start| name.starts_with(**start))
        .or_else(|| RESERVED_PARTS.iter().find(|part| name.contains(**part)));
    if let Some(reserved) = reserved {
        faults.refuse(at, format!("LVM keeps names with `{reserved}` for itself"));
    }
}

fn check_iotune(iotune: &IotuneSpec, at: &SpecPath, faults: &mut Faults) {
    // QEMU_BLOCK_IOTUNE_MAX in libvirt's src/qemu/qemu_command.h.
    const MOST: u64 = 1_000_000_000_000_000;
    let model = iotune.to_model();
    for (unit, limits) in [("bytes", &model.bytes), ("iops", &model.iops)] {
        let both = |total: Option<u64>, read: Option<u64>, write: Option<u64>| {
            total.is_some() && (read.is_some() || write.is_some())
        };
        for (is_mixed, suffix) in [
            (both(limits.total, limits.read, limits.write), ""),
            (
                both(limits.total_max, limits.read_max, limits.write_max),
                "-max",
            ),
        ] {
            let message = format!(
                "a limit for both kinds of requests excludes read-{unit}-sec{suffix} and write-{unit}-sec{suffix}"
            );
            faults.refuse_unless(
                !is_mixed,
                at.key(format!("total-{unit}-sec{suffix}")),
                message,
            );
        }
        for (kind, base, burst, length) in [
            (
                "total",
                limits.total,
                limits.total_max,
                limits.total_max_length,
            ),
            ("read", limits.read, limits.read_max, limits.read_max_length),
            (
                "write",
                limits.write,
                limits.write_max,
                limits.write_max_length,
            ),
        ] {
            let base_key = format!("{kind}-{unit}-sec");
            let burst_key = format!("{base_key}-max");
            let is_too_large = base.is_some_and(|limit| limit > MOST);
            faults.refuse_unless(!is_too_large, at.key(&*base_key), format!("at most {MOST}"));
            let is_too_large = burst.is_some_and(|limit| limit > MOST);
            faults.refuse_unless(
                !is_too_large,
                at.key(&*burst_key),
                format!("at most {MOST}"),
            );
            if let Some(burst) = burst {
                let is_above = base.is_some_and(|base| base > 0 && base <= burst);
                let message = format!("a burst needs {base_key}, and is not below it");
                faults.refuse_unless(is_above, at.key(&*burst_key), message);
            }
            let message = format!("a burst lasts, and {burst_key} is missing");
            let is_fit = length.is_none() || burst.is_some();
            faults.refuse_unless(is_fit, at.key(format!("{burst_key}-length")), message);
        }
    }
    let IotuneSpec { group_name, .. } = iotune;
    let has_limits = IotuneSpec {
        group_name: None,
        ..iotune.clone()
    } != IotuneSpec::default();
    faults.refuse_unless(
        group_name.is_none() || has_limits,
        at.key("group-name"),
        "libvirt takes a group only together with its limits",
    );
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
            let message = format!("disks[{first}] is called `{}` too", shortened(target));
            faults.refuse_unless(first == index, at.key("target"), message);
        }
        if let Some(boot) = disk.boot {
            let first = *boots.entry(boot).or_insert(index);
            let message = format!("disks[{first}] has place {boot} in the boot order too");
            faults.refuse_unless(first == index, at.key("boot"), message);
        }
        let first = *storage.entry(storage_of(&disk.backend)).or_insert(index);
        if first != index && !may_share(&disks[first], disk) {
            let message = format!("disks[{first}] writes to the same storage");
            faults.refuse(at.key(disk.backend.kind()), message);
        }
        if let BackendSpec::LvmThin(LvmThinSpec {
            group,
            pool: Some(pool),
            pool_size: Some(_),
            ..
        }) = &disk.backend
        {
            let first = *pools.entry((group, pool)).or_insert(index);
            let message = format!("disks[{first}] makes this pool already; write pool-size once");
            faults.refuse_unless(first == index, at.key("lvm-thin").key("pool-size"), message);
        }
    }
}

/// A name for what a backend opens: equal names are the same storage.
fn storage_of(backend: &BackendSpec) -> String {
    match backend {
        BackendSpec::Raw(raw) => raw.path.clone(),
        BackendSpec::Qcow2(qcow2) => qcow2.path.clone(),
        BackendSpec::Lvm(lvm) => lvm.name().device_path(),
        BackendSpec::LvmThin(thin) => thin.name().device_path(),
        BackendSpec::Device(device) => device.path.clone(),
        BackendSpec::VhostUserBlk(socket) => socket.socket.clone(),
    }
}

/// True if two disks may open the same storage: neither makes it, and both only read or both share it.
fn may_share(first: &DiskSpec, second: &DiskSpec) -> bool {
    let only_reads =
        |disk: &DiskSpec| disk.readonly == Some(true) || disk.media == Some(MediaSpec::Cdrom);
    let shares = |disk: &DiskSpec| disk.shareable == Some(true);
    !first.backend.is_made()
        && !second.backend.is_made()
        && ((only_reads(first) && only_reads(second)) || (shares(first) && shares(second)))
}

impl BackendSpec {
    /// True if the storage is to be made, false if it exists.
    pub fn is_made(&self) -> bool {
        match self {
            BackendSpec::Raw(raw) => raw.size.is_some(),
            BackendSpec::Qcow2(qcow2) => qcow2.size.is_some() || qcow2.backing.is_some(),
            BackendSpec::Lvm(lvm) => lvm.size.is_some(),
            BackendSpec::LvmThin(thin) => thin.size.is_some(),
            BackendSpec::Device(_) | BackendSpec::VhostUserBlk(_) => false,
        }
    }
}
