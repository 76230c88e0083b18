//! `usb-drive-empty`

use vmdisk_facts::Version;
use vmdisk_model::{BackendSource, DiskField, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A drive on USB has no medium.
    ///
    /// ## What it does
    /// Reports a drive with removable media on bus usb without a source.
    ///
    /// ## Why it matters
    /// libvirt makes a USB stick of it, which is never empty. libvirt 11.3 refuses the guest; 9.0 takes it, and QEMU
    /// refuses it at the start. From 11.5 on libvirt makes a drive of it again.
    ///
    /// ## Reported
    /// ```xml,reported,libvirt-11.3
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <target dev='sda' bus='usb'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "usb-drive-empty",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("'usb' disk must not be empty", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDisk"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    // From 11.5 on a CD drive on USB is one again.
    if context.libvirt_is_before(Version(11, 5, 0)) != Some(true) {
        return;
    }
    for (index, disk) in context.disks() {
        if disk.frontend.effective_bus() != TargetBus::Usb
            || !matches!(disk.backend.source, BackendSource::Empty)
        {
            continue;
        }
        report
            .finding(
                FieldPath::Disk(index, DiskField::TargetBus),
                format!("`{}` is a drive on USB without a medium", disk.name()),
            )
            .label("a USB stick is never empty")
            .note("the guest does not start")
            .help("put it on bus='sata', or name a medium");
    }
}
