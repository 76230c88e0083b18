//! `btrfs-dio-buffered`

use vmdisk_facts::{Buffered, DirectIoEffect, FsKind};
use vmdisk_fields::phrase;
use vmdisk_model::{Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;
use crate::remedy;

declare_rule! {
    /// `cache='none'` is slow on btrfs: direct writes fall back to buffered writes.
    ///
    /// ## What it reports
    /// Reports `cache='none'` and `cache='directsync'` on a disk that the guest writes, if btrfs falls back to buffered
    /// writes:
    ///
    /// - for images with checksums on Linux 6.15 to 7.2, 6.6.130 and 6.12.77
    /// - for NOCOW images on a data profile with several copies (dup, raid1, raid10, raid5, raid6) on Linux 7.0 to 7.2,
    ///   6.12.75 and 6.18.44
    ///
    /// Later patch releases of 6.6, 6.12 and 6.18 behave like the first one named.
    ///
    /// ## Why it matters
    /// btrfs accepts `O_DIRECT`, so nothing reports the fallback. The kernel added it because direct writes could
    /// produce wrong checksums or copies that differ. Each write is copied into the page cache and then waits for the
    /// disk. Random 4 KiB writes with Linux AIO reached 13 thousand per second with checksums, 59 thousand in a NOCOW
    /// file of the same file system, and 191 thousand on XFS. Submitting one write took 74 µs instead of 2.
    ///
    /// ## Use instead
    /// Use `cache='writeback'`: it does not wait after each write, and it keeps the guest's data safe at each flush. It
    /// uses host memory, and it is not faster for a guest that flushes after every write (1355 writes per second
    /// instead of 1321). Alternatively copy the image into a NOCOW directory, if btrfs keeps one copy of the data:
    /// `chattr +C DIR`, then `cp --reflink=never IMAGE DIR/`. This gives direct writes back, but the image then has no
    /// checksums, no compression and no repair.
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
    /// A NOCOW image on a data profile with one copy is written directly:
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
    /// On older kernels direct writes can corrupt data, which `btrfs-dio-csum-corruption` reports:
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
    name: "btrfs-dio-buffered",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("4 KiB random writes with libaio, IOPS and submission: btrfs 13346, 74 µs; btrfs NOCOW 59147, 12 µs; \
                      raid1 NOCOW 22203, 44 µs; XFS 191565, 2 µs; no direct write reached the block layer as one", "measured for this project on Linux 6.18.44 with fio 3.33 on loop files, 5 s each, and ftrace"),
        Evidence::measured("one request at a time, IOPS: none 10767, writeback 7590; with a flush after each: none 1321, writeback 1355", "measured for this project with qemu-img bench 7.2 on btrfs, Linux 6.18.44, medians of 3"),
        Evidence::Source("Linux commits 968f19c5b1b7 (checksums) and 7c2830f00c3e (redundant data profiles)"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let may_be_on_btrfs = |_: &Disk, path: &str| host::may_be_on(&FsKind::Btrfs, context, path);
    let found = host::written_directly(context, report, DiskField::Cache, may_be_on_btrfs);
    for (index, disk, path, direct) in found {
        let at = FieldPath::Disk(index, DiskField::Cache);
        let (figures, elsewhere) = match direct.verdict {
            DirectIoEffect::AcceptedButBuffered(Buffered::BtrfsChecksums) => (
                "measured: 13 thousand random writes a second, 59 thousand in a NOCOW file of the same file system",
                "copy the image with cp into a directory with chattr +C if it needs no checksums",
            ),
            DirectIoEffect::AcceptedButBuffered(Buffered::BtrfsRedundant) => (
                "measured: 22 thousand random writes a second, 59 thousand with one copy of the data",
                "keep one copy (data profile single or raid0) on storage that is redundant below btrfs",
            ),
            _ => continue,
        };
        let (buffered, changes) = remedy::without_direct(index, disk);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} uses O_DIRECT ({asked}), but btrfs writes through the page cache and waits for each write",
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
