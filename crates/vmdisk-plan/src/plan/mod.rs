//! From a spec and what is known of the host to disks, with a reason for every choice.

mod after;
mod aio;
mod block_size;
mod bus;
mod cache;
mod choice;
mod decide;
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

use std::borrow::Cow;

use vmdisk_facts::{Facts, HostIndex, Target};
use vmdisk_model::{BackendSource, Domain, VhostUserSocket};

use crate::spec::{DiskSpec, Spec};
use planner::Planner;

pub use after::{facts_after, facts_after_on};
pub use choice::{Choice, ChoiceSource, Plan, PlanError, PlanErrors, RULES};
pub use decide::{Decided, decide, set_options};
pub(crate) use existing::machine_of;
pub(crate) use guest::{is_pc, needs_uefi};

/// Chooses the options that a spec leaves open, from the facts of the host and the target versions.
///
/// The order follows the dependencies: copy-on-write and cache first, then the host's I/O interface, then
/// discard and sizes, then queues and event loops. Without a fact the harmless value is
/// chosen, and the reason names the missing fact. Equal arguments give equal plans.
///
/// # Errors
/// Every impossible request in the spec.
pub fn plan(spec: &Spec, facts: &Facts, target: &Target) -> Result<Plan, PlanErrors> {
    plan_on(spec, &HostIndex::new(facts), target)
}

/// As [`plan`], with facts that are indexed already.
///
/// # Errors
/// As [`plan`].
pub fn plan_on(spec: &Spec, host: &HostIndex<'_>, target: &Target) -> Result<Plan, PlanErrors> {
    let errors: Vec<PlanError> = spec.check().into_iter().map(PlanError::from).collect();
    if !errors.is_empty() {
        return Err(errors.into());
    }
    fill(spec, None, host, target)
}

/// As [`plan`], for disks that are added to a guest that exists.
///
/// The guest does not change, and of the spec's guest only the operating system and the drivers count: names, iothreads and places that it uses are avoided, and its SCSI controllers
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
) -> Result<Plan, PlanErrors> {
    let errors: Vec<PlanError> = spec.check().into_iter().map(PlanError::from).collect();
    if !errors.is_empty() {
        return Err(errors.into());
    }
    let spec = Spec {
        guest: Some(existing::as_asked(guest, spec.guest.as_ref())),
        ..spec.clone()
    };
    fill(&spec, Some(guest), &HostIndex::new(facts), target)
}

fn fill(
    spec: &Spec,
    into: Option<&Domain>,
    host: &HostIndex<'_>,
    target: &Target,
) -> Result<Plan, PlanErrors> {
    let nocow = nocow::choose_all(spec, host);
    match nocow::expected_facts(host.facts(), spec, &nocow) {
        Cow::Borrowed(_) => Planner::new(spec, into, host, target, nocow).run(),
        Cow::Owned(facts) => Planner::new(spec, into, &HostIndex::new(&facts), target, nocow).run(),
    }
}

impl Planner<'_> {
    /// Decides everything.
    fn run(mut self) -> Result<Plan, PlanErrors> {
        guest::plan_machine(&mut self);
        let spec = self.spec;
        self.native_threads = aio::asked_native_threads(spec);
        for (index, disk) in spec.disks.iter().enumerate() {
            self.refuse_what_cannot_be(index, disk);
        }
        self.name_disks();
        guest::plan_firmware(&mut self);
        for (index, disk) in spec.disks.iter().enumerate() {
            self.plan_disk(index, disk);
        }
        event_loop::plan_event_loops(&mut self);
        self.plan_scsi_controllers();
        self.refuse_beyond_room();
        guest::plan_memory(&mut self);
        self.plan_steps();
        self.finish()
    }

    /// Decides what belongs to one disk alone, in the order of what depends on what.
    fn plan_disk(&mut self, index: usize, spec: &DiskSpec) {
        self.plan_storage(index, spec);
        self.plan_as_asked(index, spec);
        let socket = self.open_served(index);
        self.plan_cache(index, spec);
        self.plan_aio(index, spec);
        self.plan_discard(index, spec);
        self.plan_error_policy(index, spec);
        self.close_served(index, socket);
        self.plan_block_sizes(index, spec);
        self.plan_metadata_cache(index, spec);
        self.plan_queues(index, spec);
    }

    /// Puts the image that a daemon of ours serves in the place of its socket, so that the options of its nodes are
    /// planned as those of any image.
    fn open_served(&mut self, index: usize) -> Option<VhostUserSocket> {
        let backend = &mut self.domain.disks[index].backend;
        let BackendSource::VhostUser(socket) = &mut backend.source else {
            return None;
        };
        let image = socket.served.take()?;
        let source = std::mem::replace(&mut backend.source, BackendSource::Image(image));
        match source {
            BackendSource::VhostUser(socket) => Some(socket),
            BackendSource::Image(_) | BackendSource::Empty => None,
        }
    }

    /// Puts the socket back in front of the image.
    fn close_served(&mut self, index: usize, socket: Option<VhostUserSocket>) {
        let Some(mut socket) = socket else {
            return;
        };
        let backend = &mut self.domain.disks[index].backend;
        if let BackendSource::Image(image) =
            std::mem::replace(&mut backend.source, BackendSource::Empty)
        {
            socket.served = Some(image);
        }
        backend.source = BackendSource::VhostUser(socket);
    }
}
