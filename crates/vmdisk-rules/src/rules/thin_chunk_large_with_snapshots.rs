//! `thin-chunk-large-with-snapshots`

use vmdisk_facts::Fact;
use vmdisk_model::{Bytes, FieldPath, ImageField};

use crate::rule::declare_rule;
use crate::thin::{self, ThinVolume};
use crate::{Context, Evidence, Group, Missing, Report, Severity};

declare_rule! {
    /// A disk shares large thin pool chunks with snapshots, and copies a whole one for each first small write.
    ///
    /// ## What it does
    /// Reports a disk on a thin logical volume whose pool has chunks of 1 MiB or more, if the volume is or has
    /// a snapshot.
    ///
    /// ## Why it matters
    /// Origin and snapshot share chunks until one of them writes. The first write into a shared chunk
    /// copies all of it: 4 KiB from the guest become 4 MiB read and 4 MiB written, and again after each new
    /// snapshot. LVM's manual recommends small chunks where there are snapshots and large ones where there are
    /// none. The chunk size is set when a pool is made and cannot be changed.
    ///
    /// ## Reported
    /// ```xml,reported,facts-lvm-thin-4m-snapshots
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// Small chunks with a snapshot.
    /// ```xml,not-reported,facts-lvm-thin-64k
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Large chunks without a snapshot.
    /// ```xml,not-reported,facts-lvm-thin-4m-nozero
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none' io='native' discard='unmap'/>
    ///       <source dev='/dev/vg0/web1'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// Without facts there is no telling.
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "thin-chunk-large-with-snapshots",
        group: Group::Performance,
        severity: Severity::Warning,
        since: "0.1.0",
        evidence: &[
            Evidence::NotMeasuredHere("lvmthin(7), chunk size: smaller is better for snapshots, larger for provisioning; that a chunk is copied whole is how dm-thin works"),
            Evidence::Measured {
                figures: "a thin volume in a pool with 4 MiB chunks shows optimal_io_size and discard_granularity 4194304",
                how: "sysfs on Linux 6.1.192 and 6.12.117",
            },
        ],
        supersedes: &[],
        check: check,
    }
}

/// From here on one small write that copies a chunk is noticed.
const LARGE_CHUNK: Bytes = Bytes(Bytes::MIB);

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let at = FieldPath::Image(index, 0, ImageField::Path);
        let volume = thin::volume_of(context, disk, image);
        let Some(Some(volume)) = report.require(at, volume) else {
            continue;
        };
        let path = volume.path;
        let chunk = Context::known(volume.chunk(), || format!("chunk size of {path}"));
        let Some(Some(chunk)) = report.require(at, chunk.map(|chunk| chunk.map(Bytes))) else {
            continue;
        };
        if chunk < LARGE_CHUNK {
            continue;
        }
        let Some(Some(shares)) = report.require(at, shares(&volume)) else {
            continue;
        };
        report
            .finding(
                at,
                format!(
                    "`{}` shares chunks of {chunk} with snapshots, and copies a whole one for each first write into it",
                    disk.name()
                ),
            )
            .label(shares.clone())
            .note(format!(
                "4 KiB written by the guest become {chunk} read and {chunk} written, once for each chunk after each snapshot"
            ))
            .help("make a new thin pool with chunks of 64 to 256 KiB and move the volume there, or do without snapshots of it");
    }
}

/// With whom a volume shares its chunks; `None` if with nobody.
fn shares(volume: &ThinVolume<'_>) -> Result<Option<String>, Missing> {
    if let Fact::Known(origin) = &volume.lvm.origin {
        return Ok(Some(format!("is a snapshot of {origin}")));
    }
    let what = || format!("snapshots of {}", volume.path);
    let snapshots = Context::known(volume.lvm.snapshots.clone(), what)?;
    Ok(match snapshots {
        Some(1) => Some("has a snapshot".to_owned()),
        Some(0) | None => None,
        Some(count) => Some(format!("has {count} snapshots")),
    })
}
