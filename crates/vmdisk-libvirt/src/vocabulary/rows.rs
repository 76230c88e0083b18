//! Attributes and elements that correspond to fields of a disk, image or controller, from the rows of vmdisk-fields.

use vmdisk_fields::{CONTROLLER_FIELDS, DISK_FIELDS, FieldRow, ValueForm, controller, disk, image};
use vmdisk_model::{ControllerField, DiskField, FieldKind, ImageField};

use super::{
    AttributeSpec, ChildSpec, ElementSpec, Field, ON_OFF, Since, ValueSpec, YES_NO, child,
};

/// The attribute of a disk's field.
pub(super) const fn disk_attribute(field: DiskField) -> AttributeSpec {
    attribute_of(disk(field), Field::Disk(field))
}

/// The element of a disk's field.
pub(super) const fn disk_child(field: DiskField, element: &'static ElementSpec) -> ChildSpec {
    child_of(disk(field), element).is(Field::Disk(field))
}

/// The attribute of an image's field.
pub(super) const fn image_attribute(field: ImageField) -> AttributeSpec {
    attribute_of(image(field), Field::Image(field))
}

/// The element of an image's field.
pub(super) const fn image_child(field: ImageField, element: &'static ElementSpec) -> ChildSpec {
    child_of(image(field), element).is(Field::Image(field))
}

/// The attribute of a controller's field.
pub(super) const fn controller_attribute(field: ControllerField) -> AttributeSpec {
    attribute_of(controller(field), Field::Controller(field))
}

/// The element of a controller's field.
pub(super) const fn controller_child(
    field: ControllerField,
    element: &'static ElementSpec,
) -> ChildSpec {
    child_of(controller(field), element).is(Field::Controller(field))
}

const fn since_of(row: &FieldRow) -> Since {
    row.libvirt.since.expect("libvirt has a word for it")
}

const fn attribute_of(row: &'static FieldRow, field: Field) -> AttributeSpec {
    let value = match (row.kind, row.libvirt.form) {
        (Some(FieldKind::Switch), ValueForm::YesNo) => YES_NO,
        (Some(FieldKind::Switch), _) => ON_OFF,
        (Some(FieldKind::Number), ValueForm::Positive) | (Some(FieldKind::IoThread), _) => {
            ValueSpec::Positive32
        }
        (Some(FieldKind::Number), _) => ValueSpec::Unsigned32,
        (Some(FieldKind::Count | FieldKind::Size), _) => ValueSpec::Unsigned64,
        (Some(FieldKind::Word(words)), ValueForm::WordOr(others)) => {
            ValueSpec::WordsAnd(words, others)
        }
        (Some(FieldKind::Word(words)), _) => ValueSpec::Words(words),
        (Some(FieldKind::Flag | FieldKind::Text | FieldKind::Structure) | None, _) => {
            ValueSpec::Text
        }
    };
    let mut attribute = super::attribute(row.libvirt.name(), since_of(row), value)
        .is(field)
        .later(row.libvirt.versioned_syntax);
    attribute.qemu = row.qemu_since;
    attribute
}

const fn child_of(row: &'static FieldRow, element: &'static ElementSpec) -> ChildSpec {
    let mut child = child(since_of(row), element);
    child.qemu = row.qemu_since;
    child
}

/// True if a field is an attribute with a value on this element.
pub(super) const fn is_on(row: &FieldRow, element: &str) -> bool {
    let is_plain = !matches!(row.kind, None | Some(FieldKind::Structure));
    if !is_plain || !row.libvirt.is_attribute() {
        return false;
    }
    let (left, right) = (row.libvirt.element().as_bytes(), element.as_bytes());
    let mut at = 0;
    while at < left.len() && at < right.len() && left[at] == right[at] {
        at += 1;
    }
    at == left.len() && at == right.len()
}

/// Declares the collection of an element's attributes from a list of fields.
macro_rules! gather {
    ($count:ident, $gather:ident, $list:ident, $row_of:ident, $attribute:ident) => {
        /// The number of fields that are attributes of an element.
        pub(super) const fn $count(element: &str) -> usize {
            let (mut count, mut at) = (0, 0);
            while at < $list.len() {
                if is_on($row_of($list[at]), element) {
                    count += 1;
                }
                at += 1;
            }
            count
        }

        /// An element's own attributes, then its fields, in the order of their list.
        pub(super) const fn $gather<const N: usize>(
            own: &[AttributeSpec],
            element: &str,
        ) -> [AttributeSpec; N] {
            let mut attributes =
                [$crate::vocabulary::attribute("", (0, 0, 0), $crate::vocabulary::ValueSpec::Text);
                    N];
            let mut next = 0;
            while next < own.len() {
                attributes[next] = own[next];
                next += 1;
            }
            let mut at = 0;
            while at < $list.len() {
                if is_on($row_of($list[at]), element) {
                    attributes[next] = $attribute($list[at]);
                    next += 1;
                }
                at += 1;
            }
            attributes
        }
    };
}

gather!(
    count_of_disk,
    gather_of_disk,
    DISK_FIELDS,
    disk,
    disk_attribute
);
gather!(
    count_of_controller,
    gather_of_controller,
    CONTROLLER_FIELDS,
    controller,
    controller_attribute
);

/// The attributes of an element of a disk: the given ones, then every field of the table that is written on it.
macro_rules! disk_attributes {
    ($element:literal $(, $own:expr)*) => {{
        const OWN: &[$crate::vocabulary::AttributeSpec] = &[$($own),*];
        const COUNT: usize = OWN.len() + $crate::vocabulary::rows::count_of_disk($element);
        const ALL: [$crate::vocabulary::AttributeSpec; COUNT] =
            $crate::vocabulary::rows::gather_of_disk(OWN, $element);
        &ALL
    }};
}

/// The same for a controller.
macro_rules! controller_attributes {
    ($element:literal) => {{
        const COUNT: usize = $crate::vocabulary::rows::count_of_controller($element);
        const ALL: [$crate::vocabulary::AttributeSpec; COUNT] =
            $crate::vocabulary::rows::gather_of_controller(&[], $element);
        &ALL
    }};
}

pub(super) use {controller_attributes, disk_attributes, gather};
