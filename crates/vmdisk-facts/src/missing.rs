//! A fact that an answer needs and does not have.

use std::borrow::Cow;

use crate::fact::Fact;

/// A missing input of an answer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Missing {
    /// The missing fact, such as `file system of /srv/a.img`; empty unless `names_missing`.
    pub what: String,
    /// The reason why it is missing, such as `no facts were given` or `permission`.
    pub why: Cow<'static, str>,
}

impl Missing {
    /// A missing input with the reason.
    pub fn new(what: impl Into<String>, why: impl Into<Cow<'static, str>>) -> Self {
        Missing {
            what: what.into(),
            why: why.into(),
        }
    }

    /// The reason for all facts of the host if no facts were given.
    pub const NO_FACTS: &'static str = "no facts were given";

    /// The reason for all facts of QEMU if neither facts nor target name its version.
    pub const NO_QEMU: &'static str = "the version of QEMU is not known";

    /// The reason for all facts of the machine if the input contains only disks.
    pub const DISKS_ONLY: &'static str = "the file contains disks without their machine";

    /// The reason for all comparisons of guests if it is not known which other guests share the host.
    pub const NO_OTHERS: &'static str = "the other guests of its host are unknown";

    /// The reason for a field whose value a shell or systemd fills in.
    pub const OPEN_VALUE: &'static str = "a variable without a known value sets it";

    /// The reason for what depends on a placeholder of a template.
    pub const PLACEHOLDER: &'static str = "a template fills it in";

    /// The reason for a fact that the facts do not have.
    pub const NOT_COLLECTED: &'static str = "not collected";

    /// The reason for all checks except those of the text if another hypervisor runs the guest.
    pub const NOT_QEMU: &'static str = "QEMU does not run this guest, and the rule is about QEMU";
}

impl<T> Fact<T> {
    /// A known value; `None` if it is known to be absent. `what` names the fact in the error.
    ///
    /// # Errors
    /// Fails if the fact is unknown or was not collected.
    pub fn needed(self, what: impl FnOnce() -> String) -> Result<Option<T>, Missing> {
        match self {
            Fact::Known(value) => Ok(Some(value)),
            Fact::Absent => Ok(None),
            Fact::Unknown(unknown) => Err(Missing::new(what(), unknown.to_string())),
            Fact::NotCollected => Err(Missing::new(what(), Missing::NOT_COLLECTED)),
        }
    }
}
