//! Reads a property that is the value of one field.

use vmdisk_fields::FieldRow;
use vmdisk_model::{FieldKind, FieldPath, FieldType, FieldValue};

use crate::notes::Notes;
use crate::object::read_iothread::IoThreadIds;
use crate::syntax::properties::Property;

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
        FieldKind::Number => notes.number32(at, property).map(Into::into),
        FieldKind::Word(words) => {
            let qemu_words: Vec<&str> = words.iter().map(|word| row.qemu_word(word)).collect();
            let find = |text: &str| qemu_words.iter().position(|word| *word == text);
            let word = notes.word(at, property, &qemu_words, find);
            word.map(|nth| FieldValue::Word(words[nth]))
        }
        FieldKind::Text => {
            notes.record(at, property);
            Some(text.to_owned().into())
        }
        FieldKind::IoThread => {
            notes.record(at, property);
            Some(iothreads.number(text).into())
        }
        FieldKind::Flag | FieldKind::Count | FieldKind::Size | FieldKind::Structure => None,
    };
    if let Some(value) = value {
        slot.set(value);
    }
}
