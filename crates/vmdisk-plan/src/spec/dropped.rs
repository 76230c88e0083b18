//! The parts of a guest that no spec expresses.

use vmdisk_model::FieldPath;

/// Something of a guest that no spec says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCarried {
    /// The field.
    pub at: FieldPath,
    /// The part of the guest: lower case, no full stop.
    pub what: String,
    /// True if the guest would lack a disk, or see other data.
    pub changes_guest: bool,
}

/// The intermediate results of making a spec.
#[derive(Default)]
pub(super) struct DroppedFields(pub(super) Vec<NotCarried>);

impl DroppedFields {
    /// Notes something that is not carried.
    pub(super) fn report_dropped(
        &mut self,
        at: FieldPath,
        what: impl Into<String>,
        changes_guest: bool,
    ) {
        let what = what.into();
        self.0.push(NotCarried {
            at,
            what,
            changes_guest,
        });
    }
}
