//! `odirect-unsupported`

use vmdisk_facts::DirectIoEffect;
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{DiskField, FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::{host, remedy};

declare_rule! {
    /// A disk uses `O_DIRECT` on a file system that does not support it.
    ///
    /// ## What it reports
    /// Reports `cache='none'` and `cache='directsync'` for an image on a file system that refuses `O_DIRECT`: ramfs,
    /// hugetlbfs, squashfs, ecryptfs, tmpfs before Linux 6.6, and ZFS before 0.8. Configured backing images are checked
    /// too, because libvirt opens all of them with the same mode.
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
    /// ## Not reported
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
        for (depth, image) in image.chain().enumerate() {
            let Some(path) = image.host_path() else {
                continue;
            };
            let Some(direct) = host::direct_io(context, image) else {
                continue;
            };
            let Some(direct) = report.require_once(at, direct) else {
                continue;
            };
            if !matches!(direct.verdict, DirectIoEffect::Unsupported) {
                continue;
            }
            let (buffered, changes) = remedy::without_direct(index, disk);
            let finding = report.finding(
                at,
                phrase!(
                    "{disk} uses O_DIRECT ({asked}), which the file system of {path} refuses",
                    asked = remedy::how_direct_is_asked(index, disk),
                    path = quoted(path.to_owned()),
                ),
            );
            finding
                .label("opens the image with O_DIRECT")
                .note(host::because(path, &direct))
                .note("QEMU exits with `filesystem does not support O_DIRECT`, and the guest does not start")
                .confidence(host::confidence(&direct));
            if depth > 0 {
                let below = FieldPath::Image(index, depth, ImageField::Path);
                finding.related(below, "the backing image that cannot be opened");
            }
            match changes {
                Some(changes) => finding
                    .help(phrase!("use {buffered}, or move the image to a file system that supports direct I/O", buffered))
                    .fix(Fix::safe(changes)),
                None => finding.help(
                    "move the image to a file system that supports direct I/O; other guests use it, so it must not be cached",
                ),
            };
            break;
        }
    }
}
