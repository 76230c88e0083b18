//! The drives under an image.

use vmdisk_rule::{Context, Missing};

use vmdisk_facts::{BlockDevice, BlockKind, Fact, HostIndex};

/// The kind of a drive, the slowest first: of several drives under one image the slowest decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Media {
    /// A rotating disk, or a device of unknown speed, such as a virtual disk.
    SlowOrUnknown,
    /// A SATA or SAS drive that does not rotate.
    SolidState,
    /// NVMe.
    Nvme,
}

/// The slowest of the drives under a path, and a name for it.
///
/// # Errors
/// Fails if the facts do not show the drives, or whether they rotate.
pub(crate) fn slowest(host: &HostIndex<'_>, path: &str) -> Result<(Media, String), Missing> {
    let what = || format!("the drives under {path}");
    let drives = Context::known(host.leaves_of(path), what)?.unwrap_or_default();
    let mut slowest: Option<(Media, String)> = None;
    for drive in drives {
        let media = of(drive).map_err(|why| Missing::new(what(), why))?;
        if slowest.as_ref().is_none_or(|(found, _)| media < *found) {
            slowest = Some((media, drive.name().into_owned()));
        }
    }
    slowest.ok_or_else(|| Missing::new(what(), "the facts name none"))
}

/// The kind of one drive; an error with the reason if its facts do not show it.
fn of(drive: &BlockDevice) -> Result<Media, String> {
    if drive.kind == BlockKind::Nvme {
        return Ok(Media::Nvme);
    }
    // A virtual disk, a loop device or a network device says nothing about the storage below it.
    if drive.kind != BlockKind::Disk || drive.paths.iter().any(|path| is_virtual(path)) {
        return Ok(Media::SlowOrUnknown);
    }
    match &drive.queue.rotational {
        Fact::Known(false) => Ok(Media::SolidState),
        Fact::Known(true) | Fact::Absent => Ok(Media::SlowOrUnknown),
        Fact::Unknown(unknown) => Err(unknown.to_string()),
        Fact::NotCollected => Err("whether it rotates was not collected".to_owned()),
    }
}

/// True if the name belongs to a paravirtual disk, so that this host is itself a guest.
fn is_virtual(path: &str) -> bool {
    path.starts_with("/dev/vd") || path.starts_with("/dev/xvd")
}
