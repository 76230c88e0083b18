//! `<controller>` elements of types that disks can be attached to.

use vmdisk_model::{ControllerField, ControllerType, ScsiControllerModel};

use super::Field::Controller;
use super::ValueSpec::{Text, Words, WordsAnd};
use super::address::ADDRESS;
use super::disk::DISK_IOTHREADS;
use super::rows::{controller_attribute, controller_attributes, controller_child};
use super::{AttributeSpec, ChildSpec, ElementSpec, attribute, child};

/// The table of a `<controller>` of this type.
pub(super) fn controller_of(controller_type: Option<&str>) -> &'static ElementSpec {
    match controller_type.map(|word| (word, ControllerType::from_word(word))) {
        Some((_, Some(ControllerType::Scsi))) => &SCSI_CONTROLLER,
        Some((word, None)) if OTHER_TYPES.contains(&word) => &OTHER_CONTROLLER,
        Some(_) | None => &CONTROLLER,
    }
}

/// Types of controllers without disks.
pub(crate) const OTHER_TYPES: &[&str] = &["pci", "virtio-serial", "ccid", "isa", "xenbus"];

const TYPE: AttributeSpec = controller_attribute(ControllerField::ControllerType)
    .value(WordsAnd(ControllerType::WORDS, OTHER_TYPES));
const INDEX: AttributeSpec = controller_attribute(ControllerField::Index);

const COMMON_CHILDREN: &[ChildSpec] = &[
    controller_child(ControllerField::Driver, &CONTROLLER_DRIVER),
    child((0, 9, 3), &MASTER),
    controller_child(ControllerField::Serial, &SERIAL),
    child((0, 7, 6), &ALIAS),
    child((5, 6, 0), &ACPI),
    controller_child(ControllerField::Address, &ADDRESS),
];

/// libvirt `<controller type='scsi'>`.
pub static SCSI_CONTROLLER: ElementSpec = ElementSpec::new("controller")
    .attributes(&[
        TYPE,
        INDEX,
        controller_attribute(ControllerField::Model).value(Words(ScsiControllerModel::WORDS)),
    ])
    .children(COMMON_CHILDREN);

/// libvirt `<controller>` of a type for disks, other than SCSI.
pub static CONTROLLER: ElementSpec = ElementSpec::new("controller")
    .attributes(&[
        TYPE,
        INDEX,
        attribute("model", (0, 9, 3), Text).is(Controller(ControllerField::Model)),
        controller_attribute(ControllerField::Ports),
    ])
    .children(COMMON_CHILDREN);

/// A controller without disks.
static OTHER_CONTROLLER: ElementSpec = ElementSpec::other_peoples("controller");

/// libvirt `controller/driver`.
pub(crate) static CONTROLLER_DRIVER: ElementSpec = ElementSpec::new("driver")
    .attributes(controller_attributes!("driver"))
    .children(&[controller_child(
        ControllerField::IoThreadMapping,
        &DISK_IOTHREADS,
    )]);

static MASTER: ElementSpec =
    ElementSpec::new("master").attributes(controller_attributes!("master"));

/// For an emulated NVMe controller.
static SERIAL: ElementSpec = ElementSpec::new("serial").content(Text);

static ALIAS: ElementSpec = ElementSpec::new("alias").attributes(controller_attributes!("alias"));

static ACPI: ElementSpec = ElementSpec::new("acpi").attributes(controller_attributes!("acpi"));
