//! `drive-protocol-unknown`

use vmdisk_rule::{Evidence, Group, Report, Severity};

use super::line::{Line, line_rule};
use crate::members::Members;

line_rule! {
    /// A file name with a colon is read as an unknown protocol.
    ///
    /// ## What it reports
    /// Reports a `-drive`, `-hda` or similar option whose file name has a colon before its first slash, if the part
    /// before the colon is not a protocol of QEMU. Paths with the letter of a Windows drive, such as `D:\vm\a.img` or
    /// `D:/vm/a.img`, are not reported: on Windows, QEMU opens the file.
    ///
    /// ## Why it matters
    /// `-drive` reads the part before the colon as the name of a protocol. For a file such as `backup:1.img`, QEMU
    /// exits at start with `Unknown protocol 'backup'`. `qemu-img` does the same. `-blockdev` takes the file name
    /// unchanged.
    ///
    /// ## Use instead
    /// Put a path before the name: `file=./backup:1.img`, or `/srv/backup:1.img`. Alternatively use
    /// `-blockdev driver=file,filename=…`.
    ///
    /// ## Reported
    /// ```args,reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=backup:2026.img,format=raw,if=virtio
    /// ```
    ///
    /// ## Not reported
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -drive file=./backup:2026.img,format=raw,if=virtio
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 -drive file=D:/vm/a.img,format=raw,if=virtio
    /// ```
    /// ```args,not-reported
    /// qemu-system-x86_64 -nodefaults -machine q35 \
    ///   -blockdev driver=file,node-name=f0,filename=backup:2026.img \
    ///   -device virtio-blk-pci,drive=f0,id=vda
    /// ```
    name: "drive-protocol-unknown",
    group: Group::Startup,
    severity: Severity::Error,
    applies_to_foreign_guests: true,
    evidence: &[
        Evidence::refused_by_qemu("Unknown protocol 'backup'", "block.c, bdrv_find_protocol"),
    ],
    check: Text(check),
}

/// The valid prefixes before a colon in a file name: protocols and drivers.
pub(crate) const PROTOCOLS: &[&str] = &[
    "blkdebug",
    "blklogwrites",
    "blkreplay",
    "blkverify",
    "fat",
    "file",
    "ftp",
    "ftps",
    "gluster",
    "host_cdrom",
    "host_device",
    "http",
    "https",
    "iscsi",
    "iser",
    "json",
    "nbd",
    "nfs",
    "null-aio",
    "null-co",
    "nvme",
    "quorum",
    "rbd",
    "replication",
    "sheepdog",
    "ssh",
    "tftp",
    "vxhs",
];

/// `-drive` and the options that are short for it.
pub(super) const DRIVES: [&str; 10] = [
    "drive", "", "hda", "hdb", "hdc", "hdd", "cdrom", "fda", "fdb", "sd",
];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    for name in DRIVES {
        for (option, drive) in line.index.of_name(name) {
            check_protocol(line, report, option, drive);
        }
    }
}

fn check_protocol(line: &Line<'_>, report: &mut Report, option: usize, drive: Members<'_>) {
    let Some(file) = drive.get("file") else {
        return;
    };
    let name = file.value.as_str();
    let Some((before, _)) = name.split_once(':') else {
        return;
    };
    // A shell has removed the backslash after it.
    let is_windows_drive = matches!(before.as_bytes(), [letter] if letter.is_ascii_alphabetic());
    if before.contains('/') || is_windows_drive || file.is_open() {
        return;
    }
    // `nbd+unix:` and `gluster+tcp:` name a protocol with its transport.
    let protocol = before.split('+').next().unwrap_or(before);
    if !PROTOCOLS.contains(&protocol) {
        let message = format!(
            "QEMU treats `{before}` before the colon as a protocol, which it does not have"
        );
        let help = format!("use ./{name}, or -blockdev, which does not parse file names");
        line.refuse(report, option, file.span, message, help);
    }
}
