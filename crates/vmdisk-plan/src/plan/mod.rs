//! From a spec and what is known of the host to disks, with a reason for every choice.

mod aio;
mod block_size;
mod bus;
mod cache;
mod choice;
mod discard;
mod error_policy;
mod event_loop;
mod existing;
mod guest;
mod host;
mod network;
mod nocow;
mod planner;
mod queues;
mod refusal;
mod storage;

use vmdisk_facts::{Facts, Target};
use vmdisk_model::Domain;

use crate::spec::Spec;
use planner::Planner;

pub use choice::{Choice, ChoiceSource, Plan, PlanError, RULES};
pub(crate) use existing::machine_of;
pub(crate) use guest::is_pc;
pub use nocow::facts_after;

/// Chooses the options that a spec leaves open, from the facts of the host and the target versions.
///
/// The order follows the dependencies: copy-on-write and cache first, then the host's I/O interface, then
/// discard and sizes, then queues and event loops. Without a fact the harmless value is
/// chosen, and the reason names the missing fact. Equal arguments give equal plans.
///
/// # Errors
/// Every impossible request in the spec.
pub fn plan(spec: &Spec, facts: &Facts, target: &Target) -> Result<Plan, Vec<PlanError>> {
    let errors: Vec<PlanError> = spec.check().into_iter().map(PlanError::from).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    fill(spec, None, facts, target)
}

/// As [`plan`], for disks that are added to a guest that exists.
///
/// The guest does not change: names, iothreads and places that it uses are avoided, and its SCSI controllers
/// and iothreads serve the new disks where they fit. The plan's guest holds only the additions.
/// Places of disks that libvirt fills in must be filled in already.
///
/// # Errors
/// As [`plan`], and if the spec asks for a name that is in use.
pub fn plan_into(
    spec: &Spec,
    guest: &Domain,
    facts: &Facts,
    target: &Target,
) -> Result<Plan, Vec<PlanError>> {
    let errors: Vec<PlanError> = spec.check().into_iter().map(PlanError::from).collect();
    if !errors.is_empty() {
        return Err(errors);
    }
    let spec = Spec {
        guest: Some(existing::as_asked(guest)),
        ..spec.clone()
    };
    fill(&spec, Some(guest), facts, target)
}

fn fill(
    spec: &Spec,
    into: Option<&Domain>,
    facts: &Facts,
    target: &Target,
) -> Result<Plan, Vec<PlanError>> {
    let nocow = nocow::choose_all(spec, facts);
    let facts = nocow::expected_facts(facts, spec, &nocow);
    Planner::new(spec, into, &facts, target, nocow).run()
}
