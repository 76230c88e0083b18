//! `boot-order-beside-boot-device`

use vmdisk_fields::phrase;
use vmdisk_model::{DiskField, DomainField, FieldPath};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// A guest sets both `<boot dev>` and a boot order on its devices.
    ///
    /// ## What it reports
    /// Reports `<boot order='…'/>` on a disk if `<os>` contains `<boot dev='…'/>`.
    ///
    /// ## Why it matters
    /// The two ways to set the boot order exclude each other. libvirt refuses to define the guest with
    /// `per-device boot elements cannot be used together with os/boot elements`. Schema validation accepts it. Adding
    /// an order to a disk of a guest that was created with `<boot dev='hd'/>` is the usual cause.
    ///
    /// ## Use instead
    /// Keep `<boot order='…'/>` on the devices and remove `<boot dev='…'/>` from `<os>`. The order on the devices can
    /// also distinguish between two disks.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///     <boot dev='hd'/>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <boot order='1'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <boot order='1'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "boot-order-beside-boot-device",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("per-device boot elements cannot be used together with os/boot elements", "src/conf/domain_postparse.c, virDomainDefBootOrderPostParse"),
    ],
    check: Model(check),
}

fn check(context: &Context<'_>, report: &mut Report) {
    if context.domain.boot_devices.is_empty() {
        return;
    }
    let first = context
        .disks()
        .find(|(_, disk)| disk.frontend.boot_order.is_some());
    let Some((index, _)) = first else {
        return;
    };
    report
        .finding(
            FieldPath::Disk(index, DiskField::BootOrder),
            phrase!("{disk} has a boot order, but the guest sets boot devices too"),
        )
        .label("an order on the devices")
        .related(
            FieldPath::Domain(DomainField::BootDevices),
            "another order here",
        )
        .help("remove `<boot dev='…'/>` from `<os>`");
}
