//! The guests of the inputs on each host, which are compared when all inputs are done.

use vmdisk::rules::OtherGuests;
use vmdisk::{Fleet, Host, HostGuests, HostIndex};

use crate::config::settings::{Plan, Source};
use crate::input::inputs::{Input, Origin};
use crate::lint::results::InputResult;
use crate::sources::{Loaded, Sources};

/// The guests of all inputs, by source.
pub(crate) struct Guests<'a> {
    plan: &'a Plan,
    by_source: Vec<OnHost<'a>>,
    has_several: bool,
}

/// The guests of a host, with its facts if there are any; `None` if the host is not known.
type OnHost<'a> = Option<(Option<&'a HostIndex<'a>>, HostGuests)>;

impl<'a> Guests<'a> {
    /// No guests yet, on the hosts of these sources. Those of a directory are all guests of their host.
    pub(crate) fn new(
        plan: &'a Plan,
        inputs: &[Input],
        sources: &'a Sources,
        fleets: &'a [Option<Fleet>],
    ) -> Self {
        let is_found = |input: &Input| matches!(input.origin, Origin::Found(_));
        let by_source = plan.sources.iter().zip(&sources.list).zip(fleets);
        let empty = |((source, loaded), fleet): ((&Source, &'a Loaded), &'a Option<Fleet>)| {
            let only = || fleet.as_ref()?.only_host();
            match (loaded.host.known().or_else(only), &source.host) {
                (None, None) => None,
                (host, _) => Some((host.map(Host::index), HostGuests::default())),
            }
        };
        Guests {
            plan,
            by_source: by_source.map(empty).collect(),
            has_several: inputs.len() > 1 || inputs.iter().any(is_found),
        }
    }

    /// True if the guests of a source are compared: their host is known, and its guests are those of several inputs or of a
    /// directory, or named by `--host`.
    pub(crate) fn are_compared(&self, source: usize) -> bool {
        let is_named = self.plan.sources[source].host.is_some();
        (self.has_several || is_named) && self.by_source[source].is_some()
    }

    /// Adds the guest of an input.
    pub(crate) fn add(&mut self, number: usize, result: &mut InputResult) {
        let source = self.source(number);
        if let Some((_, guests)) = &mut self.by_source[source]
            && let Some(needs) = result.needs.take()
        {
            guests.add(number, *needs);
        }
    }

    /// The number of the source of an input.
    pub(crate) fn source(&self, number: usize) -> usize {
        self.plan.settings[self.plan.of_input[number]].source
    }

    /// The inputs whose guests conflict with others, in their order.
    pub(crate) fn conflicts(&self) -> Vec<(usize, OtherGuests)> {
        let hosts = self.by_source.iter().flatten();
        let mut all: Vec<_> = hosts.flat_map(|(host, it)| it.conflicts(*host)).collect();
        all.sort_by_key(|(number, _)| *number);
        all
    }
}
