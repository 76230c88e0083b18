//! `btrfs-dio-buffered`

use vmdisk_facts::{Buffered, Verdict};
use vmdisk_fields::{DiskName, phrase};
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host::{self, WrittenDirectly};
use crate::remedy;

declare_rule! {
    /// A disk asks for `O_DIRECT` on a btrfs that writes through its page cache instead, and waits.
    ///
    /// ## What it does
    /// Reports `cache='none'` and `cache='directsync'` on a disk the guest writes, where btrfs falls back to
    /// buffered writes: for images with checksums on Linux 6.15 to 7.2, 6.6.130 and 6.12.77; and for NOCOW
    /// images on a data profile with more than one copy (dup, raid1, raid10, raid5, raid6) on Linux 7.0 to 7.2,
    /// 6.12.75 and 6.18.44. Later patches of 6.6, 6.12 and 6.18 behave as the first that is named.
    ///
    /// ## Why it matters
    /// The fallback is there because direct writes could leave wrong checksums or mirrors that differ. Each
    /// write is copied into the page cache and then waited for until it is on the disk. Random writes of 4 KiB
    /// with Linux AIO came to 13 thousand a second with checksums, 59 thousand in a NOCOW file of the same
    /// file system, and 191 thousand on XFS; submitting one took 74 µs instead of 2.
    ///
    /// `writeback` does not wait after each write and keeps the guest's promise at each flush; its price is
    /// host memory, and it is not faster for a guest that flushes after every write (1355 against 1321 a
    /// second). A NOCOW directory gives direct writes back on a data profile with one copy; its price is
    /// checksums, compression and self-repair of that image.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-checksums-6.18
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
    /// ```xml,fixed
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
    /// A NOCOW image on a data profile with one copy is written directly.
    /// ```xml,not-reported,facts-btrfs-nocow-6.18
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/nocow/db1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// On an older kernel direct writes are worse than slow: `btrfs-dio-csum-corruption` reports this one.
    /// ```xml,not-reported,facts-btrfs-checksums-6.1
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
    /// Without facts there is no telling.
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
    pub(super) static RULE = {
        name: "btrfs-dio-buffered",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::Measured {
                figures: "4 KiB random writes with libaio, IOPS and submission: btrfs 13346, 74 µs; btrfs NOCOW 59147, 12 µs; \
                          raid1 NOCOW 22203, 44 µs; XFS 191565, 2 µs; no direct write reached the block layer as one",
                how: "measured for this project on Linux 6.18.44 with fio 3.33 on loop files, 5 s each, and ftrace",
            },
            Evidence::Measured {
                figures: "one request at a time, IOPS: none 10767, writeback 7590; with a flush after each: none 1321, writeback 1355",
                how: "measured for this project with qemu-img bench 7.2 on btrfs, Linux 6.18.44, medians of 3",
            },
            Evidence::Source("Linux commits 968f19c5b1b7 (checksums) and 7c2830f00c3e (redundant data profiles)"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    for found in host::written_directly(context, report, DiskField::Cache, |_| true) {
        let WrittenDirectly {
            index,
            disk,
            path,
            direct,
        } = found;
        let at = FieldPath::Disk(index, DiskField::Cache);
        let (figures, elsewhere) = match direct.verdict {
            Verdict::AcceptedButBuffered(Buffered::BtrfsChecksums) => (
                "measured: 13 thousand random writes a second, 59 thousand in a NOCOW file of the same file system",
                "copy the image with cp into a directory with chattr +C if it needs no checksums",
            ),
            Verdict::AcceptedButBuffered(Buffered::BtrfsRedundant) => (
                "measured: 22 thousand random writes a second, 59 thousand with one copy of the data",
                "keep one copy (data profile single or raid0) on storage that is redundant below btrfs",
            ),
            Verdict::AcceptedButBuffered(
                Buffered::Ext4DataJournal
                | Buffered::SaysNo
                | Buffered::Tmpfs
                | Buffered::ZfsIgnored
                | Buffered::ZfsDisabled
                | Buffered::Declared,
            )
            | Verdict::Unsupported
            | Verdict::Direct
            | Verdict::DirectUnstableChecksums
            | Verdict::DirectUnstableMirrors => continue,
        };
        let (buffered, changes) = remedy::without_direct(index, disk);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} uses O_DIRECT ({asked}), but btrfs writes through the page cache and waits for each write",
                disk = DiskName(index),
                asked = remedy::how_direct_is_asked(index, disk),
            ),
        );
        finding
            .label("does not bypass the host's page cache here")
            .note(host::because(path, &direct))
            .note(figures)
            .confidence(host::confidence(&direct));
        match changes {
            Some(changes) => finding
                .help(phrase!(
                    "{elsewhere}, or use {buffered}, which waits only when the guest flushes and uses host memory",
                    elsewhere,
                    buffered,
                ))
                .fix(Fix::needs_consent(changes)),
            None => finding.help(elsewhere),
        };
    }
}
