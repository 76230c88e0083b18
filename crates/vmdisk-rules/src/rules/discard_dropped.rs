//! `discard-dropped`

use vmdisk_facts::BlockDevice;
use vmdisk_facts::stack::{DiscardLoss, StackLayer};
use vmdisk_fields::phrase;
use vmdisk_model::{DiskField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

use super::discard_crypt_blocked::dropped;

declare_rule! {
    /// Discards are enabled, but the storage of the disk accepts none.
    ///
    /// ## What it reports
    /// Reports `discard='unmap'` on a device that accepts no discards, or that is on one, and on a raw file on a file
    /// system that cannot punch holes (FAT, and read-only file systems). `discard-crypt-blocked` reports encryption that
    /// drops them, and `thin-discards-ignored` thin pools. File systems free the blocks of a file by themselves,
    /// whatever the device below accepts, and so does a qcow2 image.
    ///
    /// ## Why it matters
    /// The guest's TRIM has no effect, and the guest sees no error. On a drive without TRIM, such as most hard disks, there is
    /// nothing to gain; on others, the space that the guest deletes stays in use.
    ///
    /// ## Use instead
    /// Nothing needs to change if the drive has no TRIM. Move a file to a file system that punches holes; for a RAID, see
    /// whether its members accept discards (`lsblk --discard`).
    ///
    /// ## Reported
    /// ```xml,reported,facts-mounted-partition
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/sdc'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-storage-stacks
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/db2'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// Encryption drops the discards, and `discard-crypt-blocked` reports it:
    /// ```xml,not-reported,facts-luks-without-discards
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/mapper/without-discards'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,facts-lvm-thin-nearly-full
    /// <disk type='block' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none' discard='unmap'/>
    ///   <source dev='/dev/vg0/web1'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    name: "discard-dropped",
    group: Group::Space,
    severity: Severity::Pedantic,
    evidence: &[
        Evidence::Source("QEMU block/file-posix.c, handle_aiocb_discard: a device or file system without discards is not an error"),
        Evidence::Source("fallocate(2), FALLOC_FL_PUNCH_HOLE: the list of file systems"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, path, (layer, loss)) in dropped(context, report) {
        // `discard-crypt-blocked` reports encryption, and `thin-discards-ignored` disks that are thin volumes.
        match (loss, layer) {
            (DiscardLoss::NoHoles | DiscardLoss::Device, _) => {}
            (DiscardLoss::Pool, StackLayer::Device(top)) if !is_at(top, path) => {}
            (DiscardLoss::Crypt | DiscardLoss::Pool, _) => continue,
        }
        report
            .finding(
                FieldPath::Disk(index, DiskField::Discard),
                phrase!("{disk} enables discards, but its storage drops them"),
            )
            .label("the guest's TRIM has no effect")
            .note(layer.drops_discards(path, loss))
            .help("nothing is lost if the drive has no TRIM; else move the image to storage that frees space");
    }
}

fn is_at(device: &BlockDevice, path: &str) -> bool {
    device.paths.iter().any(|it| it == path)
}
