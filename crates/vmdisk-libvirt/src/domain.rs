//! `<domain>`: the guest around its disks.

use vmdisk_model::{
    ControllerType, Domain, DomainField, DomainType, DriveAddress, FieldPath, GuestSystem, Manager,
    Scope, Switch,
};

use crate::RootKind;
use crate::document::Document;
use crate::element::{Child, Element};
use crate::pci_room::pci_room;
use crate::reader::Reader;
use crate::unmodeled::{NOTHING, Unmodeled, UnmodeledParts, UnmodeledPath, name_of};
use crate::value::{any_base, unsigned32};
use crate::vocabulary::{DEVICES, DOMAIN, Field, FieldOwner};
use crate::writer::{Unwritable, Writer};
use crate::xml::Node;
use crate::{
    blkiotune, controller, disk, iothreads, memory_backing, os, scaled, seclabel, throttle_groups,
};

const AT: UnmodeledPath = UnmodeledPath::path("");
const NAME: UnmodeledPath = UnmodeledPath::path("name");
const UUID: UnmodeledPath = UnmodeledPath::path("uuid");
const MEMORY: UnmodeledPath = UnmodeledPath::path("memory");
const VCPU: UnmodeledPath = UnmodeledPath::path("vcpu");
const DEVICES_AT: UnmodeledPath = UnmodeledPath::path("devices");

const ROOT: FieldPath = FieldPath::Domain(DomainField::Domain);

/// The name space of the notes of libosinfo.
const LIBOSINFO: &str = "http://libosinfo.org/xmlns/libvirt/domain/";

/// Reads a guest.
pub(crate) fn read<'d>(reader: &mut Reader<'_>, node: Node<'d>) -> (Domain, Unmodeled) {
    let fields = [Some(Field::Domain(DomainField::Domain)), None];
    let mut element = reader.open(node, &DOMAIN, fields, ROOT, FieldOwner::default());
    let mut kept = Unmodeled::default();
    let guest = &mut kept.guest;
    let mut domain = Domain {
        domain_type: element.take("type", |word| Some(DomainType::from_word(word))),
        ..Domain::default()
    };
    let domain_type = domain.domain_type.as_ref();
    reader.is_run_by_qemu = domain_type.is_some_and(DomainType::is_run_by_qemu);
    if let Some(name) = reader.child(&mut element, "name") {
        domain.name = Some(name.content()).filter(|name| !name.is_empty());
        guest.note(NAME, reader.close(name));
    }
    if let Some(uuid) = reader.child(&mut element, "uuid") {
        domain.uuid = Some(uuid.content()).filter(|uuid| !uuid.is_empty());
        guest.note(UUID, reader.close(uuid));
    }
    if let Some(mut memory) = reader.child(&mut element, "memory") {
        let at = FieldPath::Domain(DomainField::Memory);
        let (size, text) = scaled::read(reader, &mut memory, "KiB", at);
        domain.memory = size;
        let mut parts = reader.close(memory);
        parts.text = text;
        guest.note(MEMORY, parts);
    }
    if let Some(vcpu) = reader.child(&mut element, "vcpu") {
        let text = vcpu.content();
        domain.vcpus = unsigned32(text.trim());
        let mut parts = reader.close(vcpu);
        parts.text = Some(text).filter(|text| domain.vcpus.is_none() && !text.is_empty());
        guest.note(VCPU, parts);
    }
    domain.memory_backing = memory_backing::read(reader, &mut element, guest);
    (domain.cpu, domain.memory_backing.cell_access) =
        memory_backing::read_cells(reader, &mut element, guest);
    domain.blkiotune = blkiotune::read(reader, &mut element, guest);
    domain.throttle_groups = throttle_groups::read(reader, &mut element, guest);
    domain.iothreads = iothreads::read(reader, &mut element, guest);
    domain.tuned_iothreads = iothreads::read_tuned(reader, &element, &domain.iothreads);
    domain.default_iothread = iothreads::read_default(reader, &mut element, guest);
    os::read(reader, &mut element, &mut domain, guest);
    let metadata = element
        .children
        .iter()
        .find(|child| child.is_named("metadata"));
    for mark in metadata.iter().flat_map(|it| it.node.children()) {
        let namespace = mark.namespace().unwrap_or_default();
        domain.manager = domain.manager.or(Manager::of_namespace(namespace));
        let noted = mark.children().filter(|_| namespace.starts_with(LIBOSINFO));
        let mut ids = noted.filter_map(|os| os.attribute("id"));
        domain.system = domain
            .system
            .or_else(|| ids.find_map(GuestSystem::of_libosinfo));
    }
    let mut features = element.children.iter();
    let features = features.find(|child| child.is_named("features"));
    let features = features.map(|features| features.node);
    if let Some(acpi) = features.and_then(|features| features.child("acpi")) {
        domain.acpi = Some(Switch::On);
        let has_more = |node: Node<'_>| node.attributes().next().is_some();
        let is_alone = features.is_some_and(|it| it.children().count() == 1 && !has_more(it));
        if is_alone && !has_more(acpi) {
            // Written again from the model; with other features it is kept with them.
            element.child("features");
        }
    }
    if let Some(devices) = reader.child(&mut element, "devices") {
        read_devices(reader, devices, &mut domain, &mut kept);
    }
    seclabel::check(reader, &element);
    kept.guest.note(AT, reader.close(element));
    (domain, kept)
}

/// The addresses of SCSI host devices on the guest's controllers.
fn scsi_host_devices(devices: &Element<'_>) -> Vec<DriveAddress> {
    let is_hostdev = |child: &&Child<'_>| child.is_named("hostdev");
    let hostdevs = devices.children.iter().filter(is_hostdev);
    hostdevs
        .filter(|child| child.attribute("type") == Some("scsi"))
        .filter_map(|child| {
            let address = child.node.child("address")?;
            let number = |name| address.attribute(name).and_then(any_base);
            Some(DriveAddress {
                controller: number("controller")?,
                bus: number("bus").unwrap_or_default(),
                target: number("target").unwrap_or_default(),
                unit: number("unit")?,
            })
        })
        .collect()
}

/// Reads disks and their controllers; everything else is kept.
fn read_devices<'d>(
    reader: &mut Reader<'_>,
    mut devices: Element<'d>,
    domain: &mut Domain,
    kept: &mut Unmodeled,
) {
    let outer = devices.at;
    domain.scsi_host_devices = scsi_host_devices(&devices);
    let others = ["interface", "hostdev", "redirdev"];
    domain.boots_from_others = devices.children.iter().any(|child| {
        others.iter().any(|name| child.is_named(name)) && child.node.child("boot").is_some()
    });
    domain.pci_room = pci_room(&devices, domain.board());
    let mut others = devices.children.iter();
    if let Some(emulator) = others.find(|child| child.is_named("emulator")) {
        reader.record_element(FieldPath::Domain(DomainField::Emulator), emulator.node);
        let path = emulator.node.text().0.trim().to_owned();
        domain.emulator = Some(path).filter(|path| !path.is_empty());
    }
    let controllers = devices.children("controller");
    domain.controllers.reserve_exact(controllers.len());
    for node in controllers {
        let word = node.attribute("type").unwrap_or_default();
        match ControllerType::from_word(word) {
            Some(controller_type) => {
                let nth = domain.controllers.len();
                let (controller, inside) =
                    controller::read(reader, node.node, controller_type, nth, outer);
                domain.controllers.push(controller);
                kept.controllers.push(inside);
            }
            None => devices.give_back(node),
        }
    }
    let disks = devices.children("disk");
    domain.disks.reserve_exact(disks.len());
    for node in disks {
        let (disk, inside) = disk::read(reader, node.node, domain.disks.len(), outer);
        domain.disks.push(disk);
        kept.disks.push(inside);
    }
    kept.guest.note(DEVICES_AT, reader.close(devices));
}

/// Reads `<devices>` without a guest around it.
pub(crate) fn read_devices_alone<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d>,
) -> (Domain, Unmodeled) {
    let fields = [Some(Field::Domain(DomainField::Devices)), None];
    let devices = reader.open(node, &DEVICES, fields, ROOT, FieldOwner::default());
    let (mut domain, mut kept) = (disks_only(), Unmodeled::default());
    read_devices(reader, devices, &mut domain, &mut kept);
    (domain, kept)
}

/// Reads one `<disk>` without a guest around it.
pub(crate) fn read_disk_alone<'d>(reader: &mut Reader<'_>, node: Node<'d>) -> (Domain, Unmodeled) {
    let (mut domain, mut kept) = (disks_only(), Unmodeled::default());
    let (disk, inside) = disk::read(reader, node, 0, ROOT);
    domain.disks.push(disk);
    kept.disks.push(inside);
    (domain, kept)
}

pub(crate) fn disks_only() -> Domain {
    Domain {
        scope: Scope::DisksOnly,
        ..Domain::default()
    }
}

impl Document {
    /// Writes the model of the document, with all kept parts.
    ///
    /// Of a `<domstatus>` only the domain is written. Comments are dropped. To change single values of a file, use
    /// [`edits`](crate::edits()).
    ///
    /// # Errors
    /// Fails if a text contains a character that XML cannot represent.
    pub fn write(&self) -> Result<String, Unwritable> {
        match (self.root, self.domain.disks.as_slice()) {
            (RootKind::Disk, [disk]) => disk::write_disk(disk, self.kept.disk(0)),
            _ => write_domain(&self.domain, &self.kept),
        }
    }
}

/// Writes a guest, with its kept parts from reading; for [`Scope::DisksOnly`] writes only its `<devices>`.
///
/// Writes only values that the model has. libvirt also requires a type, a name and a memory size.
///
/// ```
/// use vmdisk_libvirt::{Unmodeled, read, write_domain};
/// use vmdisk_model::{Bytes, Domain, DomainType};
///
/// let domain = Domain {
///     name: Some("web1".into()),
///     domain_type: Some(DomainType::Kvm),
///     memory: Some(Bytes::gib(2)),
///     ..Domain::default()
/// };
/// let text = write_domain(&domain, &Unmodeled::default())?;
/// assert!(text.contains("<memory unit='KiB'>2097152</memory>"));
/// assert_eq!(read(&text)?.domain, domain);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// Fails if a text contains a character that XML cannot represent.
pub fn write_domain(domain: &Domain, kept: &Unmodeled) -> Result<String, Unwritable> {
    let Domain {
        scope,
        name,
        uuid,
        manager: _, // kept in `metadata`
        system: _,  // kept there, too
        domain_type,
        architecture,
        machine,
        vcpus,
        memory,
        memory_backing,
        firmware,
        cpu,
        acpi,
        boot_devices,
        blkiotune,
        throttle_groups,
        default_iothread,
        iothreads,
        emulator: _,        // kept in `devices`
        pci_room: _,        // follows from the devices
        tuned_iothreads: _, // kept in `cputune`
        controllers: _,     // written by `write_devices`, as the disks are
        disks: _,
        scsi_host_devices: _, // kept among the devices
        boots_from_others: _,
    } = domain;
    let (mut writer, guest) = (Writer::new(), &kept.guest);
    if *scope == Scope::DisksOnly {
        write_devices(&mut writer, domain, kept);
        return writer.finish();
    }
    let root = guest.at(AT);
    let mut others = kept_children(root).into_iter().peekable();
    writer.start("domain", root);
    writer.optional("type", domain_type.as_ref().map(DomainType::as_str));
    for (place, known) in DOMAIN.children.iter().enumerate() {
        match known.name {
            "name" => writer.text_element("name", name.as_ref(), guest.at(NAME)),
            "uuid" => writer.text_element("uuid", uuid.as_ref(), guest.at(UUID)),
            "memory" => scaled::write(&mut writer, "memory", *memory, guest, MEMORY),
            "vcpu" => writer.text_element("vcpu", *vcpus, guest.at(VCPU)),
            "memoryBacking" => memory_backing::write(&mut writer, memory_backing, guest),
            // Written with the count, directly before.
            "iothreads" => iothreads::write(&mut writer, iothreads, guest),
            "cpu" => memory_backing::write_cells(
                &mut writer,
                *cpu,
                &memory_backing.cell_access,
                vcpus.unwrap_or(1),
                *memory,
                guest,
            ),
            "blkiotune" => blkiotune::write(&mut writer, blkiotune.as_ref(), guest),
            "throttlegroups" => throttle_groups::write(&mut writer, throttle_groups, guest),
            "defaultiothread" => {
                iothreads::write_default(&mut writer, default_iothread.as_ref(), guest);
            }
            "os" => os::write(
                &mut writer,
                *firmware,
                *architecture,
                machine.as_ref(),
                boot_devices,
                guest,
            ),
            "features" => write_features(&mut writer, *acpi, root),
            "devices" => write_devices(&mut writer, domain, kept),
            _ => {}
        }
        while let Some((_, is_again, child)) = others.next_if(|(at, ..)| *at <= place) {
            match is_again {
                true => writer.duplicate(name_of(child), child),
                false => writer.verbatim(child),
            }
        }
    }
    others.for_each(|(_, _, child)| writer.verbatim(child));
    writer.end_without_kept_children();
    writer.finish()
}

/// Writes ACPI, unless the features are kept as they were read.
fn write_features(writer: &mut Writer<'_>, acpi: Option<Switch>, root: &UnmodeledParts) {
    let is_kept = root.children.iter().any(|it| name_of(it) == "features");
    if acpi == Some(Switch::On) && !is_kept {
        writer.start("features", &NOTHING);
        writer.start("acpi", &NOTHING);
        writer.end();
        writer.end();
    }
}

/// The kept elements of the domain in libvirt's order, each with its place in [`DOMAIN`] and whether it is a
/// duplicate.
fn kept_children(root: &UnmodeledParts) -> Vec<(usize, bool, &str)> {
    let children = root.children.iter();
    let duplicates = root.duplicates.iter();
    let mut kept: Vec<(usize, bool, &str)> = children
        .map(|child| (place_in_order(child), false, child.as_str()))
        .chain(duplicates.map(|(_, child)| (place_in_order(child), true, child.as_str())))
        .collect();
    kept.sort_by_key(|(place, is_again, _)| (*place, *is_again));
    kept
}

/// The place of a kept element in libvirt's order; last for what it does not know.
fn place_in_order(element: &str) -> usize {
    DOMAIN
        .child(name_of(element))
        .map_or(DOMAIN.children.len(), |(place, _)| place)
}

fn write_devices<'k>(writer: &mut Writer<'k>, domain: &Domain, kept: &'k Unmodeled) {
    let parts = kept.guest.at(DEVICES_AT);
    let is_emulator = |element: &&String| element.starts_with("<emulator");
    writer.start("devices", parts);
    for element in parts.children.iter().filter(is_emulator) {
        writer.verbatim(element);
    }
    for (nth, disk) in domain.disks.iter().enumerate() {
        disk::write(writer, disk, kept.disk(nth));
    }
    for (nth, controller) in domain.controllers.iter().enumerate() {
        controller::write(writer, controller, kept.controller(nth));
    }
    for element in parts
        .children
        .iter()
        .filter(|element| !is_emulator(element))
    {
        writer.verbatim(element);
    }
    writer.end_without_kept_children();
}
