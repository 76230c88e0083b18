//! Questions about the storage of an image, and texts for the answers.

use std::collections::HashSet;

use vmdisk_rule::{Confidence, Context, Missing, Report};

pub(crate) use vmdisk_rule::image_facts::{
    direct_io, direct_io_at, file, format_in_use, header, qcow2_header,
};

use vmdisk_facts::access::QemuAccess;
use vmdisk_facts::direct_io::DirectIoBasis as Basis;
use vmdisk_facts::path::Dio;
use vmdisk_facts::{BlockDevice, DirectIo, Fact, FsKind, HostIndex};
use vmdisk_model::{Disk, DiskField, FieldPath, Image, ImageField, Protocol};

/// A disk with its index, the path of its image, and the effect of `O_DIRECT` on that path.
type WrittenDirectly<'a> = (usize, &'a Disk, &'a str, DirectIo);

/// The writable disks that use `O_DIRECT` and for which `are_meant` holds. If the facts do not show its effect, the
/// report has an entry at `field`. `are_meant` is asked first, because the effect is the most expensive question about a
/// path.
pub(crate) fn written_directly<'a>(
    context: &Context<'a>,
    report: &mut Report,
    field: DiskField,
    are_meant: impl Fn(&Disk, &str) -> bool,
) -> Vec<WrittenDirectly<'a>> {
    let mut found = Vec::new();
    for (index, disk, image) in context.images() {
        if !disk.backend.is_direct() || !disk.is_writable() {
            continue;
        }
        let Some(path) = image.host_path().filter(|path| are_meant(disk, path)) else {
            continue;
        };
        let Some(direct) = direct_io(context, image) else {
            continue;
        };
        if let Some(direct) = report.require(FieldPath::Disk(index, field), direct) {
            found.push((index, disk, path, direct));
        }
    }
    found
}

/// False if the facts show that a path is a device, or on another file system than `kind`. An overlay can be on any
/// file system, and a declared effect of `O_DIRECT` counts on each.
pub(crate) fn may_be_on(kind: &FsKind, context: &Context<'_>, path: &str) -> bool {
    let Some(host) = context.host else {
        return true;
    };
    if path.starts_with("/dev/") {
        return false;
    }
    let is_declared = |dio: &Dio| dio.verdict.is_known();
    let declares = || {
        host.file(path).is_some_and(|file| is_declared(&file.dio))
            || host
                .directory(path)
                .is_some_and(|directory| is_declared(&directory.dio))
    };
    match host.filesystem_of(path) {
        Fact::Known(filesystem) if filesystem.kind != FsKind::Overlay => {
            filesystem.kind == *kind || declares()
        }
        _ => true,
    }
}

/// The confidence of a finding that is based on this conclusion.
pub(crate) const fn confidence(direct: &DirectIo) -> Confidence {
    match direct.confidence {
        Basis::Probed | Basis::Observed => Confidence::Certain,
        Basis::FromVersionTable | Basis::Declared => Confidence::Assumed,
    }
}

/// A note with the facts that decided; the finding's confidence says how certain they are.
pub(crate) fn because(path: &str, direct: &DirectIo) -> String {
    format!("O_DIRECT on {path}: {}", direct.because)
}

/// The kernel in a sentence: `Linux 6.1.192`, or `this kernel`.
pub(crate) fn kernel(host: &HostIndex<'_>) -> String {
    match &host.facts().kernel.version {
        Fact::Known(version) => format!("Linux {version}"),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => "this kernel".to_owned(),
    }
}

/// Disks whose data stays and that the guest writes, with the path of their image: number, disk, image, path.
pub(crate) fn kept<'a>(
    context: &Context<'a>,
) -> impl Iterator<Item = (usize, &'a Disk, &'a Image, &'a str)> + use<'a> {
    context.images().filter_map(|(index, disk, image)| {
        let is_kept = disk.is_writable() && !disk.backend.is_transient;
        let path = image.host_path().filter(|_| is_kept)?;
        Some((index, disk, image, path))
    })
}

/// A kept disk with the facts of its host: number, disk, image, path, facts.
pub(crate) type KeptOn<'a> = (usize, &'a Disk, &'a Image, &'a str, &'a HostIndex<'a>);

/// The kept disks for which `is_meant` holds. Without facts there are none, and the report says once that `what` is missing.
pub(crate) fn kept_on<'a>(
    context: &Context<'a>,
    report: &mut Report,
    what: &'static str,
    is_meant: impl Fn(&Disk, &Image) -> bool,
) -> Vec<KeptOn<'a>> {
    let mut found = Vec::new();
    for (index, disk, image, path) in kept(context) {
        if !is_meant(disk, image) {
            continue;
        }
        let Some(facts) = facts(context, report, image_of(index), what) else {
            break;
        };
        found.push((index, disk, image, path, facts));
    }
    found
}

/// True for a file of the host.
pub(crate) const fn is_file(_: &Disk, image: &Image) -> bool {
    matches!(image.protocol, Protocol::File { .. })
}

/// The facts of the host. Without facts, the report says once for all disks that `what` is missing: a rule then
/// returns.
pub(crate) fn facts<'a>(
    context: &Context<'a>,
    report: &mut Report,
    at: FieldPath,
    what: &'static str,
) -> Option<&'a HostIndex<'a>> {
    report.require(at, context.host(|| what.to_owned()))
}

/// What QEMU's user may do with an image; `None` if it does not exist or was not collected, which other rules report.
///
/// # Errors
/// Fails if the facts do not show it; `what` names them.
pub(crate) fn qemu_access<'a>(
    facts: &HostIndex<'a>,
    path: &str,
    what: impl Fn() -> String,
) -> Result<Option<&'a QemuAccess>, Missing> {
    let Some(file) = facts.file(path).filter(|file| !file.is_missing()) else {
        return Ok(None);
    };
    let access = Context::known(file.qemu_access.as_ref(), &what)?;
    let unknown = || Missing::new(what(), "nobody knows whom QEMU runs as");
    access.map(Some).ok_or_else(unknown)
}

/// The devices under a path, nearest first: those of a device, or those of the file system of a file.
///
/// # Errors
/// Fails if the facts do not describe them.
pub(crate) fn devices_under<'a>(
    host: &'a HostIndex<'a>,
    path: &str,
) -> Result<Vec<&'a BlockDevice>, Missing> {
    unseen_devices_under(host, path, &mut HashSet::new())
}

/// [`devices_under`] without the devices that `seen` contains; adds the others to `seen`.
fn unseen_devices_under<'a>(
    host: &'a HostIndex<'a>,
    path: &str,
    seen: &mut HashSet<&'a str>,
) -> Result<Vec<&'a BlockDevice>, Missing> {
    let what = || format!("the devices under {path}");
    if let Fact::Known(device) = host.block_device(path) {
        return Ok(host.walk_down_unseen(device, seen));
    }
    // A path that is not a known device is a file on a file system.
    let filesystem = host.filesystem_of(path);
    let devices = filesystem.and_then(|it| host.devices_of(it));
    let tops = Context::known(devices, what)?.into_iter().flatten();
    Ok(tops
        .flat_map(|top| host.walk_down_unseen(top, seen))
        .collect())
}

/// The devices under all written images, each once, with the number of the first disk on it. `what` is reported as
/// missing without facts.
pub(crate) fn devices_of_guest<'a>(
    context: &Context<'a>,
    report: &mut Report,
    what: &'static str,
) -> Vec<(usize, &'a BlockDevice)> {
    let mut seen = HashSet::new();
    let mut found = Vec::new();
    for (index, _, _, path) in kept(context) {
        let at = image_of(index);
        let Some(facts) = facts(context, report, at, what) else {
            return found;
        };
        let devices = report.require(at, unseen_devices_under(facts, path, &mut seen));
        found.extend(devices.into_iter().flatten().map(|device| (index, device)));
    }
    found
}

/// The place of the image that the guest writes.
pub(crate) const fn image_of(disk: usize) -> FieldPath {
    FieldPath::Image(disk, 0, ImageField::Path)
}

/// True if the path exists.
pub(crate) fn exists(host: &HostIndex<'_>, path: &str) -> Fact<bool> {
    if host.block_device(path).is_known() {
        return Fact::Known(true);
    }
    match host.file(path) {
        None => Fact::NotCollected,
        Some(file) => match &file.present {
            // Facts that a person wrote need not say that the file exists.
            Fact::NotCollected => Fact::Known(true),
            Fact::Absent => Fact::Known(false),
            told @ (Fact::Known(_) | Fact::Unknown(_)) => told.clone(),
        },
    }
}

/// The block device at this path; `None` if the path is something else.
///
/// # Errors
/// Fails if the facts do not say whether the path exists.
pub(crate) fn block_device<'a>(
    context: &Context<'a>,
    path: &str,
) -> Result<Option<(&'a HostIndex<'a>, &'a BlockDevice)>, Missing> {
    let what = || format!("the type of {path}");
    let host = context.host(what)?;
    Ok(Context::known(host.block_device(path), what)?.map(|device| (host, device)))
}

/// The format that the first bytes of an image show, in QEMU's names; `None` if there is no image.
///
/// # Errors
/// Fails if the header was not collected.
pub(crate) fn header_format<'a>(
    context: &Context<'a>,
    path: &str,
) -> Result<Option<&'a str>, Missing> {
    let what = || format!("the header of {path}");
    match header(context, path)? {
        Some(header) => Context::known(header.format.as_str(), what),
        None => Ok(None),
    }
}
