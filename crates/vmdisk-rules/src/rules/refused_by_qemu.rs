//! `refused-by-qemu`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// A QEMU that was started with the disks refuses them.
    ///
    /// ## What it reports
    /// `vmdisk lint --try-qemu PATH` starts that QEMU, paused and without acceleration, with the machine, controllers
    /// and disks of each configuration, and stops it at once. vmdisk reports QEMU's messages at the location of the
    /// option that they concern; a warning of QEMU becomes advice. If QEMU refuses a disk, vmdisk starts it again
    /// without that disk, until QEMU refuses nothing.
    ///
    /// QEMU opens none of the guest's images, because opening an image for writing takes locks and can write to it.
    /// Empty images replace them, and a `qemu-storage-daemon` replaces daemons that serve disks. Therefore it finds no
    /// missing file, wrong format or image in use; other rules do. SCSI passthrough, encryption, data files, and
    /// everything except disks are not tried, and `--verbose` lists them.
    ///
    /// ## Why it matters
    /// The program that will run the guest decides. Started normally, QEMU stops at the first mistake, and its message
    /// names an option, but not the line that it comes from.
    ///
    /// ## Use instead
    /// Correct the option that the message is about: `QEMU -device DRIVER,help` lists the options of a device. If that
    /// QEMU is too old for it, use a newer one.
    ///
    /// ## Reported
    /// With `--try-qemu` and QEMU 7.2:
    /// ```xml
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <blockio logical_block_size='1000' physical_block_size='4096'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='qcow2'/>
    ///   <source file='/srv/web1.qcow2'/>
    ///   <target dev='vda' bus='virtio'/>
    ///   <blockio logical_block_size='512' physical_block_size='4096'/>
    /// </disk>
    /// ```
    name: "refused-by-qemu",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[Evidence::Source("the QEMU that is named")],
    check: Trial,
}
