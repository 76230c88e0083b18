//! The time and space that a run takes, estimated before it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Duration;

use super::run::Settings;
use crate::safety::check_room;
use crate::{CellView, Engine, EngineKind, Error, Phase, Plan};

/// How fast storage is made and filled, about: slower than any disk that is worth measuring.
const BYTES_PER_SECOND: f64 = 300e6;

/// The time and space that a run takes.
#[derive(Clone, Debug, PartialEq)]
pub struct Estimate {
    /// Time to make the storage.
    pub preparation: Duration,
    /// Time of one round.
    pub round: Duration,
    /// Time of the rounds that are run in any case, with all that surrounds them.
    pub least: Duration,
    /// Time of all rounds.
    pub most: Duration,
    /// Bytes of storage at once.
    pub bytes: u64,
    /// The same by the directory that files are made in.
    pub places: Vec<(PathBuf, u64)>,
}

/// Estimates the time and space that a run takes.
pub fn estimate(plan: &Plan, settings: &Settings, engines: &[Box<dyn Engine>]) -> Estimate {
    let engine_of = |kind: EngineKind| engines.iter().find(|engine| engine.kind() == kind);
    let mut by_engine: BTreeMap<EngineKind, Vec<CellView<'_>>> = BTreeMap::new();
    let mut batches = BTreeSet::new();
    let mut round = 0.0;
    for view in plan.views() {
        round += view.workload.duration().as_secs_f64();
        if view.phase == Phase::FirstTouch {
            round += view.configuration.size.0 as f64 * 0.1 / BYTES_PER_SECOND;
        }
        if let Some(engine) = engine_of(view.engine) {
            batches.insert((view.engine, engine.batch(&view)));
        }
        by_engine.entry(view.engine).or_default().push(view);
    }
    round += batches
        .iter()
        .filter_map(|(kind, _)| engine_of(*kind))
        .map(|engine| engine.overhead().as_secs_f64())
        .sum::<f64>();
    let places: Vec<(PathBuf, u64)> = by_engine
        .iter()
        .filter_map(|(kind, cells)| Some(engine_of(*kind)?.space(cells)))
        .flatten()
        .collect();
    let bytes: u64 = places.iter().map(|(_, bytes)| bytes).sum();
    let preparation = bytes as f64 / BYTES_PER_SECOND;
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
    /// Checks that there is room for what the run makes.
    ///
    /// # Errors
    /// The file system that has not, with what it has and what is needed.
    pub fn check_room(&self) -> Result<(), Error> {
        check_room(&self.places).map_err(|error| Error::Refused {
            what: "to make files".to_owned(),
            why: error.to_string(),
        })
    }
}

/// How much longer than estimated a run may take: programs of others share the machine.
pub const SLOWEST: f64 = 2.0;
