//! `bus-missing`

use vmdisk_model::{Architecture, Scope};
use vmdisk_rule::{Evidence, Group, Report, Severity};
use vmdisk_source::Span;

use super::line::{Line, base_of, line_rule};
use super::places::{BusKind, CreationOrder, Present, is_pci_by_name, span_of};
use crate::members::Members;
use vmdisk_model::Board;

line_rule! {
    /// A device needs a bus that no controller provides.
    ///
    /// ## What it reports
    /// Reports disk devices on a command line without their controller: SCSI disks without a SCSI controller, USB disks
    /// without a USB controller, NVMe namespaces without `nvme`, floppies on q35 without `isa-fdc`, and IDE disks on
    /// `virt`, `microvm`, `pseries` and IBM Z, which have no IDE controller. It also reports
    /// virtio devices with the wrong transport, a `bus` that no device provides (`pcie.0` on `pc`, or `scsi0` instead of
    /// `scsi0.0`), a bus whose controller is written after the device, a bus of another kind, `-drive if=scsi` and `if=sd` on a PC, `-drive if=virtio` on `microvm`,
    /// and `-drive if=ide`, `if=scsi`, `if=sd` and `if=floppy` on machines without such a controller.
    /// It checks nothing if a `-readconfig` file is not available or a word of a script is unknown, because they may contain
    /// the controller.
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
    /// The first PCI bus is `pcie.0` on q35, and `pci.0` on `pc`:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine pc \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda,bus=pcie.0
    /// ```
    ///
    /// Without `-machine`, `qemu-system-x86_64` uses `pc`:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -drive file=/srv/a.img,format=raw,if=scsi
    /// ```
    ///
    /// `virt` and `microvm` have no IDE controller:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine microvm \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device ide-hd,drive=f0,id=hda
    /// ```
    /// ```args,reported
    /// qemu-system-aarch64 -nodefaults -machine virt -drive file=/srv/a.img,format=raw,if=ide
    /// ```
    ///
    /// ```args,reported,hidden
    /// qemu-system-aarch64 -nodefaults -machine virt -device virtio-scsi-pci,id=scsi0,bus=pcie.3 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0
    /// ```
    ///
    /// QEMU creates devices in the order of the options:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0 \
    ///   -device virtio-scsi-pci,id=scsi0
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
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine microvm -drive file=/srv/a.img,format=raw,if=scsi
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine microvm \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device ide-hd,drive=f0,id=hda,bus=ide.0
    /// ```
    /// AHCI makes an IDE bus:
    /// ```args,not-reported
    /// qemu-system-aarch64 -machine virt \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device ahci -device ide-hd,drive=f0,id=hda,bus=ide.0
    /// ```
    /// Other Arm boards have a PCI bus, too:
    /// ```args,not-reported
    /// qemu-system-arm -machine versatilepb \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "bus-missing",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("No 'SCSI' bus found for device 'scsi-hd'", "softmmu/qdev-monitor.c, qdev_device_add"),
        Evidence::refused_by_qemu("Bus 'scsi0.0' not found", "softmmu/qdev-monitor.c, qbus_find"),
        Evidence::refused_by_qemu("No 'IDE' bus found for device 'ide-hd'", "softmmu/qdev-monitor.c, qdev_device_add"),
        Evidence::refused_by_qemu("machine type does not support if=ide,bus=0,unit=0", "blockdev.c, drive_check_orphaned"),
    ],
    check: Text(check),
}

/// Built-in buses of machines, by prefix.
const BUILT_IN: &[&str] = &[
    "pci",
    "pcie",
    "ide",
    "isa",
    "usb-bus",
    "usb",
    "nvme-bus",
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
    if line.document.is_open {
        return;
    }
    let present = Present::of(&line.index);
    for (option, driver, device) in line.index.devices() {
        let span = span_of(line, option, device);
        check_bus(line, report, option, driver, device, span, &present);
        check_order(line, report, option, device, &present);
    }
    check_interfaces(line, report, &present);
}

const USE_MMIO: &str =
    "use if=none with an id, and add -device virtio-blk-device with drive set to the id";

const NO_SD: &str = "if=sd: a PC has no slot for an SD card";

/// Devices with an IDE bus.
const IDE_CONTROLLERS: [&str; 8] = [
    "ahci",
    "ich9-ahci",
    "piix3-ide",
    "piix4-ide",
    "isa-ide",
    "via-ide",
    "cmd646-ide",
    "sii3112",
];

/// True for boards without an IDE controller.
const fn has_no_ide(board: Board) -> bool {
    matches!(
        board,
        Board::PcieVirt | Board::Microvm | Board::Pseries | Board::Ccw
    )
}

/// True if the guest has no IDE bus.
fn lacks_ide(line: &Line<'_>, present: &Present<'_>) -> bool {
    let is_added = IDE_CONTROLLERS
        .iter()
        .any(|it| present.drivers.contains(it));
    has_no_ide(line.board()) && line.has_machine() && !is_added
}

/// True for interfaces of `-drive` that need a controller which these boards do not have.
const fn is_orphan(board: Board, interface: &str) -> bool {
    match interface.as_bytes() {
        b"ide" => has_no_ide(board),
        b"scsi" | b"sd" | b"floppy" => matches!(board, Board::PcieVirt | Board::Microvm),
        _ => false,
    }
}

/// Interfaces of `-drive` that need a controller which the machine does not have.
fn check_interfaces(line: &Line<'_>, report: &mut Report, present: &Present<'_>) {
    let board = line.board();
    let is_pc = matches!(board, Board::Q35 | Board::I440fx);
    let has_no_pci = board == Board::Microvm && !present.has_pcie;
    if !line.has_machine() {
        return;
    }
    for (option, drive) in line.index.of_name("drive") {
        let Some(interface) = drive.get("if") else {
            continue;
        };
        let (message, help) = match interface.value.as_str() {
            "virtio" if has_no_pci => (
                "if=virtio: microvm has no PCI bus without pcie=on".to_owned(),
                USE_MMIO,
            ),
            "scsi" if is_pc => (
                "if=scsi: a PC has no built-in SCSI controller".to_owned(),
                "use if=none, and add -device virtio-scsi-pci and -device scsi-hd",
            ),
            "sd" if is_pc => (NO_SD.to_owned(), "write if=virtio"),
            word if is_orphan(board, word) => (
                format!("if={word}: {} has no controller for it", board.name()),
                if has_no_pci {
                    USE_MMIO
                } else {
                    "write if=virtio"
                },
            ),
            _ => continue,
        };
        line.refuse(report, option, interface.span, message, help);
    }
    for (option, _) in line.index.of_name("sd").filter(|_| is_pc) {
        let help = "use -drive if=virtio with file and format";
        line.refuse(report, option, line.index.span(option), NO_SD, help);
    }
}

/// The buses of each type, and the named ones.
fn check_bus(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    driver: &str,
    device: Members<'_>,
    span: Span,
    present: &Present<'_>,
) {
    if let Some(bus) = device.get("bus") {
        let name = bus.value.as_str();
        // A name with a slash is a device path.
        let is_checked =
            line.domain().scope == Scope::WholeGuest && !bus.is_open() && !name.starts_with('/');
        if is_checked
            && let Some(wanted) = BusKind::of_device(line, driver)
            && let Some((message, help)) = mistake_in_bus(line, present, driver, wanted, name)
        {
            line.refuse(report, option, bus.span, message, help);
        }
        return;
    }
    let is_pc = matches!(line.board(), Board::Q35 | Board::I440fx);
    let has_mmio = match line.board() {
        Board::Q35 | Board::I440fx | Board::Isa | Board::Pseries => false,
        // `virt` on Arm and RISC-V has MMIO slots beside its PCI bus.
        Board::PcieVirt => line.domain().architecture != Some(Architecture::Loongarch64),
        Board::Ccw | Board::Microvm | Board::Mmio | Board::OtherPci | Board::Unknown => true,
    };
    let own = CreationOrder::of(option, device);
    let is_there = |first: Option<CreationOrder>| first.is_some_and(|first| first < own);
    let (missing, help) = match base_of(driver) {
        "scsi-hd" | "scsi-cd" | "scsi-block" | "scsi-generic"
            if is_pc && !is_there(present.first_scsi) =>
        {
            ("a SCSI", "add -device virtio-scsi-pci before it")
        }
        "usb-storage" | "usb-bot" | "usb-uas"
            if is_pc && !present.has_usb_option && !is_there(present.first_usb) =>
        {
            ("a USB", "add -device qemu-xhci before it")
        }
        "ide-hd" | "ide-cd" | "ide-drive" if lacks_ide(line, present) => (
            "an IDE",
            match (line.board(), driver) {
                (_, "ide-cd") => "use scsi-cd with a virtio-scsi controller",
                (Board::Ccw, _) => "use virtio-blk-ccw",
                (Board::Microvm, _) if !present.has_pcie => "use virtio-blk-device",
                _ => "use virtio-blk-pci, or add -device ahci before it",
            },
        ),
        "nvme-ns" if !present.drivers.contains("nvme") => (
            "an NVMe",
            "add -device nvme,serial=… before it, and use its id as the bus",
        ),
        "floppy" if line.board() == Board::Q35 && !present.drivers.contains("isa-fdc") => {
            ("a floppy", "add -device isa-fdc before it")
        }
        _ if driver.ends_with("-device") && driver.starts_with("virtio-") && !has_mmio => (
            "a virtio MMIO",
            "use the variant of the device that ends in -pci",
        ),
        _ if is_pci_by_name(line, driver) && lacks_pci(line) && !present.has_pcie => (
            "a PCI",
            "use the variant of the device that ends in -device",
        ),
        _ => return,
    };
    if line.domain().scope == Scope::WholeGuest && line.has_machine() {
        let is_late = match missing {
            "a SCSI" => present.first_scsi.is_some(),
            "a USB" => present.first_usb.is_some(),
            _ => false,
        };
        let (message, help) = match is_late {
            true => (
                format!("`{driver}` needs {missing} bus, and its controller is created after it"),
                "write the controller before it, in the same syntax",
            ),
            false => (
                format!("`{driver}` needs {missing} bus, which no controller provides"),
                help,
            ),
        };
        line.refuse(report, option, span, message, help);
    }
}

/// The mistake in the name of a bus, and the remedy.
fn mistake_in_bus(
    line: &Line<'_>,
    present: &Present<'_>,
    driver: &str,
    wanted: BusKind,
    name: &str,
) -> Option<(String, String)> {
    let (owner, number) = match name.rsplit_once('.') {
        Some((owner, number)) if number.bytes().all(|it| it.is_ascii_digit()) => {
            (owner, Some(number))
        }
        _ => (name, None),
    };
    let missing = |help: String| Some((format!("bus `{name}` is not defined"), help));
    let undefined = || {
        missing(format!(
            "add the device with id={owner}, or use another bus"
        ))
    };
    let (provider, is_whole) = match (present.ids.get(name), present.ids.get(owner)) {
        (Some(provider), _) => (provider, true),
        (None, Some(provider)) => (provider, false),
        (None, None) => {
            let found = mistake_in_given_name(line, present, driver, wanted, name)?;
            return found.or_else(undefined);
        }
    };
    let kind = BusKind::provided_by(provider.driver)?;
    match (kind.is_named_by_id(), is_whole) {
        (true, false) => return missing(format!("use bus={owner}: the bus has no number")),
        (false, true) => return missing(format!("use bus={name}.0")),
        // Ports of AHCI have rules of their own.
        (false, false) if kind != BusKind::Ide && number != Some("0") => {
            return missing(format!("use bus={owner}.0"));
        }
        _ => {}
    }
    wrong_kind(driver, wanted, name, kind)
}

/// As [`mistake_in_bus`], for a bus whose name QEMU chose; `None` if it is right, `Some(None)` if there is no such bus.
fn mistake_in_given_name(
    line: &Line<'_>,
    present: &Present<'_>,
    driver: &str,
    wanted: BusKind,
    name: &str,
) -> Option<Option<(String, String)>> {
    let (owner, number) = name.rsplit_once('.').unwrap_or((name, ""));
    let is_known = |kind: &BusKind| match line.board() {
        Board::Q35 | Board::I440fx => true,
        Board::PcieVirt => *kind == BusKind::Pci,
        _ => false,
    };
    let kind = BusKind::of_name(owner).filter(|_| line.has_machine());
    let Some(kind) = kind.filter(is_known) else {
        let is_built_in =
            BUILT_IN.contains(&owner) && !(owner == "ide" && lacks_ide(line, present));
        return (!is_built_in).then_some(None);
    };
    let root = line.board().root_bus().unwrap_or_default();
    let is_present = match kind {
        _ if number.is_empty() => false,
        BusKind::Pci => name == root || present.unnamed.contains(&kind),
        BusKind::Scsi | BusKind::Usb | BusKind::Nvme => present.unnamed.contains(&kind),
        BusKind::Ide | BusKind::Floppy => true,
        BusKind::Isa => number == "0",
    };
    if is_present {
        return wrong_kind(driver, wanted, name, kind).map(Some);
    }
    if kind == BusKind::Pci && wanted == kind {
        let message = format!("{} has no bus `{name}`", line.board().name());
        return Some(Some((message, format!("use bus={root}"))));
    }
    Some(None)
}

fn wrong_kind(
    driver: &str,
    wanted: BusKind,
    name: &str,
    kind: BusKind,
) -> Option<(String, String)> {
    (wanted != kind).then(|| {
        (
            format!(
                "`{driver}` cannot be attached to `{name}`, which is a bus for {} devices",
                kind.name()
            ),
            format!("use a bus for {} devices", wanted.name()),
        )
    })
}

/// True for boards that are known to have no PCI bus; many other Arm boards have one.
fn lacks_pci(line: &Line<'_>) -> bool {
    let machine = line.domain().machine.as_ref();
    let name = machine.map_or("", |machine| machine.without_vendor());
    matches!(line.board(), Board::Isa | Board::Microvm)
        || line.board() == Board::Mmio
            && ["raspi", "vexpress-"]
                .iter()
                .any(|family| name.starts_with(family))
}

/// Checks that QEMU creates the device with the bus before the attached device.
fn check_order(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    device: Members<'_>,
    present: &Present<'_>,
) {
    let Some(bus) = device.get("bus") else {
        return;
    };
    let own = CreationOrder::of(option, device);
    let name = bus.value.as_str();
    let owner = name.rsplit_once('.').map_or(name, |(owner, _)| owner);
    let late = [name, owner].into_iter().find_map(|it| {
        let provider = present.ids.get(it)?;
        (own < provider.created).then_some((it, provider.created))
    });
    let Some((owner, created)) = late else { return };
    let (message, help) = match created.is_json && !own.is_json {
        true => (
            format!("`{owner}` is written in JSON, and QEMU creates such devices after all others"),
            format!("write this -device in JSON too, or `{owner}` as key=value"),
        ),
        false => (
            format!("`{owner}` is created after this device, whose bus it provides"),
            format!("write the -device of `{owner}` before this one"),
        ),
    };
    line.refuse(report, option, bus.span, message, help);
}
