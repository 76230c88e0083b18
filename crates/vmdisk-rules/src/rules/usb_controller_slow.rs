//! `usb-controller-slow`

use vmdisk_fields::phrase;
use vmdisk_model::{
    Address, ControllerField, ControllerType, Device, DiskField, FieldPath, TargetBus,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A disk is on a USB 1.1 controller, which transfers at most 1.5 MB/s.
    ///
    /// ## What it reports
    /// Reports a disk on bus usb whose controller is written and is of USB 1.1: `piix3-uhci`, `piix4-uhci`, `ich9-uhci…`,
    /// `vt82c686b-uhci` or `pci-ohci`. The disk without an address is on controller 0.
    ///
    /// ## Why it matters
    /// The controller decides the speed: `info usb` of the same disk shows 12 Mb/s on `piix3-usb-uhci`, 480 Mb/s on
    /// `usb-ehci` and 5000 Mb/s on `qemu-xhci`.
    ///
    /// ## Use instead
    /// Use bus `virtio`, or `<controller type='usb' index='0' model='qemu-xhci'/>` for a guest that needs a USB disk.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='usb' index='0' model='piix3-uhci'/>
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
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='usb' index='0' model='qemu-xhci'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='usb'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// The companions of an EHCI controller have its index:
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <controller type='usb' index='0' model='ich9-ehci1'/>
    ///     <controller type='usb' index='0' model='ich9-uhci1'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='usb'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "usb-controller-slow",
    group: Group::Performance,
    severity: Severity::Warning,
    evidence: &[
        Evidence::measured("`info usb` of one usb-storage: 12 Mb/s on piix3-usb-uhci, 480 Mb/s on usb-ehci, 5000 Mb/s on qemu-xhci", "QEMU 7.2"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let is_disk = disk.frontend.effective_device() == Device::Disk;
        if disk.frontend.effective_bus() != TargetBus::Usb || !is_disk {
            continue;
        }
        let number = match &disk.frontend.address {
            Some(Address::Usb(usb)) => usb.bus,
            _ => 0,
        };
        let controllers = context.domain.controllers.iter().enumerate();
        let mut own = controllers.filter(|(_, it)| {
            it.controller_type == ControllerType::Usb && it.index.unwrap_or(0) == number
        });
        let is_slow = |model: &&str| model.contains("uhci") || *model == "pci-ohci";
        let (Some((nth, only)), None) = (own.next(), own.next()) else {
            continue;
        };
        let Some(model) = only.other_model.as_deref().filter(is_slow) else {
            continue;
        };
        report
            .finding(
                FieldPath::Disk(index, DiskField::TargetBus),
                phrase!(
                    "{disk} is on a USB 1.1 controller, `{model}`",
                    model = model.to_owned()
                ),
            )
            .label("at most 12 Mb/s")
            .related(
                FieldPath::Controller(nth, ControllerField::Model),
                "its controller",
            )
            .help("use bus virtio, or the USB controller qemu-xhci");
    }
}
