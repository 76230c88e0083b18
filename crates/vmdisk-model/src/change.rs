//! What a fix does, said in terms of the model.

use crate::FieldPath;

/// One step of a fix. The reader of the format turns it into byte edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Gives a field this value, in libvirt's spelling, whether or not it was written before.
    Set {
        /// The field.
        at: FieldPath,
        /// The value.
        value: String,
    },
    /// Removes a field that was written.
    Remove {
        /// The field.
        at: FieldPath,
    },
}

impl Change {
    /// Gives the field at `at` this value.
    pub fn set(at: FieldPath, value: impl Into<String>) -> Self {
        Change::Set {
            at,
            value: value.into(),
        }
    }

    /// Removes the field at `at`.
    pub const fn remove(at: FieldPath) -> Self {
        Change::Remove { at }
    }
}
