//! A field with a value, and both in plain words.

use vmdisk_model::{Change, FieldPath, FieldValue};

use crate::{Label, controller, disk};

/// A field with a value: one that is written, or one to write.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Setting {
    /// The field.
    pub at: FieldPath,
    /// The value.
    pub value: FieldValue,
}

/// Settings that belong together, with fields that are incompatible with them.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Settings {
    /// The settings.
    pub set: Vec<Setting>,
    /// Fields to remove.
    pub removed: Vec<FieldPath>,
    /// False if the text around the settings says what to remove.
    pub names_removed: bool,
}

impl From<Vec<Setting>> for Settings {
    fn from(set: Vec<Setting>) -> Self {
        Settings {
            set,
            removed: Vec::new(),
            names_removed: false,
        }
    }
}

impl Settings {
    /// The changes of the model.
    pub fn changes(&self) -> Vec<Change> {
        let set = self.set.iter();
        let set = set.map(|Setting { at, value }| Change::set(*at, value.clone()));
        let removed = self.removed.iter().map(|at| Change::remove(*at));
        set.chain(removed).collect()
    }
}

impl Setting {
    /// The setting without these fields, which the text names: `bus='virtio'` without `<address>`.
    pub fn without(self, removed: impl IntoIterator<Item = FieldPath>) -> Settings {
        Settings {
            set: vec![self],
            removed: removed.into_iter().collect(),
            names_removed: true,
        }
    }

    /// The setting instead of a field, which the text around it says.
    pub fn instead_of(self, removed: FieldPath) -> Settings {
        Settings {
            names_removed: false,
            ..self.without([removed])
        }
    }
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
