//! `usb-drive-empty`

use vmdisk_facts::Capability;
use vmdisk_fields::{phrase, setting};
use vmdisk_model::{BackendSource, DiskField, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity, declare_rule};

declare_rule! {
    /// A CD or floppy drive on bus usb has no medium.
    ///
    /// ## What it reports
    /// Reports a drive on bus usb without a source, for libvirt before 11.5.
    ///
    /// ## Why it matters
    /// Before 11.5, libvirt attaches the drive as a USB stick, which cannot be empty. libvirt 11.3 refuses the guest;
    /// 9.0 accepts it, and QEMU refuses it at the start. libvirt 11.5 and later attach a CD drive.
    ///
    /// ## Use instead
    /// Put the drive on bus sata, or insert a medium: add a `<source>`.
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
    /// ```xml,not-reported,libvirt-11.5
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <target dev='sda' bus='usb'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// Not checked without a target, because the version of libvirt is unknown:
    /// ```xml,not-checked
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <target dev='sda' bus='usb'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    /// ```xml,not-reported
    /// <disk type='file' device='cdrom'>
    ///   <driver name='qemu' type='raw'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <readonly/>
    /// </disk>
    /// ```
    name: "usb-drive-empty",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("'usb' disk must not be empty", "src/qemu/qemu_validate.c, qemuValidateDomainDeviceDefDiskFrontend"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    // Later ones attach a CD drive.
    let attaches_cdrom = context.can(Capability::LibvirtUsbCdrom);
    if attaches_cdrom.is_yes() {
        return;
    }
    for (index, disk) in context.disks() {
        if disk.frontend.effective_bus() != TargetBus::Usb
            || !matches!(disk.backend.source, BackendSource::Empty)
        {
            continue;
        }
        let at = FieldPath::Disk(index, DiskField::TargetBus);
        if !attaches_cdrom.is_no() {
            let why = "the target does not set it";
            report.not_checked(at, Missing::new("the version of libvirt", why));
            continue;
        }
        report
            .finding(at, phrase!("{disk} is an empty drive on bus usb"))
            .label("attached as a USB stick, which cannot be empty")
            .note("the guest does not start")
            .help(phrase!(
                "use {sata}, or insert a medium",
                sata = setting(at, TargetBus::Sata),
            ));
    }
}
