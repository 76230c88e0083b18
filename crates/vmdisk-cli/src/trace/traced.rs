//! The paths of one document.

use vmdisk::trace::GuestTrace;

/// The paths of one document.
pub(crate) struct Traced {
    /// The given path of the document.
    pub(crate) file: String,
    /// Name of the guest, if the document has one.
    pub(crate) domain: Option<String>,
    /// The paths.
    pub(crate) guest: GuestTrace,
}
