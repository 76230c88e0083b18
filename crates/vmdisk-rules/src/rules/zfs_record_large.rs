//! `zfs-record-large`

use vmdisk_facts::{BlockKind, FsKind, HostIndex};
use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, Disk, Format, HostStorage, Image};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The ZFS records under an image are much larger than the blocks of the guest, so small writes rewrite large records.
    ///
    /// ## What it reports
    /// Reports a raw or qcow2 image on a dataset with `recordsize` of 128 KiB or more, and a ZFS volume with such a
    /// `volblocksize`. 128 KiB is the default of a dataset.
    ///
    /// ## Why it matters
    /// ZFS never overwrites a part of a record. A write of 4 KiB reads a record of 128 KiB, if it is not cached, and
    /// writes a whole new one. Direct I/O of OpenZFS 2.3 works only for whole records; other requests use the cache.
    ///
    /// ## Use instead
    /// For random I/O, create a dataset with smaller records (`zfs create -o recordsize=16K DATASET`), and copy the
    /// image to it: the property applies to new files only. Keep large records for sequential I/O and backups.
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/tank/vm/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/tank/db/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/tank/vm/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "zfs-record-large",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::NotMeasuredHere("OpenZFS documentation, Workload Tuning, Virtual machines: match recordsize and volblocksize to the guest's file system to avoid partial record modification"),
    ],
    check: Model(check),
}

/// The smallest record that is reported.
const LARGE: u64 = 128 * Bytes::KIB;

fn check(context: &Context<'_>, report: &mut Report) {
    let is_meant = |_: &Disk, image: &Image| {
        let format = image.format.unwrap_or(Format::Raw);
        matches!(format, Format::Raw | Format::Qcow2)
    };
    let disks = host::kept_on(context, report, "the records of ZFS", is_meant);
    for (index, _, image, path, facts) in disks {
        let at = host::image_of(index);
        let record = report.require(at, record(facts, image, path)).flatten();
        let Some(record) = record.filter(|record| *record >= LARGE) else {
            continue;
        };
        report
            .finding(
                at,
                phrase!(
                    "ZFS stores {disk} in records of {record}",
                    record = Bytes(record),
                ),
            )
            .label("a small write rewrites a whole record")
            .help("for random I/O, copy the image to a dataset with `recordsize=16K` or `64K`");
    }
}

/// The record size under an image on ZFS, in bytes.
fn record(facts: &HostIndex<'_>, image: &Image, path: &str) -> Result<Option<u64>, Missing> {
    let what = || format!("the records of ZFS under {path}");
    let size = match image.protocol.on_host() {
        Some(HostStorage::Device(_)) => {
            let device = Context::known(facts.block_device(path), what)?;
            let Some(device) = device.filter(|device| device.kind == BlockKind::Zvol) else {
                return Ok(None);
            };
            Context::known(device.zvol.as_ref(), what)?.map(|zvol| &zvol.volblocksize)
        }
        Some(HostStorage::File(_)) => {
            let filesystem = Context::known(facts.filesystem_of(path), what)?;
            let Some(filesystem) = filesystem.filter(|it| it.kind == FsKind::Zfs) else {
                return Ok(None);
            };
            Context::known(filesystem.zfs.as_ref(), what)?.map(|zfs| &zfs.recordsize)
        }
        None => None,
    };
    match size {
        Some(size) => Context::known(size.clone(), what),
        None => Ok(None),
    }
}
