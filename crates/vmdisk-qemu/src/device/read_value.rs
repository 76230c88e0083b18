//! Reads a property that is the value of one field.

use vmdisk_fields::FieldRow;
use vmdisk_model::{DiskField, FieldKind, FieldPath, FieldType, FieldValue};

use crate::notes::Notes;
use crate::object::read_iothread::IoThreadIds;
use crate::syntax::properties::{Kind, Property};
use crate::syntax::value::{number_of, size_of};

/// Reads a property that is the value of one field.
pub(crate) fn read_value<'a>(
    at: FieldPath,
    property: &'a Property,
    row: &FieldRow,
    slot: &mut dyn FieldType,
    iothreads: &mut IoThreadIds<'a>,
    notes: &mut Notes<'_>,
) {
    let text = property.value.as_str();
    let value: Option<FieldValue> = match slot.kind() {
        FieldKind::Switch => notes.switch(at, property).map(Into::into),
        FieldKind::Number if size_with_unit(at, property).is_some() => {
            notes.record_value(at, property);
            size_with_unit(at, property).map(Into::into)
        }
        FieldKind::Number => notes.number32(at, property).map(Into::into),
        FieldKind::Word(words) => {
            let qemu_words: Vec<&str> = words.iter().map(|word| row.qemu_word(word)).collect();
            let find = |text: &str| qemu_words.iter().position(|word| *word == text);
            let word = notes.word(at, property, &qemu_words, find);
            word.map(|nth| FieldValue::Word(words[nth]))
        }
        FieldKind::Text => {
            notes.record_value(at, property);
            Some(text.to_owned().into())
        }
        FieldKind::IoThread => {
            notes.record_value(at, property);
            Some(iothreads.number(text).into())
        }
        FieldKind::Flag | FieldKind::Count | FieldKind::Size | FieldKind::Structure => None,
    };
    if let Some(value) = value {
        slot.set(value);
    }
}

/// The value of a size that is written with its unit, such as `4k`.
fn size_with_unit(at: FieldPath, property: &Property) -> Option<u32> {
    let is_size = matches!(
        at,
        FieldPath::Disk(
            _,
            DiskField::LogicalBlockSize
                | DiskField::PhysicalBlockSize
                | DiskField::DiscardGranularity
        )
    );
    let text = property.value.as_str();
    if !is_size || property.kind != Kind::Plain || number_of(text).is_some() {
        return None;
    }
    u32::try_from(size_of(text, 1)?.0).ok()
}
