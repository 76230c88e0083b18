//! `thin-chunk-large-with-snapshots`

use vmdisk_facts::Fact;
use vmdisk_fields::phrase;
use vmdisk_model::{Bytes, FieldPath, ImageField};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

use crate::thin::{self, ThinVolume};

declare_rule! {
    /// A disk shares large thin pool chunks with snapshots, and each first small write copies a whole chunk.
    ///
    /// ## What it reports
    /// Reports a disk on a thin logical volume that is or has a snapshot, in a pool with chunks of 1 MiB or more.
    ///
    /// ## Why it matters
    /// Origin and snapshot share chunks until one of them writes. The first write into a shared chunk copies all of it:
    /// with chunks of 4 MiB, 4 KiB from the guest become 4 MiB read and 4 MiB written, again after each new snapshot.
    /// LVM's manual recommends small chunks with snapshots and large chunks without.
    ///
    /// ## Use instead
    /// Create another thin pool with `lvcreate --type thin-pool --chunksize 64k` and move the volume there, because the
    /// chunk size of a pool cannot be changed. Small chunks make allocation slower and metadata larger. Alternatively,
    /// remove the snapshots.
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
    /// Small chunks with a snapshot:
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
    /// Large chunks without a snapshot:
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
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "thin-chunk-large-with-snapshots",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::NotMeasuredHere("lvmthin(7), chunk size: smaller is better for snapshots, larger for provisioning; dm-thin always copies whole chunks"),
        Evidence::measured("a thin volume in a pool with 4 MiB chunks shows optimal_io_size and discard_granularity 4194304", "sysfs on Linux 6.1.192 and 6.12.117"),
    ],
    check: Model(check),
}

/// The chunk size from which one small write is noticeably slow.
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
                phrase!(
                    "{disk} shares chunks of {chunk} with snapshots; each first write copies a whole chunk",
                    chunk,
                ),
            )
            .label(shares)
            .note(format!(
                "4 KiB written by the guest become {chunk} read and {chunk} written, once for each chunk after each snapshot"
            ))
            .help("move the volume to a thin pool with chunks of 64 to 256 KiB, or remove the snapshots");
    }
}

/// The snapshots that share chunks with a volume; `None` without any.
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
