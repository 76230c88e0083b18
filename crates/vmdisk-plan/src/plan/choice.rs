//! Plans as values: the guest, each choice with its reason, the steps, and errors.

use vmdisk_model::{Domain, FieldPath};

use crate::errors::ErrorList;
use crate::spec::{GuestDevices, GuestOs, SpecError, SpecPath};
use crate::steps::Step;

/// A planned guest, the reasons, and the creation of its storage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The guest, with the requested and the chosen options.
    pub domain: Domain,
    /// The operating system that the spec names; text around the disks depends on it.
    pub os: Option<GuestOs>,
    /// The devices beside the disks.
    pub devices: GuestDevices,
    /// Every requested or chosen option, in the order of the decisions.
    pub choices: Vec<Choice>,
    /// What has to be run to make the storage, in order; empty if all of it exists.
    pub steps: Vec<Step>,
}

/// One option of a plan, and why it is what it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The field that holds it, or the nearest one where none does.
    pub at: FieldPath,
    /// The option, in the words of a spec.
    pub option: &'static str,
    /// Its value, as it would be written; `unset` if it is left to QEMU on purpose.
    pub value: String,
    /// Why, for a person: lower case, no full stop.
    pub reason: String,
    /// The rule that would report another value, if one would.
    pub rule: Option<&'static str>,
    /// The basis of the choice.
    pub source: ChoiceSource,
}

/// Names of all rules that [`Choice::rule`] may name, sorted.
pub const RULES: &[&str] = &[
    "aio-slots-exhausted",
    "btrfs-cow-image",
    "btrfs-dio-buffered",
    "btrfs-dio-csum-corruption",
    "btrfs-dio-raid-mirror-divergence",
    "bus-emulated",
    "detect-zeroes-unmap-no-discard",
    "discard-dropped",
    "discard-missing-thin",
    "guest-sector-512-on-4kn",
    "hugepages-insufficient",
    "image-size-unaligned",
    "io-native-on-buffered-dio",
    "iothread-missing-fast-media",
    "machine-type-old-defaults",
    "native-without-direct",
    "odirect-silently-buffered",
    "odirect-unsupported",
    "qcow2-discard-corruption",
    "qcow2-on-device-fragments",
    "seabios-4096-sectors",
    "shareable-cached",
    "tcg-instead-of-kvm",
    "thin-chunk-large-with-snapshots",
    "thin-zeroing-off",
    "vhost-user-flushes-lost",
    "vhost-user-needs-shared-mem",
    "vhost-vdpa-needs-direct",
];

vmdisk_source::words! {
    /// The basis of a choice.
    pub enum ChoiceSource as word {
        /// The spec says so.
        Asked = "asked",
        /// Facts, the target or another option that the spec sets decide.
        Fact = "fact",
        /// Nothing is known that decides: the value that does no harm anywhere.
        Default = "default",
    }
}

/// Something in a spec that no choice can make work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The value in the spec that it is about.
    pub at: SpecPath,
    /// The mistake: lower case, no full stop.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl std::fmt::Display for PlanError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        if !self.at.is_top() {
            write!(f, "{}: ", self.at)?;
        }
        f.write_str(&self.message)?;
        match &self.help {
            Some(help) => write!(f, "; {help}"),
            None => Ok(()),
        }
    }
}

impl std::error::Error for PlanError {}

/// Everything in a spec that no choice can make work.
pub type PlanErrors = ErrorList<PlanError>;

impl From<SpecError> for PlanError {
    fn from(error: SpecError) -> Self {
        let SpecError {
            at,
            is_about_key: _,
            place: _,
            message,
            help,
        } = error;
        PlanError { at, message, help }
    }
}

/// A value, and why it is taken.
pub(crate) struct Chosen<T> {
    /// The value; `None` leaves the option to QEMU on purpose.
    pub(crate) value: Option<T>,
    /// Why.
    pub(crate) reason: String,
    /// The rule that would report another value.
    pub(crate) rule: Option<&'static str>,
    /// The basis of the choice.
    pub(crate) source: ChoiceSource,
}

impl<T> Chosen<T> {
    /// A value that facts, the target or another option that the spec sets decide.
    pub(crate) fn by_fact(value: T, reason: impl Into<String>) -> Self {
        Chosen {
            value: Some(value),
            reason: reason.into(),
            rule: None,
            source: ChoiceSource::Fact,
        }
    }

    /// A value that does no harm where nothing is known.
    pub(crate) fn by_default(value: T, reason: impl Into<String>) -> Self {
        Chosen {
            source: ChoiceSource::Default,
            ..Chosen::by_fact(value, reason)
        }
    }

    /// The same, with the rule that would report another value.
    pub(crate) fn instead_of(mut self, rule: &'static str) -> Self {
        self.rule = Some(rule);
        self
    }
}
