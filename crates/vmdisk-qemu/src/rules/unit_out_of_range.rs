//! `unit-out-of-range`

use vmdisk_fields::{phrase, quoted};
use vmdisk_model::{
    Address, ControllerType, Disk, DiskField, Domain, DriveAddress, FieldPath, ScsiControllerModel,
    TargetBus, UsbAddress,
};
use vmdisk_rule::{Consumer, Context, Evidence, Group, Report, Severity};
use vmdisk_source::Span;

use super::drive_indexes::{placed_drives, units};
use super::line::{Line, base_of, line_rule};
use super::places::{
    IdePlace, MAX_NAMESPACE, MAX_PCI_SLOT, Present, is_ide_disk, is_pci, is_scsi_disk, number,
    pci_span, slot_of, span_of,
};
use crate::members::Members;
use vmdisk_model::Board;

line_rule! {
    /// A disk has an address that its bus does not have.
    ///
    /// ## What it reports
    /// Reports targets and units that the disk's SCSI controller does not have, IDE, SATA, floppy and flash units that the
    /// machine does not have, ports that the disk's USB controller or a USB hub does not have, and on command lines
    /// channels other than 0 on virtio-scsi, NVMe namespaces above 256 and PCI slots above 31. A USB hub has 8 ports.
    /// The limits of SCSI controllers (QEMU 11.1):
    ///
    /// | controller | highest target | highest unit |
    /// |---|---|---|
    /// | `virtio-scsi` | 255 | 16383 |
    /// | `lsisas1078` | 64 | 255 |
    /// | `vmpvscsi` | 64 | 0 |
    /// | `lsisas1068` | 8 | 1 |
    /// | `lsilogic`, whose targets libvirt calls units | 7 | 0 |
    /// | `am53c974`, `dc390` | 7 | 7 |
    ///
    /// ## Why it matters
    /// libvirt refuses a USB port. It defines the guest in the other cases, but QEMU exits at start. The message names
    /// the number and not the limit: `bad scsi device lun: 16384` or `Bus 'ide.6' not found`.
    ///
    /// ## Use instead
    /// Remove the address: libvirt and QEMU then choose a free one. For more disks than a controller has units, add
    /// another controller.
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
    ///     <controller type='scsi' index='0' model='lsilogic'/>
    ///     <disk type='file' device='disk'>
    ///       <driver name='qemu' type='raw' cache='none'/>
    ///       <source file='/srv/a.img'/>
    ///       <target dev='sda' bus='scsi'/>
    ///       <address type='drive' controller='0' bus='0' target='0' unit='8'/>
    ///     </disk>
    ///   </devices>
    /// </domain>
    /// ```
    /// ```xml,reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <address type='drive' controller='0' bus='0' target='0' unit='6'/>
    /// </disk>
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device ide-hd,drive=f0,id=sda,bus=ide.6
    /// ```
    /// An IDE bus of q35 has one unit, and one of `pc` has two:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=/srv/a.img,format=raw,if=ide,bus=0,unit=1
    /// ```
    /// An xHCI controller has 4 ports unless it sets another number:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -device qemu-xhci,id=usb \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device usb-storage,drive=f0,id=sda,bus=usb.0,port=9
    /// ```
    ///
    /// ## Not reported
    /// ```xml,not-reported
    /// <disk type='file' device='disk'>
    ///   <driver name='qemu' type='raw' cache='none'/>
    ///   <source file='/srv/a.img'/>
    ///   <target dev='sda' bus='sata'/>
    ///   <address type='drive' controller='0' bus='0' target='0' unit='5'/>
    /// </disk>
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device ide-hd,drive=f0,id=sda,bus=ide.5
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -device qemu-xhci,id=usb,p2=15,p3=15 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device usb-storage,drive=f0,id=sda,bus=usb.0,port=9
    /// ```
    ///
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine pc -drive if=none,id=d0,file=/srv/a.img,format=raw \
    ///   -device ide-hd,id=ide,drive=d0,bus=ide.0,unit=1
    /// ```
    name: "unit-out-of-range",
    group: Group::Startup,
    severity: Severity::Error,
    evidence: &[
        Evidence::refused_by_qemu("Bus 'ide.6' not found", "softmmu/qdev-monitor.c, qbus_find"),
        Evidence::refused_by_qemu("bad scsi device lun: 16384", "hw/scsi/scsi-bus.c, scsi_bus_check_address"),
        Evidence::refused_by_qemu("usb port 9 (bus usb.0) not found (in use?)", "hw/usb/bus.c, usb_claim_port"),
        Evidence::Source("libvirt src/conf/domain_addr.c, virDomainUSBAddressReserve: \"requested USB port … not present on USB bus …\""),
    ],
    check: Model(check), Text(check_line),
}

fn check(context: &Context<'_>, report: &mut Report) {
    for (index, disk) in context.disks() {
        let place = match &disk.frontend.address {
            Some(Address::Drive(place)) => place,
            Some(Address::Usb(place)) => {
                check_usb(context, report, index, place);
                continue;
            }
            _ => continue,
        };
        let limits = match context.consumer {
            Consumer::Libvirt => limits(context.domain, disk),
            // The reader of command lines checks the other addresses.
            Consumer::Qemu => scsi_limits(context.domain, disk).filter(|_| {
                let DriveAddress { target, unit, .. } = *place;
                target <= VIRTIO_SCSI.target && unit <= VIRTIO_SCSI.unit
            }),
        };
        let Some(most) = limits else {
            continue;
        };
        let numbers = [
            ("bus", place.bus, most.bus),
            ("target", place.target, most.target),
            ("unit", place.unit, most.unit),
        ];
        let Some((what, number, most)) =
            numbers.into_iter().find(|(_, number, most)| number > most)
        else {
            continue;
        };
        let name = disk.name();
        let title = match most {
            0 => format!("`{name}` is at {what} {number}, but its controller only has {what} 0"),
            _ => format!("`{name}` is at {what} {number}, but its controller only has 0 to {most}"),
        };
        report
            .finding(FieldPath::Disk(index, DiskField::Address), title)
            .label(format!("no such {what}"))
            .note("QEMU does not start with it")
            .help(context.for_consumer(
                "use an address that the controller has, or remove it and let libvirt assign one",
                "use an address that the controller has, or remove it and let QEMU assign one",
            ));
    }
}

fn check_usb(context: &Context<'_>, report: &mut Report, index: usize, place: &UsbAddress) {
    // The reader of command lines has the other controllers.
    if context.consumer == Consumer::Qemu {
        return;
    }
    if let Some((owner, most)) = usb_excess(&place.port, usb_ports(context.domain, place.bus)) {
        let title = phrase!(
            "{disk} is at USB port {port}, but {owner} only has 1 to {most}",
            port = quoted(place.port.clone()),
            owner,
            most,
        );
        report
            .finding(FieldPath::Disk(index, DiskField::Address), title)
            .label("no such port")
            .note("libvirt refuses the guest")
            .help("use a port that the controller has, or remove the address and let libvirt assign one");
    }
}

/// QEMU's `NUM_PORTS` of `usb-hub`, and libvirt's `VIR_DOMAIN_USB_HUB_PORTS`.
const USB_HUB_PORTS: u32 = 8;

/// The owner of a port that does not exist, and the number of ports that it has. `1.2` is a port of a hub.
fn usb_excess(port: &str, of_controller: Option<u32>) -> Option<(&'static str, u32)> {
    port.split('.').enumerate().find_map(|(depth, number)| {
        let (owner, most) = match depth {
            0 => ("its controller", of_controller?),
            _ => ("a USB hub", USB_HUB_PORTS),
        };
        let number: u32 = number.parse().ok()?;
        (number > most).then_some((owner, most))
    })
}

/// The ports of a USB controller, if its model is known.
fn usb_ports(domain: &Domain, bus: u32) -> Option<u32> {
    let mut all = domain.controllers.iter().filter(|it| {
        let is_there = it.controller_type == ControllerType::Usb && it.index.unwrap_or(0) == bus;
        // A companion adds no ports of its own.
        is_there && it.start_port.is_none()
    });
    let (Some(controller), None) = (all.next(), all.next()) else {
        return None;
    };
    Some(match controller.other_model.as_deref()? {
        "piix3-uhci" | "piix4-uhci" => 2,
        "pci-ohci" => 3,
        "ehci" | "ich9-ehci1" => 6,
        "nec-xhci" | "qemu-xhci" => controller.ports.unwrap_or(4),
        _ => return None,
    })
}

/// The highest numbers of a controller; numbers that libvirt refuses have no limit here.
struct Limits {
    bus: u32,
    target: u32,
    unit: u32,
}

/// The limits of virtio-scsi, the highest of all.
const VIRTIO_SCSI: Limits = Limits {
    bus: u32::MAX,
    target: 255,
    unit: 16_383,
};

/// QEMU's limits of a bus.
fn limits(domain: &Domain, disk: &Disk) -> Option<Limits> {
    let (bus, unit) = match disk.frontend.effective_bus() {
        TargetBus::Scsi => return scsi_limits(domain, disk),
        TargetBus::Ide => (1, 1),
        TargetBus::Sata => (u32::MAX, 5),
        TargetBus::Fdc => (u32::MAX, 1),
        _ => return None,
    };
    Some(Limits {
        bus,
        target: u32::MAX,
        unit,
    })
}

/// QEMU's limits of a SCSI controller; tried with QEMU 11.1, `max_target` and `max_lun` in hw/scsi.
fn scsi_limits(domain: &Domain, disk: &Disk) -> Option<Limits> {
    // The default model of a controller depends on the QEMU that libvirt finds.
    let written = domain.scsi_controller_of(disk)?.scsi_model?;
    let (target, unit) = match written {
        ScsiControllerModel::VirtioScsi
        | ScsiControllerModel::VirtioTransitional
        | ScsiControllerModel::VirtioNonTransitional => return Some(VIRTIO_SCSI),
        // libvirt uses the unit as QEMU's target.
        ScsiControllerModel::Lsilogic => (u32::MAX, 7),
        ScsiControllerModel::Lsisas1068 => (8, 1),
        ScsiControllerModel::Lsisas1078 => (64, 255),
        ScsiControllerModel::Vmpvscsi => (64, 0),
        ScsiControllerModel::Dc390 | ScsiControllerModel::Am53c974 => (7, 7),
        _ => return None,
    };
    Some(Limits {
        bus: u32::MAX,
        target,
        unit,
    })
}

/// The units of `-drive`, of which an IDE bus of q35 has one.
fn check_units(line: &Line<'_>, report: &mut Report) {
    if !line.has_machine() {
        return;
    }
    for (option, drive) in line.index.of_name("drive") {
        let units = match line.board() {
            Board::Q35 | Board::I440fx => units(line.board(), drive.value("if").unwrap_or("ide")),
            _ => None,
        };
        let excess = number(drive, "unit").zip(units);
        let Some(((unit, span), units)) = excess.filter(|((unit, _), units)| unit >= units) else {
            continue;
        };
        let message = format!("a bus of these drives has no unit {unit}");
        let help = match units {
            1 => "write unit=0 and another bus, or index alone".to_owned(),
            _ => format!("write a number from 0 to {}", units - 1),
        };
        line.refuse(report, option, span, message, help);
    }
}

pub(super) fn check_line(line: &Line<'_>, report: &mut Report) {
    check_units(line, report);
    let present = Present::of(&line.index);
    for (option, driver, device) in line.index.devices() {
        let base = base_of(driver);
        let span = span_of(line, option, device);
        if matches!(base, "usb-storage" | "usb-bot" | "usb-uas") {
            check_usb_port(line, report, option, device);
        }
        let mut refuse = |span, message, most| {
            let help = format!("write a number from 0 to {most}");
            line.refuse(report, option, span, message, help);
        };
        if is_scsi_disk(base) {
            check_scsi(device, &present, &mut refuse);
        } else if is_ide_disk(base) {
            let place = IdePlace::of(line, device, &present, span);
            if let Some((span, message, most)) = place.and_then(|place| place.excess()) {
                refuse(span, message, most);
            }
        } else if base == "nvme-ns"
            && let Some((number, span)) =
                number(device, "nsid").filter(|(it, _)| *it > MAX_NAMESPACE)
        {
            let message = format!("an NVMe controller has no namespace {number}");
            refuse(span, message, MAX_NAMESPACE);
        }
        let slot = device.get("addr").and_then(slot_of);
        if is_pci(line, driver)
            && let Some((slot, _)) = slot.filter(|(slot, _)| *slot > MAX_PCI_SLOT)
        {
            let message = format!("a PCI bus has no slot {slot}");
            refuse(pci_span(device, span), message, MAX_PCI_SLOT);
        }
        if is_pci(line, driver)
            && let Some(addr) = device.get("addr")
            && !addr.is_open()
            && slot_of(addr).is_none_or(|(_, function)| function > 7)
        {
            let message = format!(
                "`{}` is not a PCI slot with a function",
                addr.value.as_str()
            );
            let help = "write a slot from 0 to 1f, with a function from 0 to 7 if it has several: `addr=5` or `addr=5.1`";
            line.refuse(report, option, addr.span, message, help);
        }
    }
    check_drives(line, report);
}

fn check_usb_port(line: &Line<'_>, report: &mut Report, option: usize, device: Members<'_>) {
    let Some(port) = device.get("port") else {
        return;
    };
    let number = port.value.as_str();
    let is_port = |part: &str| part.parse::<u32>().is_ok_and(|part| part > 0);
    if !port.is_open() && !number.split('.').all(is_port) {
        let message = format!("`{number}` is not a USB port");
        let help = "write a port from 1, or remove it and let QEMU assign one";
        line.refuse(report, option, port.span, message, help);
        return;
    }
    let ports = device.value("bus").and_then(|bus| xhci_ports(line, bus));
    if let Some((owner, most)) = usb_excess(number, ports) {
        let message = format!("port `{number}` does not exist: {owner} only has 1 to {most}");
        let help = format!("write a port from 1 to {most}, or remove it and let QEMU assign one");
        line.refuse(report, option, port.span, message, help);
    }
}

/// The ports of the xHCI controller with this bus; the first of both speeds share their number.
fn xhci_ports(line: &Line<'_>, bus: &str) -> Option<u32> {
    let id = bus.strip_suffix(".0")?;
    let mut devices = line.index.devices();
    let (_, _, controller) = devices.find(|(_, driver, device)| {
        matches!(*driver, "qemu-xhci" | "nec-usb-xhci") && device.value("id") == Some(id)
    })?;
    let ports = |key| match controller.value(key) {
        Some(text) => text.parse().ok(),
        None => Some(4),
    };
    Some(ports("p2")?.max(ports("p3")?))
}

/// Drives beyond the ports, floppy drives and flash devices of a PC.
fn check_drives(line: &Line<'_>, report: &mut Report) {
    let ports = match line.board() {
        Board::Q35 => 6,
        Board::I440fx => 4,
        _ => return,
    };
    if !line.has_machine() {
        return;
    }
    for drive in placed_drives(line) {
        let (what, places, instead) = match drive.interface {
            "ide" => ("IDE or SATA port", ports, ", or if=virtio"),
            "floppy" => ("floppy drive", 2, ""),
            "pflash" => ("flash device", 2, ""),
            _ => continue,
        };
        if drive.index < places {
            continue;
        }
        let message = format!("{} has no {what} {}", line.board().name(), drive.index);
        let help = format!("use an index from 0 to {}{instead}", places - 1);
        line.refuse(report, drive.option, drive.span, message, help);
    }
}

fn check_scsi(
    device: Members<'_>,
    present: &Present<'_>,
    refuse: &mut impl FnMut(Span, String, u64),
) {
    // The limits depend on the controller; virtio-scsi has the largest.
    for (key, most) in [("lun", VIRTIO_SCSI.unit), ("scsi-id", VIRTIO_SCSI.target)] {
        let most = u64::from(most);
        if let Some((number, span)) = number(device, key).filter(|(number, _)| *number > most) {
            let message = format!("{key} {number} exceeds the limit of SCSI controllers");
            refuse(span, message, most);
        }
    }
    let is_virtio_alone = present.drivers.contains("virtio-scsi") && !present.has_emulated_scsi;
    if let Some((channel, span)) =
        number(device, "channel").filter(|(channel, _)| *channel > 0 && is_virtio_alone)
    {
        let message = format!("channel {channel}: virtio-scsi has one channel");
        refuse(span, message, 0);
    }
}
