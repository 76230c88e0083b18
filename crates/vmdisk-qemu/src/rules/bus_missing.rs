//! `bus-missing`

use std::collections::HashSet;
use vmdisk_model::{Architecture, Scope};
use vmdisk_rule::{Evidence, Group, Report, Severity, declare_rule};
use vmdisk_source::Span;

use super::line::{Line, base_of};
use super::places::{Present, span_of};
use crate::board::Board;
use crate::syntax::properties::{Properties, Syntax};
use crate::syntax::value::is_open;

declare_rule! {
    /// A device needs a bus that no controller provides.
    ///
    /// ## What it reports
    /// Reports disk devices on a command line without their controller: SCSI disks without a SCSI controller, USB disks
    /// without a USB controller, NVMe namespaces without `nvme`, and floppies on q35 without `isa-fdc`. It also reports
    /// virtio devices with the wrong transport, a `bus` that no device provides, and `-drive if=scsi` on a PC.
    ///
    /// ## Why it matters
    /// QEMU does not add controllers, as libvirt does. It exits at start with
    /// `No 'SCSI' bus found for device 'scsi-hd'` or `Bus 'scsi0.0' not found`.
    ///
    /// ## Use instead
    /// Add the controller before the device and give it an id: `-device virtio-scsi-pci,id=scsi0` with
    /// `-device scsi-hd,bus=scsi0.0,drive=…`, or `-device qemu-xhci` for USB.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device scsi-hd,drive=f0,id=sda
    /// ```
    ///
    /// Without `-machine`, `qemu-system-x86_64` uses `pc`:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -drive file=/srv/a.img,format=raw,if=scsi
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0
    /// ```
    /// `virt` on Arm and RISC-V has MMIO slots for virtio devices:
    /// ```args,not-reported
    /// qemu-system-aarch64 -machine virt \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-device,drive=f0,id=vda
    /// ```
    /// Other Arm boards have a PCI bus, too:
    /// ```args,not-reported
    /// qemu-system-arm -machine versatilepb \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    pub(crate) static RULE = {
        name: "bus-missing",
        group: Group::Startup,
        severity: Severity::Error,
        since: "0.1.0",
        applies_to_foreign_guests: true,
        evidence: &[
            Evidence::Refused {
                by: "QEMU",
                text: "No 'SCSI' bus found for device 'scsi-hd'",
                source: "softmmu/qdev-monitor.c, qdev_device_add",
            },
            Evidence::Refused {
                by: "QEMU",
                text: "Bus 'scsi0.0' not found",
                source: "softmmu/qdev-monitor.c, qbus_find",
            },
        ],
        supersedes: &[],
        check: Text,
    }
}

/// Built-in buses of machines, by prefix.
const BUILT_IN: &[&str] = &[
    "pci",
    "pcie",
    "ide",
    "isa",
    "usb-bus",
    "usb",
    "scsi",
    "main-system-bus",
    "virtio-mmio-bus",
    "sd-bus",
    "i2c",
    "spi",
    "floppy-bus",
    "vmbus",
    "xen-bus",
    "virtual-css-bus",
];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let present = Present::of(&line.index);
    for (option, driver, device) in line.index.devices() {
        let span = span_of(line, option, device);
        check_bus(line, report, option, driver, device, span, &present);
        check_bus_of_json(line, report, option, device, &present.late);
    }
    check_interfaces(line, report);
}

/// Interfaces of `-drive` that need a controller which a PC does not have.
fn check_interfaces(line: &Line<'_>, report: &mut Report) {
    let is_pc = matches!(line.board(), Board::Q35 | Board::I440fx);
    if !is_pc || !line.has_machine() {
        return;
    }
    for (option, drive) in line.index.of_name("drive") {
        let Some(interface) = drive.peek("if") else {
            continue;
        };
        let (message, help) = match interface.value.as_str() {
            "scsi" => (
                "if=scsi: a PC has no built-in SCSI controller",
                "use if=none, and add -device virtio-scsi-pci and -device scsi-hd",
            ),
            "sd" => ("if=sd: a PC has no slot for an SD card", "write if=virtio"),
            _ => continue,
        };
        line.refuse(report, option, interface.span, message, help);
    }
}

/// The buses of each type, and the named ones.
fn check_bus(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    driver: &str,
    device: &Properties,
    span: Span,
    present: &Present<'_>,
) {
    if let Some(bus) = device.peek("bus") {
        let name = bus.value.as_str();
        let owner = match name.rsplit_once('.') {
            Some((owner, number)) if number.bytes().all(|it| it.is_ascii_digit()) => owner,
            Some(_) | None => name,
        };
        let is_known = present.ids.contains(name)
            || present.ids.contains(owner)
            || BUILT_IN.contains(&owner)
            || is_open(name)
            // A bus named by its device path.
            || name.starts_with('/');
        let is_disk = crate::device::driver::disk_driver(driver).is_some();
        if !is_known && is_disk && line.domain().scope == Scope::WholeGuest {
            let message = format!("bus `{name}` is not defined");
            let help = format!("add the device with id={owner}, or use another bus");
            line.refuse(report, option, bus.span, message, help);
        }
        return;
    }
    let is_pc = matches!(line.board(), Board::Q35 | Board::I440fx);
    let has_mmio = match line.board() {
        Board::Q35 | Board::I440fx | Board::Pseries => false,
        // `virt` on Arm and RISC-V has MMIO slots beside its PCI bus.
        Board::PcieVirt => line.domain().architecture != Some(Architecture::Loongarch64),
        Board::Ccw | Board::Mmio | Board::OtherPci | Board::Unknown => true,
    };
    let (missing, help) = match base_of(driver) {
        "scsi-hd" | "scsi-cd" | "scsi-block" | "scsi-generic" if is_pc && !present.has_scsi => {
            ("SCSI", "add -device virtio-scsi-pci before it")
        }
        "usb-storage" | "usb-bot" | "usb-uas" if is_pc && !present.has_usb => {
            ("USB", "add -device qemu-xhci before it")
        }
        "nvme-ns" if !present.drivers.contains("nvme") => (
            "NVMe",
            "add -device nvme,serial=… before it, and use its id as the bus",
        ),
        "floppy" if line.board() == Board::Q35 && !present.drivers.contains("isa-fdc") => {
            ("floppy", "add -device isa-fdc before it")
        }
        _ if driver.ends_with("-device") && driver.starts_with("virtio-") && !has_mmio => (
            "virtio MMIO",
            "use the variant of the device that ends in -pci",
        ),
        _ if driver.ends_with("-pci") && lacks_pci(line) && !present.has_pcie => {
            ("PCI", "use the variant of the device that ends in -device")
        }
        _ => return,
    };
    if line.domain().scope == Scope::WholeGuest && line.has_machine() {
        let message = format!("`{driver}` needs a {missing} bus, which no controller provides");
        line.refuse(report, option, span, message, help);
    }
}

/// True for boards that are known to have no PCI bus; many other Arm boards have one.
fn lacks_pci(line: &Line<'_>) -> bool {
    let machine = line.domain().machine.as_ref();
    let name = machine.map_or("", |machine| machine.without_vendor());
    line.board() == Board::Mmio
        && ["microvm", "raspi", "vexpress-"]
            .iter()
            .any(|family| name.starts_with(family))
}

/// True if the bus exists when the device is created.
fn check_bus_of_json(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    device: &Properties,
    late: &HashSet<&str>,
) {
    let Some(bus) = device.peek("bus") else {
        return;
    };
    let name = bus.value.as_str();
    let owner = name.rsplit_once('.').map_or(name, |(owner, _)| owner);
    let is_pairs = !matches!(device.syntax, Syntax::Json { .. });
    let Some(owner) = [name, owner]
        .into_iter()
        .find(|it| late.contains(it))
        .filter(|_| is_pairs)
    else {
        return;
    };
    let message =
        format!("`{owner}` is written in JSON, and QEMU creates such devices after all others");
    let help = format!("write this -device in JSON too, or `{owner}` as key=value");
    line.refuse(report, option, bus.span, message, help);
}
