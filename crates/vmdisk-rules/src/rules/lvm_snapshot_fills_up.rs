//! `lvm-snapshot-fills-up`

use vmdisk_facts::{BlockKind, Fact, blockdev::Percent};
use vmdisk_fields::{command, phrase};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// The guest writes to a copy-on-write snapshot of LVM, which becomes invalid when its space is used up.
    ///
    /// ## What it reports
    /// Reports a writable disk on a classic (not thin) LVM snapshot. It is a warning if the snapshot is 80 % full.
    ///
    /// ## Why it matters
    /// Every changed chunk, of the snapshot and of its origin, takes space in the snapshot. When the space is used up,
    /// the kernel invalidates the snapshot: all reads and writes fail, and its data is lost. Not even the data that the
    /// guest flushed remains.
    ///
    /// ## Use instead
    /// Use a thin snapshot (`lvcreate -s` of a thin volume) or a qcow2 overlay for a guest. Otherwise extend the
    /// snapshot to the size of its origin with `lvextend`, or let LVM extend it: `snapshot_autoextend_threshold` in
    /// lvm.conf(5).
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/vg0/db1-test'/>
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
    ///   <source dev='/dev/vg0/db1-test'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "lvm-snapshot-fills-up",
    group: Group::DataSafety,
    severity: Severity::Advice,
    evidence: &[
        Evidence::Source("lvcreate(8), --snapshot: extend it if its space runs low; lvs(8), lv_attr: `I` is an invalid snapshot"),
        Evidence::Source("Linux drivers/md/dm-snap.c, snapshot_map: full snapshots are not usable; a request to one that is not valid fails"),
    ],
    check: Model(check),
}

/// The use of a snapshot, in hundredths of a percent, from which it is nearly full.
const NEARLY_FULL: Percent = Percent(8000);

fn check(context: &Context<'_>, report: &mut Report) {
    let what = "the devices under the images";
    for (index, device) in host::devices_of_guest(context, report, what) {
        if device.kind != BlockKind::LvmSnapshot {
            continue;
        }
        let used = match &device.lvm {
            Fact::Known(lvm) => lvm.data_percent.value(),
            Fact::Absent | Fact::Unknown(_) | Fact::NotCollected => None,
        };
        let name = device.name();
        let finding = report.finding(
            host::image_of(index),
            phrase!(
                "{disk} is on {device}, a snapshot that becomes invalid when it is full",
                device = name.to_string(),
            ),
        );
        finding.label("all data of the disk is lost then");
        if let Some(used) = used {
            finding.note(format!(
                "{used} of its space was used when the facts were collected"
            ));
        }
        if used.is_some_and(|used| *used >= NEARLY_FULL) {
            finding.severity(Severity::Warning);
        }
        finding.help(phrase!(
            "run {command} before it is full, or use a thin volume or a qcow2 overlay",
            command = command("lvextend -L+SIZE", &[&name]),
        ));
    }
}
