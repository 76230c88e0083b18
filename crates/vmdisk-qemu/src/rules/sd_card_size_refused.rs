//! `sd-card-size-refused`

use vmdisk_facts::{Fact, Version};
use vmdisk_fields::{command, phrase};
use vmdisk_model::Bytes;
use vmdisk_rule::{Context, Evidence, Group, Missing, Report, Severity};
use vmdisk_source::Span;

use super::line::{Line, base_of, line_rule};
use crate::interface::DefaultInterface;
use crate::members::Members;

line_rule! {
    /// The image of an SD card has a size that QEMU refuses, because it is not a power of 2.
    ///
    /// ## What it reports
    /// Reports `-drive if=sd`, `-sd` and `-device sd-card` with an image of another size than 64 MiB, 128 MiB, 256 MiB and
    /// so on. Host facts have the size. Above 2 GiB, multiples of 512 KiB are not checked for QEMU 10.2 and later, which may
    /// accept them.
    ///
    /// ## Why it matters
    /// QEMU exits at start with `Invalid SD card size`. Downloaded images for small boards rarely have such a size.
    ///
    /// ## Use instead
    /// Enlarge the image with `qemu-img resize`, and the file system in the guest afterwards. To make the image smaller
    /// would cut off its end.
    ///
    /// ## Reported
    /// ```args,reported,facts-ramfs
    /// qemu-system-aarch64 -machine raspi3b -drive file=/srv/card.img,format=raw,if=sd
    /// ```
    /// ```args,reported,hidden,facts-ramfs
    /// qemu-system-x86_64 -nodefaults -machine q35 -device sdhci-pci \
    ///   -drive file=/srv/card.img,format=raw,if=none,id=d0 -device sd-card,drive=d0
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported,facts-ramfs
    /// qemu-system-aarch64 -machine raspi3b -drive file=/srv/base.img,format=raw,if=sd
    /// ```
    /// ```args,not-reported,hidden,facts-ramfs
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=/srv/card.img,format=raw,if=virtio
    /// ```
    /// ```args,reported,hidden,facts-ramfs,qemu-10.0
    /// qemu-system-aarch64 -machine raspi3b -drive file=/srv/large-card.img,format=raw,if=sd
    /// ```
    /// ```args,not-checked,hidden,facts-ramfs,qemu-11.1
    /// qemu-system-aarch64 -machine raspi3b -drive file=/srv/large-card.img,format=raw,if=sd
    /// ```
    /// ```args,reported,hidden,facts-ramfs
    /// qemu-system-x86_64 -nodefaults -machine q35 -device sdhci-pci \
    ///   -drive file=/srv/build2.qcow2,format=raw,if=none,id=d0 -device sd-card,drive=d0
    /// ```
    /// ```args,not-reported,hidden,facts-ramfs
    /// qemu-system-aarch64 -machine raspi3b -drive file=/srv/build2.qcow2,format=qcow2,if=sd
    /// ```
    /// Not checked without host facts:
    /// ```args,not-checked
    /// qemu-system-aarch64 -machine raspi3b -drive file=/srv/card.img,format=raw,if=sd
    /// ```
    name: "sd-card-size-refused",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Invalid SD card size: 65 MiB", "hw/sd/sd.c, sd_realize (5.1)"),
        Evidence::Source("QEMU, patch `hw/sd/sdcard: Fix size check for backing block image` of September 2025, after 10.1: above 2 GiB, multiples of 512 KiB"),
    ],
    check: Text(check),
}

/// The largest card whose capacity is counted in bytes.
const MAX_STANDARD: u64 = 2 * Bytes::GIB;

/// Before this version, each size must be a power of 2.
const OTHER_SIZES_SINCE: Version = Version(10, 2, 0);

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let is_default = line.document.defaults.interface == DefaultInterface::Sd;
    let drives = line.index.of_name("drive");
    let boards = drives.filter(|(_, drive)| match drive.value("if") {
        Some(interface) => interface == "sd",
        None => is_default,
    });
    let cards = boards.chain(line.index.of_name("sd"));
    let devices = line.index.devices();
    let devices = devices.filter(|(_, driver, _)| base_of(driver) == "sd-card");
    let of_devices = devices.filter_map(|(_, _, device)| {
        let option = line.index.drive(device.value("drive")?)?;
        Some((option, line.index.properties(option)?))
    });
    for (option, drive) in cards.chain(of_devices) {
        if let Some(file) = drive.get("file").filter(|file| !file.is_open()) {
            check_card(line, report, option, drive, file.value.as_str(), file.span);
        }
    }
}

fn check_card(
    line: &Line<'_>,
    report: &mut Report,
    option: usize,
    drive: Members<'_>,
    path: &str,
    span: Span,
) {
    let format = drive.value("format");
    let size = size_of(line.context, path, format == Some("raw"));
    let Some(Some(size)) = report.require(line.owner(option), size) else {
        return;
    };
    if size == 0 || size.is_power_of_two() {
        return;
    }
    let is_multiple = size.is_multiple_of(512 * Bytes::KIB);
    let refuses_multiples = line.context.target.qemu.map(|it| it < OTHER_SIZES_SINCE);
    if size > MAX_STANDARD && is_multiple && refuses_multiples != Some(true) {
        let what = format!("whether QEMU accepts an SD card of {}", Bytes(size));
        let why = match refuses_multiples {
            None => "the target does not set the version of QEMU",
            Some(_) => "QEMU 10.2 and later were not tried",
        };
        return report.not_checked(line.owner(option), Missing::new(what, why));
    }
    let larger = size.checked_next_power_of_two().unwrap_or_default();
    let start = match format {
        Some("raw") => "qemu-img resize -f raw",
        _ => "qemu-img resize",
    };
    let is_device = line
        .context
        .host
        .is_some_and(|host| matches!(host.block_device(path), Fact::Known(_)));
    let help = match is_device {
        // The size of a device is as it is.
        true => phrase!(
            "attach it as `usb-storage`, or use an overlay of the right size: {create}",
            create = command(
                "qemu-img create -f qcow2 -F raw",
                &["-b", path, "card.qcow2", &larger.to_string()]
            ),
        ),
        false => phrase!(
            "run {resize}",
            resize = command(start, &[path, &larger.to_string()]),
        ),
    };
    let message = format!("an SD card of {} is not a power of 2 in size", Bytes(size));
    line.refuse(report, option, span, message, help);
}

/// The size that the guest sees; `None` if the image does not exist.
fn size_of(context: &Context<'_>, path: &str, is_raw: bool) -> Result<Option<u64>, Missing> {
    let what = || format!("the size of {path}");
    let host = context.host(what)?;
    if let Some(device) = Context::known(host.block_device(path), what)? {
        return Context::known(device.size.clone(), what);
    }
    let file = host
        .file(path)
        .ok_or_else(|| Missing::new(what(), Missing::NOT_COLLECTED))?;
    let in_header = file.image.as_ref();
    let in_header = in_header.and_then(|header| header.virtual_size.clone());
    Context::known(if is_raw { file.size.clone() } else { in_header }, what)
}
