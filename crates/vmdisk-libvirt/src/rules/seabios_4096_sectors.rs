//! `seabios-4096-sectors`

use vmdisk_model::{Device, DiskField, Domain, FieldPath, Frontend, TargetBus};
use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::xml::{Xml, xml_rule};
use crate::RootKind;
use crate::xml::Node;

xml_rule! {
    /// The guest boots with SeaBIOS from a disk with 4096-byte logical sectors, which SeaBIOS does not support.
    ///
    /// ## What it reports
    /// Reports `logical_block_size` above 512 on the first disk in the boot order of an x86 guest that has no other
    /// firmware: neither `<os firmware='efi'>` nor a `<loader>`, and no `<kernel>`. Checked for disks on virtio and SCSI.
    ///
    /// ## Why it matters
    /// SeaBIOS, the default firmware of x86 guests, ignores such a disk: `block size 4096 is unsupported`, then `No
    /// bootable device`. A disk that was installed with 512-byte sectors is unreadable with 4096 for every firmware,
    /// because its partition table counts in sectors.
    ///
    /// ## Use instead
    /// Use `<blockio physical_block_size='4096'/>`, which aligns the guest's writes and keeps its sectors. A new guest with
    /// 4096-byte sectors needs UEFI: `<os firmware='efi'>` (libvirt 5.2) with `<features><acpi/></features>`, as
    /// `vmdisk generate` writes it for such a disk.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.img'/>
    ///       <blockio logical_block_size='4096' physical_block_size='4096'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os firmware='efi'>
    ///     <type arch='x86_64' machine='q35'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.img'/>
    ///       <blockio logical_block_size='4096' physical_block_size='4096'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// A data disk:
    /// ```xml,not-reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/web1.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/data.img'/>
    ///       <blockio logical_block_size='4096' physical_block_size='4096'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    name: "seabios-4096-sectors",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::measured("`block size 4096 is unsupported`, then `No bootable device`", "SeaBIOS 1.16.2 with virtio-blk and virtio-scsi, logical_block_size=4096"),
        Evidence::Source("SeaBIOS src/hw/virtio-blk.c, init_virtio_blk; src/hw/blockcmd.c, scsi_drive_setup"),
    ],
    check: Text(check),
}

/// The only size that SeaBIOS reads.
const SECTOR: u32 = 512;

pub(super) fn check(xml: &Xml<'_>, report: &mut Report) {
    // Another size is refused by QEMU, and `block-size-refused` reports it.
    let large = |frontend: &Frontend| {
        let size = frontend.logical_block_size;
        size.filter(|size| *size > SECTOR && size.is_power_of_two())
    };
    let disks = &xml.context.domain.disks;
    // Nearly no guest has one.
    if disks.iter().all(|disk| large(&disk.frontend).is_none()) {
        return;
    }
    let root = xml.tree.root();
    let Some(devices) = root
        .child("devices")
        .filter(|_| matches!(xml.root, RootKind::Domain))
    else {
        return;
    };
    let Some(index) = boot_disk(xml.context.domain, devices) else {
        return;
    };
    let frontend = &disks[index].frontend;
    let Some(size) = large(frontend) else {
        return;
    };
    // A device that is passed through has its own sectors, and `lun-option-refused` reports others.
    if frontend.effective_device() == Device::Lun {
        return;
    }
    // Buses whose disks SeaBIOS was seen to refuse.
    let is_tried = matches!(
        frontend.effective_bus(),
        TargetBus::Virtio | TargetBus::Scsi
    );
    if !is_tried || !root.child("os").is_none_or(boots_with_seabios) {
        return;
    }
    let at = FieldPath::Disk(index, DiskField::LogicalBlockSize);
    let Some(place) = xml.map.place(at) else {
        return;
    };
    let message = format!("SeaBIOS does not boot from a disk with {size}-byte sectors");
    report.finding(at, message).span(place.whole).help(
        "use `physical_block_size='4096'` alone, or for a new guest UEFI with `<os firmware='efi'>`"
            ,
    );
}

/// The number of the disk that the firmware tries first. A device with a boot order comes before all without.
fn boot_disk(domain: &Domain, devices: Node<'_>) -> Option<usize> {
    let first = domain.boot_disk()?;
    let is_ordered = |node: Node<'_>| node.child("boot").is_some();
    let order = domain.disks[first].frontend.boot_order;
    (order.is_some() || !devices.children().any(is_ordered)).then_some(first)
}

/// True if the firmware of a guest is SeaBIOS, and tries a disk.
fn boots_with_seabios(os: Node<'_>) -> bool {
    let os_type = os.child("type");
    let of_type = |name| os_type.and_then(|node| node.attribute(name));
    let is_pc = matches!(of_type("arch"), None | Some("x86_64" | "i686"))
        && !of_type("machine").is_some_and(|machine| machine.starts_with("microvm"));
    let has_other = os
        .attribute("firmware")
        .is_some_and(|firmware| firmware != "bios")
        || os.child("loader").is_some()
        || os.child("kernel").is_some();
    let mut boots = os
        .children()
        .filter(|node| node.is_named("boot"))
        .peekable();
    let tries_disk =
        boots.peek().is_none() || boots.any(|boot| boot.attribute("dev") == Some("hd"));
    is_pc && !has_other && tries_disk
}
