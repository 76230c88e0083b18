//! Reads `-drive` and its short forms: `-hda` to `-hdd`, `-cdrom`, `-fda`, and a bare file name.

use vmdisk_fields::disk;
use vmdisk_model::{
    Address, BackendSource, CacheMode, ControllerType, Device, Disk, DiskField, FieldPath, Fields,
    Frontend, Switch, TargetBus,
};

use super::read::DiskReader;
use super::read_value::read_value;
use crate::blockdev::nodes::Nodes;
use crate::index::NodeAt;
use crate::interface::DefaultInterface;
use crate::members::Members;
use crate::object::read_throttle::iotune_of;
use crate::syntax::value::{is_on, number_of};

/// The device of a disk without a `-device`.
struct Automatic {
    bus: TargetBus,
    device: Device,
    index: Option<u32>,
}

impl<'a> DiskReader<'_, 'a> {
    /// Reads the backend that a `-drive` describes.
    pub(super) fn read_drive(&mut self, nth: usize, option: usize) -> Nodes {
        let Some(properties) = self.index.properties(option) else {
            return Nodes::none(BackendSource::Empty);
        };
        let at = |field| FieldPath::Disk(nth, field);
        properties.accept(&["id", "if", "media", "index", "bus", "unit"]);
        let mut nodes = self.nodes().read_nodes(nth, NodeAt::of(option, properties));
        let backend = &mut nodes.backend;
        if let Some(property) = properties.take("cache") {
            backend.cache = self.notes.word(
                at(DiskField::Cache),
                property,
                CacheMode::WORDS,
                cache_of_drive,
            );
        }
        let write_back = properties.take("cache.writeback");
        let write_back =
            write_back.and_then(|property| self.notes.switch(at(DiskField::Cache), property));
        if is_on(properties.take("copy-on-read")) {
            self.notes.record_option(at(DiskField::CopyOnRead), option);
            backend.copy_on_read = Some(Switch::On);
        }
        let snapshot = properties.take("snapshot");
        // Of an image that is only read there is nothing to discard, and libvirt refuses it.
        let takes_global = snapshot.is_none() && !backend.is_read_only;
        if is_on(snapshot) || (takes_global && self.index.has("snapshot")) {
            self.notes.record_option(at(DiskField::Transient), option);
            backend.is_transient = true;
        }
        if let Some(iotune) = iotune_of(|name| properties.take(&legacy_limit(properties, name))) {
            self.notes.record_option(at(DiskField::Iotune), option);
            let group = properties
                .take_text("throttling.group")
                .or(properties.take_text("group"));
            backend.iotune = Some(Box::new(vmdisk_model::Iotune {
                group: group.map(str::to_owned),
                ..iotune
            }));
        }
        nodes.resolve_cache(nth, write_back, self.notes);
        nodes
    }

    /// Reads the frontend settings of a `-drive`.
    fn read_drive_frontend(
        &mut self,
        nth: usize,
        properties: Members<'a>,
        frontend: &mut Frontend,
    ) {
        for (key, field) in [
            ("werror", DiskField::ErrorPolicy),
            ("rerror", DiskField::ReadErrorPolicy),
            ("serial", DiskField::Serial),
        ] {
            if let (Some(property), Some(slot)) = (properties.take(key), frontend.field_mut(field))
            {
                let at = FieldPath::Disk(nth, field);
                read_value(at, property, disk(field), slot, self.iothreads, self.notes);
            }
        }
    }

    /// The error policies that a device inherits from its `-drive`.
    pub(super) fn read_drive_policies(
        &mut self,
        nth: usize,
        properties: Members<'_>,
        frontend: &mut Frontend,
    ) {
        let drive = properties
            .get("drive")
            .and_then(|drive| self.index.drive(drive.value.as_str()));
        if let Some(drive) = drive.and_then(|option| self.index.properties(option)) {
            let (error_policy, read_error_policy) =
                (frontend.error_policy, frontend.read_error_policy);
            let serial = frontend.serial.take();
            self.read_drive_frontend(nth, drive, frontend);
            frontend.error_policy = error_policy.or(frontend.error_policy);
            frontend.read_error_policy = read_error_policy.or(frontend.read_error_policy);
            frontend.serial = serial.or(frontend.serial.take());
        }
    }

    /// Reads a `-drive` that creates its own device.
    pub(super) fn read_automatic_drive(&mut self, option: usize, properties: Members<'a>) {
        let is_cdrom = properties
            .get("media")
            .is_some_and(|media| media.value.as_str() == "cdrom");
        let interface = properties
            .get("if")
            .map(|interface| interface.value.as_str());
        let Some(bus) = self.interface(interface) else {
            return;
        };
        let number = |key: &str| {
            let text = properties.get(key)?.value.as_str();
            u32::try_from(number_of(text)?).ok()
        };
        let index = number("index").or_else(|| {
            let (bus_number, unit) = (number("bus"), number("unit"));
            let units = if bus == TargetBus::Ide { 2 } else { 1 };
            bus_number.or(unit)?;
            bus_number
                .unwrap_or(0)
                .checked_mul(units)?
                .checked_add(unit.unwrap_or(0))
        });
        let device = match (bus, is_cdrom) {
            (TargetBus::Fdc, _) => Device::Floppy,
            // QEMU has no CD drive there, but a disk that cannot be written.
            (TargetBus::Virtio | TargetBus::Sd, _) | (_, false) => Device::Disk,
            (_, true) => Device::Cdrom,
        };
        let nth = self.disks.len();
        let mut nodes = self.read_drive(nth, option);
        nodes.backend.is_read_only |= is_cdrom && device == Device::Disk;
        let mut frontend = Frontend::unset();
        self.read_drive_frontend(nth, properties, &mut frontend);
        for (field, key) in [(DiskField::TargetBus, "if"), (DiskField::Device, "media")] {
            if let Some(property) = properties.get(key) {
                self.notes.record(FieldPath::Disk(nth, field), property);
            }
        }
        self.add_automatic(
            nth,
            option,
            nodes,
            frontend,
            &Automatic { bus, device, index },
        );
    }

    /// The bus of `if=`, otherwise the board's default; `None` if it is not a disk bus.
    fn interface(&self, word: Option<&str>) -> Option<TargetBus> {
        Some(match word {
            Some("virtio") => TargetBus::Virtio,
            Some("ide") => self.buses.default_ide().1,
            Some("scsi") => TargetBus::Scsi,
            Some("floppy") => TargetBus::Fdc,
            Some("sd") => TargetBus::Sd,
            // Drives for a -device, firmware, flash of a board; and values that QEMU refuses.
            Some(_) => return None,
            None => match self.buses.default_interface {
                DefaultInterface::Ide => self.buses.default_ide().1,
                DefaultInterface::Scsi => TargetBus::Scsi,
                DefaultInterface::Virtio => TargetBus::Virtio,
                DefaultInterface::Sd => TargetBus::Sd,
                DefaultInterface::None | DefaultInterface::Unknown => return None,
            },
        })
    }

    /// Reads `-hda` and similar options, and a file name without an option.
    pub(super) fn read_short_drive(&mut self, option: usize, word: &str, properties: Members<'a>) {
        let (bus, device, index) = match word {
            "" | "hda" => (None, Device::Disk, 0),
            "hdb" => (None, Device::Disk, 1),
            "hdc" => (None, Device::Disk, 2),
            "hdd" => (None, Device::Disk, 3),
            "cdrom" => (None, Device::Cdrom, 2),
            "fda" => (Some(TargetBus::Fdc), Device::Floppy, 0),
            "fdb" => (Some(TargetBus::Fdc), Device::Floppy, 1),
            "sd" => (Some(TargetBus::Sd), Device::Disk, 0),
            _ => return,
        };
        let Some(bus) = bus.or_else(|| self.interface(None)) else {
            return;
        };
        let nth = self.disks.len();
        let mut nodes = self.nodes().read_nodes(nth, NodeAt::of(option, properties));
        nodes.backend.is_transient = self.index.has("snapshot");
        let automatic = Automatic {
            bus,
            device,
            index: Some(index),
        };
        self.add_automatic(nth, option, nodes, Frontend::unset(), &automatic);
    }

    fn add_automatic(
        &mut self,
        nth: usize,
        option: usize,
        mut nodes: Nodes,
        frontend: Frontend,
        automatic: &Automatic,
    ) {
        let Automatic { bus, device, index } = *automatic;
        let at = FieldPath::Disk(nth, DiskField::Disk);
        self.notes.own(option, at);
        self.notes.record_option(at, option);
        let said = |units: u32| index.map(|index| (0, index / units, index % units));
        let address = match bus {
            TargetBus::Ide => Some(self.buses.next_place(ControllerType::Ide, said(2), 2)),
            TargetBus::Sata | TargetBus::Fdc => {
                let kind = if bus == TargetBus::Sata {
                    ControllerType::Sata
                } else {
                    ControllerType::Fdc
                };
                let said = index.map(|index| (0, 0, index));
                Some(self.buses.next_place(kind, said, 1))
            }
            _ => None,
        };
        if device == Device::Cdrom {
            nodes.backend.is_read_only = false;
            nodes.backend.is_transient = false;
        } else if nodes.is_read_only_below {
            self.report_read_only_below(nth, option);
        }
        let mut frontend = Frontend {
            device: Some(device),
            bus: Some(bus),
            address: address.map(Address::Drive),
            ..frontend
        };
        if let Some(properties) = self.index.properties(option) {
            self.targets
                .assign_target(nth, properties, &mut frontend, self.notes);
        }
        // The id of a -drive is not a device id.
        frontend.alias = None;
        self.disks.push(Disk {
            frontend,
            backend: nodes.backend,
        });
    }
}

/// The key of a limit in a `-drive`: `throttling.iops-total`, or the legacy `iops`.
fn legacy_limit(properties: Members<'_>, name: &str) -> String {
    let key = format!("throttling.{name}");
    if properties.get(&key).is_some() {
        return key;
    }
    let (kind, rest) = name.split_once('-').unwrap_or((name, ""));
    match rest {
        "total" => kind.to_owned(),
        "read" => format!("{kind}_rd"),
        "write" => format!("{kind}_wr"),
        "total-max" => format!("{kind}_max"),
        "read-max" => format!("{kind}_rd_max"),
        "write-max" => format!("{kind}_wr_max"),
        "size" => "iops_size".to_owned(),
        _ => key,
    }
}

/// The mode of `cache=`, in which `off` is an old word for `none`.
fn cache_of_drive(word: &str) -> Option<CacheMode> {
    match word {
        "off" => Some(CacheMode::None),
        _ => CacheMode::from_word(word),
    }
}
