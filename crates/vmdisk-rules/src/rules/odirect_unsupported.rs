//! `odirect-unsupported`

use vmdisk_facts::Verdict;
use vmdisk_model::{DiskField, FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Fix, Group, Report, Severity, host, remedy};

declare_rule! {
    /// A disk asks for `O_DIRECT` where the file system refuses it.
    ///
    /// ## What it does
    /// Reports `cache='none'` and `cache='directsync'` on an image whose file system refuses to open files
    /// with `O_DIRECT`: ramfs, hugetlbfs, squashfs, ecryptfs, and tmpfs before Linux 6.6. Images below it in a
    /// written backing chain are looked at too, since libvirt opens all of them with the same mode.
    ///
    /// ## Why it matters
    /// libvirt accepts the configuration. QEMU opens the image at the start of the guest, gets `EINVAL` from the
    /// kernel and exits: the guest does not start. `writeback` promises the guest the same as `none` (its
    /// flushes reach the disk) and opens the image without `O_DIRECT`; `io='native'` has to go with it, because
    /// QEMU refuses Linux AIO without `O_DIRECT`.
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
    /// tmpfs takes `O_DIRECT` since Linux 6.6 and ignores it, which is another rule.
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
    /// Without facts there is no telling.
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
    pub(super) static RULE = {
        name: "odirect-unsupported",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU 5.2, 7.2, 10.0 and 11.1",
                text: "filesystem does not support O_DIRECT",
                source: "block/file-posix.c, raw_open_common; on ramfs, hugetlbfs and squashfs, Linux 6.18",
            },
            Evidence::Measured {
                figures: "open with O_DIRECT gives EINVAL on ramfs, hugetlbfs and squashfs, and on tmpfs with Linux 6.1.192",
                how: "open(2) on Linux 6.18.44 and 6.1.192",
            },
            Evidence::Source("Linux commit e88e0d366f9c: tmpfs takes O_DIRECT since 6.6"),
        ],
        supersedes: &[],
        check: check,
    }
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
            let Some(direct) = report.require(at, direct) else {
                // One missing fact is enough to say about one disk.
                break;
            };
            match direct.verdict {
                Verdict::Unsupported => {}
                Verdict::AcceptedButBuffered(_)
                | Verdict::Direct
                | Verdict::DirectUnstableChecksums
                | Verdict::DirectUnstableMirrors => continue,
            }
            let (words, changes) = remedy::without_direct(index, disk);
            let finding = report.finding(
                at,
                format!(
                    "`{}` asks for O_DIRECT ({}), which the file system of {path} refuses",
                    disk.name(),
                    remedy::how_direct_is_asked(disk),
                ),
            );
            finding
                .label("opens the image with O_DIRECT")
                .note(host::because(path, &direct))
                .note("QEMU exits with `filesystem does not support O_DIRECT`, and the guest does not start")
                .confidence(host::confidence(&direct));
            if depth > 0 {
                let below = FieldPath::Image(index, depth, ImageField::Path);
                finding.related(below, "the image below that cannot be opened");
            }
            match changes {
                Some(changes) => finding
                    .help(format!("write {words}, or move the image to a file system that does direct I/O"))
                    .fix(Fix::safe(changes)),
                None => finding.help(
                    "move the image to a file system that does direct I/O: other guests use it, so it must not be cached",
                ),
            };
            break;
        }
    }
}
