//! Estimates of the time and space of a run.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use super::round::Settings;
use crate::safety::check_room;
use crate::{CellView, Engine, EngineKind, Error, Phase, Plan};

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

/// Estimates the time and space of a run.
pub fn estimate(plan: &Plan, settings: &Settings, engines: &[Box<dyn Engine>]) -> Estimate {
    let engine_of = |kind: EngineKind| engines.iter().find(|engine| engine.kind() == kind);
    let mut by_engine: BTreeMap<EngineKind, Vec<CellView<'_>>> = BTreeMap::new();
    let mut batches: BTreeMap<(EngineKind, String), Vec<CellView<'_>>> = BTreeMap::new();
    let mut round = 0.0;
    for view in plan.views() {
        round += view.workload.duration().as_secs_f64();
        if view.phase == Phase::FirstTouch {
            round += view.configuration.size.0 as f64 * 0.1 / BYTES_PER_SECOND;
        }
        if let Some(engine) = engine_of(view.engine) {
            let batch = (view.engine, engine.batch(&view));
            batches.entry(batch).or_default().push(view);
        }
        by_engine.entry(view.engine).or_default().push(view);
    }
    round += batches
        .iter()
        .filter_map(|((kind, _), cells)| Some(engine_of(*kind)?.overhead(cells).as_secs_f64()))
        .sum::<f64>();
    let places: Vec<(PathBuf, u64)> = by_engine
        .iter()
        .filter_map(|(kind, cells)| Some(engine_of(*kind)?.space(cells)))
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
