//! Reads the device of a disk.

use std::collections::HashSet;

use vmdisk_fields::{DISK_FIELDS, DeviceModel, Spelling, disk};
use vmdisk_model::{
    BackendSource, Device, Disk, DiskField, FieldKind, FieldPath, FieldValue, Fields, Frontend,
    Geometry, GeometryTranslation, ReadErrorPolicy, Switch, VhostUserSocket,
};
use vmdisk_rule::Severity;
use vmdisk_rule::reading::INVALID_VALUE;
use vmdisk_source::Edit;

use super::buses::Buses;
use super::driver::{DiskDriver, disk_driver};
use super::read_value::read_value;
use super::target_name::TargetNames;
use crate::blockdev::nodes::Nodes;
use crate::blockdev::read::NodeReader;
use crate::index::Index;
use crate::members::Members;
use crate::notes::Notes;
use crate::object::read_iothread::{IoThreadIds, read_vq_mapping};
use crate::object::read_throttle::FilterGroups;
use crate::rules::read_only_on_one_node;
use crate::syntax::properties::{Kind, Property};
use crate::syntax::value::{number_of, switch_of};

/// Reads disks, in the order of their options.
pub(crate) struct DiskReader<'r, 'a> {
    pub(super) index: &'r Index<'a>,
    pub(super) notes: &'r mut Notes<'a>,
    pub(super) groups: &'r mut FilterGroups<'a>,
    pub(super) iothreads: &'r mut IoThreadIds<'a>,
    pub(super) buses: &'r mut Buses<'a>,
    pub(super) targets: TargetNames,
    pub(super) disks: Vec<Disk>,
}

impl<'r, 'a> DiskReader<'r, 'a> {
    pub(crate) fn new(
        index: &'r Index<'a>,
        buses: &'r mut Buses<'a>,
        groups: &'r mut FilterGroups<'a>,
        iothreads: &'r mut IoThreadIds<'a>,
        notes: &'r mut Notes<'a>,
    ) -> Self {
        DiskReader {
            index,
            notes,
            groups,
            iothreads,
            buses,
            targets: TargetNames::default(),
            disks: Vec::new(),
        }
    }

    /// Reads every disk.
    pub(crate) fn read_all(mut self) -> Vec<Disk> {
        let index = self.index;
        let devices = index.of_name("device");
        let used: HashSet<&str> = devices
            .filter_map(|(_, device)| device.value("drive"))
            .collect();
        for (number, option) in index.options().iter().enumerate() {
            let Some(properties) = index.properties(number) else {
                continue;
            };
            match option.name.as_str() {
                "device" => {
                    let disk = properties.value("driver").and_then(disk_driver);
                    // An NVMe controller without a drive has namespaces.
                    let is_disk = |disk: &DiskDriver| {
                        !disk.is_whole_nvme || properties.get("drive").is_some()
                    };
                    if let Some(disk) = disk.filter(is_disk) {
                        self.read_disk_device(number, properties, disk);
                    }
                }
                "drive" => {
                    let id = properties.value("id");
                    if !id.is_some_and(|id| used.contains(id)) {
                        self.read_automatic_drive(number, properties);
                    }
                }
                word => self.read_short_drive(number, word, properties),
            }
        }
        self.disks
    }

    /// The reader of a disk's nodes.
    pub(super) const fn nodes(&mut self) -> NodeReader<'_, 'a> {
        NodeReader::new(self.index, self.groups, self.notes)
    }

    /// Reads a device that is a disk.
    fn read_disk_device(&mut self, option: usize, properties: Members<'a>, driver: DiskDriver) {
        let nth = self.disks.len();
        let disk_at = FieldPath::Disk(nth, DiskField::Disk);
        let at = |field| FieldPath::Disk(nth, field);
        self.notes.own(option, disk_at);
        self.notes.slots_mut().device.insert(nth, option);
        self.notes.record_option(disk_at, option);
        if let Some(name) = properties.take("driver") {
            self.notes.record(at(DiskField::TargetBus), name);
            self.notes.record(at(DiskField::Device), name);
            self.notes.record(at(DiskField::Model), name);
            if name.value.as_str() == "scsi-generic" {
                self.notes.keep(disk_at, "scsi-generic", name.span);
            }
        }
        let mut nodes = match driver.model {
            DeviceModel::VhostUserBlk => self.read_socket(nth, option, properties),
            _ => self.read_drive_of(nth, option, properties),
        };
        let mut frontend = Frontend {
            device: Some(driver.device),
            model: driver.virtio,
            ..Frontend::unset()
        };
        let bus = self
            .buses
            .read_place(nth, properties, driver, &mut frontend, self.notes);
        frontend.bus = Some(bus);
        self.read_properties(nth, properties, driver.model, &mut frontend, &mut nodes);
        self.read_drive_policies(nth, properties, &mut frontend);
        if driver.is_whole_nvme
            && let Some(serial) = properties.take("serial")
        {
            self.notes.record_value(at(DiskField::Serial), serial);
            frontend.serial = Some(serial.value.as_str().to_owned());
        }
        if driver.device == Device::Cdrom {
            // A CD drive is always read-only.
            nodes.backend.is_read_only = false;
            nodes.backend.is_transient = false;
        } else if nodes.is_read_only_below {
            self.report_read_only_below(nth, option);
        }
        self.targets
            .assign_target(nth, properties, &mut frontend, self.notes);
        self.disks.push(Disk {
            frontend,
            backend: nodes.backend,
        });
    }

    /// Reports a node that is read-only below a writable one, of a disk that the guest may write to.
    pub(super) fn report_read_only_below(&mut self, nth: usize, option: usize) {
        let at = FieldPath::Disk(nth, DiskField::ReadOnly);
        let span = self.index.span(option);
        let message = "the format node is writable, but the node below it has read-only=on";
        let problem = self
            .notes
            .problem(&read_only_on_one_node::RULE, at, span, message);
        problem.severity = Severity::Error;
        problem.help = Some("write read-only=on on both nodes, or on neither".to_owned());
    }

    /// The nodes of the `drive` of a device.
    fn read_drive_of(&mut self, nth: usize, option: usize, properties: Members<'a>) -> Nodes {
        let empty = Nodes::none(BackendSource::Empty);
        let Some(drive) = properties.take("drive") else {
            return empty;
        };
        let name = drive.value.as_str();
        if let Some(node) = self.index.node(name).cloned() {
            return self.nodes().read_nodes(nth, node);
        }
        if let Some(drive) = self.index.drive(name) {
            return self.read_drive(nth, drive);
        }
        if !drive.is_open() {
            let at = FieldPath::Disk(nth, DiskField::Source);
            let message = format!("node or drive `{name}` is not defined");
            let near = self.notes.nearest(name, self.index.drive_names());
            let span = drive.span;
            let help = match near {
                Some(near) => format!("did you mean `{near}`?"),
                None => "write its -blockdev".to_owned(),
            };
            self.notes.undefined(at, span, message, help);
        }
        self.notes
            .record_option(FieldPath::Disk(nth, DiskField::Driver), option);
        empty
    }

    /// The socket of a `VhostUserBackend`.
    fn read_socket(&mut self, nth: usize, option: usize, properties: Members<'a>) -> Nodes {
        let at = |field| FieldPath::Disk(nth, field);
        let mut socket = VhostUserSocket::new("");
        let chardev = properties.take("chardev");
        let found = chardev.and_then(|chardev| self.index.chardev(chardev.value.as_str()));
        match (found, chardev) {
            (Some(number), _) => {
                self.notes.own(number, at(DiskField::Disk));
                self.notes.record_option(at(DiskField::Source), number);
                if let Some(properties) = self.index.properties(number) {
                    properties.accept(&["backend", "id"]);
                    if let Some(path) = properties.take("path") {
                        self.notes.record(at(DiskField::SocketPath), path);
                        socket.path = path.value.as_str().to_owned();
                    }
                    let seconds = match (
                        properties.take("reconnect-ms"),
                        properties.take("reconnect"),
                    ) {
                        (Some(property), _) => self
                            .notes
                            .number(at(DiskField::Reconnect), property)
                            .map(|milliseconds| milliseconds.div_ceil(1000)),
                        (None, Some(property)) => {
                            self.notes.number(at(DiskField::Reconnect), property)
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
                let span = chardev.map_or(self.index.span(option), |chardev| chardev.span);
                let message = "vhost-user-blk has no -chardev";
                let help = "write -chardev socket,id=…,path=… for it";
                self.notes
                    .undefined(at(DiskField::SocketPath), span, message.to_owned(), help);
            }
        }
        if let Some(property) = properties.take("config-wce") {
            socket.config_wce = self.notes.switch(at(DiskField::ConfigWce), property);
        }
        Nodes::none(socket)
    }

    /// The properties of a disk, by the names in the model.
    fn read_properties(
        &mut self,
        nth: usize,
        properties: Members<'a>,
        model: DeviceModel,
        frontend: &mut Frontend,
        nodes: &mut Nodes,
    ) {
        let at = |field| FieldPath::Disk(nth, field);
        let has = |field| disk(field).spelling(model) != Spelling::Unknown;
        let find = |field| match disk(field).spelling(model) {
            Spelling::Named(name) => properties.take(name),
            Spelling::Elsewhere | Spelling::Unknown => None,
        };
        for field in DISK_FIELDS {
            let slot = frontend.field_mut(*field);
            if let Some(slot) = slot.filter(|slot| slot.kind() != FieldKind::Structure)
                && let Some(property) = find(*field)
                && !is_default(*field, property)
            {
                if *field == DiskField::ReadErrorPolicy && property.value.as_str() == ENOSPC {
                    // A device accepts the word. Reads never fail for lack of space, so all errors are reported.
                    self.report_enospc(at(*field), property);
                    slot.set(FieldValue::Word(ReadErrorPolicy::Report.as_str()));
                    continue;
                }
                read_value(
                    at(*field),
                    property,
                    disk(*field),
                    slot,
                    self.iothreads,
                    self.notes,
                );
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
        // The source of the guest's by-id names: the serial number, or a name that libvirt generated.
        if let Some(id) = properties.get("device_id") {
            let text = id.value.as_str();
            if frontend.serial.as_deref() == Some(text) || text.starts_with("drive-") {
                properties.accept_value(id);
            }
        }
        if has(DiskField::IoThreadMapping) {
            frontend.iothread_mapping = read_vq_mapping(
                properties,
                at(DiskField::IoThreadMapping),
                self.iothreads,
                self.notes,
            );
        }
        if let Some(property) = find(DiskField::Shareable) {
            let shareable = self.notes.switch(at(DiskField::Shareable), property);
            nodes.backend.is_shareable = shareable == Some(Switch::On);
        }
        let write_cache = find(DiskField::Cache).filter(|it| it.value.as_str() != "auto");
        let write_cache = write_cache.and_then(|property| {
            if property.kind == Kind::Bool {
                let message = "`write-cache` accepts \"on\", \"off\" or \"auto\", not a boolean";
                let span = property.span;
                self.notes
                    .problem(&INVALID_VALUE, at(DiskField::Cache), span, message)
                    .help = Some("write \"on\" or \"off\" between quotes".to_owned());
            }
            let words = &["on", "off", "auto"];
            self.notes
                .word(at(DiskField::Cache), property, words, switch_of)
        });
        nodes.resolve_cache(nth, write_cache, self.notes);
    }

    /// Cylinders, heads and sectors.
    fn read_geometry(
        &mut self,
        nth: usize,
        properties: Members<'a>,
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
            if let Some(property) = properties.take(key) {
                *slot = self.notes.number32(at(DiskField::Geometry), property);
            }
        }
        if let Spelling::Named(name) = disk(DiskField::GeometryTranslation).spelling(model)
            && let Some(property) = properties.take(name)
        {
            let read = GeometryTranslation::from_word;
            let at = at(DiskField::GeometryTranslation);
            geometry.translation = self
                .notes
                .word(at, property, GeometryTranslation::WORDS, read);
        }
        frontend.geometry = (geometry != Geometry::default()).then_some(geometry);
    }

    /// Reports a policy for reads that only has an effect on writes.
    fn report_enospc(&mut self, at: FieldPath, property: &Property) {
        self.notes.record_value(at, property);
        let report = ReadErrorPolicy::Report.as_str();
        let message = format!(
            "`{}={ENOSPC}` has no effect: reads do not run out of space",
            property.key
        );
        let problem = self
            .notes
            .problem(&INVALID_VALUE, at, property.span, message);
        problem.severity = Severity::Warning;
        problem.help = Some(format!("use `{report}`, which does the same, or `stop`"));
        problem.fix = vec![Edit::replace(property.span, report)];
    }

    /// The intervals of statistics.
    fn read_intervals(&mut self, nth: usize, properties: Members<'a>, frontend: &mut Frontend) {
        let at = FieldPath::Disk(nth, DiskField::Statistics);
        for row in 0_usize.. {
            let Some(property) = properties.take(&format!("stats-intervals.{row}")) else {
                break;
            };
            frontend
                .statistics
                .intervals
                .extend(self.notes.number32(at, property));
        }
    }
}

/// QEMU's error policy that pauses the guest if the host is out of space.
const ENOSPC: &str = "enospc";

/// True for a word of QEMU that means the default, for which the model has no value.
fn is_default(field: DiskField, property: &Property) -> bool {
    let text = property.value.as_str();
    match field {
        DiskField::ErrorPolicy | DiskField::ReadErrorPolicy => text == "auto",
        DiskField::BootOrder => text.strip_prefix('-').and_then(number_of).is_some(),
        _ => false,
    }
}
