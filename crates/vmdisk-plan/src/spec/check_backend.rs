//! Checks the values of backends.

use vmdisk_model::{Bytes, Format, Qcow2Preallocation};

use super::SpecPath;
use super::access::DeviceAccess;
use super::backend::{
    BackendSpec, BackingSpec, DeviceSpec, LvmThinSpec, NewFile, Qcow2Spec, RawSpec,
    VhostUserBlkSpec,
};
use super::check_direct::{check_nvme, check_secret, check_zvol};
use super::check_network::check_network;
use super::check_path::{check_path, check_socket_length};
use super::encryption::EncryptionSpec;
use super::faults::Faults;
use super::node::shortened;

/// Checks what a disk is made of.
pub(super) fn check_backend(backend: &BackendSpec, at: &SpecPath, faults: &mut Faults) {
    check_new_file(backend, at, faults);
    match backend {
        BackendSpec::Raw(raw) => check_raw(raw, at, faults),
        BackendSpec::Qcow2(qcow2) => check_qcow2(qcow2, at, faults),
        BackendSpec::Lvm(lvm) => {
            check_volume_name(&lvm.group, at.key("group"), faults);
            check_volume_name(&lvm.volume, at.key("volume"), faults);
            check_size(lvm.size, at.key("size"), faults);
        }
        BackendSpec::LvmThin(thin) => check_thin(thin, at, faults),
        BackendSpec::Device(device) => check_device(device, at, faults),
        BackendSpec::VhostUserBlk(socket) => {
            let VhostUserBlkSpec {
                socket: path,
                reconnect,
                reconnect_timeout,
                serves,
            } = socket;
            check_path(path, at.key("socket"), faults);
            if let Some(serves) = serves {
                check_path(&serves.path, at.key("serves").key("path"), faults);
            }
            check_socket_length(path, at.key("socket"), faults);
            let key = at.key("reconnect-timeout");
            match reconnect_timeout {
                Some(0) => {
                    faults.refuse(key, "expected a number of seconds from 1");
                }
                Some(_) if *reconnect == Some(false) => {
                    faults.refuse(key, "the timeout requires `reconnect`");
                }
                Some(_) | None => {}
            }
        }
        BackendSpec::Network(network) => check_network(network, at, faults),
        BackendSpec::Zvol(zvol) => {
            check_size(zvol.size, at.key("size"), faults);
            check_zvol(zvol, at, faults);
        }
        BackendSpec::Nvme(nvme) => check_nvme(nvme, at, faults),
        BackendSpec::VhostVdpa(vdpa) => check_path(&vdpa.path, at.key("path"), faults),
        BackendSpec::Directory(directory) => check_path(&directory.path, at.key("path"), faults),
        // libvirt's own check of names.
        BackendSpec::Volume(volume) => {
            check_size(volume.size, at.key("size"), faults);
            for (name, key) in [(&volume.pool, "pool"), (&volume.volume, "volume")] {
                let message = format!("`{}` is not a valid name", shortened(name));
                let is_fit = !name.chars().any(char::is_control);
                faults.refuse_unless(is_fit, at.key(key), message);
            }
        }
        BackendSpec::Empty(_) => {}
        BackendSpec::Seed(seed) => {
            check_file_path(&seed.path, at.key("path"), faults);
            let network_config = ("network-config", seed.network_config.as_ref());
            let files = [
                ("user-data", Some(&seed.user_data)),
                ("meta-data", Some(&seed.meta_data)),
            ];
            for (key, path) in files.into_iter().chain([network_config]) {
                if let Some(path) = path {
                    check_path(path, at.key(key), faults);
                    let message = "a seed image cannot contain itself";
                    faults.refuse_unless(*path != seed.path, at.key(key), message);
                }
            }
        }
    }
}

fn check_device(device: &DeviceSpec, at: &SpecPath, faults: &mut Faults) {
    let DeviceSpec {
        path,
        access,
        format,
        backing_chain,
    } = device;
    check_path(path, at.key("path"), faults);
    let format = format.unwrap_or(Format::Raw);
    if !is_backing_format(format) {
        faults.refuse(
            at.key("format"),
            format!("QEMU cannot open images of the format `{format}`"),
        );
    }
    if *access == Some(DeviceAccess::Lun) && format != Format::Raw {
        let message = "the guest sees the SCSI device itself, which has no format but raw";
        faults.refuse(at.key("format"), message);
    }
    if let Some(chain) = backing_chain {
        let message = format!("only qcow2 supports backing images here, and this is {format}");
        faults.refuse_unless(format == Format::Qcow2, at.key("backing-chain"), message);
        check_chain(chain, path, at, faults);
    }
}

/// The most images of a chain, with the top image: libvirt's `qemuDomainDetermineDiskChain` has this limit.
const MAX_CHAIN: usize = 200;

/// Checks images that lie below each other.
fn check_chain(chain: &[BackingSpec], top: &str, at: &SpecPath, faults: &mut Faults) {
    if chain.len() >= MAX_CHAIN {
        let message =
            format!("libvirt does not start a guest with a chain of more than {MAX_CHAIN} images");
        faults.refuse(at.key("backing-chain"), message).help = Some(
            "merge images with `qemu-img commit`, or copy the disk with `qemu-img convert`"
                .to_owned(),
        );
        return;
    }
    let mut above = top;
    for (nth, image) in chain.iter().enumerate() {
        let at = at.key("backing-chain").index(nth);
        check_backing(image, above, &at, faults);
        above = &image.path;
    }
}

/// Checks the path of an image file, which cannot be a device or a directory.
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
    let Some(size) = size else { return };
    // File offsets are signed.
    if i64::try_from(size.0).is_err() {
        let message = format!("{size} is more than the size of a file can be (2^63 - 1 bytes)");
        faults.refuse(at, message);
    } else if size.0 == 0 || !size.0.is_multiple_of(512) {
        // A sector is the smallest request of a guest.
        let message = format!("{size} is not a size in whole sectors of 512 bytes");
        let is_short = (1..10_000).contains(&size.0);
        faults.refuse(at, message).help = is_short.then(|| format!("did you mean `{}G`?", size.0));
    }
}

/// Refuses options that only act when something is made, where nothing is.
fn check_creation(written: &[(&str, bool)], at: &SpecPath, faults: &mut Faults) {
    for (key, is_there) in written {
        if *is_there {
            let message = format!("`{key}` applies only to new storage, which needs `size`");
            faults.refuse(at.key(*key), message);
        }
    }
}

/// Checks what a new file needs beyond its image, and refuses it where no file is made.
fn check_new_file(backend: &BackendSpec, at: &SpecPath, faults: &mut Faults) {
    let NewFile { source, access, .. } = backend.new_file();
    for (key, value) in access {
        let Some(value) = value else { continue };
        if !backend.is_made() {
            check_creation(&[(key, true)], at, faults);
        }
        let is_name = |c: char| c.is_ascii_alphanumeric() || "_.-".contains(c);
        let (is_fit, expected) = match key {
            "mode" => {
                // An image is read and written, and nothing else.
                let digits = value.strip_prefix('0').filter(|it| it.len() == 3);
                let digits = digits.unwrap_or(value);
                let is_mode = digits.len() == 3 && digits.chars().all(|c| "0246".contains(c));
                (
                    is_mode,
                    "octal digits in quotes for reading and writing, such as '0640'",
                )
            }
            _ => {
                let is_fit = value.chars().all(is_name) && !value.starts_with('-');
                (is_fit, "a name or a number")
            }
        };
        let message = format!("expected {expected}, found `{}`", shortened(value));
        faults.refuse_unless(is_fit, at.key(key), message);
    }
    let Some(BackingSpec { path, format }) = source else {
        return;
    };
    let at = at.key("source");
    check_path(path, at.key("path"), faults);
    let is_itself = match backend {
        BackendSpec::Raw(raw) => raw.path == *path,
        BackendSpec::Qcow2(qcow2) => {
            let message = "an image is a copy of `source`, or lies on `backing`, but not both";
            faults.refuse_unless(qcow2.backing.is_none(), at.clone(), message);
            qcow2.path == *path
        }
        _ => false,
    };
    let message = "an image cannot be a copy of itself";
    faults.refuse_unless(!is_itself, at.key("path"), message);
    if !is_backing_format(*format) {
        let message = format!("QEMU cannot open images of the format `{format}`");
        faults.refuse(at.key("format"), message).help =
            Some("an ISO or another plain image is `raw`".to_owned());
    }
}

/// Checks the encryption of an image; the key of a new one must be in a file.
fn check_encryption(
    encryption: Option<&EncryptionSpec>,
    is_made: bool,
    at: &SpecPath,
    faults: &mut Faults,
) {
    let Some(EncryptionSpec { secret, key_file }) = encryption else {
        return;
    };
    let at = at.key("encryption");
    check_secret(secret, &at.key("secret"), faults);
    match key_file {
        Some(path) if is_made => check_path(path, at.key("key-file"), faults),
        Some(_) => check_creation(&[("key-file", true)], &at, faults),
        None if is_made => {
            let message =
                "a new encrypted image needs `key-file`, from which qemu-img reads the key";
            faults.refuse(at, message).help =
                Some("write `encryption.key-file`, the path of a file with the key".to_owned());
        }
        None => {}
    }
}

fn check_raw(raw: &RawSpec, at: &SpecPath, faults: &mut Faults) {
    let RawSpec {
        path,
        size,
        source,
        preallocation,
        nocow,
        encryption,
        owner: _, // with all new files
        group: _,
        mode: _,
    } = raw;
    check_file_path(path, at.key("path"), faults);
    check_size(*size, at.key("size"), faults);
    let is_made = size.is_some() || source.is_some();
    check_encryption(encryption.as_ref(), is_made, at, faults);
    if !is_made {
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
        source,
        preallocation,
        cluster_size,
        extended_l2,
        lazy_refcounts,
        backing,
        backing_chain,
        data_file,
        encryption,
        nocow,
        owner: _, // with all new files
        group: _,
        mode: _,
    } = qcow2;
    check_file_path(path, at.key("path"), faults);
    check_size(*size, at.key("size"), faults);
    let is_made = size.is_some() || backing.is_some() || source.is_some();
    check_encryption(encryption.as_ref(), is_made, at, faults);
    for (key, is_there) in [
        ("backing-chain", backing_chain.is_some()),
        ("data-file", data_file.is_some()),
    ] {
        let message = format!("`{key}` applies only to an existing image, and this one is created");
        faults.refuse_unless(!(is_made && is_there), at.key(key), message);
    }
    if let Some(data_file) = data_file {
        check_file_path(data_file, at.key("data-file"), faults);
        let message = "an image and its data file must be different files";
        faults.refuse_unless(data_file != path, at.key("data-file"), message);
    }
    if let Some(chain) = backing_chain {
        check_chain(chain, path, at, faults);
    }
    let is_preallocated = preallocation.is_some_and(|mode| mode != Qcow2Preallocation::Off);
    if !is_made {
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
        let message = format!(
            "the size of a cluster is a power of two from 512 bytes to 2 MiB, not {cluster}"
        );
        faults.refuse_unless(is_cluster, at.key("cluster-size"), message);
        let has_subclusters = *extended_l2 == Some(true);
        faults.refuse_unless(
            !(has_subclusters && is_cluster && cluster.0 < 16 << 10),
            at.key("extended-l2"),
            format!("subclusters need clusters of 16 KiB or more, not of {cluster}"),
        );
        if let Some(size) = size.filter(|_| is_cluster) {
            let most = max_qcow2_size(*cluster, has_subclusters);
            faults.refuse_unless(
                size.0 <= most,
                at.key("size"),
                format!(
                    "a qcow2 image with clusters of {cluster} has at most {}",
                    Bytes(most)
                ),
            );
        }
    }
    let Some(backing) = backing else { return };
    let below = at.key("backing");
    check_backing(backing, path, &below, faults);
    if is_preallocated && *extended_l2 != Some(true) {
        let message = "an image on a backing image can be preallocated only with extended-l2";
        faults.refuse(at.key("preallocation"), message).help =
            Some("write `extended-l2: true`, or remove `preallocation`".to_owned());
    }
}

/// The largest virtual size of a qcow2 image, in bytes.
///
/// QEMU limits the first of the two tables of clusters to 32 MiB (`QCOW_MAX_L1_SIZE`). An entry of it has 8 bytes and
/// stands for one cluster of entries, which have 8 bytes, or 16 with subclusters. qemu-img of QEMU 7.2 creates an image
/// of this size and refuses one with 512 bytes more, for clusters of 512, 1024 and 4096 bytes and subclusters of 16 KiB.
fn max_qcow2_size(cluster: Bytes, has_subclusters: bool) -> u64 {
    const MAX_L1_ENTRIES: u64 = (32 << 20) / 8;
    let entry = if has_subclusters { 16 } else { 8 };
    (cluster.0 / entry)
        .saturating_mul(cluster.0)
        .saturating_mul(MAX_L1_ENTRIES)
}

/// Checks an image below another one.
fn check_backing(backing: &BackingSpec, above: &str, at: &SpecPath, faults: &mut Faults) {
    let BackingSpec { path, format } = backing;
    check_path(path, at.key("path"), faults);
    if path == above {
        faults.refuse(at.key("path"), "an image cannot be its own backing image");
    }
    if !is_backing_format(*format) {
        let message = format!("QEMU cannot open images of the format `{format}`");
        faults.refuse(at.key("format"), message).help =
            Some("an ISO or another plain image is `raw`".to_owned());
    }
}

/// True for formats that QEMU opens as an image below another one.
const fn is_backing_format(format: Format) -> bool {
    !matches!(
        format,
        Format::Fat | Format::Iso | Format::Cow | Format::Dir
    )
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
        let message = "a pool and a volume in it must have different names";
        faults.refuse_unless(pool != volume, at.key("pool"), message);
    } else if size.is_some() {
        let message = "a thin volume needs a pool, and `pool` is missing";
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
            let message = format!("`{key}` applies only to a new pool, which needs `pool-size`");
            faults.refuse_unless(!is_there, at.key(key), message);
        }
    }
    if let Some(chunk) = chunk_size {
        let unit = 64 << 10;
        faults.refuse_unless(
            chunk.0.is_multiple_of(unit) && (unit..=Bytes::GIB).contains(&chunk.0),
            at.key("chunk-size"),
            format!("the size of a chunk is a multiple of 64 KiB up to 1 GiB, not {chunk}"),
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
        let message = format!("`{}` is not a valid LVM name", shortened(name));
        faults.refuse(at, message).help =
            Some("use letters, digits and +_.-, and no leading -".to_owned());
        return;
    }
    let reserved = RESERVED_STARTS
        .iter()
        .find(|start| name.starts_with(**start))
        .or_else(|| RESERVED_PARTS.iter().find(|part| name.contains(**part)));
    if let Some(reserved) = reserved {
        faults.refuse(at, format!("LVM reserves names with `{reserved}`"));
    }
}
