//! What rules ask about the place an image lives at, and the words for it.

use vmdisk_rule::{Confidence, Context, Missing, Report};

pub(crate) use vmdisk_rule::image_facts::{file, header, qcow2_header};

use vmdisk_facts::direct_io::Confidence as Basis;
use vmdisk_facts::{BlockDevice, DirectIo, Fact, FsKind, HostIndex};
use vmdisk_model::{Disk, DiskField, FieldPath, HostStorage, Image};

/// What `O_DIRECT` does to an image that has a path on the host; `None` if it has none there.
///
/// # Errors
/// If the facts do not decide it.
pub(crate) fn direct_io(context: &Context<'_>, image: &Image) -> Option<Result<DirectIo, Missing>> {
    let path = image.host_path()?;
    let what = || format!("what O_DIRECT does on {path}");
    Some(context.host(what).and_then(|host| {
        // A device that was not collected would be judged by the file system of its node.
        let is_judged_by_its_node = match image.protocol.on_host() {
            Some(HostStorage::Device(_)) => !host.block_device(path).is_known(),
            Some(HostStorage::File(_)) => matches!(
                host.filesystem_of(path),
                Fact::Known(filesystem) if filesystem.kind == FsKind::Devtmpfs
            ),
            None => false,
        };
        if is_judged_by_its_node {
            return Err(Missing::new(what(), "the device was not collected"));
        }
        Context::known(host.direct_io(path), what)?
            .ok_or_else(|| Missing::new(what(), "the facts name no file system there"))
    }))
}

/// A disk that the guest writes past the host's page cache, or is meant to.
pub(crate) struct WrittenDirectly<'a> {
    /// Its number.
    pub(crate) index: usize,
    /// The disk.
    pub(crate) disk: &'a Disk,
    /// Path of its image.
    pub(crate) path: &'a str,
    /// What `O_DIRECT` does there.
    pub(crate) direct: DirectIo,
}

/// The disks that ask for `O_DIRECT` and that the guest writes, of those that `are_meant`; where the
/// facts do not tell what it does, the report says so at `field`.
pub(crate) fn written_directly<'a>(
    context: &Context<'a>,
    report: &mut Report,
    field: DiskField,
    are_meant: impl Fn(&Disk) -> bool,
) -> Vec<WrittenDirectly<'a>> {
    let mut found = Vec::new();
    for (index, disk, image) in context.images() {
        if !disk.backend.is_direct() || !disk.is_writable() || !are_meant(disk) {
            continue;
        }
        let (Some(path), Some(direct)) = (image.host_path(), direct_io(context, image)) else {
            continue;
        };
        if let Some(direct) = report.require(FieldPath::Disk(index, field), direct) {
            found.push(WrittenDirectly {
                index,
                disk,
                path,
                direct,
            });
        }
    }
    found
}

/// How sure a finding is that rests on this conclusion.
pub(crate) const fn confidence(direct: &DirectIo) -> Confidence {
    match direct.confidence {
        Basis::Probed | Basis::Observed => Confidence::Certain,
        Basis::FromVersionTable | Basis::Declared => Confidence::Assumed,
    }
}

/// The facts that decided, as a note; how sure they are is the finding's confidence.
pub(crate) fn because(path: &str, direct: &DirectIo) -> String {
    format!("O_DIRECT on {path}: {}", direct.because)
}

/// The kernel for a sentence: `Linux 6.1.192`, or `this kernel`.
pub(crate) fn kernel(host: &HostIndex<'_>) -> String {
    match &host.facts().kernel.version {
        Fact::Known(version) => format!("Linux {version}"),
        Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => "this kernel".to_owned(),
    }
}

/// Whether there is something at this path.
pub(crate) fn exists(host: &HostIndex<'_>, path: &str) -> Fact<bool> {
    if host.block_device(path).is_known() {
        return Fact::Known(true);
    }
    match host.file(path) {
        None => Fact::NotCollected,
        Some(file) => match &file.present {
            // A person who describes a file need not say that it is there.
            Fact::NotCollected => Fact::Known(true),
            Fact::Absent => Fact::Known(false),
            told @ (Fact::Known(_) | Fact::Unknown(_)) => told.clone(),
        },
    }
}

/// The block device at this path; `None` if the path is something else.
///
/// # Errors
/// If the facts do not say what is there.
pub(crate) fn block_device<'a>(
    context: &Context<'a>,
    path: &str,
) -> Result<Option<(&'a HostIndex<'a>, &'a BlockDevice)>, Missing> {
    let what = || format!("what {path} is");
    let host = context.host(what)?;
    Ok(Context::known(host.block_device(path), what)?.map(|device| (host, device)))
}

/// The format that the first bytes of an image tell, in QEMU's words; `None` if there is no image.
///
/// # Errors
/// If nobody looked at them.
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
