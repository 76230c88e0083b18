//! `odirect-silently-buffered`

use vmdisk_facts::{Buffered, DirectIoEffect};
use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;
use crate::remedy;

declare_rule! {
    /// A disk uses `O_DIRECT` on a file system that accepts the flag and ignores it.
    ///
    /// ## What it reports
    /// Reports `cache='none'` and `cache='directsync'` on a writable disk whose image is on ext4 with `data=journal`,
    /// on tmpfs since Linux 6.6, on OpenZFS 0.8 to 2.2, on a ZFS dataset with `direct=disabled`, or in a file for
    /// which statx(2) gives the direct I/O alignment 0. See `btrfs-dio-buffered` for btrfs, and `odirect-unsupported`
    /// for file systems that refuse the flag, such as ZFS before 0.8.
    ///
    /// ## Why it matters
    /// All data of the guest is also cached in the host's memory, which `none` is meant to avoid, and written data
    /// waits there until the guest flushes: on ext4 with `data=journal`, 36 pages were dirty after one direct write of
    /// 64 KiB. Neither the kernel nor QEMU reports it.
    ///
    /// ## Use instead
    /// Make direct I/O work: mount ext4 with `data=ordered`, run `zfs set direct=standard DATASET` (ZFS 2.3 and later),
    /// or move the image to another file system or to a block device. Alternatively use `cache='writeback'`: the
    /// behaviour stays the same, and the configuration then shows it.
    ///
    /// ## Reported
    /// ```xml,reported,facts-ext4-data-journal
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,fixed,consent
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme
    /// <domain type='kvm'>
    ///   <name>web2</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web2.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A disk that the guest only reads has no written data in the cache:
    /// ```xml,not-reported,facts-tmpfs
    /// <domain type='kvm'>
    ///   <name>build1</name>
    ///   <devices>
    ///     <disk type='file' device='cdrom'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/run/build/install.iso'/>
    ///       <target dev='sda' bus='sata'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/img/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "odirect-silently-buffered",
    group: Group::Clarity,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("ext4 with data=journal: open succeeds, statx gives 0/0, 36 pages cached and dirty after a 64 KiB direct write; \
                      tmpfs: 256 pages cached after 1 MiB", "open, statx(STATX_DIOALIGN), pwrite and cachestat on Linux 6.18.44"),
        Evidence::Source("zfsprops(7), direct: OpenZFS 2.2 and prior ignore the flag; `disabled` ignores it"),
        Evidence::Source("release notes of zfs-0.8.0 and openzfs/zfs pull request 7823: Direct IO is new; issue 224: earlier versions refuse it"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let found = host::written_directly(context, report, DiskField::Cache, |_, _| true);
    for (index, disk, path, direct) in found {
        let at = FieldPath::Disk(index, DiskField::Cache);
        let elsewhere = match direct.verdict {
            DirectIoEffect::AcceptedButBuffered(why) => match why {
                Buffered::Ext4DataJournal => "mount the file system with data=ordered",
                Buffered::ZfsDisabled => "set direct=standard on the dataset",
                Buffered::ZfsIgnored => "upgrade ZFS to 2.3 or later",
                Buffered::Tmpfs | Buffered::SaysNo | Buffered::Declared => {
                    "move the image to a file system or device that supports direct I/O"
                }
                // `btrfs-dio-buffered` reports these.
                Buffered::BtrfsChecksums | Buffered::BtrfsRedundant => continue,
            },
            _ => continue,
        };
        let (buffered, changes) = remedy::without_direct(index, disk);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} uses O_DIRECT ({asked}), which is accepted and ignored for {path}",
                asked = remedy::how_direct_is_asked(index, disk),
                path = quoted(path.to_owned()),
            ),
        );
        finding
            .label("does not bypass the host's page cache here")
            .note(host::because(path, &direct))
            .note("the host caches the image as well as the guest does, and written data waits in its memory until the guest flushes")
            .confidence(host::confidence(&direct));
        match changes {
            Some(changes) => finding
                .help(phrase!(
                    "{elsewhere}, or use {buffered}, which is what happens now",
                    elsewhere,
                    buffered
                ))
                .fix(Fix::needs_consent(changes)),
            None => finding.help(elsewhere),
        };
    }
}
