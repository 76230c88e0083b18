//! How fast the drives under a disk are.

use crate::blockdev::{BlockDevice, BlockKind};
use crate::fact::Fact;
use crate::index::HostIndex;
use crate::missing::Missing;

/// The kind of a drive, the slowest first: of several drives under one image the slowest decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Media {
    /// A rotating disk.
    Rotating,
    /// A device that does not show its speed, such as a virtual disk.
    Unknown,
    /// A SATA or SAS drive that does not rotate.
    SolidState,
    /// NVMe.
    Nvme,
}

impl Media {
    /// The kind of one drive.
    ///
    /// # Errors
    /// Fails with the reason if the facts do not show it.
    pub fn of(drive: &BlockDevice) -> Result<Self, String> {
        if drive.kind == BlockKind::Nvme {
            return Ok(Media::Nvme);
        }
        // A virtual disk, a loop device or a network device says nothing about the storage below it.
        if drive.kind != BlockKind::Disk || drive.paths.iter().any(|path| is_virtual(path)) {
            return Ok(Media::Unknown);
        }
        match &drive.queue.rotational {
            Fact::Known(false) => Ok(Media::SolidState),
            Fact::Known(true) => Ok(Media::Rotating),
            Fact::Absent => Ok(Media::Unknown),
            Fact::Unknown(unknown) => Err(unknown.to_string()),
            Fact::NotCollected => Err("whether it rotates was not collected".to_owned()),
        }
    }

    /// Whether it is fast; `None` if it does not show that.
    pub const fn is_fast(self) -> Option<bool> {
        match self {
            Media::Rotating => Some(false),
            Media::Unknown => None,
            Media::SolidState | Media::Nvme => Some(true),
        }
    }

    /// The kind in words.
    pub const fn words(self) -> &'static str {
        match self {
            Media::Rotating => "a rotating disk",
            Media::Unknown => "a device that does not show its speed",
            Media::SolidState => "a non-rotating drive",
            Media::Nvme => "NVMe",
        }
    }
}

/// True if the name belongs to a paravirtual disk, so that this host is itself a guest.
pub(super) fn is_virtual(path: &str) -> bool {
    path.starts_with("/dev/vd") || path.starts_with("/dev/xvd")
}

/// The slowest of the drives under something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SlowestDrive {
    /// Its kind.
    pub media: Media,
    /// Its name.
    pub name: String,
}

impl SlowestDrive {
    /// The slowest of some drives; `what` names them in the error.
    ///
    /// # Errors
    /// Fails if there are none, or if the facts do not show whether one rotates.
    pub fn of(drives: &[&BlockDevice], what: impl Fn() -> String) -> Result<Self, Missing> {
        let mut slowest: Option<SlowestDrive> = None;
        for drive in drives {
            let media = Media::of(drive).map_err(|why| Missing::new(what(), why))?;
            if slowest.as_ref().is_none_or(|found| media < found.media) {
                let name = drive.name().into_owned();
                slowest = Some(SlowestDrive { media, name });
            }
        }
        slowest.ok_or_else(|| Missing::new(what(), "the facts name none"))
    }

    /// Why a path is as fast as it is.
    pub fn reason(&self, path: &str) -> String {
        format!("{path} is on {}: {}", self.media.words(), self.name)
    }
}

impl HostIndex<'_> {
    /// The slowest of the drives under a path.
    ///
    /// # Errors
    /// Fails if the facts do not show the drives, or whether they rotate.
    pub fn slowest_drive(&self, path: &str) -> Result<SlowestDrive, Missing> {
        let what = || format!("the drives under {path}");
        let drives = self.leaves_of(path).needed(what)?.unwrap_or_default();
        SlowestDrive::of(&drives, what)
    }
}
