//! `<controller>`, for the kinds that disks hang on.

use vmdisk_model::{ControllerField, ControllerType, ScsiControllerModel};

use super::Field::Controller;
use super::Value::{Positive32, Text, Unsigned32, Words, WordsAnd};
use super::disk::{ADDRESS, DISK_IOTHREADS};
use super::{AttributeSpec, ChildSpec, ElementSpec, ON_OFF, attribute, child};

/// What is known of a `<controller>` of this type.
pub(super) fn controller_of(controller_type: Option<&str>) -> &'static ElementSpec {
    match controller_type.map(|word| (word, ControllerType::from_wire(word))) {
        Some((_, Some(ControllerType::Scsi))) => &SCSI_CONTROLLER,
        Some((word, None)) if OTHER_TYPES.contains(&word) => &OTHER_CONTROLLER,
        Some(_) | None => &CONTROLLER,
    }
}

/// Kinds of controller that no disk hangs on.
pub(crate) const OTHER_TYPES: &[&str] = &["pci", "virtio-serial", "ccid", "isa", "xenbus"];

const TYPE: AttributeSpec = attribute(
    "type",
    (0, 7, 6),
    WordsAnd(ControllerType::WORDS, OTHER_TYPES),
)
.is(Controller(ControllerField::ControllerType))
.later(&[("nvme", (11, 5, 0), None)]);
const INDEX: AttributeSpec =
    attribute("index", (0, 7, 6), Unsigned32).is(Controller(ControllerField::Index));

const COMMON_CHILDREN: &[ChildSpec] = &[
    child((0, 9, 10), &DRIVER).is(Controller(ControllerField::Driver)),
    child((0, 9, 3), &MASTER),
    child((11, 5, 0), &SERIAL).is(Controller(ControllerField::Serial)),
    child((0, 7, 6), &ALIAS),
    child((5, 6, 0), &ACPI),
    child((0, 7, 6), &ADDRESS).is(Controller(ControllerField::Address)),
];

/// libvirt `<controller type='scsi'>`.
pub static SCSI_CONTROLLER: ElementSpec = ElementSpec::new("controller")
    .attributes(&[
        TYPE,
        INDEX,
        attribute("model", (0, 7, 6), Words(ScsiControllerModel::WORDS))
            .is(Controller(ControllerField::Model)),
    ])
    .children(COMMON_CHILDREN);

/// libvirt `<controller>` of a kind that disks hang on, other than SCSI.
pub static CONTROLLER: ElementSpec = ElementSpec::new("controller")
    .attributes(&[
        TYPE,
        INDEX,
        attribute("model", (0, 9, 3), Text).is(Controller(ControllerField::Model)),
        attribute("ports", (0, 7, 7), Unsigned32).is(Controller(ControllerField::Ports)),
    ])
    .children(COMMON_CHILDREN);

/// A controller that no disk hangs on.
static OTHER_CONTROLLER: ElementSpec = ElementSpec::other_peoples("controller");

static DRIVER: ElementSpec = ElementSpec::new("driver")
    .attributes(&[
        attribute("queues", (1, 0, 5), Unsigned32).is(Controller(ControllerField::Queues)),
        attribute("cmd_per_lun", (1, 2, 7), Unsigned32).is(Controller(ControllerField::CmdPerLun)),
        attribute("max_sectors", (1, 2, 7), Unsigned32).is(Controller(ControllerField::MaxSectors)),
        attribute("ioeventfd", (1, 2, 18), ON_OFF).is(Controller(ControllerField::IoEventFd)),
        attribute("iothread", (1, 3, 5), Positive32).is(Controller(ControllerField::IoThread)),
        attribute("iommu", (3, 5, 0), ON_OFF).is(Controller(ControllerField::Iommu)),
        attribute("ats", (3, 5, 0), ON_OFF).is(Controller(ControllerField::Ats)),
        attribute("packed", (6, 3, 0), ON_OFF).is(Controller(ControllerField::Packed)),
        attribute("page_per_vq", (7, 9, 0), ON_OFF).is(Controller(ControllerField::PagePerVq)),
    ])
    .children(&[
        child((11, 2, 0), &DISK_IOTHREADS).is(Controller(ControllerField::IoThreadMapping))
    ]);

static MASTER: ElementSpec =
    ElementSpec::new("master")
        .attributes(&[attribute("startport", (0, 9, 3), Unsigned32)
            .is(Controller(ControllerField::StartPort))]);

/// Of an emulated NVMe controller.
static SERIAL: ElementSpec = ElementSpec::new("serial").content(Text);

static ALIAS: ElementSpec =
    ElementSpec::new("alias")
        .attributes(&[attribute("name", (0, 7, 6), Text).is(Controller(ControllerField::Alias))]);

static ACPI: ElementSpec =
    ElementSpec::new("acpi").attributes(&[
        attribute("index", (5, 6, 0), Unsigned32).is(Controller(ControllerField::AcpiIndex))
    ]);
