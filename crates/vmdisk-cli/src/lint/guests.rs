//! The guests of the inputs on each host, which are compared when all inputs are done.

use vmdisk::rules::OtherGuests;
use vmdisk::{Fleet, Host, HostGuests, HostIndex};

use crate::config::settings::{Plan, Source};
use crate::lint::results::InputResult;
use crate::sources::{Loaded, Sources};

/// The guests of all inputs, by source.
pub(crate) struct Guests<'a> {
    plan: &'a Plan,
    by_source: Vec<OnHost<'a>>,
    has_several: bool,
}

/// The guests of a source.
enum OnHost<'a> {
    /// The guests of one host, with its facts if there are any.
    Known(Option<&'a HostIndex<'a>>, HostGuests),
    /// Guests on unknown hosts: the input of the first one, and their number.
    Unknown(usize, usize),
}

/// The result of the comparison for one guest.
pub(crate) enum Compared {
    /// It conflicts with others.
    Conflicts(OtherGuests),
    /// It is the first of several guests that could not be compared.
    HostsUnknown,
}

impl<'a> Guests<'a> {
    /// No guests yet, on the hosts of these sources.
    pub(crate) fn new(
        plan: &'a Plan,
        inputs: usize,
        sources: &'a Sources,
        fleets: &'a [Option<Fleet>],
    ) -> Self {
        let by_source = plan.sources.iter().zip(&sources.list).zip(fleets);
        let empty = |((source, loaded), fleet): ((&Source, &'a Loaded), &'a Option<Fleet>)| {
            let only = || fleet.as_ref()?.only_host();
            match (loaded.host.known().or_else(only), &source.host) {
                (None, None) => OnHost::Unknown(0, 0),
                (host, _) => OnHost::Known(host.map(Host::index), HostGuests::default()),
            }
        };
        Guests {
            plan,
            by_source: by_source.map(empty).collect(),
            has_several: inputs > 1,
        }
    }

    /// True if there may be several guests, and the host of those of a source is known.
    pub(crate) fn are_compared(&self, source: usize) -> bool {
        self.has_several && matches!(self.by_source[source], OnHost::Known(..))
    }

    /// Adds the guest of an input.
    pub(crate) fn add(&mut self, number: usize, result: &mut InputResult) {
        let source = self.source(number);
        match &mut self.by_source[source] {
            OnHost::Known(_, guests) => {
                if let Some(needs) = result.needs.take() {
                    guests.add(number, *needs);
                }
            }
            OnHost::Unknown(first, count) if result.is_guest => {
                if *count == 0 {
                    *first = number;
                }
                *count += 1;
            }
            OnHost::Unknown(..) => {}
        }
    }

    /// The number of the source of an input.
    pub(crate) fn source(&self, number: usize) -> usize {
        self.plan.settings[self.plan.of_input[number]].source
    }

    /// The inputs about whose guests there is something to report, in their order.
    pub(crate) fn compared(&self) -> Vec<(usize, Compared)> {
        let mut all = Vec::new();
        for guests in &self.by_source {
            match guests {
                OnHost::Known(host, guests) => {
                    let found = guests.conflicts(*host).into_iter();
                    all.extend(found.map(|(number, others)| (number, Compared::Conflicts(others))));
                }
                OnHost::Unknown(first, 2..) => all.push((*first, Compared::HostsUnknown)),
                OnHost::Unknown(..) => {}
            }
        }
        all.sort_by_key(|(number, _)| *number);
        all
    }
}
