//! Changes made by a fix, in terms of the model.

use crate::{FieldPath, FieldValue};

/// One step of a fix. The reader of the format turns it into byte edits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Gives a field this value, whether or not it was written before.
    Set {
        /// The field.
        at: FieldPath,
        /// The value.
        value: FieldValue,
    },
    /// Removes a field that was written.
    Remove {
        /// The field.
        at: FieldPath,
    },
}

impl Change {
    /// Gives the field at `at` this value.
    pub fn set(at: FieldPath, value: impl Into<FieldValue>) -> Self {
        Change::Set {
            at,
            value: value.into(),
        }
    }

    /// The field.
    pub const fn at(&self) -> FieldPath {
        match self {
            Change::Set { at, .. } | Change::Remove { at } => *at,
        }
    }

    /// Removes the field at `at`.
    pub const fn remove(at: FieldPath) -> Self {
        Change::Remove { at }
    }
}
