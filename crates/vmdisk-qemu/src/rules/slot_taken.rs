//! `slot-taken`

use std::collections::{HashMap, HashSet};
use vmdisk_rule::{Evidence, Group, Report, Severity};
use vmdisk_source::Span;

use super::drive_indexes::placed_drives;
use super::line::{Line, base_of, line_rule};
use super::places::{
    IdePlace, MAX_NAMESPACE, MAX_PCI_SLOT, Present, is_ide_disk, is_pci, is_scsi_disk, number,
    pci_span, slot_of, span_of,
};
use crate::members::Members;
use crate::vocabulary;
use vmdisk_model::Board;

line_rule! {
    /// Two devices have the same address, or a bus has no free slot.
    ///
    /// ## What it reports
    /// Reports on command lines: two disks with the same SCSI target and unit, IDE or SATA port, NVMe namespace or PCI
    /// slot; a second device in a PCI Express root port; more IDE or SATA disks without `bus` than the first bus has
    /// units (1 on q35, 2 on pc); two `-drive`, `-hda` or similar options with the same index; and more than 30 devices
    /// on the PCI bus of a PC.
    ///
    /// ## Why it matters
    /// QEMU exits at start with `lun already used by` or `no slot/function available for virtio-blk-pci`. With a second
    /// device in a root port, QEMU starts (since 10.0 with a warning), and the guest never sees that device.
    ///
    /// ## Use instead
    /// Give each device its own address, or leave the address out. On q35, give each PCI Express device its own
    /// `-device pcie-root-port,id=rp1,chassis=1`.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/b.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0,scsi-id=0,lun=0 \
    ///   -device scsi-hd,drive=f1,id=sdb,bus=scsi0.0,scsi-id=0,lun=0
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -machine q35 -hda /srv/a.img -drive file=/srv/b.img,format=raw,index=0
    /// ```
    ///
    /// An index of `if=none` is a place, too:
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=none,id=d0,index=0 \
    ///   -drive file=/srv/b.img,format=raw,if=none,id=d1,index=0 \
    ///   -device virtio-blk-pci,drive=d0 -device virtio-blk-pci,drive=d1
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=none,id=d0,index=0 \
    ///   -drive file=/srv/b.img,format=raw,if=virtio,index=0 \
    ///   -device virtio-blk-pci,drive=d0
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=/srv/a.img,format=raw,if=none,id=d0,index=1 \
    ///   -drive file=/srv/b.img,format=raw,if=none,id=d1 \
    ///   -device virtio-blk-pci,drive=d0 -device virtio-blk-pci,drive=d1
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img \
    ///   -blockdev driver=file,node-name=f1,filename=/srv/b.img \
    ///   -device virtio-scsi-pci,id=scsi0 \
    ///   -device scsi-hd,drive=f0,id=sda,bus=scsi0.0,scsi-id=0,lun=0 \
    ///   -device scsi-hd,drive=f1,id=sdb,bus=scsi0.0,scsi-id=0,lun=1
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -machine q35 -hda /srv/a.img -drive file=/srv/b.img,format=raw -cdrom /srv/c.iso
    /// ```
    name: "slot-taken",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("lun already used by", "hw/scsi/scsi-bus.c, scsi_bus_check_address"),
        Evidence::refused_by_qemu("no slot/function available for virtio-blk-pci", "hw/pci/pci.c, do_pci_register_device"),
        Evidence::refused_by_qemu("drive with bus=0, unit=0 (index=0) exists", "blockdev.c, drive_new"),
    ],
    check: Text(check),
}

/// The number of free slots on the root bus of a PC with -nodefaults; counted with QEMU 7.2.
const ROOT_SLOTS: usize = 30;

/// A configured PCI address: bus, slot and function.
type Slot<'a> = (&'a str, u64, u64);

/// The addresses in use so far.
#[derive(Default)]
struct Taken<'a> {
    ide: HashSet<(&'a str, u64)>,
    scsi: HashSet<(&'a str, u64, u64, u64)>,
    namespaces: HashSet<(&'a str, u64)>,
    slots: HashSet<Slot<'a>>,
    ports: HashMap<&'a str, usize>,
    root: usize,
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let present = Present::of(&line.index);
    let mut taken = Taken::default();
    for (option, driver, device) in line.index.devices() {
        let base = base_of(driver);
        let span = span_of(line, option, device);
        let found = if is_scsi_disk(base) {
            taken.scsi_place(device, span)
        } else if is_ide_disk(base) {
            let place = IdePlace::of(line, device, &present, span);
            place.and_then(|place| taken.ide_place(&place))
        } else if base == "nvme" || base == "nvme-ns" {
            taken.namespace(base, device)
        } else {
            None
        };
        let on_pci = if is_pci(line, driver) {
            taken.pci_place(line, driver, device, span, &present.root_ports)
        } else {
            None
        };
        for (span, message) in found.into_iter().chain(on_pci) {
            let help = "use a different address for each device, or remove the address";
            line.refuse(report, option, span, message, help);
        }
    }
    for drive in placed_drives(line).iter().filter(|drive| drive.is_taken) {
        let message = format!(
            "another drive has index {} of if={}",
            drive.index, drive.interface
        );
        let help = stray_property(line, drive.option).map_or_else(
            || "use a different index for each drive, or remove the index".to_owned(),
            |word| {
                format!("remove the space before `{word}`: QEMU reads it as the name of an image")
            },
        );
        line.refuse(report, drive.option, drive.span, message, help);
    }
}

/// A word without an option that is a property of a drive, such as `format=raw` after a space.
fn stray_property<'a>(line: &Line<'a>, option: usize) -> Option<&'a str> {
    let written = &line.document.options[option];
    let word = written.properties.as_ref()?.value("file")?;
    let (key, _) = word.split_once('=')?;
    let is_property = || vocabulary::words("drive").any(|known| known == key);
    (written.name.is_empty() && is_property()).then_some(word)
}

impl<'a> Taken<'a> {
    fn scsi_place(&mut self, device: Members<'a>, span: Span) -> Option<(Span, String)> {
        let (target, _) = number(device, "scsi-id")?;
        let (unit, at) = number(device, "lun")?;
        let bus = device.value("bus").unwrap_or_default();
        let channel = number(device, "channel").map_or(0, |(channel, _)| channel);
        if self.scsi.insert((bus, channel, target, unit)) {
            return None;
        }
        let at = if at.is_empty() { span } else { at };
        Some((
            at,
            format!("another disk has SCSI target {target}, unit {unit}"),
        ))
    }

    fn ide_place(&mut self, place: &IdePlace<'a>) -> Option<(Span, String)> {
        if place.excess().is_some() {
            return None;
        }
        let IdePlace {
            bus, span, units, ..
        } = *place;
        let first_free = (0..units).find(|unit| !self.ide.contains(&(bus, *unit)));
        let unit = place.unit.map(|(unit, _)| unit).or(first_free);
        if unit.is_some_and(|unit| self.ide.insert((bus, unit))) {
            return None;
        }
        let message = if place.names_bus {
            format!("another disk has the same address on `{bus}`")
        } else {
            format!("without a bus QEMU attaches the disk to `{bus}`, which is full")
        };
        Some((span, message))
    }

    /// A namespace; a controller with a drive is its own first one.
    fn namespace(&mut self, base: &str, device: Members<'a>) -> Option<(Span, String)> {
        if base == "nvme" {
            device.get("drive")?;
            self.namespaces.insert((device.value("id")?, 1));
            return None;
        }
        let (number, span) = number(device, "nsid")?;
        let bus = device.value("bus")?;
        if !(1..=MAX_NAMESPACE).contains(&number) || self.namespaces.insert((bus, number)) {
            return None;
        }
        Some((
            span,
            format!("another disk is namespace {number} of `{bus}`"),
        ))
    }

    fn pci_place(
        &mut self,
        line: &Line<'_>,
        driver: &str,
        device: Members<'a>,
        span: Span,
        root_ports: &HashSet<&'a str>,
    ) -> Option<(Span, String)> {
        let bus = device.value("bus").unwrap_or_default();
        let slot = device.get("addr").and_then(slot_of);
        let at = pci_span(device, span);
        if slot.is_some_and(|(slot, _)| slot > MAX_PCI_SLOT) {
            return None;
        }
        let function = slot.map_or(0, |(_, function)| function);
        if root_ports.contains(bus) {
            let port = self.ports.entry(bus).or_default();
            *port += usize::from(function == 0);
            let message = || format!("the port `{bus}` has one slot, which another device uses");
            // A function of a device of the host that the guest does not see is no disk.
            let is_reported = *port > 1 && driver != "vfio-pci";
            return is_reported.then(|| (at, message()));
        }
        let is_pc = matches!(line.board(), Board::Q35 | Board::I440fx) && line.has_machine();
        let is_on_root = matches!(bus, "" | "pcie.0" | "pci.0");
        let own: &[u64] = if line.board() == Board::Q35 {
            &[0, 31]
        } else {
            &[0, 1]
        };
        if let Some((slot, 0)) = slot.filter(|(slot, _)| is_pc && is_on_root && own.contains(slot))
        {
            return Some((at, format!("slot {slot} belongs to a built-in device")));
        }
        if let Some((slot, function)) = slot
            && !self.slots.insert((bus, slot, function))
        {
            return Some((
                at,
                format!("another device is in slot {slot}, function {function} of that bus"),
            ));
        }
        let is_root = is_on_root && function == 0;
        self.root += usize::from(is_root);
        (is_pc && is_root && self.root > ROOT_SLOTS).then(|| {
            let message = format!(
                "the built-in PCI bus has {ROOT_SLOTS} slots at most, and this device exceeds them"
            );
            (span, message)
        })
    }
}
