//! `odirect-unsupported`

use vmdisk_facts::{DirectIo, DirectIoEffect};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{DevicePath, DevicePathKind, Disk, DiskField, FieldPath, ImageField};
use vmdisk_rule::{
    Context, Evidence, Finding, Fix, Group, Missing, Report, Severity, declare_rule,
};

use crate::chain::{Chain, chain_of};
use crate::{host, remedy};

declare_rule! {
    /// A disk uses `O_DIRECT` on a file system that does not support it.
    ///
    /// ## What it reports
    /// Reports `cache='none'` and `cache='directsync'` for an image on a file system that refuses `O_DIRECT`: ramfs,
    /// hugetlbfs, squashfs, ecryptfs, tmpfs before Linux 6.6, and ZFS before 0.8. Backing images are checked too, those in
    /// `<backingStore>` and those that only the header of an image names, because libvirt opens all of them with the
    /// same mode. On a command line, each node has its own `cache.direct`: there, backing images that only a header
    /// names are not checked.
    ///
    /// ## Why it matters
    /// libvirt accepts the configuration. When the guest starts, QEMU gets `EINVAL` from the kernel and exits.
    ///
    /// ## Use instead
    /// Use `cache='writeback'`, which guarantees the guest the same as `none`: its flushes reach the disk. The host
    /// then caches the image in its memory too. Replace `io='native'` by `io='threads'`, because QEMU refuses Linux AIO
    /// without `O_DIRECT`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-ramfs
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native'/>
    ///       <source file='/run/build/build1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback' io='threads'/>
    ///       <source file='/run/build/build1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// The header of this image names a backing file on ramfs:
    /// ```xml,reported,facts-ramfs
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/build2.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```args,not-checked,hidden,facts-ramfs
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/build2.qcow2,cache.direct=on,discard=unmap \
    ///   -blockdev driver=qcow2,node-name=q0,file=f0,discard=unmap \
    ///   -device virtio-blk-pci,drive=q0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,hidden,facts-ramfs
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='writeback' discard='unmap'/>
    ///   <source file='/srv/build2.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-ramfs
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2' cache='none' discard='unmap'/>
    ///   <source file='/srv/build3.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,facts-ramfs
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/run/build/build1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// tmpfs accepts and ignores `O_DIRECT` since Linux 6.6, which `odirect-silently-buffered` reports:
    /// ```xml,not-reported,facts-tmpfs
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/run/build/build1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/run/build/build1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "odirect-unsupported",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by("QEMU 5.2, 7.2, 10.0 and 11.1", "filesystem does not support O_DIRECT", "util/osdep.c, qemu_open_internal; on ramfs, hugetlbfs and squashfs, Linux 6.18"),
        Evidence::measured("`Could not open backing file: Could not open '…': filesystem does not support O_DIRECT` for an overlay on ext4 whose backing file is on ramfs, with `-drive cache=none` and with cache.direct=on on the node of the overlay; it starts with cache.direct=on on the node of its file alone", "QEMU 7.2 on Linux 6.18"),
        Evidence::Source("libvirt src/qemu/qemu_domain.c, qemuDomainPrepareDiskSourceData: each image of the chain gets the cache mode of the disk"),
        Evidence::measured("open with O_DIRECT gives EINVAL on ramfs, hugetlbfs and squashfs, and on tmpfs with Linux 6.1.192", "open(2) on Linux 6.18.44 and 6.1.192"),
        Evidence::Source("Linux commit e88e0d366f9c: tmpfs accepts O_DIRECT since 6.6"),
        Evidence::Source("release notes of zfs-0.8.0: Direct IO is new; openzfs/zfs issue 224: earlier versions refuse it"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        if !disk.backend.is_direct() {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Cache);
        let mut configured = image.chain().enumerate().filter_map(|(depth, image)| {
            let direct = host::direct_io(context, image)?;
            Some((depth, image.host_path()?, direct))
        });
        let refusing = configured.find_map(|(depth, path, direct)| {
            let direct = report.require_once(at, direct)?;
            is_refused(&direct).then_some((depth, path, direct))
        });
        if let Some((depth, path, direct)) = refusing {
            let finding = report_refused(report, index, disk, path, &direct);
            if depth > 0 {
                let below = FieldPath::Image(index, depth, ImageField::Path);
                finding.related(below, "the backing image that cannot be opened");
            }
            continue;
        }
        if let Some(chain) = chain_of(context, index, disk, image) {
            check_recorded(context, report, at, disk, &chain);
        }
    }
}

const fn is_refused(direct: &DirectIo) -> bool {
    matches!(direct.verdict, DirectIoEffect::Unsupported)
}

/// Checks the images that only the headers of those above name.
fn check_recorded(
    context: &Context<'_>,
    report: &mut Report,
    at: FieldPath,
    disk: &Disk,
    chain: &Chain<'_>,
) {
    if let Some(missing) = chain.unknown() {
        report.require_once::<()>(at, Err(missing.clone()));
    }
    for layer in chain.layers.iter().skip(1) {
        let path = layer.path.as_ref();
        let is_device = !matches!(DevicePath::new(path).kind(), DevicePathKind::Other);
        let direct = host::direct_io_at(context, path, is_device);
        let Some(direct) = report.require_once(at, direct) else {
            continue;
        };
        if !is_refused(&direct) {
            continue;
        }
        if !context.is_for_libvirt() {
            // The node of a format passes its own `cache.direct` on, which the one of the file need not have.
            let what = format!("whether QEMU opens {path} with O_DIRECT");
            let why = "that depends on the node of the image above it";
            return report.not_checked(at, Missing::new(what, why));
        }
        let finding = report_refused(report, chain.index, disk, path, &direct);
        finding.note("it is the backing file of an image above it, and QEMU opens the whole chain in the same way");
        return;
    }
}

fn report_refused<'r>(
    report: &'r mut Report,
    index: usize,
    disk: &Disk,
    path: &str,
    direct: &DirectIo,
) -> &'r mut Finding {
    let (buffered, changes) = remedy::without_direct(index, disk);
    let finding = report.finding(
        FieldPath::Disk(index, DiskField::Cache),
        phrase!(
            "{disk} uses O_DIRECT ({asked}), which the file system of {path} refuses",
            asked = remedy::how_direct_is_asked(index, disk),
            path = quoted(path.to_owned()),
        ),
    );
    finding
        .label("opens the image with O_DIRECT")
        .note(host::because(path, direct))
        .note(
            "QEMU exits with `filesystem does not support O_DIRECT`, and the guest does not start",
        )
        .confidence(host::confidence(direct));
    match changes {
        Some(changes) => finding
            .help(phrase!("use {buffered}, or move the image to a file system that supports direct I/O", buffered))
            .fix(Fix::safe(changes)),
        None => finding.help(
            "move the image to a file system that supports direct I/O; other guests use it, so it must not be cached",
        ),
    }
}
