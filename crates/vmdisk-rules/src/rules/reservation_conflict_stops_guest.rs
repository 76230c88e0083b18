//! `reservation-conflict-stops-guest`

use vmdisk_facts::Version;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{Device, DiskField, ErrorPolicy, FieldPath};
use vmdisk_rule::{Confidence, Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A LUN with persistent reservations stops the guest at an error, which a reservation conflict is.
    ///
    /// ## What it reports
    /// Reports a disk with `device='lun'` and `<reservations>` in its source whose `error_policy` is `stop` or `ignore`.
    ///
    /// ## Why it matters
    /// In a cluster of guests, such as Windows Failover Cluster, a node learns from a reservation conflict that it lost the
    /// disk. Until QEMU 9.0, `error_policy='stop'` pauses the guest at the conflict, so that no failover happens; `ignore`
    /// tells the guest that its write succeeded.
    ///
    /// ## Use instead
    /// Use `error_policy='report'`, which is also what happens at a conflict if nothing is set.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' cache='none' error_policy='stop'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'>
    ///     <reservations managed='yes'/>
    ///   </source>
    ///   <target dev='sda' bus='scsi'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' cache='none' error_policy='report'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'>
    ///     <reservations managed='yes'/>
    ///   </source>
    ///   <target dev='sda' bus='scsi'/>
    ///   <shareable/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' cache='none' error_policy='stop'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'/>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    /// ```xml,not-reported,hidden,qemu-9.1
    /// <disk type='block' device='lun'>
    ///   <driver name='qemu' type='raw' cache='none' error_policy='stop'/>
    ///   <source dev='/dev/disk/by-id/wwn-0x5000c500a1b2c3d4'>
    ///     <reservations managed='yes'/>
    ///   </source>
    ///   <target dev='sda' bus='scsi'/>
    /// </disk>
    /// ```
    name: "reservation-conflict-stops-guest",
    group: Group::DataSafety,
    severity: Severity::Warning,
    evidence: &[
        Evidence::Source("kubevirt pull request 10736 and RHBZ 2249846: a node of Windows Failover Cluster is paused at a conflict; forklift pull request 7351"),
        Evidence::Source("QEMU patch series of 2024-07-29, scsi-disk: reservation conflicts are always reported to the guest; in 9.1"),
    ],
    check: Model(check),
}

/// The first QEMU that always reports a conflict to the guest.
const ALWAYS_REPORTED: Version = Version(9, 1, 0);

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk, image) in context.images() {
        let reserves =
            disk.frontend.effective_device() == Device::Lun && image.reservations.is_some();
        let policy = disk.frontend.error_policy;
        let Some(policy @ (ErrorPolicy::Stop | ErrorPolicy::Ignore)) = policy.filter(|_| reserves)
        else {
            continue;
        };
        if policy == ErrorPolicy::Stop
            && context.target.qemu.is_some_and(|it| it >= ALWAYS_REPORTED)
        {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::ErrorPolicy);
        let does = match policy {
            ErrorPolicy::Ignore => "hides",
            _ => "pauses the guest at",
        };
        report
            .finding(
                at,
                phrase!(
                    "{disk} has persistent reservations, and {does} a conflict",
                    does
                ),
            )
            .label("the guest does not learn that it lost the disk")
            .confidence(Confidence::Assumed)
            .help(phrase!(
                "use {report}",
                report = setting(at, ErrorPolicy::Report)
            ));
    }
}
