//! `btrfs-dio-raid-mirror-divergence`

use vmdisk_facts::{DirectIoEffect, FsKind};
use vmdisk_fields::phrase;
use vmdisk_model::{Disk, DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Fix, Group, Report, Severity, declare_rule};

use crate::host;
use crate::remedy;

declare_rule! {
    /// `cache='none'` on a NOCOW image on btrfs RAID can make the copies differ.
    ///
    /// ## What it reports
    /// Reports `cache='none'` and `cache='directsync'` on a disk that the guest writes, if all of these hold:
    ///
    /// - the image has no btrfs checksums (NOCOW)
    /// - the data profile keeps several copies or parity (dup, raid1, raid10, raid5, raid6)
    /// - the kernel does not fall back to buffered writes: Linux up to 6.12.74 and 6.13 to 6.17, which includes every
    ///   6.1 (Debian 12) and 6.6
    ///
    /// For Linux 6.18.0 to 6.18.43 and 6.19 the behaviour is unknown, and the rule is not checked.
    ///
    /// ## Why it matters
    /// With `O_DIRECT` each drive reads the guest's memory at its own time. If the guest changes the page in between,
    /// each copy holds different bytes. Swap, memory-mapped files and Windows do so all the time. Without a checksum,
    /// neither a read nor `btrfs scrub` notices it. The same block can read differently after a reboot, or when a drive
    /// fails. Since Linux 7.0, 6.12.75 and 6.18.44, btrfs writes such files through the page cache, whose copy the
    /// guest cannot change.
    ///
    /// It is a warning, not an error: most guests write such a page again before they rely on it. md RAID behaves the
    /// same way, so redundancy below btrfs does not avoid it. The result rests on a trial write if the facts contain
    /// one, otherwise on a table of kernel versions.
    ///
    /// ## Use instead
    /// Use `cache='writeback'`: the guest's flushes reach the disk as before, and the host uses memory for the copy.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-raid1-nocow-6.1
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
    /// ```xml,fixed,consent
    /// <domain type='kvm'>
    ///   <name>db1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='writeback'/>
    ///       <source file='/srv/nocow/db1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// A newer kernel writes the file through the page cache; `btrfs-dio-buffered` reports the cost:
    /// ```xml,not-reported,facts-btrfs-raid1-nocow-6.18
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
    /// A data profile with one copy:
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
    name: "btrfs-dio-raid-mirror-divergence",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("Linux commit 7c2830f00c3e (7.0, in 6.12.75; seen in 6.18.44): btrfs falls back to buffered writes if the data profile has duplication"),
        Evidence::Source("linux-source-6.12 6.12.117, fs/btrfs/direct-io.c: a data profile other than RAID0 and single is written through the page cache"),
    ],
    supersedes: &["btrfs-nocow-mirrored"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let may_be_on_btrfs = |_: &Disk, path: &str| host::may_be_on(&FsKind::Btrfs, context, path);
    let found = host::written_directly(context, report, DiskField::Cache, may_be_on_btrfs);
    for (index, disk, path, direct) in found {
        if !matches!(direct.verdict, DirectIoEffect::DirectUnstableMirrors) {
            continue;
        }
        // The conclusion is based on facts, so they exist.
        let Some(facts) = context.host else { continue };
        let at = FieldPath::Disk(index, DiskField::Cache);
        let (buffered, changes) = remedy::without_direct(index, disk);
        let finding = report.finding(
            at,
            phrase!(
                "{disk} uses O_DIRECT ({asked}), so btrfs on {kernel} may silently keep copies that differ",
                asked = remedy::how_direct_is_asked(index, disk),
                kernel = host::kernel(facts),
            ),
        );
        finding
            .label("hands the guest's memory to each drive while the guest may still change it")
            .note(host::because(path, &direct))
            .note(
                "if the guest changes a page during its write, the copies differ, and without a checksum \
                 neither a read nor a scrub shows which is right",
            )
            .confidence(host::confidence(&direct));
        let elsewhere = "run Linux 6.12.75 or a later 6.12, or 7.0 or later, which writes such files through the page cache";
        match changes {
            Some(changes) => finding
                .note(format!("alternatively, {elsewhere}"))
                .help(phrase!(
                    "use {buffered}; the guest's flushes reach the disk as before, and the host's memory holds a copy",
                    buffered,
                ))
                .fix(Fix::needs_consent(changes)),
            None => finding.help(elsewhere),
        };
    }
}
