//! The position of a model field in the tables.

use std::cell::RefCell;
use std::collections::HashMap;
use std::ptr;

use vmdisk_model::{
    ControllerField, ControllerType, DiskField, Domain, DomainField, FieldPath, ImageField,
    IoThreadField, LimitField,
};

use crate::vocabulary::{
    AttributeSpec, BACKING_STORE, CONTROLLER, DISK, DOMAIN, ElementSpec, Field, IOTHREAD, Pick,
    SCSI_CONTROLLER, THROTTLE_GROUP, source_of,
};

/// One element on the path from a disk to one of its fields.
#[derive(Clone, Copy)]
pub(crate) struct Step {
    /// The element.
    pub(crate) element: &'static ElementSpec,
    /// Its position among its siblings in libvirt's order.
    pub(crate) order: usize,
    /// The parent element.
    pub(crate) parent: &'static ElementSpec,
}

/// The final value of a field.
#[derive(Clone, Copy)]
pub(crate) enum Leaf {
    /// An attribute of the last element.
    Attribute(&'static AttributeSpec),
    /// The last element itself.
    Element,
}

/// The path to a field.
#[derive(Clone)]
pub(crate) struct Slot {
    pub(crate) steps: Vec<Step>,
    pub(crate) leaf: Leaf,
}

impl Slot {
    /// For an element that only holds a number with a unit, such as `<metadata_cache>`: the path to that number.
    pub(crate) fn size_inside(&self) -> Option<Slot> {
        let last = self.steps.last()?;
        let [child] = last.element.children else {
            return None;
        };
        let Pick::Element(size) = child.pick else {
            return None;
        };
        let is_size = size.content.is_some() && size.attribute("unit").is_some();
        let mut steps = self.steps.clone();
        steps.push(Step {
            element: size,
            order: 0,
            parent: last.element,
        });
        is_size.then_some(Slot {
            steps,
            leaf: Leaf::Element,
        })
    }
}

/// The element that should contain a field, with its table.
pub(crate) fn root_of(at: FieldPath, domain: &Domain) -> Option<(FieldPath, &'static ElementSpec)> {
    Some(match at {
        FieldPath::Domain(_) => (FieldPath::Domain(DomainField::Domain), &DOMAIN),
        FieldPath::Disk(nth, _) | FieldPath::Image(nth, 0, _) | FieldPath::Iotune(nth, _) => {
            (FieldPath::Disk(nth, DiskField::Disk), &DISK)
        }
        FieldPath::Image(nth, depth, _) => (
            FieldPath::Image(nth, depth, ImageField::Image),
            &BACKING_STORE,
        ),
        FieldPath::Controller(nth, _) => {
            let controller = domain.controllers.get(nth)?;
            let spec = match controller.controller_type {
                ControllerType::Scsi => &SCSI_CONTROLLER,
                _ => &CONTROLLER,
            };
            (
                FieldPath::Controller(nth, ControllerField::Controller),
                spec,
            )
        }
        FieldPath::IoThread(nth, _) => {
            (FieldPath::IoThread(nth, IoThreadField::IoThread), &IOTHREAD)
        }
        FieldPath::ThrottleGroup(nth, _) => (
            FieldPath::ThrottleGroup(nth, LimitField::Limits),
            &THROTTLE_GROUP,
        ),
    })
}

/// The field without the indexes.
fn field_of(at: FieldPath) -> Field {
    match at {
        FieldPath::Domain(field) => Field::Domain(field),
        FieldPath::Disk(_, field) => Field::Disk(field),
        FieldPath::Image(_, _, field) => Field::Image(field),
        FieldPath::Controller(_, field) => Field::Controller(field),
        FieldPath::IoThread(_, field) => Field::IoThread(field),
        FieldPath::Iotune(_, field) => Field::Iotune(field),
        FieldPath::ThrottleGroup(_, field) => Field::ThrottleGroup(field),
    }
}

/// The tables of a root and of its source, by their addresses, and a field.
type Question = (usize, usize, Field);

thread_local! {
    /// The paths that were searched for. Findings are mostly about the same fields, and a search looks at many rows.
    static KNOWN: RefCell<HashMap<Question, Option<Slot>>> = RefCell::default();
}

/// The path from `root` to a field; `None` if the table does not have it.
pub(crate) fn slot_of(
    at: FieldPath,
    root: &'static ElementSpec,
    source_type: &str,
) -> Option<Slot> {
    let field = field_of(at);
    let source = source_of(source_type);
    let question = (address_of(root), address_of(source), field);
    KNOWN.with_borrow_mut(|known| {
        let answer = known.entry(question).or_insert_with(|| {
            let mut steps = Vec::new();
            let leaf = search(root, field, source, &mut steps)?;
            Some(Slot { steps, leaf })
        });
        answer.clone()
    })
}

fn address_of(table: &'static ElementSpec) -> usize {
    ptr::from_ref(table).addr()
}

fn search(
    element: &'static ElementSpec,
    field: Field,
    source: &'static ElementSpec,
    steps: &mut Vec<Step>,
) -> Option<Leaf> {
    if let Some(attribute) = element
        .attributes
        .iter()
        .find(|attribute| attribute.fields.contains(&Some(field)))
    {
        return Some(Leaf::Attribute(attribute));
    }
    for (order, child) in element.children.iter().enumerate() {
        // Repeatable elements are separate roots, and so is a backing store.
        let inner = match child.pick {
            Pick::Element(inner) if !child.repeats => inner,
            // The source of a data store is not a field of the model, and may contain another data store.
            Pick::SourceOfType if child.fields[0].is_some() => source,
            Pick::Element(_) | Pick::SourceOfType | Pick::BackingStore | Pick::ControllerOfType => {
                continue;
            }
        };
        steps.push(Step {
            element: inner,
            order,
            parent: element,
        });
        // The field of an element can be its only attribute.
        if let Some(leaf) = search(inner, field, source, steps) {
            return Some(leaf);
        }
        if child.fields.contains(&Some(field)) {
            return Some(Leaf::Element);
        }
        steps.pop();
    }
    None
}
