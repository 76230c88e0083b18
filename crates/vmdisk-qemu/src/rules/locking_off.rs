//! `locking-off`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use crate::syntax::value::is_on;

use super::line::{Line, line_rule};
use super::nodes::{is_read_only, nodes};

line_rule! {
    /// Image locking is off, so a second QEMU can write to the image.
    ///
    /// ## What it reports
    /// Reports `locking=off` on a node that opens a file or device for writing.
    ///
    /// ## Why it matters
    /// With locking, QEMU and `qemu-img` refuse an image that another QEMU has open for writing
    /// (`Failed to get "write" lock`). If either side disables locking, both can write without a message, and two
    /// guests on one ordinary file system destroy it. The option is meant for file systems without locks, if the
    /// management software prevents a second start.
    ///
    /// ## Use instead
    /// Remove `locking=off`. To let several guests write to one image knowingly, use a cluster file system and
    /// `share-rw=on` on the devices.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,locking=off \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,locking=auto \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=/srv/a.img,locking=off,read-only=on \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive if=none,id=d0,file=/srv/a.img,format=raw,file.locking=off -device virtio-blk-pci,drive=d0
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive if=none,id=d0,file=/srv/a.img,format=raw,file.locking=off,readonly=on -device virtio-blk-pci,drive=d0
    /// ```
    name: "locking-off",
    group: Group::DataSafety,
    severity: Severity::Warning,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::measured("two guests start on one image when either says locking=off, and the second is refused otherwise", "QEMU 5.2, 7.2, 10.0 and 11.1"),
    ],
    supersedes: &["duplicate-disk-source"],
    check: Text(check),
}

const MESSAGE: &str = "locking=off: a second guest or qemu-img can write to the same image";
const HELP: &str = "remove locking=off; if several guests share the image, use share-rw=on";

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for node in nodes(line).filter(|node| !is_read_only(node)) {
        let is_file = matches!(node.driver(), "file" | "host_device");
        let locking = node.get("locking").filter(|_| is_file);
        if let Some(locking) = locking.filter(|it| it.value.as_str() == "off") {
            line.refuse(report, node.option, locking.span, MESSAGE, HELP);
        }
    }
    for (option, drive) in line.index.of_name("drive") {
        let is_written = !is_on(drive.get("readonly").or(drive.get("read-only")));
        let locking = drive.get("file.locking").filter(|_| is_written);
        if let Some(locking) = locking.filter(|it| it.value.as_str() == "off") {
            line.refuse(report, option, locking.span, MESSAGE, HELP);
        }
    }
}
