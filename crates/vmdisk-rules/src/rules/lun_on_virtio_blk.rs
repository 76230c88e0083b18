//! `lun-on-virtio-blk`

use vmdisk_facts::{Version, machine_version};
use vmdisk_model::{Device, DiskField, FieldPath, TargetBus};

use crate::rule::declare_rule;
use crate::{Context, Evidence, Group, Report, Severity};

declare_rule! {
    /// A SCSI unit of the host is passed through on virtio-blk, which no longer does that.
    ///
    /// ## What it does
    /// Reports `device='lun'` on the bus virtio, except for machine types up to 2.6.
    ///
    /// ## Why it matters
    /// virtio 1.0 has no SCSI commands on block devices. libvirt takes the guest as long as QEMU has the option, and
    /// QEMU does not start; since QEMU 9.1 the option is gone, and libvirt refuses the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c50015ea71ac'/>
    ///   <target dev='vda' bus='virtio'/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c50015ea71ac'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "lun-on-virtio-blk",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        evidence: &[
            Evidence::Refused {
                by: "QEMU 7.2",
                text: "Please set scsi=off for virtio-blk devices in order to use virtio 1.0",
                source: "hw/block/virtio-blk.c, virtio_blk_get_features; tried with pc and q35, and pc-i440fx-2.6 starts",
            },
            Evidence::refused_by_libvirt("This QEMU doesn't support SCSI emulation with 'virtio-blk' device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend; where QEMU no longer has the option"),
            Evidence::Source("QEMU docs/about/removed-features.rst: `-device virtio-blk,scsi=on|off`, removed in 9.1"),
        ],
        supersedes: &[],
        check: check,
    }
}

/// The last machine types without virtio 1.0.
const OLD_MACHINE: Version = Version(2, 6, 0);

fn check(context: &Context<'_>, report: &mut Report) {
    let machine = context.domain.machine.as_ref();
    let is_old = machine
        .and_then(|machine| machine_version(&machine.0))
        .is_some_and(|version| version <= OLD_MACHINE);
    if is_old {
        return;
    }
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let is_lun = frontend.effective_device() == Device::Lun;
        if !is_lun || frontend.effective_bus() != TargetBus::Virtio {
            continue;
        }
        report
            .finding(
                FieldPath::Disk(index, DiskField::Device),
                format!("`{}` is a SCSI unit of the host, and virtio-blk has no SCSI commands", disk.name()),
            )
            .label("QEMU does not start with it")
            .help("write bus='scsi' and a controller of model='virtio-scsi'; or device='disk', where the guest needs no SCSI commands");
    }
}
