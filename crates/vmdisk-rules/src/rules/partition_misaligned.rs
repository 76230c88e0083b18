//! `partition-misaligned`

use vmdisk_facts::{BlockDevice, Fact};
use vmdisk_fields::phrase;
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use crate::host;

declare_rule! {
    /// A partition under a disk does not start on a boundary of physical sectors, so each write becomes a read and two writes.
    ///
    /// ## What it reports
    /// Reports a partition of the host under a disk whose start is not a multiple of the physical sector size of its
    /// drive, or for which the kernel reports an alignment offset.
    ///
    /// ## Why it matters
    /// Partition tools before about 2010 started at sector 63. On a drive with physical sectors of 4096 bytes, each
    /// block of 4096 bytes of the guest then lies in two sectors. The drive reads both, changes a part of each, and
    /// writes both.
    ///
    /// ## Use instead
    /// Create the partition again at a multiple of 1 MiB, which all tools do by default, and copy the data. To check
    /// the result, run `parted DRIVE align-check optimal N`.
    ///
    /// ## Reported
    /// ```xml,reported,facts-storage-stacks
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/old/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/img/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Not checked without host facts:
    /// ```xml,not-checked
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/old/a.img'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "partition-misaligned",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::NotMeasuredHere("Linux Documentation/ABI/stable/sysfs-block, alignment_offset; a write of a part of a physical sector is a read-modify-write in the drive"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let what = "the devices under the images";
    for (index, device) in host::devices_of_guest(context, report, what) {
        let Some(offset) = misalignment(device) else {
            continue;
        };
        report
            .finding(
                host::image_of(index),
                phrase!(
                    "{device} under {disk} starts {offset} bytes after a boundary of physical sectors",
                    device = device.name().to_string(),
                    offset,
                ),
            )
            .label("each write is a read and two writes in the drive")
            .help("create the partition again at a multiple of 1 MiB, and copy the data");
    }
}

/// The bytes by which the start of a partition misses a boundary; `None` if it does not, or if it is not known.
fn misalignment(device: &BlockDevice) -> Option<u64> {
    let Fact::Known(partition) = &device.partition else {
        return None;
    };
    // The kernel's value also covers drives that shift their sectors.
    if let Fact::Known(offset) = partition.alignment_offset
        && offset > 0
    {
        return Some(offset);
    }
    let physical = device.queue.physical.value().copied()?;
    let start = partition.start.value().copied()?;
    start.checked_rem(physical).filter(|offset| *offset > 0)
}
