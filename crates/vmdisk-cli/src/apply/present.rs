//! The state of the storage and the guest of a plan.

use std::collections::BTreeMap;

use vmdisk::Document;
use vmdisk::model::Bytes;
use vmdisk::plan::{Plan, PresentState};

use super::state::{self, State};
use super::{copies, discards, guest};
use crate::generate::{Made, into::noted_os};

/// The state of what each step makes; a step that completes another one has its state.
pub(super) fn states_of(plan: &Plan) -> Vec<State> {
    let mut states: Vec<State> = Vec::new();
    for step in &plan.steps {
        let of_image = states.last().filter(|_| step.completes());
        let state = match of_image {
            Some(State::Sized(..)) => State::Done,
            Some(state) => state.clone(),
            None => state::of(step, plan.domain.name.as_deref()),
        };
        states.push(state);
    }
    states
}

/// The state of the storage and the guest of a plan.
pub(super) fn present<'a>(
    made: &Made<'_>,
    states: &[State],
    guest: Option<&'a Document>,
    is_reclaiming: bool,
) -> PresentState<'a> {
    let plan = &made.plan;
    let sizes = states.iter().enumerate();
    let sizes: BTreeMap<usize, Bytes> = sizes
        .filter_map(|(nth, state)| match state {
            State::Sized(has, _) => Some((nth, *has)),
            _ => None,
        })
        .collect();
    let name = plan.domain.name.as_deref();
    let is_open = |nth: &usize| {
        let path = plan.steps[*nth].makes();
        name.is_some_and(|name| guest::runs_with(name, &path))
    };
    let is_running = match guest {
        Some(_) => name.is_some_and(guest::is_running),
        None => sizes.keys().any(is_open),
    };
    let mut images = BTreeMap::new();
    if let Some(guest) = guest.map(Document::domain) {
        images = copies::replaced(guest, &plan.domain, (is_running, is_reclaiming));
        if let Some(name) = name.filter(|_| is_reclaiming) {
            let images = images.iter_mut().map(|(nth, image)| (*nth, image));
            discards::note_kept(images, (guest, name, is_running), &made.target());
        }
    }
    PresentState {
        is_running,
        images,
        is_reclaiming,
        os: guest.and_then(noted_os),
        guest: guest.map(Document::domain),
        sizes,
    }
}
