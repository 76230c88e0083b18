//! Reads the device of a disk.

use vmdisk_fields::{DISK_FIELDS, DeviceModel, FieldRow, Spelling, disk};
use vmdisk_model::{
    Address, BackendSource, CacheMode, CacheSwitches, Device, Disk, DiskField, FieldKind,
    FieldPath, FieldType, FieldValue, Fields, Frontend, Geometry, GeometryTranslation,
    IoThreadQueues, Switch, TargetBus, VhostUserSocket, VirtioModel, target_number,
};
use vmdisk_source::ProblemKind;

use crate::blockdev::read::Nodes;
use crate::reader::{NodeAt, Reader, number_of, switch_of};
use crate::syntax::properties::{Kind, Properties, Property, View};

/// What the name of a driver says about a disk.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DiskDriver {
    pub(crate) model: DeviceModel,
    pub(crate) bus: TargetBus,
    device: Device,
    virtio: Option<VirtioModel>,
    /// True for an NVMe controller that is its own only disk.
    pub(crate) is_whole_nvme: bool,
}

/// Reads the name of a driver; `None` if it is no disk.
pub(crate) fn disk_driver(driver: &str) -> Option<DiskDriver> {
    let (base, virtio) = if let Some(base) = driver.strip_suffix("-non-transitional") {
        (base, Some(VirtioModel::NonTransitional))
    } else if let Some(base) = driver.strip_suffix("-transitional") {
        (base, Some(VirtioModel::Transitional))
    } else {
        (driver, None)
    };
    let base = ["-pci", "-ccw", "-device"]
        .iter()
        .find_map(|end| base.strip_suffix(end))
        .unwrap_or(base);
    let (model, bus, device) = match base {
        "virtio-blk" => (DeviceModel::VirtioBlk, TargetBus::Virtio, Device::Disk),
        "vhost-user-blk" => (DeviceModel::VhostUserBlk, TargetBus::Virtio, Device::Disk),
        "scsi-hd" | "scsi-disk" => (DeviceModel::ScsiHd, TargetBus::Scsi, Device::Disk),
        "scsi-cd" => (DeviceModel::ScsiCd, TargetBus::Scsi, Device::Cdrom),
        "scsi-block" | "scsi-generic" => (DeviceModel::ScsiBlock, TargetBus::Scsi, Device::Lun),
        "ide-hd" | "ide-drive" => (DeviceModel::IdeHd, TargetBus::Ide, Device::Disk),
        "ide-cd" => (DeviceModel::IdeCd, TargetBus::Ide, Device::Cdrom),
        "usb-storage" => (DeviceModel::UsbStorage, TargetBus::Usb, Device::Disk),
        "floppy" => (DeviceModel::Floppy, TargetBus::Fdc, Device::Floppy),
        "nvme-ns" | "nvme" => (DeviceModel::NvmeNamespace, TargetBus::Nvme, Device::Disk),
        _ => return None,
    };
    Some(DiskDriver {
        model,
        bus,
        device,
        virtio,
        is_whole_nvme: base == "nvme",
    })
}

impl<'a> Reader<'a> {
    /// Reads a device that is a disk.
    pub(crate) fn read_disk_device(
        &mut self,
        option: usize,
        properties: &'a Properties,
        driver: DiskDriver,
    ) {
        let nth = self.domain.disks.len();
        let disk_at = FieldPath::Disk(nth, DiskField::Disk);
        let at = |field| FieldPath::Disk(nth, field);
        self.owners.insert(option, disk_at);
        self.slots.device.insert(nth, option);
        self.record_option(disk_at, option);
        if let Some(name) = properties.get("driver") {
            self.record(at(DiskField::TargetBus), name);
            self.record(at(DiskField::Device), name);
            self.record(at(DiskField::Model), name);
            if name.value.as_str() == "scsi-generic" {
                self.keep(disk_at, "scsi-generic", name.span);
            }
        }
        let mut nodes = match driver.model {
            DeviceModel::VhostUserBlk => self.read_socket(nth, option, properties),
            DeviceModel::VirtioBlk
            | DeviceModel::ScsiHd
            | DeviceModel::ScsiCd
            | DeviceModel::ScsiBlock
            | DeviceModel::IdeHd
            | DeviceModel::IdeCd
            | DeviceModel::UsbStorage
            | DeviceModel::Floppy
            | DeviceModel::NvmeNamespace => self.read_drive_of(nth, option, properties),
        };
        let mut frontend = Frontend {
            device: Some(driver.device),
            model: driver.virtio,
            ..Frontend::unset()
        };
        let bus = self.read_place(nth, properties, driver, &mut frontend);
        frontend.bus = Some(bus);
        self.read_properties(nth, properties, driver.model, &mut frontend, &mut nodes);
        self.read_drive_policies(nth, properties, &mut frontend);
        if driver.is_whole_nvme
            && let Some(serial) = properties.get("serial")
        {
            self.record(at(DiskField::Serial), serial);
            frontend.serial = Some(serial.value.as_str().to_owned());
        }
        if driver.device == Device::Cdrom {
            // A CD drive is read-only without being told.
            nodes.backend.is_read_only = false;
        }
        self.name_disk(nth, properties, &mut frontend);
        self.domain.disks.push(Disk {
            frontend,
            backend: nodes.backend,
        });
    }

    /// The nodes behind the `drive` of a device.
    fn read_drive_of(&mut self, nth: usize, option: usize, properties: &'a Properties) -> Nodes {
        let empty = Nodes {
            backend: vmdisk_model::Backend::new(BackendSource::Empty),
            direct: None,
            no_flush: None,
        };
        let Some(drive) = properties.get("drive") else {
            return empty;
        };
        let name = drive.value.as_str();
        if let Some(node) = self.nodes.get(name).cloned() {
            return self.read_nodes(nth, node);
        }
        if let Some(drive) = self.drives.get(name).copied() {
            return self.read_drive(nth, drive);
        }
        if !crate::reader::is_open(name) {
            let at = FieldPath::Disk(nth, DiskField::Source);
            let message = format!("no node and no -drive is called `{name}`");
            let known = self.nodes.keys().chain(self.drives.keys()).copied();
            let near = self.suggestions.nearest(name, known);
            let span = drive.span;
            let problem = self.problem(ProblemKind::MissingValue, at, span, message);
            problem.help = Some(match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write its -blockdev".to_owned(),
            });
        }
        self.record_option(FieldPath::Disk(nth, DiskField::Driver), option);
        empty
    }

    /// The socket of a `VhostUserBackend`.
    fn read_socket(&mut self, nth: usize, option: usize, properties: &'a Properties) -> Nodes {
        let at = |field| FieldPath::Disk(nth, field);
        let mut socket = VhostUserSocket::new("");
        let chardev = properties.get("chardev");
        let found = chardev.and_then(|chardev| self.chardevs.get(chardev.value.as_str()).copied());
        match (found, chardev) {
            (Some(number), _) => {
                self.owners.insert(number, at(DiskField::Disk));
                self.record_option(at(DiskField::Source), number);
                if let Some(properties) = self.properties(number) {
                    properties.get("backend");
                    properties.get("id");
                    if let Some(path) = properties.get("path") {
                        self.record(at(DiskField::SocketPath), path);
                        socket.path = path.value.as_str().to_owned();
                    }
                    let seconds =
                        match (properties.get("reconnect-ms"), properties.get("reconnect")) {
                            (Some(property), _) => self
                                .number(at(DiskField::Reconnect), property)
                                .map(|milliseconds| milliseconds.div_ceil(1000)),
                            (None, Some(property)) => {
                                self.number(at(DiskField::Reconnect), property)
                            }
                            (None, None) => None,
                        };
                    let seconds = seconds.and_then(|seconds| u32::try_from(seconds).ok());
                    if let Some(seconds) = seconds.filter(|seconds| *seconds > 0) {
                        socket.reconnect = Some(Switch::On);
                        socket.reconnect_timeout = Some(seconds);
                    }
                }
            }
            (None, chardev) => {
                let span = chardev.map_or(self.options[option].span, |chardev| chardev.span);
                let message = "vhost-user-blk has no -chardev";
                self.problem(
                    ProblemKind::MissingValue,
                    at(DiskField::SocketPath),
                    span,
                    message,
                )
                .help = Some("write -chardev socket,id=…,path=… for it".to_owned());
            }
        }
        if let Some(property) = properties.get("config-wce") {
            socket.config_wce = self.switch(at(DiskField::ConfigWce), property);
        }
        Nodes {
            backend: vmdisk_model::Backend::new(socket),
            direct: None,
            no_flush: None,
        }
    }

    /// The properties of a disk, by the names that its model has for them.
    pub(crate) fn read_properties(
        &mut self,
        nth: usize,
        properties: &'a Properties,
        model: DeviceModel,
        frontend: &mut Frontend,
        nodes: &mut Nodes,
    ) {
        let at = |field| FieldPath::Disk(nth, field);
        let has = |field| disk(field).spelling(model) != Spelling::Unknown;
        let find = |field| match disk(field).spelling(model) {
            Spelling::Named(name) => properties.get(name),
            Spelling::Elsewhere | Spelling::Unknown => None,
        };
        for field in DISK_FIELDS {
            let slot = frontend.field_mut(*field);
            if let Some(slot) = slot.filter(|slot| slot.kind() != FieldKind::Structure)
                && let Some(property) = find(*field)
            {
                self.read_value(at(*field), property, disk(*field), slot);
            }
        }
        frontend.wwn = frontend.wwn.take().and_then(|text| {
            let number = number_of(&text)?;
            Some(format!("{number:016x}"))
        });
        // libvirt writes the default.
        frontend.removable = frontend.removable.filter(|switch| *switch == Switch::On);
        if has(DiskField::Geometry) {
            self.read_geometry(nth, properties, model, frontend);
        }
        if has(DiskField::Statistics) {
            self.read_intervals(nth, properties, frontend);
        }
        // What the guest builds its by-id names from: the serial number, or what libvirt makes up.
        if let Some(id) = properties.peek("device_id") {
            let text = id.value.as_str();
            if frontend.serial.as_deref() == Some(text) || text.starts_with("drive-") {
                id.is_used.set(true);
            }
        }
        if has(DiskField::IoThreadMapping) {
            frontend.iothread_mapping =
                self.read_vq_mapping(properties, at(DiskField::IoThreadMapping));
        }
        if let Some(property) = find(DiskField::Shareable) {
            let shareable = self.switch(at(DiskField::Shareable), property);
            nodes.backend.is_shareable = shareable == Some(Switch::On);
        }
        let write_cache = find(DiskField::Cache).filter(|it| it.value.as_str() != "auto");
        let write_cache = write_cache.and_then(|property| {
            if property.kind == Kind::Bool {
                let message = "`write-cache` takes \"on\", \"off\" or \"auto\", and no boolean";
                let span = property.span;
                self.problem(
                    ProblemKind::InvalidValue,
                    at(DiskField::Cache),
                    span,
                    message,
                )
                .help = Some("write \"on\" or \"off\" between quotes".to_owned());
            }
            self.switch(at(DiskField::Cache), property)
        });
        self.settle_cache(nth, nodes, write_cache);
    }

    /// Reads a property that is the value of one field.
    pub(crate) fn read_value(
        &mut self,
        at: FieldPath,
        property: &'a Property,
        row: &FieldRow,
        slot: &mut dyn FieldType,
    ) {
        let text = property.value.as_str();
        let value: Option<FieldValue> = match slot.kind() {
            FieldKind::Switch => self.switch(at, property).map(Into::into),
            FieldKind::Number => self.number32(at, property).map(Into::into),
            FieldKind::Word(words) => {
                let qemu_words: Vec<&str> = words.iter().map(|word| row.qemu_word(word)).collect();
                let find = |text: &str| qemu_words.iter().position(|word| *word == text);
                let word = self.word(at, property, &qemu_words, find);
                word.map(|nth| FieldValue::Word(words[nth]))
            }
            FieldKind::Text => {
                self.record(at, property);
                Some(text.to_owned().into())
            }
            FieldKind::IoThread => {
                self.record(at, property);
                Some(self.iothread(text).into())
            }
            FieldKind::Flag | FieldKind::Count | FieldKind::Size | FieldKind::Structure => None,
        };
        if let Some(value) = value {
            slot.set(value);
        }
    }

    /// Cylinders, heads and sectors.
    fn read_geometry(
        &mut self,
        nth: usize,
        properties: &'a Properties,
        model: DeviceModel,
        frontend: &mut Frontend,
    ) {
        let at = |field| FieldPath::Disk(nth, field);
        let mut geometry = Geometry::default();
        let numbers: [(&str, &mut Option<u32>); 3] = [
            ("cyls", &mut geometry.cylinders),
            ("heads", &mut geometry.heads),
            ("secs", &mut geometry.sectors),
        ];
        for (key, slot) in numbers {
            if let Some(property) = properties.get(key) {
                *slot = self.number32(at(DiskField::Geometry), property);
            }
        }
        if let Spelling::Named(name) = disk(DiskField::GeometryTranslation).spelling(model)
            && let Some(property) = properties.get(name)
        {
            let read = GeometryTranslation::from_wire;
            let at = at(DiskField::GeometryTranslation);
            geometry.translation = self.word(at, property, GeometryTranslation::WORDS, read);
        }
        frontend.geometry = (geometry != Geometry::default()).then_some(geometry);
    }

    /// The intervals of statistics.
    fn read_intervals(&mut self, nth: usize, properties: &'a Properties, frontend: &mut Frontend) {
        let at = FieldPath::Disk(nth, DiskField::Statistics);
        for row in 0_usize.. {
            let Some(property) = properties.get(&format!("stats-intervals.{row}")) else {
                break;
            };
            frontend
                .statistics
                .intervals
                .extend(self.number32(at, property));
        }
    }

    /// The cache mode that the switches of device and nodes come to.
    pub(crate) fn settle_cache(
        &mut self,
        nth: usize,
        nodes: &mut Nodes,
        write_cache: Option<Switch>,
    ) {
        if nodes.direct.is_none() && nodes.no_flush.is_none() && write_cache.is_none() {
            // Where nothing is written, libvirt keeps shareable disks out of the page cache, and QEMU does not.
            if nodes.backend.is_shareable {
                nodes.backend.cache.get_or_insert(CacheMode::Writeback);
            }
            return;
        }
        let before = nodes.backend.cache.map(CacheMode::switches);
        let switches = CacheSwitches {
            write_cache: write_cache.map_or_else(
                || before.is_none_or(|mode| mode.write_cache),
                |switch| switch == Switch::On,
            ),
            direct: nodes
                .direct
                .or(before.map(|mode| mode.direct))
                .unwrap_or_default(),
            no_flush: nodes
                .no_flush
                .or(before.map(|mode| mode.no_flush))
                .unwrap_or_default(),
        };
        let mode = CacheMode::from_switches(switches);
        if mode.is_none() {
            // Flushes that are dropped weigh more than the page cache.
            let at = FieldPath::Disk(nth, DiskField::Cache);
            let span = self.map.resolve(at).map(|(_, place)| place.span);
            self.keep(at, "cache.no-flush", span.unwrap_or_default());
        }
        nodes.backend.cache = mode.or(Some(CacheMode::Unsafe));
    }

    /// `iothread-vq-mapping`: which queues run in which iothread.
    pub(crate) fn read_vq_mapping(
        &mut self,
        properties: &'a Properties,
        at: FieldPath,
    ) -> Vec<IoThreadQueues> {
        let mut rows = Vec::new();
        // Without a row it says nothing.
        properties.get("iothread-vq-mapping");
        let view = View::whole(properties).inside("iothread-vq-mapping");
        for row in 0_usize.. {
            let row = view.inside(&row.to_string());
            let Some(property) = row.get("iothread") else {
                break;
            };
            self.record(at, property);
            let iothread = self.iothread(property.value.as_str());
            let mut queues = Vec::new();
            for queue in 0_usize.. {
                let Some(property) = row.get(&format!("vqs.{queue}")) else {
                    break;
                };
                queues.extend(self.number32(at, property));
            }
            rows.push(IoThreadQueues { iothread, queues });
        }
        rows
    }

    /// Gives a disk the name that it was written with, or the next free one.
    pub(crate) fn name_disk(
        &mut self,
        nth: usize,
        properties: &Properties,
        frontend: &mut Frontend,
    ) {
        let bus = frontend.effective_bus();
        let id = properties.get("id");
        let node = properties.peek("drive").or(properties.peek("chardev"));
        let own = |property: Option<&Property>| {
            let text = property?.value.as_str();
            let text = text.strip_prefix("socket-").unwrap_or(text);
            let stem = ["-format", "-file", "-throttle", "-copy-on-read"]
                .iter()
                .find_map(|end| text.strip_suffix(end))
                .unwrap_or(text);
            is_target(bus, stem).then(|| stem.to_owned())
        };
        if let Some(property) = id.or(node) {
            self.record(FieldPath::Disk(nth, DiskField::TargetDev), property);
        }
        let written = own(id).or_else(|| own(node));
        let free = written.filter(|name| !self.targets.contains(name));
        let address = frontend.address.as_ref();
        let number = id.and_then(|id| libvirt_number(bus, id.value.as_str(), address));
        let name = free.unwrap_or_else(|| self.free_target(bus, number));
        if let Some(id) = id {
            let text = id.value.as_str();
            if text != name && !is_libvirt_alias(text) {
                self.record(FieldPath::Disk(nth, DiskField::Alias), id);
                frontend.alias = Some(text.to_owned());
            }
        }
        self.targets.insert(name.clone());
        frontend.target = Some(name);
    }

    /// A free name on a bus: the one with this number, or the next.
    fn free_target(&mut self, bus: TargetBus, number: Option<usize>) -> String {
        let name = |number: usize| match bus {
            TargetBus::Nvme => format!("nvme{number}n1"),
            TargetBus::Virtio
            | TargetBus::Scsi
            | TargetBus::Sata
            | TargetBus::Ide
            | TargetBus::Usb
            | TargetBus::Fdc
            | TargetBus::Sd
            | TargetBus::Xen
            | TargetBus::Uml => format!("{}{}", bus.target_prefix(), letters(number)),
        };
        let meant = number.map(name).filter(|name| !self.targets.contains(name));
        meant.unwrap_or_else(|| {
            let next = self.next_target.entry(bus.target_prefix()).or_default();
            while self.targets.contains(&name(*next)) {
                *next += 1;
            }
            name(*next)
        })
    }
}

/// The number that libvirt's names have for a disk with this id: its own, or that of its place.
fn libvirt_number(bus: TargetBus, id: &str, address: Option<&Address>) -> Option<usize> {
    const MOST: u32 = 20_000;
    let rest = id.strip_prefix(bus.as_wire())?;
    if let Some(number) = rest.strip_prefix("-disk") {
        let number = number.parse::<u32>().ok().filter(|number| *number < MOST)?;
        return usize::try_from(number).ok();
    }
    let Some(Address::Drive(place)) = address else {
        return None;
    };
    let number = match bus {
        TargetBus::Scsi => {
            let unit = if place.target > 0 {
                place.target
            } else {
                place.unit
            };
            // A place that no name stands for has no number.
            (unit < 7).then_some(())?;
            place.controller.checked_mul(7)? + unit
        }
        TargetBus::Sata => place.controller * 6 + place.unit,
        TargetBus::Ide => place.controller * 4 + place.bus * 2 + place.unit,
        TargetBus::Fdc => place.controller * 2 + place.unit,
        TargetBus::Virtio
        | TargetBus::Usb
        | TargetBus::Nvme
        | TargetBus::Sd
        | TargetBus::Xen
        | TargetBus::Uml => return None,
    };
    usize::try_from(number).ok()
}

/// True for a name that libvirt could have given a disk on this bus.
fn is_target(bus: TargetBus, text: &str) -> bool {
    let Some(rest) = text.strip_prefix(bus.target_prefix()) else {
        return false;
    };
    match bus {
        TargetBus::Nvme => rest.split_once('n').is_some_and(|(controller, namespace)| {
            controller.parse::<u32>().is_ok() && namespace.parse::<u32>().is_ok()
        }),
        TargetBus::Virtio
        | TargetBus::Scsi
        | TargetBus::Sata
        | TargetBus::Ide
        | TargetBus::Usb
        | TargetBus::Fdc
        | TargetBus::Sd
        | TargetBus::Xen
        | TargetBus::Uml => target_number(text).is_some(),
    }
}

/// True for an id that libvirt makes of a disk's place.
fn is_libvirt_alias(id: &str) -> bool {
    let Some(rest) = TargetBus::WORDS.iter().find_map(|bus| id.strip_prefix(bus)) else {
        return false;
    };
    let rest = rest.strip_prefix("-disk").unwrap_or(rest);
    !rest.is_empty()
        && rest
            .split('-')
            .all(|part| !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_digit()))
}

/// `a` to `z`, then `aa` and on.
pub(crate) fn letters(number: usize) -> String {
    let mut letters = Vec::new();
    let mut rest = number + 1;
    while rest > 0 {
        let digit = (rest - 1) % 26;
        letters.push(b'a' + u8::try_from(digit).unwrap_or_default());
        rest = (rest - 1) / 26;
    }
    letters.reverse();
    letters.into_iter().map(char::from).collect()
}

/// A node that stands in an option of its own.
pub(crate) fn node_of(option: usize, properties: &Properties) -> NodeAt<'_> {
    NodeAt {
        option,
        view: View::whole(properties),
    }
}

/// True for a property that is on.
pub(crate) fn is_on(property: Option<&Property>) -> bool {
    property.and_then(|property| switch_of(property.value.as_str())) == Some(Switch::On)
}
