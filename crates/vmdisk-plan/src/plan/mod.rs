//! From a spec and what is known of the host to disks, with a reason for every choice.

mod aio;
mod block_size;
mod bus;
mod cache;
mod choice;
mod discard;
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
pub use nocow::facts_after;

/// Fills what a spec leaves open, from what is known of the host and of the programs it is for.
///
/// The order is that of what depends on what: copy-on-write and cache first, then the way to the host's kernel, then
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
    fill(spec, None, facts, target)
}

/// As [`plan`], for disks that are added to a guest that exists.
///
/// The guest stays as it is: names, iothreads and places that it uses are avoided, and its SCSI controllers
/// and iothreads serve the new disks where they fit. The plan's guest holds only what is to be added.
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
