//! `lun-on-virtio-blk`

use vmdisk_facts::{Capability, machine_version};
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Device, DiskField, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A SCSI device of the host is passed through on virtio-blk, which no longer supports that.
    ///
    /// ## What it reports
    /// Reports `device='lun'` on bus virtio, except for machine types up to 2.6.
    ///
    /// ## Why it matters
    /// Block devices of virtio 1.0 have no SCSI commands. While QEMU has the option, libvirt accepts the guest, and
    /// QEMU does not start. QEMU 9.1 removed the option, and libvirt refuses the guest.
    ///
    /// ## Use instead
    /// Use `<target bus='scsi'/>` with a controller of `model='virtio-scsi'`. If the guest needs no SCSI commands, use
    /// `device='disk'`. The guest sees another device and needs a driver for it.
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
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>a</name>
    ///   <os><type arch='x86_64' machine='pc-i440fx-2.7'>hvm</type></os>
    ///   <devices>
    ///     <disk type='block' device='lun'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source dev='/dev/sda'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "lun-on-virtio-blk",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by("QEMU 7.2", "Please set scsi=off for virtio-blk devices in order to use virtio 1.0", "hw/block/virtio-blk.c, virtio_blk_get_features; tried with pc and q35, and pc-i440fx-2.6 starts"),
        Evidence::refused_by_libvirt("This QEMU doesn't support SCSI emulation with 'virtio-blk' device", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend; where QEMU no longer has the option"),
        Evidence::Source("QEMU docs/about/removed-features.rst: `-device virtio-blk,scsi=on|off`, removed in 9.1"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let machine = context.domain.machine.as_ref();
    let is_old = machine
        .and_then(|machine| machine_version(&machine.0))
        .is_some_and(|version| version < Capability::MachineVirtioModern.row().since);
    if is_old {
        return;
    }
    for (index, disk) in context.disks() {
        let frontend = &disk.frontend;
        let is_lun = frontend.effective_device() == Device::Lun;
        if !is_lun || frontend.effective_bus() != TargetBus::Virtio {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::Device);
        let bus = FieldPath::Disk(index, DiskField::TargetBus);
        report
            .finding(
                at,
                phrase!("{disk} passes a SCSI device through, but virtio-blk has no SCSI commands"),
            )
            .label("QEMU does not start")
            .help(phrase!(
                "use {scsi} with a virtio-scsi controller, or {emulated} if the guest needs no SCSI commands",
                scsi = setting(bus, TargetBus::Scsi),
                emulated = setting(at, Device::Disk),
            ));
    }
}
