//! `btrfs-raid56`

use vmdisk_facts::FsKind;
use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The image of a disk is on btrfs with the data profile `raid5` or `raid6`, which is not safe.
    ///
    /// ## What it reports
    /// Reports a disk that the guest can write, whose image is on btrfs with data in the profile raid5 or raid6.
    ///
    /// ## Why it matters
    /// btrfs updates a stripe in place and keeps no log of it. After a power failure the parity of a stripe can be
    /// stale. If a drive fails before a scrub has corrected it, the reconstructed data is wrong. Files with checksums
    /// then fail with I/O errors; NOCOW files, as VM images often are, return wrong data. The developers of btrfs
    /// advise against these profiles in production.
    ///
    /// ## Use instead
    /// Convert the data: `btrfs balance start -dconvert=raid1 -mconvert=raid1 MOUNTPOINT` (or `raid10`, `raid1c3`), which needs more
    /// space. Alternatively, put btrfs, ext4 or XFS on an md RAID 6 with a write journal, or on an md RAID 5 with
    /// `--consistency-policy=ppl`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-unsafe-mounts
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/raid5/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-btrfs-raid1-nocow-6.18
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
    ///   <source file='/srv/raid5/web1.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "btrfs-raid56",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("btrfs(5), RAID56 status and recommended practices: should not be used in production; the write hole"),
        Evidence::Source("btrfs documentation, Status: RAID56 is unstable"),
    ],
    supersedes: &["btrfs-nocow-mirrored"],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, .., path, facts) in host::kept_on(context, report, "the file system", host::is_file)
    {
        let at = host::image_of(index);
        let what = || format!("the data profile of the file system of {path}");
        let filesystem = Context::known(facts.filesystem_of(path), what);
        let Some(Some(filesystem)) = report.require(at, filesystem) else {
            continue;
        };
        if filesystem.kind != FsKind::Btrfs {
            continue;
        }
        let profiles = filesystem
            .btrfs
            .as_ref()
            .and_then(|btrfs| btrfs.data_profile.as_ref());
        let Some(Some(profiles)) = report.require(at, Context::known(profiles, what)) else {
            continue;
        };
        let has_parity = |profile: &&String| matches!(profile.as_str(), "raid5" | "raid6");
        let Some(profile) = profiles.iter().find(has_parity) else {
            continue;
        };
        report
            .finding(
                at,
                phrase!(
                    "the image of {disk} is on btrfs {profile}, which can lose data after a power failure",
                    profile = profile.clone(),
                ),
            )
            .label("parity may not match the data")
            .note(format!("the data profile of the file system of {path} is {profile}"))
            .help("convert it: `btrfs balance start -dconvert=raid1 -mconvert=raid1 MOUNTPOINT`, or use RAID 6 of md below the file system");
    }
}
