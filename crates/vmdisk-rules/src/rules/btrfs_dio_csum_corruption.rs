//! `btrfs-dio-csum-corruption`

use vmdisk_facts::{DirectIoEffect, Fact, FsKind};
use vmdisk_fields::phrase;
use vmdisk_model::{Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;
use crate::remedy;

declare_rule! {
    /// `cache='none'` on btrfs can store wrong checksums and lose data.
    ///
    /// ## What it reports
    /// Reports `cache='none'` and `cache='directsync'` on a disk that the guest writes, if the image has btrfs
    /// checksums and the kernel does not fall back to buffered writes: Linux up to 6.6.129, 6.7 to 6.12.76, 6.13 and
    /// 6.14. This includes every 6.1 (Debian 12). NOCOW images have no checksums and are not reported.
    ///
    /// ## Why it matters
    /// With `O_DIRECT`, btrfs reads the guest's memory once for the checksum, and the disk reads it again for the data.
    /// If the guest changes the page in between, data and checksum do not match. Swap, memory-mapped files and Windows
    /// do so all the time. Every later read of the block fails with `EIO`, on all copies, and `btrfs scrub` cannot
    /// repair it. The kernel logs `csum failed root 5 ino 261 off 0`. On Linux 6.1.192, a program that changed its
    /// buffer during the write could not read back 151 of 400 writes; with NOCOW it could read all of them.
    ///
    /// The result rests on a table of kernel versions, because a trial write on the host cannot distinguish these
    /// kernels from others.
    ///
    /// ## Use instead
    /// Use `cache='writeback'`: the page cache then holds a copy that the guest cannot change, and the guest's flushes
    /// reach the disk as before. Kernels 6.15, 6.12.77, 6.6.130 and later do this on their own; `btrfs-dio-buffered`
    /// reports the cost. Images that are already damaged must be restored from a backup.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-checksums-6.1
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
    /// The same disk on a kernel that falls back to buffered writes:
    /// ```xml,not-reported,facts-btrfs-checksums-6.18
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
    /// An image in a directory with `chattr +C` has no checksums:
    /// ```xml,not-reported,facts-btrfs-checksums-6.1
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
    name: "btrfs-dio-csum-corruption",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("151 of 400 writes gave EIO when read back (data profile single), 121 of 400 on raid1, 0 of 400 with NOCOW; \
                      the kernel says `csum failed root 5 ino 261 off 0`. None of 400 on Linux 6.12.117", "a program that changes its buffer during pwrite with O_DIRECT, Linux 6.1.192 and 6.12.117 booted for it"),
        Evidence::Source("Linux commit 968f19c5b1b7 (6.15, in 6.6.130 and 6.12.77): btrfs falls back to buffered writes if the file has checksums"),
        Evidence::Source("xfstests generic/761, which tests for it"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let may_be_on_btrfs = |_: &Disk, path: &str| host::may_be_on(&FsKind::Btrfs, context, path);
    let found = host::written_directly(context, report, DiskField::Cache, may_be_on_btrfs);
    for (index, disk, path, direct) in found {
        let at = FieldPath::Disk(index, DiskField::Cache);
        if !matches!(direct.verdict, DirectIoEffect::DirectUnstableChecksums) {
            continue;
        }
        // The conclusion is based on facts, so they exist.
        let Some(facts) = context.host else { continue };
        let filesystem = match facts.filesystem_of(path) {
            Fact::Known(filesystem) => filesystem.kind.to_string(),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => "the file system".to_owned(),
        };
        let (buffered, changes) = remedy::without_direct(index, disk);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} uses O_DIRECT ({asked}), for which {filesystem} on {kernel} stores wrong checksums",
                asked = remedy::how_direct_is_asked(index, disk),
                filesystem,
                kernel = host::kernel(facts),
            ),
        );
        finding
            .label("hands the guest's memory to the disk while the guest may still change it")
            .note(host::because(path, &direct))
            .note(
                "if the guest changes a page during its write, every later read of it fails with EIO \
                 (151 of 400 such writes on Linux 6.1.192)",
            )
            .confidence(host::confidence(&direct));
        let elsewhere = "copy the image with cp into a directory with chattr +C, where it has no checksums, \
                         or run Linux 6.6.130, 6.12.77, 6.15 or later";
        match changes {
            Some(changes) => finding
                .note(format!("alternatively, {elsewhere}"))
                .help(phrase!(
                    "use {buffered}; the guest's flushes reach the disk as before",
                    buffered
                ))
                .fix(Fix::safe(changes)),
            None => finding.help(elsewhere),
        };
    }
}
