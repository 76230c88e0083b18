//! Disks on thin logical volumes.

use vmdisk_rule::{Context, Missing, Report};

use vmdisk_facts::blockdev::{BlockDevice, Lvm};
use vmdisk_facts::{BlockKind, Fact};
use vmdisk_model::{Disk, Image, Protocol};

use crate::host;

/// A disk that is a thin volume.
pub(crate) struct ThinVolume<'a> {
    /// Its path in the configuration.
    pub(crate) path: &'a str,
    /// The device.
    pub(crate) device: &'a BlockDevice,
    /// LVM's description of it.
    pub(crate) lvm: &'a Lvm,
}

impl ThinVolume<'_> {
    /// The pool as LVM's commands name it (`vg0/thin`).
    pub(crate) fn pool(&self) -> String {
        pool_of(self.lvm)
    }

    /// The pool's chunk size in bytes; without root it is known from the volume's optimal request size.
    pub(crate) fn chunk(&self) -> Fact<u64> {
        match &self.lvm.chunk {
            Fact::Known(chunk) => Fact::Known(*chunk),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => {
                self.device.queue.io_opt.clone().or(self.lvm.chunk.clone())
            }
        }
    }
}

/// The pool of a thin volume as LVM's commands name it (`vg0/thin`), or `its thin pool`.
pub(crate) fn pool_of(lvm: &Lvm) -> String {
    match (&lvm.vg, &lvm.pool) {
        (Fact::Known(vg), Fact::Known(pool)) => format!("{vg}/{pool}"),
        (_, Fact::Known(pool)) => pool.clone(),
        (_, Fact::Absent | Fact::Unknown(_) | Fact::NotCollected) => "its thin pool".to_owned(),
    }
}

/// The thin volumes below the disks that `are_meant`, with the number of the disk. Without facts the rule is reported
/// once as not checked.
pub(crate) fn volumes<'a>(
    context: &Context<'a>,
    report: &mut Report,
    are_meant: impl Fn(&Disk) -> bool,
) -> Vec<(usize, ThinVolume<'a>)> {
    let mut found = Vec::new();
    for (index, disk, image) in context.images().filter(|(_, disk, _)| are_meant(disk)) {
        match volume_of(context, disk, image) {
            Ok(Some(volume)) => found.push((index, volume)),
            Ok(None) => {}
            Err(missing) => {
                report.not_checked(host::image_of(index), missing);
                if context.host.is_none() {
                    break;
                }
            }
        }
    }
    found
}

/// The thin volume behind a writable disk; `None` for other disks.
///
/// Only a disk on a block device can be one, so other disks need no facts.
///
/// # Errors
/// Fails if the facts do not describe the device.
pub(crate) fn volume_of<'a>(
    context: &Context<'a>,
    disk: &Disk,
    image: &'a Image,
) -> Result<Option<ThinVolume<'a>>, Missing> {
    let Protocol::HostDevice { path } = &image.protocol else {
        return Ok(None);
    };
    if !disk.is_writable() {
        return Ok(None);
    }
    let path = path.0.as_str();
    let Some((_, device)) = host::block_device(context, path)? else {
        return Ok(None);
    };
    if device.kind != BlockKind::LvmThin {
        return Ok(None);
    }
    match &device.lvm {
        Fact::Known(lvm) => Ok(Some(ThinVolume { path, device, lvm })),
        Fact::Absent => Ok(None),
        Fact::Unknown(unknown) => Err(Missing::new(
            format!("LVM's description of {path}"),
            unknown.to_string(),
        )),
        Fact::NotCollected => Err(Missing::new(
            format!("LVM's description of {path}"),
            Missing::NOT_COLLECTED,
        )),
    }
}
