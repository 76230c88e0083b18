//! `migration-sector-size-differs`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Device, DiskField, FieldPath};
use vmdisk_rule::{Comparison, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A passed-through device has different sector sizes on different hosts.
    ///
    /// ## What it reports
    /// Compares the hosts that a guest may run on. Reports a disk with `device='lun'` whose device has logical sectors
    /// of 512 bytes on one host and of 4096 on another. Every other disk has its configured sectors, 512 bytes by
    /// default; `guest-sector-512-on-4kn` reports those on storage with larger sectors.
    ///
    /// ## Why it matters
    /// With `device='lun'` the guest's requests are sent to the device unchanged, and count in its sectors. A guest
    /// that migrates continues to count in the sectors that it started with. It then reads and writes at offsets that
    /// are wrong by a factor of eight. A guest that starts on the other host finds no partitions.
    ///
    /// ## Use instead
    /// Use the same device on all hosts. Alternatively use `device='disk'` with a fixed `logical_block_size` in
    /// `<blockio>`; the guest then cannot send SCSI commands to the device.
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
    name: "migration-sector-size-differs",
    group: Group::DataSafety,
    severity: Severity::Error,
    evidence: &[
        Evidence::Source("QEMU hw/scsi/scsi-disk.c, scsi_block_realize and scsi-generic.c: the block size is what READ CAPACITY of the device says"),
        Evidence::Source("libvirt docs/formatdomain.rst, device='lun': requests are passed through, and only raw devices are allowed"),
    ],
    check: Hosts(compare),
}

fn compare(comparison: &Comparison<'_>, report: &mut Report) {
    for (index, disk, _, path) in comparison.images_with_paths() {
        if disk.frontend.effective_device() != Device::Lun {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Device);
        let mut answers = report.answers(comparison, at, |host| {
            host.of_device(path, "the sector size", |device| &device.queue.logical)
        });
        // Another rule reports a path that is not a device.
        answers.remove(&None);
        if answers.len() < 2 {
            continue;
        }
        let affected = answers.values().skip(1).flatten().copied();
        let finding = report.finding(
            at,
            phrase!("{disk} passes a device through whose sectors differ from host to host"),
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
        finding.help(phrase!(
            "use the same device on all hosts, or {emulated} and a fixed {sectors}",
            emulated = setting(at, Device::Disk),
            sectors = FieldPath::Disk(index, DiskField::LogicalBlockSize),
        ));
    }
}
