//! `fat-directory-writable`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::fat_directory_refused::fat_directories;
use super::line::{Line, line_rule};
use super::nodes::nodes;
use crate::syntax::value::is_on;

line_rule! {
    /// The guest can change a directory of the host as a FAT disk (`fat:rw:`), which can lose files.
    ///
    /// ## What it reports
    /// Reports `file=fat:rw:DIRECTORY`, and `-blockdev driver=vvfat` with `rw=on`. Directories without `rw` are not reported.
    ///
    /// ## Why it matters
    /// QEMU translates writes to sectors of a FAT file system into changes of files. Its documentation calls this beta,
    /// and forbids changes on the host meanwhile. Users report that new files do not appear in the directory (QEMU 7.0),
    /// and that files which the guest wrote read back as zeroes (QEMU 11.1). libvirt refuses a writable directory.
    ///
    /// ## Use instead
    /// Write `fat:DIRECTORY` with `read-only=on` and `if=virtio` if the guest only reads, as firmware does with an EFI
    /// program. For changes, use virtiofs, or an image with a FAT file system (`mformat`, `mcopy`). Keep a copy of the
    /// directory.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:rw:/srv/share,format=raw,if=virtio
    /// ```
    /// ```args,reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=vvfat,node-name=f0,dir=/srv/share,rw=on -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=fat:/srv/share,format=raw,if=virtio,read-only=on
    /// ```
    /// ```args,not-reported,hidden
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=vvfat,node-name=f0,dir=/srv/share,read-only=on -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "fat-directory-writable",
    group: Group::DataSafety,
    severity: Severity::Advice,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::Source("QEMU docs, system/images, Virtual FAT disk images: read-write support is beta; do not write to the directory on the host"),
        Evidence::Source("QEMU issue 1176: files that the guest writes do not appear in the directory (7.0)"),
        Evidence::Source("QEMU issue 4446: files that the guest writes read back as zeroes (11.1)"),
    ],
    check: Text(check),
}

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    let named = fat_directories(line).filter(|directory| directory.is_writable);
    let named = named.map(|directory| (directory.option, directory.span));
    let written = nodes(line)
        .filter(|node| node.driver() == "vvfat" && is_on(node.get("rw")))
        .map(|node| (node.option, node.span()));
    for (option, span) in named.chain(written) {
        let message =
            "the guest can change a directory of the host, which QEMU supports only as beta";
        let help = "remove rw and set read-only=on if the guest only reads; otherwise use virtiofs, or an image";
        line.refuse(report, option, span, message, help);
    }
}
