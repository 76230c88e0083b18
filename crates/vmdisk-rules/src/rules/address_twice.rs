//! `address-twice`

use std::collections::BTreeMap;

use vmdisk_fields::{DiskName, Piece, phrase};
use vmdisk_model::{
    Address, ControllerField, ControllerType, DiskField, Domain, FieldPath, PciAddress,
};
use vmdisk_rule::{Context, Evidence, Group, Report, Severity, declare_rule};

declare_rule! {
    /// Two devices have the same PCI address or USB port.
    ///
    /// ## What it reports
    /// Reports disks and disk controllers with the same PCI address, and USB disks at the same port of the same
    /// controller. Also reports PCI addresses of devices that are built into a PC: on `pc` 00:01.0 (ISA bridge), 00:01.1
    /// (IDE), 00:01.2 (USB, unless the guest has another USB controller or none) and 00:01.3 (power management); on q35
    /// 00:1f.0 (ISA bridge), 00:1f.2 (SATA) and 00:1f.3 (SMBus).
    ///
    /// ## Why it matters
    /// This usually happens when a disk's XML is copied together with its address, or the machine is changed. libvirt refuses to define the guest
    /// with `Attempted double use of PCI Address` or `Duplicate USB address`. The message names the address, but
    /// neither of the two devices.
    ///
    /// ## Use instead
    /// Remove the `<address>` element of the copied device. libvirt assigns a free address when the guest is defined.
    ///
    /// ## Reported
    /// ```xml,reported
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os>
    ///     <type arch='x86_64' machine='pc'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x07' function='0x0'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/b.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x07' function='0x0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
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
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x1f' function='0x2'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <memory unit='GiB'>1</memory>
    ///   <os><type arch='x86_64' machine='pc'>hvm</type></os>
    ///   <devices>
    ///     <controller type='usb' index='0' model='piix3-uhci'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x01' function='0x2'/>
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
    ///     <type arch='x86_64' machine='pc'>hvm</type>
    ///   </os>
    ///   <features><acpi/></features>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x07' function='0x0'/>
    ///     </disk>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/b.img'/>
    ///       <target dev='vdb' bus='virtio'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type machine='pc-i440fx-7.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x01' function='0x0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,not-reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type machine='pc-q35-7.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x01' function='0x0'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported,hidden
    /// <domain type='kvm'>
    ///   <name>web1</name>
    ///   <os><type machine='pc-i440fx-7.2'>hvm</type></os>
    ///   <devices>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='vda' bus='virtio'/>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x01' function='0x2'/>
    ///     </disk>
    ///     <controller type='scsi' index='0' model='virtio-scsi'>
    ///       <address type='pci' domain='0x0000' bus='0x00' slot='0x05' function='0x0'/>
    ///     </controller>
    ///   </devices>
    /// </domain>
    /// ```
    name: "address-twice",
    group: Group::Startup,
    severity: Severity::Error,
    libvirt_only: true,
    evidence: &[
        Evidence::refused_by_libvirt("Attempted double use of PCI Address …", "src/conf/domain_addr.c, virDomainPCIAddressReserveAddrInternal"),
        Evidence::refused_by_libvirt("Duplicate USB address bus … port …", "src/conf/domain_addr.c, virDomainUSBAddressReserve"),
    ],
    check: Model(check),
}

/// An address that can hold one device.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum DeviceSlot<'a> {
    Pci(u32, u32, u32, u32),
    Usb(u32, &'a str),
}

fn place(address: Option<&Address>) -> Option<DeviceSlot<'_>> {
    match address? {
        Address::Pci(PciAddress {
            domain,
            bus,
            slot,
            function,
            multifunction: _,
        }) => {
            let place = (*domain, *bus, *slot, *function);
            // libvirt treats an address of zeros as unset.
            (place != (0, 0, 0, 0)).then_some(DeviceSlot::Pci(place.0, place.1, place.2, place.3))
        }
        Address::Usb(address) => Some(DeviceSlot::Usb(address.bus, &address.port)),
        _ => None,
    }
}

fn check(context: &Context<'_>, report: &mut Report) {
    let controllers = context.domain.controllers.iter().enumerate();
    let of_controllers = controllers.map(|(nth, controller)| {
        let at = FieldPath::Controller(nth, ControllerField::Address);
        (at, controller.address.as_ref(), None)
    });
    let of_disks = context.disks().map(|(index, disk)| {
        let at = FieldPath::Disk(index, DiskField::Address);
        (at, disk.frontend.address.as_ref(), Some(index))
    });
    let mut taken: BTreeMap<DeviceSlot<'_>, FieldPath> = BTreeMap::new();
    for (at, address, disk) in of_controllers.chain(of_disks) {
        let Some(place) = place(address) else {
            continue;
        };
        if let DeviceSlot::Pci(0, 0, slot, function) = place
            && !is_built_in(context.domain, at)
            && let Some(device) = built_in(context.domain, slot, function)
        {
            report
                .finding(
                    at,
                    phrase!(
                        "the PCI address of {owner} belongs to a built-in device",
                        owner = owner(disk)
                    ),
                )
                .label(phrase!("{device} of the machine", device))
                .note("libvirt refuses the guest, or QEMU does not start")
                .help(phrase!(
                    "remove {address}; libvirt assigns a free one",
                    address = at
                ));
            continue;
        }
        let what = match place {
            DeviceSlot::Pci(..) => "PCI address",
            DeviceSlot::Usb(..) => "port of a USB controller",
        };
        let Some(first) = taken.get(&place) else {
            taken.insert(place, at);
            continue;
        };
        report
            .finding(
                at,
                phrase!(
                    "the {what} of {owner} is already in use",
                    what,
                    owner = owner(disk)
                ),
            )
            .label("already in use")
            .related(*first, "used by this device")
            .help(phrase!(
                "remove {address}; libvirt assigns a free one",
                address = at
            ));
    }
}

fn owner(disk: Option<usize>) -> Piece {
    disk.map_or(Piece::from("a controller"), |index| DiskName(index).into())
}

/// True for the controllers that a PC has itself, and that libvirt writes with their addresses.
fn is_built_in(domain: &Domain, at: FieldPath) -> bool {
    let FieldPath::Controller(nth, _) = at else {
        return false;
    };
    !matches!(
        domain.controllers[nth].controller_type,
        ControllerType::Scsi | ControllerType::Nvme
    )
}

/// The device of the machine at an address on the first PCI bus; libvirt src/qemu/qemu_domain_address.c,
/// qemuDomainValidateDevicePCISlotsPIIX3 and qemuDomainValidateDevicePCISlotsQ35.
fn built_in(domain: &Domain, slot: u32, function: u32) -> Option<&'static str> {
    let machine = domain.machine.as_ref()?;
    let device = match (slot, function) {
        (1, 0) => "the ISA bridge",
        (1, 1) => "the IDE controller",
        (1, 2) if has_first_usb(domain) => "the USB controller",
        (1, 3) => "the power management",
        (0x1f, 0) => "the ISA bridge",
        (0x1f, 2) => "the SATA controller",
        (0x1f, 3) => "the SMBus controller",
        _ => return None,
    };
    let has_it = if slot == 1 {
        machine.is_i440fx()
    } else {
        machine.is_q35()
    };
    has_it.then_some(device)
}

/// True if libvirt uses the USB controller of `pc`: the configured one has its model, or none is configured.
fn has_first_usb(domain: &Domain) -> bool {
    let mut controllers = domain.controllers.iter();
    let first = controllers.find(|controller| {
        controller.controller_type == ControllerType::Usb && controller.index.unwrap_or(0) == 0
    });
    first.is_none_or(|controller| match &controller.other_model {
        Some(model) => model == "piix3-uhci",
        None => controller.address.is_none(),
    })
}
