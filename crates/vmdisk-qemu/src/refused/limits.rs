//! Numbers out of range, and settings that exclude each other, of devices and iothreads.

use vmdisk_model::Switch;
use vmdisk_source::ProblemKind;

use super::check::{Check, base_of};
use crate::syntax::properties::{Kind, Properties};
use crate::syntax::value::{is_on, number_of, size_of, switch_of};

/// What a device takes of a number: its device, its property, the least and the most.
const RANGES: &[(&str, &str, u64, u64)] = &[
    ("virtio-blk", "max-discard-sectors", 1, 4_194_303),
    ("virtio-blk", "max-write-zeroes-sectors", 1, 4_194_303),
    ("nvme", "max_ioqpairs", 1, 65_535),
    ("nvme", "msix_qsize", 1, 2048),
    ("ide-hd", "cyls", 1, 65_535),
    ("ide-hd", "heads", 1, 16),
    ("ide-hd", "secs", 1, 255),
];

/// The most pages in a transfer, as a power of two: the host takes 1024 pieces in a request (`IOV_MAX`).
const MOST_MDTS: u64 = 9;

impl Check<'_> {
    pub(super) fn find_refused_limits(&mut self) {
        for (option, driver, device) in self.index.devices() {
            let base = base_of(driver);
            for (owner, key, least, most) in RANGES.iter().filter(|(owner, ..)| *owner == base) {
                let Some(property) = device.peek(key) else {
                    continue;
                };
                if let Some(number) = number_of(property.value.as_str())
                    && !(*least..=*most).contains(&number)
                {
                    let message =
                        format!("{owner} takes {key} from {least} to {most}, and not {number}");
                    let help = format!("take {key} away for the default");
                    self.refuse(
                        ProblemKind::InvalidValue,
                        option,
                        property.span,
                        message,
                        help,
                    );
                }
            }
            self.check_io_sizes(option, base, device);
            if base == "nvme" {
                self.check_transfer_size(option, device);
            }
            self.check_drive(option, base, device);
            match base {
                "nvme" if device.peek("serial").is_none() => {
                    let span = self.index.span(option);
                    let message = "an NVMe controller has no serial number";
                    let help = "write serial, of 1 to 20 characters";
                    self.refuse(ProblemKind::MissingValue, option, span, message, help);
                }
                "scsi-hd" | "scsi-cd" => self.check_scsi_serial(option, device),
                "virtio-scsi" => {
                    self.check_mapping(option, device);
                    self.check_virtqueue_size(option, device);
                    self.check_ioeventfd(option, device);
                    self.check_vectors(option, device, "num_queues", 3);
                }
                "virtio-blk" => {
                    self.check_mapping(option, device);
                    self.check_ioeventfd(option, device);
                    self.check_vectors(option, device, "num-queues", 1);
                }
                "vhost-user-blk" => {
                    self.check_vectors(option, device, "num-queues", 1);
                    self.check_socket(option, device);
                }
                _ => {}
            }
        }
        for (option, object) in self.index.of_name("object") {
            let is_iothread = object
                .peek("qom-type")
                .is_some_and(|it| it.value.as_str() == "iothread");
            for key in ["poll-max-ns", "poll-grow", "poll-shrink", "aio-max-batch"] {
                if let Some(property) = object.peek(key).filter(|_| is_iothread)
                    && property.value.as_str().starts_with('-')
                {
                    let message = format!(
                        "`{key}` is {}, and must not be negative",
                        property.value.as_str()
                    );
                    let help = format!("take {key} away for the default");
                    self.refuse(
                        ProblemKind::InvalidValue,
                        option,
                        property.span,
                        message,
                        help,
                    );
                }
            }
        }
    }

    /// The sizes that must be multiples of the sector; the sectors themselves are in the model.
    fn check_io_sizes(&mut self, option: usize, base: &str, device: &Properties) {
        let size = |key: &str| {
            let property = device.peek(key)?;
            Some((size_of(property.value.as_str(), 1)?.0, property.span))
        };
        let default = if base == "scsi-cd" { 2048 } else { 512 };
        let sector = size("logical_block_size").map_or(default, |(size, _)| size);
        if !sector.is_power_of_two() {
            return;
        }
        for key in ["min_io_size", "opt_io_size"] {
            let Some((bytes, span)) = size(key) else {
                continue;
            };
            if bytes % sector != 0 {
                let message =
                    format!("{key} of {bytes} bytes is no multiple of the sector of {sector}");
                let help = format!("write a multiple of {sector}");
                self.refuse(ProblemKind::BlockSizeRefused, option, span, message, help);
            } else if key == "min_io_size" && bytes / sector > 65_535 {
                let message = format!("{key} of {bytes} bytes is more than 65535 sectors");
                let help = format!("write at most {}", 65_535 * sector);
                self.refuse(ProblemKind::BlockSizeRefused, option, span, message, help);
            }
        }
    }

    /// Only drives with removable media may be empty.
    fn check_drive(&mut self, option: usize, base: &str, device: &Properties) {
        let needs_one = matches!(
            base,
            "virtio-blk"
                | "scsi-hd"
                | "scsi-block"
                | "scsi-generic"
                | "ide-hd"
                | "usb-storage"
                | "nvme-ns"
        );
        if needs_one && device.peek("drive").is_none() {
            let span = self.index.span(option);
            let message = format!("`{base}` has no drive");
            let help = "write drive with the name of a node";
            self.refuse(ProblemKind::MissingValue, option, span, message, help);
        }
    }

    /// Without a `device_id` QEMU makes one of the serial number, and it is shorter.
    fn check_scsi_serial(&mut self, option: usize, device: &Properties) {
        let Some(serial) = device
            .peek("serial")
            .filter(|_| device.peek("device_id").is_none())
        else {
            return;
        };
        let bytes = serial.value.as_str().len();
        if (21..=36).contains(&bytes) {
            let message = format!(
                "the serial number has {bytes} bytes and is the device_id too, of which QEMU 10.0 and later take 20"
            );
            let help =
                "write device_id beside it, of at most 20 bytes, or shorten the serial number";
            self.refuse(
                ProblemKind::SerialTooLong,
                option,
                serial.span,
                message,
                help,
            );
        }
    }

    fn check_virtqueue_size(&mut self, option: usize, device: &Properties) {
        let Some(property) = device.peek("virtqueue_size") else {
            return;
        };
        let Some(size) = number_of(property.value.as_str()) else {
            return;
        };
        let message = match size {
            0..=2 => format!("virtqueue_size of {size}: QEMU takes 3 or more"),
            1025.. => format!(
                "virtqueue_size of {size}: QEMU aborts on more than 1024, without a message"
            ),
            _ if !size.is_power_of_two() => {
                format!(
                    "virtqueue_size of {size} is no power of two, and guests cannot use such a queue"
                )
            }
            _ => return,
        };
        let help = "write a power of two from 4 to 1024, or take it away for 256";
        self.refuse(
            ProblemKind::QueueSizeRefused,
            option,
            property.span,
            message,
            help,
        );
    }

    fn check_ioeventfd(&mut self, option: usize, device: &Properties) {
        let thread = device.peek("iothread");
        let has_thread = thread.is_some() || device.has_within("iothread-vq-mapping.");
        let off = device
            .peek("ioeventfd")
            .filter(|it| switch_of(it.value.as_str()) == Some(Switch::Off));
        if let Some(off) = off.filter(|_| has_thread) {
            let message =
                "ioeventfd=off keeps requests on the vCPU, and an iothread never hears of them";
            let help = "take ioeventfd=off away, or the iothread";
            self.refuse(ProblemKind::IoeventfdOff, option, off.span, message, help);
        }
    }

    /// A mapping without rows leaves all queues in the main loop.
    fn check_mapping(&mut self, option: usize, device: &Properties) {
        let empty = device
            .peek("iothread-vq-mapping")
            .filter(|it| it.kind == Kind::EmptyArray);
        if let Some(empty) = empty {
            let message = "iothread-vq-mapping has no row, and every queue stays in the main loop";
            let help = "write a row for each iothread, or take it away";
            self.refuse(ProblemKind::MappingEmpty, option, empty.span, message, help);
        }
    }

    fn check_transfer_size(&mut self, option: usize, device: &Properties) {
        let Some(property) = device.peek("mdts") else {
            return;
        };
        if let Some(number) = number_of(property.value.as_str()).filter(|it| *it > MOST_MDTS) {
            let message = format!(
                "mdts={number} lets one transfer have more pages than QEMU 10.0 and later pass on"
            );
            let help = format!("write at most {MOST_MDTS}, or take mdts away for 7");
            let kind = ProblemKind::NvmeTransferSize;
            self.refuse(kind, option, property.span, message, help);
        }
    }

    /// `others` is the number of vectors for what is no request queue.
    fn check_vectors(&mut self, option: usize, device: &Properties, queues: &str, others: u64) {
        let Some(property) = device.peek("vectors") else {
            return;
        };
        let Some(vectors) = number_of(property.value.as_str()) else {
            return;
        };
        let written = device
            .peek(queues)
            .and_then(|it| number_of(it.value.as_str()));
        let count = written.unwrap_or_else(|| u64::from(self.lowered.domain().queues_by_default()));
        let needed = count.saturating_add(others);
        if vectors < needed {
            let s = if count == 1 { "" } else { "s" };
            let message = match vectors {
                0 => format!("vectors=0: {count} queue{s} share one interrupt line"),
                _ => format!(
                    "{vectors} interrupt vectors for {count} queue{s}, which then share them"
                ),
            };
            let help = format!("take vectors away, which gives {needed}");
            self.refuse(
                ProblemKind::TooFewVectors,
                option,
                property.span,
                message,
                help,
            );
        }
    }

    fn check_socket(&mut self, option: usize, device: &Properties) {
        let name = device.peek("chardev").map(|chardev| chardev.value.as_str());
        let Some(chardev) = name.and_then(|name| self.index.chardev(name)) else {
            return;
        };
        let Some(server) = self
            .index
            .properties(chardev)
            .and_then(|socket| socket.peek("server"))
        else {
            return;
        };
        if is_on(Some(server)) {
            let message =
                "QEMU makes the socket itself, and does not start before the daemon connects to it";
            let help = "take server away: the daemon makes the socket, and QEMU connects";
            self.refuse(
                ProblemKind::ServerSocket,
                option,
                server.span,
                message,
                help,
            );
        }
    }
}
