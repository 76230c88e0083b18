//! `-drive`: words that are gone, names that are taken for protocols, switches that contradict the mode.

use vmdisk_model::CacheMode;
use vmdisk_source::ProblemKind;

use super::check::Check;
use crate::board::Board;
use crate::syntax::properties::Properties;
use crate::syntax::value::{is_open, switch_of};

/// Words of the frontend, which `-drive` had until QEMU 3.0.
const GONE: &[&str] = &["addr", "cyls", "heads", "secs", "serial", "trans"];

/// What `if` may be.
const INTERFACES: &[&str] = &[
    "floppy", "ide", "mtd", "none", "pflash", "scsi", "sd", "virtio", "xen",
];

/// What may stand before a colon in a file name: protocols, and drivers that are written so.
const PROTOCOLS: &[&str] = &[
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

impl Check<'_> {
    pub(super) fn find_refused_drives(&mut self) {
        for (option, drive) in self.index.of_name("drive") {
            for property in GONE.iter().filter_map(|key| drive.peek(key)) {
                let key = &property.key;
                let message = format!("-drive has no `{key}` since QEMU 3.0");
                let help = format!("write if=none, and {key} on a -device");
                let span = property.key_span;
                self.refuse(ProblemKind::PropertyRefused, option, span, message, help);
            }
            self.check_interface(option, drive);
            self.check_cache(option, drive);
            self.check_protocol(option, drive);
        }
    }

    fn check_interface(&mut self, option: usize, drive: &Properties) {
        let is_pc = matches!(self.lowered.board(), Board::Q35 | Board::I440fx)
            && self.lowered.domain().machine.is_some();
        let Some(interface) = drive.peek("if") else {
            return;
        };
        match interface.value.as_str() {
            "scsi" if is_pc => {
                let message = "if=scsi: a PC has no SCSI controller of its own";
                let help = "write if=none, a -device virtio-scsi-pci and a -device scsi-hd";
                self.refuse(
                    ProblemKind::BusMissing,
                    option,
                    interface.span,
                    message,
                    help,
                );
            }
            "sd" if is_pc => {
                let message = "if=sd: a PC has no slot for an SD card";
                let help = "write if=virtio";
                self.refuse(
                    ProblemKind::BusMissing,
                    option,
                    interface.span,
                    message,
                    help,
                );
            }
            word if !INTERFACES.contains(&word) && !is_open(word) => {
                let message = format!("if={word}: expected one of {}", INTERFACES.join(", "));
                let help = "write if=virtio, or if=none and a -device";
                self.refuse(
                    ProblemKind::InvalidValue,
                    option,
                    interface.span,
                    message,
                    help,
                );
            }
            _ => {}
        }
    }

    fn check_cache(&mut self, option: usize, drive: &Properties) {
        let Some(mode) = drive
            .peek("cache")
            .and_then(|it| CacheMode::from_wire(it.value.as_str()))
        else {
            return;
        };
        let switches = mode.switches();
        for (key, is_set) in [
            ("cache.direct", switches.direct),
            ("cache.no-flush", switches.no_flush),
            ("cache.writeback", switches.write_cache),
        ] {
            let Some(property) = drive.peek(key) else {
                continue;
            };
            let Some(switch) = switch_of(property.value.as_str()) else {
                continue;
            };
            if (switch == vmdisk_model::Switch::On) != is_set {
                let word = property.value.as_str();
                let message = format!(
                    "cache={mode} and {key}={word}: the switch wins, and the mode is not what it says"
                );
                let help = format!("take {key} away, or write the mode that has it");
                self.refuse(
                    ProblemKind::CacheContradicted,
                    option,
                    property.span,
                    message,
                    help,
                );
            }
        }
    }

    fn check_protocol(&mut self, option: usize, drive: &Properties) {
        let Some(file) = drive.peek("file") else {
            return;
        };
        let name = file.value.as_str();
        let Some((before, _)) = name.split_once(':') else {
            return;
        };
        if before.contains('/') || is_open(name) {
            return;
        }
        // `nbd+unix:` and `gluster+tcp:` are spoken over something.
        let protocol = before.split('+').next().unwrap_or(before);
        if !PROTOCOLS.contains(&protocol) {
            let message =
                format!("QEMU takes `{before}` before the colon for a protocol, and there is none");
            let help =
                format!("write ./{name}, or use -blockdev, where a file name is nothing else");
            self.refuse(
                ProblemKind::ProtocolUnknown,
                option,
                file.span,
                message,
                help,
            );
        }
    }
}
