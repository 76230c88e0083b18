//! Options, and parts of options, that the model does not have, so that a conversion can report them.

use crate::document::OtherOption;
use crate::firmware::FoundFirmware;
use crate::index::Index;
use crate::interface::DefaultInterface;
use crate::lower::Lowered;
use crate::members::Members;
use crate::parse::{Parsed, READCONFIG};
use crate::syntax::hole::Hole;
use crate::syntax::option::{UNKNOWN_WORD, WrittenOption};
use crate::syntax::properties::Property;
use crate::syntax::start::CommandLineForm;
use crate::syntax::text::Text;

/// Options that the model covers as a whole.
const COVERED: &[&str] = &[
    "enable-kvm",
    "no-acpi",
    "nodefaults",
    // Reported with the file, or read with it.
    READCONFIG,
    "snapshot",
];

/// Options of the machine that are read partially.
const IN_PARTS: &[&str] = &["M", "accel", "cpu", "m", "machine", "name", "smp", "uuid"];

/// Devices outside the model that are disks or have disks attached.
const UNKNOWN_DISKS: &[&str] = &[
    "emmc",
    "ide-cf",
    "nvdimm",
    "sd-card",
    "sd-card-spi",
    "ufs-lu",
    "vhost-scsi-ccw",
    "vhost-scsi-pci",
    "vhost-scsi-pci-non-transitional",
    "vhost-scsi-pci-transitional",
    "vhost-user-scsi-pci",
    "vhost-user-scsi-pci-non-transitional",
    "vhost-user-scsi-pci-transitional",
    "virtio-pmem-pci",
];

/// The options, and the parts of options, that the model does not have.
pub(crate) fn leftovers(
    parsed: &Parsed,
    index: &Index<'_>,
    lowered: &Lowered<'_>,
    firmware: &FoundFirmware,
) -> Vec<OtherOption> {
    let mut found = Leftovers {
        form: parsed.form(),
        default_interface: lowered.defaults().interface,
        is_firmware: false,
        list: Vec::new(),
    };
    for (nth, option) in index.options().iter().enumerate() {
        found.is_firmware = firmware.options.contains(&nth);
        let is_read = lowered.owner(nth).is_some() || parsed.is_override(nth);
        match (option.name.as_str(), index.properties(nth)) {
            (UNKNOWN_WORD, _) => {
                // Words of the caller are disks only where there are no others.
                let is_disk = |hole: &Hole| {
                    hole.may_be_disk() && !(hole.is_of_caller() && lowered.has_disks())
                };
                let has_data = parsed.holes_of(option).any(is_disk);
                let name = option.text.as_ref().map_or("", Text::as_str);
                found.push(option, name.to_owned(), has_data);
                found.mark_unknown(parsed.may_decide(option));
            }
            // The file has a name that only the shell knows.
            (READCONFIG, _) if option.text.as_ref().is_some_and(Text::has_hole) => {
                let name = option.text.as_ref().map_or("", Text::as_str);
                found.push(option, name.to_owned(), false);
                found.mark_unknown(true);
            }
            ("object", Some(object)) => found.object(option, object, lowered.is_read_object(nth)),
            (name, Some(properties)) if IN_PARTS.contains(&name) => {
                let has_firmware = std::mem::take(&mut found.is_firmware);
                let flash: &[&str] = if has_firmware {
                    &["pflash0", "pflash1"]
                } else {
                    &[]
                };
                found.unused(option, "", properties, flash);
                found.is_firmware = has_firmware;
                for key in flash.iter().filter(|key| properties.get(key).is_some()) {
                    found.part(option, key, false);
                }
            }
            ("numa", Some(numa)) if numa.has_accepted("memdev") => {
                // Cells are numbered again in their order.
                found.unused(option, "", numa, &["type", "nodeid"]);
            }
            _ if is_read => {}
            ("device", Some(device)) => found.device(option, device),
            ("drive", Some(drive)) => {
                found.drive(option, drive);
                if std::mem::take(&mut found.is_firmware) {
                    found.unread_flash(option, drive);
                }
            }
            // Its JSON could not be read.
            ("device" | "blockdev", None) => found.part(option, "", true),
            ("blockdev", Some(node)) => {
                let name = node.value("node-name").or(node.value("driver"));
                found.part(option, name.unwrap_or_default(), false);
            }
            ("global" | "set", Some(properties)) => {
                let key = match (properties.value("driver"), properties.value("property")) {
                    (Some(driver), Some(property)) => Some(format!("{driver}.{property}")),
                    _ => properties.iter().next().map(|it| it.key.clone()),
                };
                found.part(option, &key.unwrap_or_default(), false);
            }
            ("mtdblock", _) => found.part(option, "", true),
            ("hda" | "hdb" | "hdc" | "hdd" | "cdrom" | "", _) => {
                let is_unknown = found.default_interface == DefaultInterface::Unknown;
                found.part(option, "", is_unknown);
                found.mark_unknown(is_unknown);
            }
            (name, _) if COVERED.contains(&name) => {}
            _ => found.part(option, "", false),
        }
    }
    found.list
}

struct Leftovers {
    form: CommandLineForm,
    default_interface: DefaultInterface,
    /// True if the option is a part of the firmware; of `-machine`, only its flash is.
    is_firmware: bool,
    list: Vec<OtherOption>,
}

impl Leftovers {
    fn push(&mut self, option: &WrittenOption, name: String, has_data: bool) {
        self.list.push(OtherOption {
            name,
            span: option.span,
            has_data,
            is_unknown: false,
            is_firmware: self.is_firmware,
        });
    }

    /// Marks the last part as one that may be a disk.
    fn mark_unknown(&mut self, is_unknown: bool) {
        if let Some(last) = self.list.last_mut() {
            last.is_unknown |= is_unknown;
        }
    }

    /// Records an option, or a part of it.
    fn part(&mut self, option: &WrittenOption, part: &str, has_data: bool) {
        let name = match self.form {
            CommandLineForm::ConfigFile => format!("[{}]", option.name),
            CommandLineForm::MonitorScript => option.name.clone(),
            CommandLineForm::ZeroBytes
            | CommandLineForm::Json
            | CommandLineForm::Lines
            | CommandLineForm::Unit
            | CommandLineForm::Shell => {
                format!("-{}", option.name)
            }
        };
        let space = if part.is_empty() { "" } else { " " };
        self.push(option, format!("{name}{space}{part}"), has_data);
    }

    /// Records the unread parts.
    fn unused(
        &mut self,
        option: &WrittenOption,
        owner: &str,
        properties: Members<'_>,
        known: &[&str],
    ) {
        let dot = if owner.is_empty() { "" } else { "." };
        for property in properties.not_accepted() {
            if !known.contains(&property.key.as_str()) {
                self.part(option, &format!("{owner}{dot}{}", property.key), false);
            }
        }
    }

    fn object(&mut self, option: &WrittenOption, object: Members<'_>, is_read: bool) {
        let kind = object.value("qom-type").unwrap_or_default();
        let is_modelled = matches!(kind, "iothread" | "main-loop" | "throttle-group")
            || kind.starts_with("memory-backend-");
        if is_read || is_modelled {
            self.unused(option, kind, object, &["qom-type", "id"]);
        } else {
            self.part(option, kind, false);
        }
    }

    fn device(&mut self, option: &WrittenOption, device: Members<'_>) {
        let driver = device.value("driver").unwrap_or_default();
        if driver == "usb-bot" {
            // Generated again for its disk.
            self.unused(option, driver, device, &["driver", "id", "bus"]);
        } else {
            self.part(option, driver, UNKNOWN_DISKS.contains(&driver));
        }
    }

    /// A drive that no disk uses: firmware, flash of a board, or a drive that the guest does not see.
    /// Records the parts of a flash that [`FlashFirmware`](crate::FlashFirmware) does not have, such as its size.
    fn unread_flash(&mut self, option: &WrittenOption, drive: Members<'_>) {
        let read = [
            "if",
            "unit",
            "index",
            "id",
            "file",
            "format",
            "readonly",
            "read-only",
        ];
        for property in drive.iter() {
            if !read.contains(&property.key.as_str()) {
                self.part(option, &format!("if=pflash,{}", property.key), false);
            }
        }
    }

    fn drive(&mut self, option: &WrittenOption, drive: Members<'_>) {
        match drive.value("if") {
            // A machine without a default interface creates no device.
            None => {
                let is_unknown = self.default_interface == DefaultInterface::Unknown;
                let on = if is_unknown {
                    " on an unknown machine"
                } else {
                    ""
                };
                self.part(option, &format!("without if{on}"), is_unknown);
                self.mark_unknown(is_unknown);
            }
            Some(interface @ ("pflash" | "none")) => {
                let name = drive.value("id").or(drive.value("file"));
                let name = name.unwrap_or_default();
                self.part(option, &format!("if={interface},{name}"), false);
            }
            Some(interface) => {
                self.part(option, &format!("if={interface}"), true);
                let is_open = drive.get("if").is_some_and(Property::is_open);
                self.mark_unknown(is_open || interface == "mtd");
            }
        }
    }
}
