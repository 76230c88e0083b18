//! A field with a value, and both in plain words.

use vmdisk_model::{FieldPath, FieldValue};

use crate::{Label, controller, disk};

/// A field with a value: one that is written, or one to write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
    /// The field.
    pub at: FieldPath,
    /// The value.
    pub value: FieldValue,
}

/// A field with a value.
pub fn setting(at: FieldPath, value: impl Into<FieldValue>) -> Setting {
    Setting {
        at,
        value: value.into(),
    }
}

/// A setting in plain words, for a syntax that has no word for it.
pub(crate) fn in_words(setting: &Setting) -> String {
    let Setting { at, value } = setting;
    let noun = noun(*at);
    match value {
        FieldValue::Set => noun.to_owned(),
        _ => format!("{noun} `{value}`"),
    }
}

/// A field in plain words, without an article.
pub fn noun(at: FieldPath) -> &'static str {
    let noun = match at {
        FieldPath::Disk(_, field) => disk(field).noun,
        FieldPath::Controller(_, field) => controller(field).noun,
        FieldPath::Domain(field) => field.label(),
        FieldPath::Image(_, _, field) => field.label(),
        FieldPath::IoThread(_, field) => field.label(),
        FieldPath::Iotune(_, field) | FieldPath::ThrottleGroup(_, field) => field.label(),
    };
    let noun = noun
        .strip_prefix("a ")
        .or_else(|| noun.strip_prefix("an "))
        .unwrap_or(noun);
    noun.rsplit(['/', '@']).next().unwrap_or(noun)
}
