//! `lun-without-reservations`

use vmdisk_fields::{either, phrase};
use vmdisk_model::{Device, DiskField, FieldPath, ImageField, Protocol, Switch};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A shared SCSI LUN is passed through without persistent reservations, so fencing in a guest cluster fails.
    ///
    /// ## What it reports
    /// Reports a disk with `device='lun'` and `<shareable/>` on a block device, without `<reservations>` in its source and
    /// without `rawio='yes'`.
    ///
    /// ## Why it matters
    /// Clusters such as Windows Failover Cluster or Pacemaker with `fence_scsi` protect a shared disk with SCSI
    /// persistent reservations. The kernel passes the command only for processes with `CAP_SYS_RAWIO`, which QEMU does
    /// not have. The guest gets an error: the validation of the cluster fails, or a node that should be fenced continues
    /// to write.
    ///
    /// ## Use instead
    /// Add `<reservations managed='yes'/>` to `<source>`: libvirt 4.4 and later then start `qemu-pr-helper`, which has
    /// this capability and also handles multipath.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='sda' bus='scsi'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'>
    ///     <reservations managed='yes'/>
    ///   </source>
    ///   <target dev='sda' bus='scsi'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    /// A LUN that only this guest uses:
    /// ```xml,not-reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden
    /// <disk type='block' device='lun' rawio='yes'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='sda' bus='scsi'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    name: "lun-without-reservations",
    group: Group::Clarity,
    severity: Severity::Advice,
    evidence: &[
        Evidence::Source("QEMU docs/tools/qemu-pr-helper.rst: SCSI persistent reservations need privileges that QEMU does not have"),
        Evidence::Source("libvirt docs/formatdomain.rst, reservations: since 4.4.0; src/conf/domain_validate.c: `<reservations/> allowed only for lun devices`"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let is_shared_lun = disk.frontend.effective_device() == Device::Lun
            && disk.backend.is_shareable
            && matches!(image.protocol, Protocol::HostDevice { .. });
        let may_reserve = image.reservations.is_some() || disk.frontend.rawio == Some(Switch::On);
        if !is_shared_lun || may_reserve {
            continue;
        }
        report
            .finding(
                FieldPath::Disk(index, DiskField::Device),
                phrase!("{disk} is shared, and the guest cannot make persistent reservations on it"),
            )
            .label("commands for reservations fail")
            .help(match context.consumer {
                // A spec has no key for it.
                Consumer::Libvirt => either(
                    phrase!(
                        "add {reservations} with `managed='yes'` to the source",
                        reservations = FieldPath::Image(index, 0, ImageField::Reservations),
                    ),
                    "add a manager of persistent reservations to the generated configuration",
                ),
                Consumer::Qemu => "add `-object pr-manager-helper,id=pr0,path=SOCKET`, and `pr-manager=pr0` to the host_device node".into(),
            });
    }
}
