//! From a spec and what is known of the host to disks, with a reason for every choice.

mod aio;
mod block_size;
mod bus;
mod cache;
mod discard;
mod event_loop;
mod guest;
mod host;
mod network;
mod planner;
mod queues;
mod refusal;
mod storage;

use vmdisk_facts::{Facts, Target};
use vmdisk_model::{Domain, FieldPath};

use crate::spec::{Spec, SpecError, SpecPath};
use crate::steps::Step;
use planner::Planner;

/// A guest as it is to be, why it is so, and how its storage is made.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The guest, with the options that were asked for and those that were chosen.
    pub domain: Domain,
    /// Every option that was asked for or chosen, in the order of the decisions.
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
    /// What the choice rests on.
    pub source: ChoiceSource,
}

/// Names of all rules that [`Choice::rule`] may name, sorted.
pub const RULES: &[&str] = &[
    "btrfs-cow-image",
    "btrfs-dio-buffered",
    "btrfs-dio-csum-corruption",
    "btrfs-dio-raid-mirror-divergence",
    "bus-emulated",
    "detect-zeroes-unmap-no-discard",
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
    "shareable-cached",
    "tcg-instead-of-kvm",
    "thin-chunk-large-with-snapshots",
    "thin-zeroing-off",
    "vhost-user-flushes-lost",
    "vhost-user-needs-shared-mem",
];

/// What a choice rests on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ChoiceSource {
    /// The spec says so.
    Asked,
    /// Facts or the target decide.
    Fact,
    /// Nothing is known that decides: the value that does no harm anywhere.
    Default,
}

impl ChoiceSource {
    /// The word for it.
    pub const fn word(self) -> &'static str {
        match self {
            ChoiceSource::Asked => "asked",
            ChoiceSource::Fact => "fact",
            ChoiceSource::Default => "default",
        }
    }
}

/// Something in a spec that no choice can make work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanError {
    /// The value in the spec that it is about.
    pub at: SpecPath,
    /// What is wrong: lower case, no full stop.
    pub message: String,
    /// What to write instead.
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

/// Fills what a spec leaves open, from what is known of the host and of the programs it is for.
///
/// The order is that of what depends on what: cache first, then the way to the host's kernel, then
/// discard and sizes, then queues and event loops. Without a fact the value that does no harm is
/// taken, and the reason says that the fact is missing. Equal arguments give equal plans.
///
/// # Errors
/// Everything in the spec that no choice can make work.
pub fn plan(spec: &Spec, facts: &Facts, target: &Target) -> Result<Plan, Vec<PlanError>> {
    let errors: Vec<PlanError> = spec.check().into_iter().map(PlanError::from).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    Planner::new(spec, facts, target).run()
}
