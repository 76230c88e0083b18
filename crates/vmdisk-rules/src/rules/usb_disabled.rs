//! `usb-disabled`

use vmdisk_fields::{phrase, setting};
use vmdisk_model::{ControllerField, ControllerType, DiskField, FieldPath, TargetBus};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk is on bus usb, but USB is disabled for the guest.
    ///
    /// ## What it reports
    /// Reports a disk on bus usb in a guest with `<controller type='usb' model='none'/>`.
    ///
    /// ## Why it matters
    /// `model='none'` says that the guest has no USB controller, so there is nothing to attach the disk to. libvirt
    /// refuses the guest.
    ///
    /// ## Use instead
    /// Use another bus. If the guest has to see a USB disk, remove the controller with `model='none'`, or use
    /// `model='qemu-xhci'`.
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
    name: "usb-disabled",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("USB is disabled for this domain, but USB devices are present in the domain XML", "src/qemu/qemu_domain_address.c, qemuDomainUSBAddressAddHubs"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    let none = context.domain.controllers.iter().position(|controller| {
        controller.controller_type == ControllerType::Usb
            && controller.other_model.as_deref() == Some("none")
    });
    let Some(none) = none else {
        return;
    };
    let model = FieldPath::Controller(none, ControllerField::Model);
    for (index, disk) in context.disks() {
        if disk.frontend.effective_bus() != TargetBus::Usb {
            continue;
        }
        report
            .finding(
                FieldPath::Disk(index, DiskField::TargetBus),
                phrase!("{disk} is on bus usb, but the guest has no USB"),
            )
            .label("no USB controller")
            .related(model, "USB is disabled here")
            .help(phrase!(
                "use another bus, or use {xhci}",
                xhci = setting(model, "qemu-xhci"),
            ));
    }
}
