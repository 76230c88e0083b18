//! `<controller>`, of the kinds that disks hang on.

use roxmltree::Node;
use vmdisk_model::{
    Controller, ControllerField, ControllerType, FieldPath, IoThreadId, ScsiControllerModel,
    Switch, VirtioOptions,
};

use crate::kept::{KeptAt, KeptInside};
use crate::reader::Reader;
use crate::value::unsigned32;
use crate::vocabulary::{CONTROLLER, Field, SCSI_CONTROLLER, Whose};
use crate::writer::Writer;
use crate::{address, iothread_mapping, virtio_options};

const AT: KeptAt = KeptAt::path("");
const DRIVER: KeptAt = KeptAt::path("driver");
const MASTER: KeptAt = KeptAt::path("master");
const SERIAL: KeptAt = KeptAt::path("serial");
const ALIAS: KeptAt = KeptAt::path("alias");
const ACPI: KeptAt = KeptAt::path("acpi");

/// Reads the nth controller; its type is known already.
pub(crate) fn read<'d>(
    reader: &mut Reader<'_>,
    node: Node<'d, 'd>,
    controller_type: ControllerType,
    nth: usize,
    outer: FieldPath,
) -> (Controller, KeptInside) {
    let is_scsi = controller_type == ControllerType::Scsi;
    let spec = if is_scsi {
        &SCSI_CONTROLLER
    } else {
        &CONTROLLER
    };
    let fields = [Some(Field::Controller(ControllerField::Controller)), None];
    let whose = Whose {
        index: nth,
        depth: 0,
    };
    let mut element = reader.open(node, spec, fields, outer, whose);
    let kept = &mut KeptInside::default();
    let mut controller = Controller::new(controller_type, 0);
    element.take_text("type");
    controller.index = element.take("index", unsigned32);
    if is_scsi {
        controller.scsi_model = element.take("model", ScsiControllerModel::from_wire);
    } else {
        controller.other_model = element.take_text("model");
        controller.ports = element.take("ports", unsigned32);
    }
    if let Some(node) = element.child("driver") {
        let mut driver = reader.open_child(&element, node, whose);
        controller.queues = driver.take("queues", unsigned32);
        controller.cmd_per_lun = driver.take("cmd_per_lun", unsigned32);
        controller.max_sectors = driver.take("max_sectors", unsigned32);
        controller.ioeventfd = driver.take("ioeventfd", Switch::from_wire);
        controller.virtio = virtio_options::read(&mut driver);
        controller.iothread = driver.take("iothread", unsigned32).map(IoThreadId);
        controller.iothread_mapping = iothread_mapping::read(reader, &mut driver, kept);
        kept.note(DRIVER, reader.close(driver));
    }
    if let Some(node) = element.child("master") {
        let mut master = reader.open_child(&element, node, whose);
        controller.start_port = master.take("startport", unsigned32);
        kept.note(MASTER, reader.close(master));
    }
    if let Some(node) = element.child("serial") {
        let serial = reader.open_child(&element, node, whose);
        controller.serial = Some(serial.content()).filter(|serial| !serial.is_empty());
        kept.note(SERIAL, reader.close(serial));
    }
    if let Some(node) = element.child("alias") {
        let mut alias = reader.open_child(&element, node, whose);
        controller.alias = alias.take_text("name");
        kept.note(ALIAS, reader.close(alias));
    }
    if let Some(node) = element.child("acpi") {
        let mut acpi = reader.open_child(&element, node, whose);
        controller.acpi_index = acpi.take("index", unsigned32);
        kept.note(ACPI, reader.close(acpi));
    }
    controller.address = address::read(reader, &mut element, kept);
    kept.note(AT, reader.close(element));
    (controller, std::mem::take(kept))
}

/// Writes a controller into a document.
pub(crate) fn write<'k>(writer: &mut Writer<'k>, controller: &Controller, kept: &'k KeptInside) {
    let Controller {
        controller_type,
        index,
        scsi_model,
        other_model,
        queues,
        cmd_per_lun,
        max_sectors,
        ioeventfd,
        virtio,
        iothread,
        iothread_mapping,
        ports,
        start_port,
        serial,
        address,
        alias,
        acpi_index,
    } = controller;
    writer.start("controller", kept.at(AT));
    writer.attribute("type", controller_type);
    writer.optional("index", *index);
    match scsi_model {
        Some(model) => writer.attribute("model", model),
        None => writer.optional("model", other_model.as_ref()),
    }
    writer.optional("ports", *ports);
    let is_set = queues.is_some()
        || cmd_per_lun.is_some()
        || max_sectors.is_some()
        || ioeventfd.is_some()
        || *virtio != VirtioOptions::default()
        || iothread.is_some()
        || !iothread_mapping.is_empty()
        || kept.has_within("driver", 0);
    if is_set {
        writer.start("driver", kept.at(DRIVER));
        writer.optional("queues", *queues);
        writer.optional("cmd_per_lun", *cmd_per_lun);
        writer.optional("max_sectors", *max_sectors);
        writer.optional("ioeventfd", *ioeventfd);
        writer.optional("iothread", *iothread);
        virtio_options::write(writer, virtio);
        iothread_mapping::write(writer, iothread_mapping, kept);
        writer.end();
    }
    if start_port.is_some() || !kept.at(MASTER).is_empty() {
        writer.start("master", kept.at(MASTER));
        writer.optional("startport", *start_port);
        writer.end();
    }
    writer.text_element("serial", serial.as_ref(), kept.at(SERIAL));
    if alias.is_some() || !kept.at(ALIAS).is_empty() {
        writer.start("alias", kept.at(ALIAS));
        writer.optional("name", alias.as_ref());
        writer.end();
    }
    if acpi_index.is_some() || !kept.at(ACPI).is_empty() {
        writer.start("acpi", kept.at(ACPI));
        writer.optional("index", *acpi_index);
        writer.end();
    }
    address::write(writer, address.as_ref(), kept);
    writer.end();
}
