//! `invalid-value`, for numbers and words that reading keeps unchanged.

use vmdisk_rule::Report;

use super::line::{Line, base_of};
use crate::syntax::value::{is_open, number_of};

/// The range of a number: device, property, minimum and maximum.
const RANGES: &[(&str, &str, u64, u64)] = &[
    ("virtio-blk", "max-discard-sectors", 1, 4_194_303),
    ("virtio-blk", "max-write-zeroes-sectors", 1, 4_194_303),
    ("nvme", "max_ioqpairs", 1, 65_535),
    ("nvme", "msix_qsize", 1, 2048),
    ("ide-hd", "cyls", 1, 65_535),
    ("ide-hd", "heads", 1, 16),
    ("ide-hd", "secs", 1, 255),
];

/// The values of `if`.
const INTERFACES: &[&str] = &[
    "floppy", "ide", "mtd", "none", "pflash", "scsi", "sd", "virtio", "xen",
];

pub(super) fn check(line: &Line<'_>, report: &mut Report) {
    check_ranges(line, report);
    check_polling(line, report);
    check_interfaces(line, report);
}

fn check_ranges(line: &Line<'_>, report: &mut Report) {
    for (option, driver, device) in line.index.devices() {
        let base = base_of(driver);
        for (owner, key, least, most) in RANGES.iter().filter(|(owner, ..)| *owner == base) {
            let Some(property) = device.peek(key) else {
                continue;
            };
            if let Some(number) = number_of(property.value.as_str())
                && !(*least..=*most).contains(&number)
            {
                let message =
                    format!("{owner} supports {key} from {least} to {most}, not {number}");
                let help = format!("remove {key} to use the default");
                line.refuse(report, option, property.span, message, help);
            }
        }
    }
}

fn check_polling(line: &Line<'_>, report: &mut Report) {
    for (option, object) in line.index.objects("iothread") {
        for key in ["poll-max-ns", "poll-grow", "poll-shrink", "aio-max-batch"] {
            if let Some(property) = object.peek(key)
                && property.value.as_str().starts_with('-')
            {
                let message = format!(
                    "`{key}` is {}, but must not be negative",
                    property.value.as_str()
                );
                let help = format!("remove {key} to use the default");
                line.refuse(report, option, property.span, message, help);
            }
        }
    }
}

fn check_interfaces(line: &Line<'_>, report: &mut Report) {
    for (option, drive) in line.index.of_name("drive") {
        let Some(interface) = drive.peek("if") else {
            continue;
        };
        let word = interface.value.as_str();
        if !INTERFACES.contains(&word) && !is_open(word) {
            let message = format!("if={word}: expected one of {}", INTERFACES.join(", "));
            let help = "use if=virtio, or if=none and a -device";
            line.refuse(report, option, interface.span, message, help);
        }
    }
}
