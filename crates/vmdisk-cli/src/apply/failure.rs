//! A step that was not done.

/// Why a step was not done.
#[derive(Debug)]
pub(super) enum Failure {
    /// Something took the name meanwhile.
    Refused(String),
    /// Its command failed, or a signal stopped it.
    Failed(String),
    /// What libvirt has now is not known, so that what was made stays.
    Unsettled(String),
}

impl Failure {
    pub(super) fn into_text(self) -> String {
        match self {
            Failure::Refused(why) | Failure::Failed(why) | Failure::Unsettled(why) => why,
        }
    }
}
