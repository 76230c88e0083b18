//! `usb-disabled`

use vmdisk_model::{ControllerField, ControllerType, DiskField, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk hangs on USB, and the guest has none.
    ///
    /// ## What it does
    /// Reports a disk on bus usb beside `<controller type='usb' model='none'/>`.
    ///
    /// ## Why it matters
    /// libvirt refuses the guest.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='usb' index='0' model='none'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='usb'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='usb'/>
    /// </disk>
    /// ```
    pub(super) static RULE = {
        name: "usb-disabled",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        is_about_libvirt: true,
        evidence: &[
            Evidence::refused_by_libvirt("USB is disabled for this domain, but USB devices are present in the domain XML", "src/qemu/qemu_domain_address.c, qemuDomainUSBAddressAddControllers"),
        ],
        supersedes: &[],
        check: Model(check),
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let none = context.domain.controllers.iter().position(|controller| {
        controller.controller_type == ControllerType::Usb
            && controller.other_model.as_deref() == Some("none")
    });
    let Some(none) = none else {
        return;
    };
    for (index, disk) in context.disks() {
        if disk.frontend.effective_bus() != TargetBus::Usb {
            continue;
        }
        report
            .finding(
                FieldPath::Disk(index, DiskField::TargetBus),
                format!(
                    "`{}` hangs on USB, which this guest does not have",
                    disk.name()
                ),
            )
            .label("there is no USB")
            .related(
                FieldPath::Controller(none, ControllerField::Model),
                "it is turned off here",
            )
            .note("libvirt refuses the guest for it")
            .help("put the disk on another bus, or write another model of USB controller");
    }
}
