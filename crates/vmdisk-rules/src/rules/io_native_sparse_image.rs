//! `io-native-sparse-image`

use vmdisk_facts::verdict::allocation::Allocation;
use vmdisk_facts::{FsKind, HostIndex};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{AioMode, Bytes, Change, DiskField, FieldPath, Protocol};
use vmdisk_rule::{Context, Evidence, Fix, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A disk uses `io='native'` on a sparse file, where writes block QEMU while the file system allocates space.
    ///
    /// ## What it reports
    /// Reports a disk with `io='native'` whose image is a file on ext2, ext3, ext4 or XFS that is not fully allocated. If
    /// `O_DIRECT` does not bypass the page cache, `io-native-on-buffered-dio` reports it instead.
    ///
    /// ## Why it matters
    /// Linux AIO is asynchronous only while the file system need not allocate. A write into a hole, or beyond the end of
    /// a growing qcow2 image, waits inside `io_submit`. Meanwhile the thread that submitted it, QEMU's main loop or an
    /// iothread, serves no other request. oVirt uses threads for files, and OpenStack uses native only for preallocated
    /// images.
    ///
    /// ## Use instead
    /// Use `io='threads'`, or `io='io_uring'` where the host allows it. Alternatively allocate the image first:
    /// `qemu-img convert -O qcow2 -o preallocation=falloc IMAGE NEW`, or `fallocate` for a raw file.
    ///
    /// ## Reported
    /// ```xml,reported,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='native'/>
    ///   <source file='/srv/img/sparse.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,fixed,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='threads'/>
    ///   <source file='/srv/img/sparse.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-qcow2-headers
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='native'/>
    ///   <source file='/srv/img/whole.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' io='native'/>
    ///   <source file='/srv/img/sparse.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "io-native-sparse-image",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::Source("oVirt vdsm lib/vdsm/virt/vmdevices/storage.py: native for block devices, threads for files"),
        Evidence::Source("OpenStack nova/virt/libvirt/imagebackend.py: native only if images are preallocated"),
        Evidence::NotMeasuredHere("the time inside io_submit for allocating writes was not measured"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image, path) in host::kept(context) {
        let is_native = disk.backend.aio == Some(AioMode::Native) && disk.backend.is_direct();
        let is_file = matches!(image.protocol, Protocol::File { .. });
        if !is_native || !is_file || image.creation.is_some() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Aio);
        let Some(facts) = host::facts(context, report, at, "how much of the images is allocated")
        else {
            return;
        };
        let Some(Some((allocated, size))) = report.require(at, sparse(facts, path)) else {
            continue;
        };
        report
            .finding(
                at,
                phrase!(
                    "{disk} uses {native} on a sparse image",
                    native = setting(at, AioMode::Native),
                ),
            )
            .label("writes that allocate space block the event loop")
            .note(format!("{path} has {allocated} of {size} allocated"))
            .remedy(Fix::safe([Change::set(at, AioMode::Threads)]));
    }
}

/// The allocated and the whole size of a file on a file system where allocation blocks; `None` if all is allocated.
fn sparse(facts: &HostIndex<'_>, path: &str) -> Result<Option<(Bytes, Bytes)>, Missing> {
    let what = || format!("how much of {path} is allocated");
    // Another rule reports an image that does not exist.
    let file = facts
        .file(path)
        .ok_or_else(|| Missing::new(what(), Missing::NOT_COLLECTED))?;
    if file.is_missing() {
        return Ok(None);
    }
    let allocation = Context::known(file.allocation(), what)?;
    let Some(Allocation { allocated, size }) = allocation.filter(Allocation::is_sparse) else {
        return Ok(None);
    };
    let kind = Context::known(facts.filesystem_of(path), what)?.map(|filesystem| &filesystem.kind);
    let blocks = matches!(
        kind,
        Some(FsKind::Ext2 | FsKind::Ext3 | FsKind::Ext4 | FsKind::Xfs)
    );
    Ok(blocks.then_some((Bytes(allocated), Bytes(size))))
}
