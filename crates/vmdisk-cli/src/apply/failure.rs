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
    /// The same one; what another one made before stays if it is done.
    pub(super) fn after(self, is_done: bool) -> Self {
        match is_done {
            true => Failure::Unsettled(self.into_text()),
            false => self,
        }
    }

    pub(super) fn into_text(self) -> String {
        match self {
            Failure::Refused(why) | Failure::Failed(why) | Failure::Unsettled(why) => why,
        }
    }
}
