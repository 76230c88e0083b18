//! `migration-sector-size-differs`

use vmdisk_model::{Device, DiskField, FieldPath};

use crate::comparison::Comparison;
use crate::rule::declare_rule;
use crate::rules::compares_hosts;
use crate::{Evidence, Group, Report, Severity};

declare_rule! {
    /// A device that the guest sees as it is has other sectors on another host.
    ///
    /// ## What it does
    /// Compares the hosts that a guest may run on. Reports a disk with `device='lun'` whose device has logical sectors of
    /// 512 bytes on one host and of 4096 on another. Every other disk has the sectors that are written for it, 512 bytes if
    /// nothing is; where its storage has larger ones, `guest-sector-512-on-4kn` says so.
    ///
    /// ## Why it matters
    /// With `device='lun'` the guest's requests go to the device as they are, and count in its sectors. A guest that
    /// migrates goes on counting in those it began with, and writes at places eight times too far or too near; one that is
    /// started there finds no partitions.
    ///
    /// ## Reported
    /// ```xml,reported,facts-xfs-nvme,facts-disk-4kn
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='lun'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/nvme0n1'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported,facts-xfs-nvme,facts-md-degraded
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/nvme0n1'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,facts-xfs-nvme,facts-btrfs-checksums-6.18
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='block' device='lun'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source dev='/dev/nvme0n1'/>
    ///       <target dev='sda' bus='scsi'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    pub(super) static RULE = {
        name: "migration-sector-size-differs",
        group: Group::DataSafety,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Source("QEMU hw/scsi/scsi-disk.c, scsi_block_realize and scsi-generic.c: the block size is what READ CAPACITY of the device says"),
            Evidence::Source("libvirt docs/formatdomain.rst, device='lun': requests are passed through, and only raw devices are allowed"),
        ],
        supersedes: &[],
        check: compares_hosts,
        compare: compare,
    }
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, _, path) in comparison.images_with_paths() {
        match disk.frontend.effective_device() {
            Device::Lun => {}
            Device::Disk | Device::Cdrom | Device::Floppy => continue,
        }
        let at = FieldPath::Disk(index, DiskField::Device);
        let mut answers = comparison.answers(report, at, |host| {
            host.of_device(path, "the sector size", |device| &device.queue.logical)
        });
        // What is no device there cannot be passed through, and is another rule's business.
        answers.remove(&None);
        if answers.len() < 2 {
            continue;
        }
        let affected = answers.values().skip(1).flatten().copied();
        let finding = report.finding(
            at,
            format!(
                "`{}` passes a device through whose sectors differ from host to host",
                disk.name()
            ),
        );
        finding
            .label("the guest sees the device's own sectors")
            .on_hosts(affected.collect::<Vec<_>>());
        for (size, hosts) in &answers {
            let size = size.unwrap_or_default();
            finding.note(format!(
                "{path} on {}: logical sectors of {size} bytes",
                comparison.names(hosts)
            ));
        }
        finding.help("give the guest the same device on all hosts, or write device='disk' with a <blockio logical_block_size=…/>");
    }
}
