//! `refused-by-qemu`

use vmdisk_rule::{Evidence, Group, Severity, declare_rule};

declare_rule! {
    /// A QEMU that was started with the disks refuses them.
    ///
    /// ## What it does
    /// With `vmdisk lint --try-qemu PATH` that QEMU is started, paused and without acceleration, with the machine,
    /// the controllers and the disks of each configuration, and ends at once. What it says is reported at the place
    /// that the option was written for; warnings are advice. Where it refuses a disk it is started again without it,
    /// until nothing is refused any more.
    ///
    /// Nothing of the guest's is opened: empty images stand for its own, because a QEMU that opens an image for
    /// writing takes locks and may write to it. So this finds no missing file, no wrong format and no image in use;
    /// other rules do. A `qemu-storage-daemon` stands for daemons that serve disks. SCSI passthrough, encryption, data
    /// files and what the configuration has beside disks are not tried, and `--verbose` says so.
    ///
    /// ## Why it matters
    /// It is the judgement of the program that will run the guest. QEMU itself stops at the first mistake, and says
    /// which option it does not like, not which line that came from.
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
    pub(super) static RULE = {
        name: "refused-by-qemu",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[Evidence::Source("the QEMU that is named")],
        supersedes: &[],
        check: Trial,
    }
}
