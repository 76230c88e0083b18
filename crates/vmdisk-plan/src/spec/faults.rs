//! The faults of a spec while it is checked.

use super::{SpecError, SpecPath};

/// Faults found so far.
pub(super) struct Faults(pub(super) Vec<SpecError>);

impl Faults {
    /// Notes that a value is wrong.
    pub(super) fn refuse(&mut self, at: SpecPath, message: impl Into<String>) -> &mut SpecError {
        let index = self.0.len();
        self.0.push(SpecError::value(at, message));
        &mut self.0[index]
    }

    /// Notes that a value is wrong, unless something holds.
    pub(super) fn refuse_unless(&mut self, holds: bool, at: SpecPath, message: impl Into<String>) {
        if !holds {
            self.refuse(at, message);
        }
    }
}

/// The form 8-4-4-4-12 in hexadecimal digits.
pub(super) fn is_uuid(text: &str) -> bool {
    let lengths = [8, 4, 4, 4, 12];
    let parts: Vec<&str> = text.split('-').collect();
    parts.len() == lengths.len()
        && parts.iter().zip(lengths).all(|(part, length)| {
            part.len() == length && part.bytes().all(|byte| byte.is_ascii_hexdigit())
        })
}
