//! `zfs-sync-disabled`

use vmdisk_facts::{BlockKind, FsKind, HostIndex};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{Disk, HostStorage, Image};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image of a disk is on ZFS with `sync=disabled`, which ignores flushes.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image is on a ZFS dataset or is a ZFS volume with
    /// `sync=disabled`. The rule does not report `cache='unsafe'` and transient disks, which drop flushes anyway.
    ///
    /// ## Why it matters
    /// With `sync=disabled`, ZFS returns from a flush at once, and writes the data with its next transaction group,
    /// normally within 5 seconds. The pool itself stays consistent. The guest however loses transactions that it has
    /// reported as durable, and a database on several disks can become inconsistent.
    ///
    /// ## Use instead
    /// Run `zfs set sync=standard DATASET`. If flushes are too slow, add a log device to the pool:
    /// `zpool add POOL log DEVICE`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/zfs-async/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/zfs/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/zfs-async/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "zfs-sync-disabled",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::Source("zfsprops(7), sync: `disabled` disables synchronous requests; ZFS ignores the synchronous transaction demands of applications such as databases"),
        Evidence::Source("zfs(4), zfs_txg_timeout: flush dirty data to disk at least every 5 seconds"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let flushes = |disk: &Disk, _: &Image| !disk.backend.effective_cache().switches().no_flush;
    let disks = host::kept_on(context, report, "properties of ZFS", flushes);
    for (index, _, image, path, facts) in disks {
        let at = host::image_of(index);
        let Some(Some(dataset)) = report.require(at, without_sync(facts, image, path)) else {
            continue;
        };
        report
            .finding(
                at,
                phrase!("ZFS ignores flushes of {disk}"),
            )
            .label("on a dataset with `sync=disabled`")
            .note("after a crash of the host, the writes of the last seconds are missing, although the guest flushed them")
            .help(phrase!(
                "run {command}",
                command = quoted(format!("zfs set sync=standard {dataset}")),
            ));
    }
}

/// The dataset of an image on ZFS that ignores flushes.
fn without_sync<'a>(
    facts: &HostIndex<'a>,
    image: &Image,
    path: &str,
) -> Result<Option<&'a str>, Missing> {
    let what = || format!("whether ZFS ignores flushes of {path}");
    let (dataset, sync) = match image.protocol.on_host() {
        Some(HostStorage::Device(_)) => {
            let device = Context::known(facts.block_device(path), what)?;
            let Some(device) = device.filter(|device| device.kind == BlockKind::Zvol) else {
                return Ok(None);
            };
            match Context::known(device.zvol.as_ref(), what)? {
                Some(zvol) => (&zvol.dataset, &zvol.sync),
                None => return Ok(None),
            }
        }
        Some(HostStorage::File(_)) => {
            let filesystem = Context::known(facts.filesystem_of(path), what)?;
            let Some(filesystem) = filesystem.filter(|it| it.kind == FsKind::Zfs) else {
                return Ok(None);
            };
            match Context::known(filesystem.zfs.as_ref(), what)? {
                Some(zfs) => (&zfs.dataset, &zfs.sync),
                None => return Ok(None),
            }
        }
        None => return Ok(None),
    };
    let sync = Context::known(sync.as_str(), what)?;
    let name = dataset.value().map_or("DATASET", String::as_str);
    Ok((sync == Some("disabled")).then_some(name))
}
