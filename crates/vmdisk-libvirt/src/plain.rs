//! Fields of disks, sources and controllers that are one value each, read and written with the tables.

use vmdisk_model::{
    Bytes, ControllerField, DiskField, FieldKind, FieldType, FieldValue, Fields, ImageField,
    IoThreadId, Switch,
};

use crate::element::Element;
use crate::reader::Reader;
use crate::unmodeled::{UnmodeledContent, UnmodeledPath};
use crate::value::{unsigned32, unsigned64};
use crate::vocabulary::{
    AttributeSpec, ChildSpec, ElementSpec, Field, Pick, YES_NO, switch_from_yes_no,
    switch_to_yes_no,
};
use crate::writer::Writer;

/// The struct with the fields of a table.
pub(crate) trait Owner {
    /// One of its fields; `None` for fields of other structs.
    fn slot(&self, field: Field) -> Option<&dyn FieldType>;

    /// The same, mutable.
    fn slot_mut(&mut self, field: Field) -> Option<&mut dyn FieldType>;
}

impl<T: Fields> Owner for T
where
    Field: TryInto<T::Field>,
{
    fn slot(&self, field: Field) -> Option<&dyn FieldType> {
        self.field(field.try_into().ok()?)
    }

    fn slot_mut(&mut self, field: Field) -> Option<&mut dyn FieldType> {
        self.field_mut(field.try_into().ok()?)
    }
}

/// Declares which fields belong to a kind of struct.
macro_rules! fields_of {
    ($($names:ident = $variant:ident;)+) => {$(
        impl TryFrom<Field> for $names {
            type Error = ();

            fn try_from(field: Field) -> Result<Self, ()> {
                let Field::$variant(field) = field else {
                    return Err(());
                };
                Ok(field)
            }
        }
    )+};
}

fields_of! {
    DiskField = Disk;
    ImageField = Image;
    ControllerField = Controller;
}

/// Consumes the attributes that are fields; an invalid one is kept as written.
pub(crate) fn read_attributes(element: &mut Element<'_>, owner: &mut impl Owner) {
    let spec = element.spec;
    element.take_each(|name, text| {
        let known = spec.attribute(name)?;
        let field = known.fields[0]?;
        let slot = owner.slot_mut(field)?;
        let value = value_of(field, known, slot.kind(), text)?;
        slot.set(value).then_some(())
    });
}

fn value_of(
    field: Field,
    known: &AttributeSpec,
    kind: FieldKind,
    text: &str,
) -> Option<FieldValue> {
    Some(match kind {
        FieldKind::Switch if known.value == YES_NO => switch_from_yes_no(text)?.into(),
        FieldKind::Switch => Switch::from_word(text)?.into(),
        FieldKind::Number => unsigned32(text)?.into(),
        FieldKind::IoThread => IoThreadId(unsigned32(text)?).into(),
        FieldKind::Word(words) => FieldValue::Word(words.iter().find(|word| **word == text)?),
        // libvirt treats an empty name as unset.
        FieldKind::Text if text.is_empty() && field == Field::Disk(DiskField::TargetDev) => {
            return None;
        }
        FieldKind::Text => text.to_owned().into(),
        FieldKind::Count => unsigned64(text)?.into(),
        FieldKind::Size => Bytes(unsigned64(text)?).into(),
        FieldKind::Flag | FieldKind::Structure => return None,
    })
}

/// Writes the attributes of fields that are set.
pub(crate) fn write_attributes(
    writer: &mut Writer<'_>,
    spec: &ElementSpec,
    owner: &impl Owner,
    is_left_out: impl Fn(Field) -> bool,
) {
    for known in spec.attributes {
        let field = known.fields[0].filter(|field| !is_left_out(*field));
        match field.and_then(|field| owner.slot(field)?.get()) {
            Some(FieldValue::Switch(switch)) if known.value == YES_NO => {
                writer.attribute(known.name, switch_to_yes_no(switch));
            }
            Some(FieldValue::Size(size)) => writer.attribute(known.name, size.0),
            Some(value) => writer.attribute(known.name, value),
            None => {}
        }
    }
}

/// True if an attribute of a field is set.
pub(crate) fn has_attribute(spec: &ElementSpec, owner: &impl Owner) -> bool {
    let fields = spec.attributes.iter().filter_map(|known| known.fields[0]);
    fields
        .filter_map(|field| owner.slot(field))
        .any(FieldType::is_set)
}

/// Reads a child that is a flag or a text, or has attributes that are fields; other children are not consumed.
pub(crate) fn read_child(
    reader: &mut Reader<'_>,
    parent: &mut Element<'_>,
    child: &ChildSpec,
    owner: &mut impl Owner,
    kept: &mut UnmodeledContent,
) {
    if plain_element(child).is_none() {
        return;
    }
    let Some(mut element) = reader.child(parent, child.name) else {
        return;
    };
    if let Some(slot) = child.fields[0].and_then(|field| owner.slot_mut(field)) {
        let text = element.content();
        match slot.kind() {
            FieldKind::Flag => slot.set(FieldValue::Set),
            // libvirt treats an empty one as unset.
            FieldKind::Text => !text.is_empty() && slot.set(text.into()),
            _ => false,
        };
    }
    read_attributes(&mut element, owner);
    kept.note(UnmodeledPath::path(child.name), reader.close(element));
}

/// Writes such a child, if one of its fields is set or parts of it were kept.
pub(crate) fn write_child<'k>(
    writer: &mut Writer<'k>,
    child: &ChildSpec,
    owner: &impl Owner,
    kept: &'k UnmodeledContent,
) {
    let Some(spec) = plain_element(child) else {
        return;
    };
    let parts = kept.at(UnmodeledPath::path(child.name));
    let slot = child.fields[0].and_then(|field| owner.slot(field));
    if let Some(slot) = slot.filter(|slot| slot.kind() == FieldKind::Text) {
        writer.text_element(child.name, slot.get(), parts);
        return;
    }
    let is_written = match slot.filter(|slot| slot.kind() == FieldKind::Flag) {
        Some(flag) => flag.is_set(),
        None => has_attribute(spec, owner) || !parts.is_empty(),
    };
    if is_written {
        writer.start(child.name, parts);
        write_attributes(writer, spec, owner, |_| false);
        writer.end();
    }
}

/// The table of a child that is, or has, fields.
fn plain_element(child: &ChildSpec) -> Option<&'static ElementSpec> {
    let Pick::Element(spec) = child.pick else {
        return None;
    };
    let has_fields = spec
        .attributes
        .iter()
        .any(|known| known.fields[0].is_some());
    (child.fields[0].is_some() || has_fields).then_some(spec)
}
