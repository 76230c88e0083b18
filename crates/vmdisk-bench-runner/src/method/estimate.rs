//! Estimates of the time and space of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::round::Settings;
use crate::safety::check_room;
use crate::{CellId, CellView, Engine, EngineKind, Error, Phase, Plan};

/// Approximate speed of creating and filling storage, slower than any disk worth measuring.
const BYTES_PER_SECOND: f64 = 300e6;

/// The estimated time and space of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Time to create the storage.
    pub preparation: Duration,
    /// Time of one round.
    pub round: Duration,
    /// Time of the minimum number of rounds, including preparation.
    pub least: Duration,
    /// Time of the maximum number of rounds.
    pub most: Duration,
    /// Bytes of storage in use at once.
    pub bytes: u64,
    /// The same, by directory.
    pub places: Vec<(PathBuf, u64)>,
}

/// The estimated seconds of a round.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct RoundTime {
    /// What batches take before and after their samples, such as the boot of a guest.
    pub(super) batches: f64,
    /// The samples themselves.
    pub(super) samples: f64,
}

impl RoundTime {
    /// The pace of a run before anything is measured.
    pub(super) const AS_ESTIMATED: Self = RoundTime {
        batches: 1.0,
        samples: 1.0,
    };

    /// Estimates a round of some cells, from the seconds that samples took where they are known.
    pub(super) fn of<'a>(
        cells: impl Iterator<Item = CellView<'a>>,
        engines: &[Box<dyn Engine>],
        took: &BTreeMap<CellId, f64>,
    ) -> Self {
        let mut batches: BTreeMap<(EngineKind, String), Vec<CellView<'_>>> = BTreeMap::new();
        let mut samples = 0.0;
        for view in cells {
            let creation = match view.phase {
                Phase::FirstTouch => view.configuration.size.0 as f64 * 0.1 / BYTES_PER_SECOND,
                Phase::Steady => 0.0,
            };
            let estimated = view.workload.duration().as_secs_f64() + creation;
            samples += took.get(&view.id).copied().unwrap_or(estimated);
            if let Some(engine) = engine_of(engines, view.engine) {
                let batch = (view.engine, engine.batch(&view));
                batches.entry(batch).or_default().push(view);
            }
        }
        let batches = batches
            .iter()
            .filter_map(|((kind, _), cells)| Some(engine_of(engines, *kind)?.overhead(cells)));
        RoundTime {
            batches: batches.map(|it| it.as_secs_f64()).sum(),
            samples,
        }
    }

    pub(super) const fn seconds(self) -> f64 {
        self.batches + self.samples
    }

    /// The ratios of the measured to the estimated time of batches and samples, from the time of a whole round: a slower
    /// one had slower samples.
    pub(super) fn pace(self, took: f64) -> RoundTime {
        let ratio = took / self.seconds();
        RoundTime {
            batches: ratio.min(1.0),
            samples: match ratio > 1.0 {
                true => (took - self.batches) / self.samples,
                false => ratio,
            },
        }
    }

    /// The seconds of this round at a measured pace.
    pub(super) fn at(self, pace: RoundTime) -> f64 {
        self.batches * pace.batches + self.samples * pace.samples
    }
}

fn engine_of(engines: &[Box<dyn Engine>], kind: EngineKind) -> Option<&dyn Engine> {
    let engine = engines.iter().find(|engine| engine.kind() == kind);
    engine.map(AsRef::as_ref)
}

/// Estimates the time and space of a run.
pub fn estimate(plan: &Plan, settings: &Settings, engines: &[Box<dyn Engine>]) -> Estimate {
    let mut by_engine: BTreeMap<EngineKind, Vec<CellView<'_>>> = BTreeMap::new();
    for view in plan.views() {
        by_engine.entry(view.engine).or_default().push(view);
    }
    let round = RoundTime::of(plan.views(), engines, &BTreeMap::new()).seconds();
    let places: Vec<(PathBuf, u64)> = by_engine
        .iter()
        .filter_map(|(kind, cells)| Some(engine_of(engines, *kind)?.space(cells)))
        .flatten()
        .collect();
    let bytes: u64 = places.iter().map(|(_, bytes)| bytes).sum();
    let fills = plan.configurations.iter().map(|it| it.fills).max();
    let preparation = bytes as f64 * f64::from(fills.unwrap_or(1)) / BYTES_PER_SECOND;
    let rounds = |count: u32| {
        let warm_up = f64::from(u8::from(settings.has_warm_up));
        Duration::from_secs_f64(preparation + round * (f64::from(count) + warm_up))
    };
    Estimate {
        preparation: Duration::from_secs_f64(preparation),
        round: Duration::from_secs_f64(round),
        least: rounds(settings.repetition.rounds),
        most: rounds(settings.repetition.most_rounds),
        bytes,
        places,
    }
}

impl Estimate {
    /// Checks that the file systems have enough space.
    ///
    /// # Errors
    /// The file system without enough space, with the free and the required bytes.
    pub fn check_room(&self) -> Result<(), Error> {
        check_room(&self.places).map_err(|error| Error::refused("to create files", error))
    }
}

/// Allowed ratio of actual to estimated time, because other programs share the machine.
pub const SLOWEST: f64 = 2.0;

#[cfg(test)]
mod tests {
    use super::RoundTime;

    #[test]
    fn a_round_of_few_cells_still_boots_its_guest() {
        let all = RoundTime {
            batches: 12.0,
            samples: 36.0,
        };
        let few = RoundTime {
            batches: 6.0,
            samples: 3.0,
        };
        // Slower than estimated: the samples were, and the boots were not.
        let slow = all.pace(84.0);
        assert_eq!(all.at(slow), 84.0);
        assert_eq!(few.at(slow), 6.0 + 2.0 * 3.0);
        // Faster than estimated: all of it was.
        let fast = all.pace(24.0);
        assert_eq!(few.at(fast), 4.5);
    }
}
