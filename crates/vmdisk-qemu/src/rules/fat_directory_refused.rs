//! `fat-directory-refused`

use vmdisk_model::{FieldPath, FrontendKind};
use vmdisk_rule::{Evidence, Group, Report, Severity};
use vmdisk_source::Span;

use super::drive_protocol_unknown::DRIVES;
use super::line::{Line, line_rule};
use super::nodes::{is_read_only, nodes};
use crate::members::Members;
use crate::syntax::value::is_on;

line_rule! {
    /// A directory is shown as a FAT disk (`fat:`), but only one of the directory and its drive is writable.
    ///
    /// ## What it reports
    /// Reports `file=fat:DIRECTORY` on a drive that is not read-only, `file=fat:rw:DIRECTORY` on a drive that is read-only
    /// or has `snapshot=on`, and `-blockdev driver=vvfat` with neither `read-only=on` nor `rw=on`, or with both. CD drives only
    /// read, and `snapshot=on` sends writes elsewhere: `fat:DIRECTORY` works there.
    ///
    /// ## Why it matters
    /// QEMU does not start. Without `rw`, the directory is read-only, and a device that may write is refused with
    /// `Block node is read-only`. With `rw` on a read-only drive, the directory is refused with
    /// `Unable to set VVFAT to 'rw' when drive is read-only`.
    ///
    /// ## Use instead
    /// Add `read-only=on` to the drive. IDE and SATA disks cannot be read-only: use `if=virtio`. If the guest has to
    /// change the directory, read the page of `fat-directory-writable`, and write `fat:rw:DIRECTORY`. An ISO image or virtiofs
    /// is a more robust way to give files to the guest.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:/srv/esp,format=raw,if=virtio
    /// ```
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine pc -drive file=fat:/srv/esp,format=raw,if=ide
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:rw:/srv/esp,format=raw,if=virtio,snapshot=on
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:16:rw:/srv/esp,format=raw,if=virtio,read-only=on
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -snapshot -drive file=fat:rw:/srv/esp,format=raw,if=virtio
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=vvfat,node-name=f0,dir=/srv/esp -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=vvfat,node-name=f0,dir=/srv/esp,rw=on,read-only=on -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:/srv/esp,format=raw,if=virtio,read-only=on
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:rw:/srv/esp,format=raw,if=virtio
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine pc -snapshot -hda fat:/srv/esp
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:/srv/esp,format=raw,if=virtio,snapshot=on
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -cdrom fat:/srv/esp
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:/srv/esp,format=vvfat,if=virtio
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=vvfat,node-name=f0,dir=/srv/esp,read-only=on -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=vvfat,node-name=f0,dir=/srv/esp,rw=on -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=vvfat,node-name=f0,dir=/srv/esp,auto-read-only=on -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "fat-directory-refused",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Block node is read-only", "block.c, bdrv_node_refresh_perm; block/vvfat.c, vvfat_open"),
        Evidence::refused_by_qemu("Unable to set VVFAT to 'rw' when drive is read-only", "block/vvfat.c, vvfat_open"),
        Evidence::refused_by_qemu("Image is read-only", "block.c, bdrv_apply_auto_read_only"),
    ],
    check: Text(check),
}

/// A directory that is the file of a drive, named `fat:DIRECTORY`.
pub(super) struct FatDirectory<'a> {
    pub(super) option: usize,
    pub(super) span: Span,
    /// True if the guest can change it.
    pub(super) is_writable: bool,
    drive: Members<'a>,
}

/// The directories that drives name, in the order of the names of their options.
pub(super) fn fat_directories<'a>(line: &Line<'a>) -> impl Iterator<Item = FatDirectory<'a>> {
    let drives = DRIVES.iter().flat_map(|name| line.index.of_name(name));
    drives.filter_map(|(option, drive)| {
        let file = drive.get("file").filter(|file| !file.is_open())?;
        let rest = file.value.as_str().strip_prefix("fat:")?;
        // QEMU takes all words before the last colon for options.
        let options = rest.rsplit_once(':').map_or("", |(options, _)| options);
        Some(FatDirectory {
            option,
            span: file.span,
            is_writable: options.split(':').any(|word| word == "rw"),
            drive,
        })
    })
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for directory in fat_directories(line) {
        check_drive(line, report, &directory);
    }
    for node in nodes(line).filter(|node| node.driver() == "vvfat") {
        let is_automatic = node
            .properties
            .iter()
            .any(|it| it.key.ends_with("auto-read-only") && is_on(Some(it)));
        let (message, help) = match (is_on(node.get("rw")), is_read_only(&node)) {
            (true, true) => (BOTH, "remove rw=on, or read-only=on"),
            (false, false) if !is_automatic => (
                "a directory is read-only without rw=on, and the node is to be writable",
                "add read-only=on",
            ),
            _ => continue,
        };
        line.refuse(report, node.option, node.span(), message, help);
    }
}

const BOTH: &str = "the directory is to be writable (rw), and the drive is read-only";

fn check_drive(line: &Line<'_>, report: &mut Report, directory: &FatDirectory<'_>) {
    let FatDirectory {
        option,
        span,
        is_writable,
        drive,
    } = *directory;
    let FieldPath::Disk(number, _) = line.owner(option) else {
        return;
    };
    let Some(disk) = line.domain().disks.get(number) else {
        return;
    };
    let is_snapshot = is_on(drive.get("snapshot")) || line.index.has("snapshot");
    if is_writable {
        if disk.backend.is_read_only || is_snapshot {
            let help = "remove rw: the guest then reads the directory, and cannot change it";
            line.refuse(report, option, span, BOTH, help);
        }
        return;
    }
    // The node of a directory that has no other above it says that it is read-only.
    let is_alone = drive.value("format") == Some("vvfat");
    if !disk.is_writable() || is_snapshot || is_alone {
        return;
    }
    let help = match line.domain().frontend_kind(disk) {
        FrontendKind::Ide | FrontendKind::Sata => {
            "use -drive if=virtio with read-only=on, or write fat:rw: if the guest is to change the directory"
        }
        _ => "add read-only=on, or write fat:rw: if the guest is to change the directory",
    };
    let message =
        "a directory is read-only without rw, and the device needs a drive that it can write";
    line.refuse(report, option, span, message, help);
}
