//! `lvm-origin-with-snapshots`

use vmdisk_facts::{BlockKind, Fact};
use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The logical volume of a disk has copy-on-write snapshots, which slow down its writes.
    ///
    /// ## What it reports
    /// Reports a thick logical volume under a disk that has classic (not thin) snapshots.
    ///
    /// ## Why it matters
    /// The first write to each chunk of the volume first copies the old chunk into every snapshot: one write of the
    /// guest becomes a read and a write for each snapshot, and the guest waits for them. Thin snapshots copy only once,
    /// and share the copy.
    ///
    /// ## Use instead
    /// Remove a snapshot when the backup is done: `lvremove VG/SNAPSHOT`. For snapshots that stay, use a thin pool, or
    /// qcow2.
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/db2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/db1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "lvm-origin-with-snapshots",
    group: Group::Performance,
    severity: Severity::Advice,
    evidence: &[
        Evidence::NotMeasuredHere("Linux Documentation/admin-guide/device-mapper/snapshot.rst: the snapshot-origin target copies the original data of a chunk to each snapshot before it is changed"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let what = "the devices under the images";
    for (index, device) in host::devices_of_guest(context, report, what) {
        if device.kind != BlockKind::LvmOrigin {
            continue;
        }
        let snapshots = match &device.lvm {
            Fact::Known(lvm) => lvm.snapshots.value().copied(),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
        };
        let count = snapshots.map_or("snapshots".to_owned(), |count| match count {
            1 => "a snapshot".to_owned(),
            _ => format!("{count} snapshots"),
        });
        report
            .finding(
                host::image_of(index),
                phrase!(
                    "{device} under {disk} has {count} that slow{s} down each first write",
                    device = device.name().to_string(),
                    count,
                    s = if snapshots == Some(1) { "s" } else { "" },
                ),
            )
            .label("the old data is copied before it is overwritten")
            .help("remove snapshots that are not needed with `lvremove`, or move the volume to a thin pool");
    }
}
