//! `btrfs-nocow-mirrored`

use vmdisk_facts::{Btrfs, FsKind, HostIndex};
use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A NOCOW image is on mirrored btrfs, where no checksum shows which copy is good.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image has copy-on-write off (`chattr +C`) on btrfs with several
    /// copies of the data (raid1, raid10, raid1c3, raid1c4, dup).
    ///
    /// ## Why it matters
    /// NOCOW turns checksums off. After a power failure, or if a drive returns wrong data, the copies can differ. btrfs
    /// then reads either copy: the guest sees old or wrong data without an error, and the data can change from one read
    /// to the next. `btrfs scrub` neither finds nor repairs it. libvirt creates new directories of pools with NOCOW by
    /// default since 6.6.
    ///
    /// ## Use instead
    /// Choose one side of the trade-off. To have checksums, create the image in a directory without `+C` (for a pool,
    /// `<cow state='yes'/>` in `<features>`), and accept fragmentation. To have fast mirrors, put the file system on an
    /// md RAID 1, which resynchronises after a crash, or use raw LVM volumes on it.
    ///
    /// ## Reported
    /// ```xml,reported,facts-btrfs-raid1-nocow-6.18
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nocow/db1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-btrfs-nocow-6.18
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nocow/db1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/nocow/db1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "btrfs-nocow-mirrored",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("btrfs(5), nodatacow: implies nodatasum; checksumming is off"),
        Evidence::Source("btrfs-progs pull request 863: NOCOW files on raid1 cannot be repaired"),
        Evidence::Source("libvirt NEWS 6.6.0: copy-on-write is off in new directories of pools on btrfs"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, .., path, facts) in host::kept_on(context, report, "the file system", host::is_file)
    {
        let at = host::image_of(index);
        if report.require(at, is_unchecked_mirror(facts, path)) != Some(true) {
            continue;
        }
        report
            .finding(
                at,
                phrase!("{disk} is mirrored by btrfs without checksums, so wrong data is not noticed"),
            )
            .label("copy-on-write is off, and with it the checksums")
            .note(format!("{path} is NOCOW, and its file system keeps several copies of the data"))
            .note("the trade-off: with copy-on-write the image has checksums and repair, and fragments")
            .help("copy the image with `cp` into a directory without `chattr +C`, or mirror below the file system with md");
    }
}

/// True if btrfs keeps several copies of a file without checksums.
fn is_unchecked_mirror(facts: &HostIndex<'_>, path: &str) -> Result<bool, Missing> {
    let what = || format!("the data profile of the file system of {path}");
    let filesystem = Context::known(facts.filesystem_of(path), what)?;
    let Some(filesystem) = filesystem.filter(|filesystem| filesystem.kind == FsKind::Btrfs) else {
        return Ok(false);
    };
    let nocow = Context::known(facts.nocow(path), || format!("whether {path} is NOCOW"))?;
    if nocow != Some(true) {
        return Ok(false);
    }
    let copies = filesystem
        .btrfs
        .as_ref()
        .and_then(Btrfs::keeps_several_copies);
    Ok(Context::known(copies, what)? == Some(true))
}
