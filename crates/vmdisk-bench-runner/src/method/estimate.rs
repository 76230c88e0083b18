//! What a run will take, said before it begins.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::run::Settings;
use crate::{CellView, Engine, EngineKind, Phase, Plan};

/// How fast storage is made and filled, about: slower than any disk that is worth measuring.
const BYTES_PER_SECOND: f64 = 300e6;

/// What a run will take.
#[derive(Clone, Copy, Debug, PartialEq)]
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
}

/// What a run will take, about.
pub fn estimate(plan: &Plan, settings: &Settings, engines: &[Box<dyn Engine>]) -> Estimate {
    let engine_of = |kind: EngineKind| engines.iter().find(|engine| engine.kind() == kind);
    let mut groups: BTreeMap<(usize, EngineKind), Vec<CellView<'_>>> = BTreeMap::new();
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
        let configuration = plan.cells[view.id.0].configuration;
        groups
            .entry((configuration, view.engine))
            .or_default()
            .push(view);
    }
    round += batches
        .iter()
        .filter_map(|(kind, _)| engine_of(*kind))
        .map(|engine| engine.overhead().as_secs_f64())
        .sum::<f64>();
    let bytes: u64 = groups
        .iter()
        .filter_map(|((_, kind), cells)| Some(engine_of(*kind)?.space_bytes(cells)))
        .sum();
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
    }
}
