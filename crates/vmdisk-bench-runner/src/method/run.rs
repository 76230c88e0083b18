//! The run: complete rounds, each in its own order.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::estimate::{RoundTime, SLOWEST, estimate};
use super::looks::Repetition;
use super::noise::{MachineMonitor, Noise};
use super::random::Random;
use super::round::{Ended, Round, Settings};
use super::statistics::{deviation, geometric_mean};
use super::student;
use super::values::CellValues;
use crate::{
    Cancel, CellId, CellView, Engine, EngineKind, Entry, Error, Log, Measurement, Phase, Plan,
    RunContext, Sample,
};

/// An event of a run in progress.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The storage of a configuration is being created.
    Preparing {
        /// Its name.
        configuration: &'a str,
    },
    /// A round begins.
    Round {
        /// The round.
        round: &'a Round,
        /// Maximum number of rounds.
        of: u32,
    },
    /// A cell was measured.
    Sample {
        /// The sample.
        sample: &'a Sample,
        /// Number of finished cells in the round.
        done: usize,
        /// Number of cells in the round.
        of: usize,
        /// Minimum and maximum time until the run ends, unless the machine becomes slower.
        left: (Duration, Duration),
    },
    /// A cell could not be measured.
    Failure {
        /// The cell.
        cell: CellId,
        /// The reason.
        error: &'a str,
    },
    /// Cells were left out, or even those that are left have no time for the minimum rounds.
    Fitted {
        /// The cells that are left.
        cells: &'a BTreeSet<CellId>,
        /// The time of a run of them.
        needed: Duration,
        /// True if the run has that time.
        is_enough: bool,
    },
    /// The precision to expect after the minimum rounds, from the first ones.
    Expected {
        /// Of the least precise comparison: 0.05 means ±5 %.
        precision: f64,
    },
    /// The run evaluated its results.
    Look {
        /// Number of complete rounds.
        round: u32,
        /// Precision of the least precise comparison: 0.05 means ±5 %.
        precision: f64,
    },
}

/// Rounds that show how much ratios vary. Two leave a single degree of freedom to a single comparison, and no bound of use.
const SPREAD_ROUNDS: u32 = 3;

/// Everything that a run needs.
pub struct Runner<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// The settings.
    pub settings: &'a Settings,
    /// The engines, one of each kind.
    pub engines: &'a mut [Box<dyn Engine>],
    /// The monitor of the machine.
    pub machine: &'a mut dyn MachineMonitor,
    /// The sink for entries.
    pub log: &'a mut dyn Log,
    /// Cancels the run.
    pub cancel: &'a Cancel,
    /// Receives the events.
    pub observe: &'a mut dyn FnMut(Event<'_>),
}

impl std::fmt::Debug for Runner<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Runner")
            .field("plan", &self.plan.name)
            .field("settings", self.settings)
            .finish_non_exhaustive()
    }
}

impl Runner<'_> {
    /// Measures until the results are precise enough, all rounds are complete, the time is up or the run is
    /// cancelled. `past` holds the journal of a resumed run.
    ///
    /// Engines have cleaned up when this returns, even after an error.
    ///
    /// # Errors
    /// If the machine is not quiet and the settings do not accept that, or the journal cannot be written. A failure of a
    /// cell is an entry of the journal.
    pub fn run(mut self, past: &[Entry]) -> Result<Ended, Error> {
        let result = self.rounds(past);
        let mut cleaned = Ok(());
        for engine in self.engines.iter_mut() {
            cleaned = cleaned.and(engine.cleanup());
        }
        let ended = match result {
            Err(Error::Cancelled) => Ended::Stopped,
            Err(error) => return Err(error),
            Ok(ended) => ended,
        };
        let at_seconds = self.machine.elapsed().as_secs_f64();
        self.log.append(&Entry::Ended { ended, at_seconds })?;
        cleaned.map(|()| ended)
    }

    fn rounds(&mut self, past: &[Entry]) -> Result<Ended, Error> {
        let plan = self.plan;
        let noise = self.machine.noise(true);
        let disturbances = noise.disturbances();
        if !disturbances.is_empty() && !self.settings.accepts_noise {
            return Err(Error::NotQuiet { disturbances });
        }
        let estimate = estimate(plan, self.settings, self.engines);
        estimate.check_room()?;
        let mut wanted: BTreeSet<CellId> = (0..plan.cells.len()).map(CellId).collect();
        let rounds = self.settings.repetition.rounds + u32::from(self.warms_up(&wanted));
        let took = BTreeMap::new();
        self.fit(RoundTime::AS_ESTIMATED, rounds, &mut wanted, &took)?;
        let mut state = RunState {
            values: CellValues::of(
                &plan.cells,
                &plan.workloads,
                past.iter().filter_map(Entry::sample),
            ),
            failures: BTreeMap::new(),
            active: self.prepare(&wanted)?,
            pace: Pace::new(estimate.round),
            before_run: Some(noise),
            took,
            since: Duration::ZERO,
        };
        let repetition = &self.settings.repetition;
        let looks: BTreeSet<u32> = repetition.looks().into_iter().collect();
        let mut number = next_round(past);
        let mut complete = complete_rounds(past);
        if !past.is_empty() {
            let at_seconds = self.machine.elapsed().as_secs_f64();
            self.log.append(&Entry::Resumed { at_seconds })?;
        }
        if number == 0 {
            if self.settings.has_warm_up && self.can_compare(&state.active) {
                self.pilot(0, 0, &mut state)?;
            }
            number = 1;
        }
        while complete < repetition.most_rounds {
            self.cancel.check()?;
            if !self.can_compare(&state.active) {
                return Ok(Ended::NothingLeft);
            }
            if self.is_out_of_time(complete, &state) {
                return Ok(Ended::TimeBudget);
            }
            match complete {
                0 => self.pilot(number, 1, &mut state)?,
                _ => {
                    self.round(number, complete + 1, &mut state)?;
                }
            }
            number += 1;
            complete += 1;
            if repetition.is_race && complete == SPREAD_ROUNDS {
                let precision = self.expected_precision(&state);
                (self.observe)(Event::Expected { precision });
            }
            if repetition.is_race && complete == repetition.rounds {
                self.race(&mut state)?;
            }
            if looks.contains(&complete) {
                let precision = self.precision(complete, &state);
                (self.observe)(Event::Look {
                    round: complete,
                    precision,
                });
                if precision <= repetition.precision && complete < repetition.most_rounds {
                    return Ok(Ended::Precise);
                }
            }
        }
        Ok(Ended::AllRounds)
    }

    /// Runs a round that shows the pace, and leaves out what the minimum rounds have no time for.
    fn pilot(&mut self, number: u32, slot: u32, state: &mut RunState) -> Result<(), Error> {
        let began = self.machine.elapsed();
        let measured = self.round(number, slot, state)?;
        let took = self.machine.elapsed().saturating_sub(began);
        if !measured.is_empty() {
            let time = self.time_of(&measured, &state.took);
            let pace = time.pace(took.as_secs_f64());
            let rounds = self.settings.repetition.rounds - slot;
            self.fit(pace, rounds, &mut state.active, &state.took)?;
        }
        state.pace.scale(state.active.len(), measured.len());
        Ok(())
    }

    /// True if a round before the first one measures some of these cells.
    fn warms_up(&self, cells: &BTreeSet<CellId>) -> bool {
        let mut phases = cells.iter().map(|id| self.plan.view(*id).phase);
        self.settings.has_warm_up && phases.any(|phase| phase != Phase::FirstTouch)
    }

    /// The estimated time of a round of some cells.
    fn time_of(&self, cells: &BTreeSet<CellId>, took: &BTreeMap<CellId, f64>) -> RoundTime {
        let views = cells.iter().map(|id| self.plan.view(*id));
        RoundTime::of(views, self.engines, took)
    }

    /// Returns the next workload to leave out: one of which not even a pair fits into a round, and else the last. The first
    /// that fits stays, or the cheapest if none does.
    fn dispensable(
        &self,
        active: &BTreeSet<CellId>,
        seconds: impl Fn(&BTreeSet<CellId>) -> f64,
        room: f64,
    ) -> Option<usize> {
        let cells = &self.plan.cells;
        let mut pairs: BTreeMap<usize, f64> = BTreeMap::new();
        for (id, cell) in active.iter().map(|id| (id, &cells[id.0])) {
            if let Some(baseline) = cell.baseline {
                let pair = seconds(&BTreeSet::from([*id, baseline]));
                pairs.entry(cell.workload).or_insert(pair);
            }
        }
        let cheapest = pairs.iter().min_by(|one, other| one.1.total_cmp(other.1));
        let kept = pairs
            .iter()
            .find(|(_, pair)| **pair <= room)
            .or(cheapest)?
            .0;
        let others = active.iter().map(|id| cells[id.0].workload);
        let others = others.filter(|workload| workload != kept);
        let is_too_long = |workload: &usize| pairs.get(workload).is_none_or(|pair| *pair > room);
        others.clone().find(is_too_long).or(others.max())
    }

    /// Leaves out workloads, and then the last configurations, so that rounds at a pace fit into the time that is left.
    pub(super) fn fit(
        &mut self,
        pace: RoundTime,
        rounds: u32,
        active: &mut BTreeSet<CellId>,
        took: &BTreeMap<CellId, f64>,
    ) -> Result<(), Error> {
        if !self.settings.repetition.is_race || rounds == 0 {
            return Ok(());
        }
        let elapsed = self.machine.elapsed();
        let left = self.settings.time_budget_seconds - elapsed.as_secs_f64();
        let room = left / f64::from(rounds);
        let before = active.len();
        while active.len() > 2 && self.time_of(active, took).at(pace) > room {
            let cell = |id: &CellId| &self.plan.cells[id.0];
            let seconds = |cells: &BTreeSet<CellId>| self.time_of(cells, took).at(pace);
            let workload = self.dispensable(active, seconds, room);
            let compared = active.iter().filter(|id| cell(id).baseline.is_some());
            let configuration = compared.clone().map(|id| cell(id).configuration).max();
            let is_gone = |id: &&CellId| match workload {
                None => {
                    cell(id).baseline.is_some() && Some(cell(id).configuration) == configuration
                }
                Some(workload) => cell(id).workload == workload,
            };
            let gone: Vec<CellId> = active.iter().filter(is_gone).copied().collect();
            let compared = compared.filter(|id| !gone.contains(id)).count();
            if compared == 0 {
                break;
            }
            for id in gone {
                active.remove(&id);
                self.leave_out(id, "the time budget has no room for it".to_owned())?;
            }
        }
        let round = self.time_of(active, took).at(pace);
        if active.len() < before || round > room {
            (self.observe)(Event::Fitted {
                cells: active,
                needed: elapsed + Duration::from_secs_f64(round * f64::from(rounds)),
                is_enough: round <= room,
            });
        }
        Ok(())
    }

    /// Leaves out all but the best two of the cells that are compared with each other, and their baseline.
    fn race(&mut self, state: &mut RunState) -> Result<(), Error> {
        let cells = &self.plan.cells;
        let before = state.active.len();
        let baselines: BTreeSet<CellId> = state
            .active
            .iter()
            .filter_map(|id| cells[id.0].baseline)
            .collect();
        for baseline in baselines {
            let group = state
                .active
                .iter()
                .filter(|id| **id == baseline || cells[id.0].baseline == Some(baseline));
            let mean = |id: &CellId| {
                let values: Vec<f64> = state.values.of_cell(*id).values().copied().collect();
                geometric_mean(&values).unwrap_or_default()
            };
            let mut group: Vec<(f64, CellId)> = group.map(|id| (mean(id), *id)).collect();
            group.sort_by(|one, other| other.0.total_cmp(&one.0));
            for (_, id) in group.into_iter().skip(2).filter(|(_, id)| *id != baseline) {
                state.active.remove(&id);
                let why =
                    "two others were faster in the first rounds, and got the rest of the time";
                self.leave_out(id, why.to_owned())?;
            }
        }
        state.pace.scale(state.active.len(), before);
        Ok(())
    }

    /// Returns the precision that all comparisons have after the minimum rounds, with the confidence of the run. It takes the
    /// largest variation so far for each comparison.
    fn expected_precision(&self, state: &RunState) -> f64 {
        let repetition = &self.settings.repetition;
        let comparisons = state.values.comparisons(&self.plan.cells, 0.5);
        let active = comparisons
            .iter()
            .filter(|it| state.active.contains(&it.cell));
        let known = active.filter_map(|it| Some((it.ratios.len(), deviation(&it.ratios)?)));
        let (mut degrees, mut widest) = (0.0, 0.0_f64);
        for (rounds, deviation) in known {
            degrees += rounds as f64 - 1.0;
            widest = widest.max(deviation);
        }
        let rounds = f64::from(repetition.rounds);
        let left = rounds - f64::from(SPREAD_ROUNDS);
        if degrees == 0.0 || left < 1.0 {
            return f64::INFINITY;
        }
        // The sum of squares grows by the rounds that are left, whose variance is bounded from what few rounds showed.
        let later = left * student::ratio_quantile(repetition.confidence, left, degrees);
        let variance = (f64::from(SPREAD_ROUNDS) - 1.0 + later) / (rounds - 1.0);
        let alpha = repetition.alpha(repetition.rounds);
        let width = student::quantile(1.0 - alpha / 2.0, rounds - 1.0)
            * widest
            * (variance / rounds).sqrt();
        width.exp() - 1.0
    }

    /// Returns true if another round would exceed the time budget. The minimum rounds for a verdict may take twice the
    /// budget.
    fn is_out_of_time(&mut self, complete: u32, state: &RunState) -> bool {
        let would_end = (self.machine.elapsed() + state.pace.longest()).as_secs_f64();
        let budget = self.settings.time_budget_seconds;
        let is_strict = self.settings.repetition.is_race;
        if complete < self.settings.repetition.rounds && !is_strict {
            complete > 0 && would_end > 2.0 * budget
        } else {
            complete > 0 && would_end > budget
        }
    }

    /// Returns true if an active cell has an active baseline; in a plan without baselines, if any cell is active.
    fn can_compare(&self, active: &BTreeSet<CellId>) -> bool {
        let cells = &self.plan.cells;
        if cells.iter().all(|cell| cell.baseline.is_none()) {
            return !active.is_empty();
        }
        active.iter().any(|id| {
            let baseline = cells[id.0].baseline;
            baseline.is_some_and(|baseline| active.contains(&baseline))
        })
    }

    /// Returns the precision of the least precise comparison; infinite without comparisons.
    fn precision(&self, complete: u32, state: &RunState) -> f64 {
        let alpha = self.settings.repetition.alpha(complete);
        let comparisons = state.values.comparisons(&self.plan.cells, alpha);
        comparisons
            .iter()
            .filter(|comparison| state.active.contains(&comparison.cell))
            .map(|comparison| {
                comparison
                    .interval
                    .map_or(f64::INFINITY, |interval| interval.precision())
            })
            .reduce(f64::max)
            .unwrap_or(f64::INFINITY)
    }

    /// Creates the storage of every configuration and returns the cells that can be measured.
    fn prepare(&mut self, wanted: &BTreeSet<CellId>) -> Result<BTreeSet<CellId>, Error> {
        let plan = self.plan;
        let mut groups: BTreeMap<(usize, EngineKind), Vec<CellView<'_>>> = BTreeMap::new();
        for view in plan.views().filter(|view| wanted.contains(&view.id)) {
            let configuration = plan.cells[view.id.0].configuration;
            groups
                .entry((configuration, view.engine))
                .or_default()
                .push(view);
        }
        let mut active = BTreeSet::new();
        for ((_, kind), cells) in groups {
            self.cancel.check()?;
            (self.observe)(Event::Preparing {
                configuration: &cells[0].configuration.name,
            });
            let prepared = match engine_of(self.engines, kind) {
                Some(engine) => engine.prepare(&cells, self.cancel),
                None => Err(Error::missing(
                    format!("the engine {kind}"),
                    cells[0].configuration.name.clone(),
                    "pass it to the run",
                )),
            };
            match prepared {
                Ok(()) => active.extend(cells.iter().map(|cell| cell.id)),
                Err(error) if error.ends_run() => return Err(error),
                Err(error) => {
                    for cell in &cells {
                        self.leave_out(cell.id, error.to_string())?;
                    }
                }
            }
        }
        Ok(active)
    }

    fn leave_out(&mut self, cell: CellId, why: String) -> Result<(), Error> {
        (self.observe)(Event::Failure { cell, error: &why });
        self.log.append(&Entry::LeftOut { cell, why })
    }

    /// Runs one round: every active cell once. The slot counts complete rounds and seeds the order, so that an interrupted
    /// round is repeated in its own order. Returns its cells.
    fn round(
        &mut self,
        number: u32,
        slot: u32,
        state: &mut RunState,
    ) -> Result<BTreeSet<CellId>, Error> {
        let noise = match state.before_run.take() {
            Some(noise) => noise,
            None => self.machine.noise(false),
        };
        let began = self.machine.elapsed();
        state.since = began;
        let batches = self.order(slot, &state.active);
        let round = Round {
            round: number,
            at_seconds: began.as_secs_f64(),
            order: batches
                .iter()
                .flat_map(|(_, cells)| cells.iter().copied())
                .collect(),
            control: self.machine.control(),
            disturbances: noise.disturbances(),
            noise,
        };
        self.log.append(&Entry::Round(round.clone()))?;
        (self.observe)(Event::Round {
            round: &round,
            of: self.settings.repetition.most_rounds,
        });
        let mut position = Position {
            round: number,
            slot,
            index: 0,
            of: round.order.len(),
        };
        for (kind, cells) in &batches {
            self.cancel.check()?;
            self.batch(*kind, cells, &mut position, state)?;
        }
        let took = self.machine.elapsed().saturating_sub(began);
        state.pace.add(number, took);
        // A cell that failed twice and never succeeded would fail again.
        let hopeless: Vec<CellId> = state
            .failures
            .iter()
            .filter(|(cell, (count, _))| *count >= 2 && state.values.of_cell(**cell).is_empty())
            .map(|(cell, _)| *cell)
            .collect();
        for cell in hopeless {
            let (_, why) = state.failures.remove(&cell).unwrap_or_default();
            state.active.remove(&cell);
            self.leave_out(cell, why)?;
        }
        Ok(round.order.into_iter().collect())
    }

    /// Returns the batches of a round, shuffled, each with its cells shuffled.
    ///
    /// Every second round reverses the order of the previous one, so that steady changes during both, such as a machine
    /// warming up, cancel out. With six independent orders, one run in 32 of two cells would have the same cell first
    /// each time and report a false difference as certain.
    fn order(&self, round: u32, active: &BTreeSet<CellId>) -> Vec<(EngineKind, Vec<CellId>)> {
        let mut batches: BTreeMap<(EngineKind, String), Vec<CellId>> = BTreeMap::new();
        for id in active {
            let view = self.plan.view(*id);
            // First-touch storage cannot be warmed up.
            if round == 0 && view.phase == Phase::FirstTouch {
                continue;
            }
            let engine = self
                .engines
                .iter()
                .find(|engine| engine.kind() == view.engine);
            let batch = engine.map_or_else(String::new, |engine| engine.batch(&view));
            batches.entry((view.engine, batch)).or_default().push(*id);
        }
        let mut batches: Vec<(EngineKind, Vec<CellId>)> = batches
            .into_iter()
            .map(|((kind, _), cells)| (kind, cells))
            .collect();
        let pair = u64::from(round.div_ceil(2));
        let mut random = Random::new(self.settings.seed ^ (pair << 32));
        random.shuffle(&mut batches);
        for (_, cells) in &mut batches {
            random.shuffle(cells);
        }
        if round > 0 && round.is_multiple_of(2) {
            batches.reverse();
            for (_, cells) in &mut batches {
                cells.reverse();
            }
        }
        batches
    }

    /// Measures the cells of one batch.
    fn batch(
        &mut self,
        kind: EngineKind,
        cells: &[CellId],
        position: &mut Position,
        state: &mut RunState,
    ) -> Result<(), Error> {
        let plan = self.plan;
        let views: Vec<CellView<'_>> = cells.iter().map(|id| plan.view(*id)).collect();
        let context = RunContext {
            round: position.round,
            cancel: self.cancel,
            seed: Random::new(
                self.settings.seed ^ (u64::from(position.round) << 32) ^ position.index as u64,
            )
            .next(),
        };
        let mut missing: BTreeSet<CellId> = cells.iter().copied().collect();
        let mut broken = Ok(());
        let mut results: Vec<(CellId, String)> = Vec::new();
        let Runner {
            settings,
            engines,
            machine,
            log,
            observe,
            ..
        } = self;
        let engine = engine_of(engines, kind).expect("cells without their engine are not active");
        // The first result of a batch comes after what precedes its samples.
        state.since += engine.overhead(&views);
        let mut emit = |id: CellId, result: Result<Measurement, Error>| {
            if !missing.remove(&id) || broken.is_err() {
                return;
            }
            let at = machine.elapsed();
            let took = at.saturating_sub(state.since);
            state.took.insert(id, took.as_secs_f64());
            state.since = at;
            let measurement = match result {
                Ok(measurement) => measurement,
                Err(error) if error.ends_run() => {
                    broken = Err(error);
                    return;
                }
                Err(error) => {
                    results.push((id, error.to_string()));
                    return;
                }
            };
            let sample = Sample {
                round: position.round,
                position: position.index as u32,
                cell: id,
                at_seconds: at.as_secs_f64(),
                measurement,
            };
            position.index += 1;
            let left = position.left(&settings.repetition, &state.pace);
            state.values.add(&plan.cells, &plan.workloads, &sample);
            observe(Event::Sample {
                sample: &sample,
                done: position.index,
                of: position.of,
                left,
            });
            broken = log.append(&Entry::Sample(sample));
        };
        let ended = engine.run(&views, &context, &mut emit);
        let why = match ended {
            Err(error) if error.ends_run() => return Err(error),
            Err(error) => error.to_string(),
            Ok(()) => "the engine returned no result".to_owned(),
        };
        broken?;
        results.extend(missing.into_iter().map(|id| (id, why.clone())));
        self.failed(results, position, state)
    }

    /// Notes the cells of a batch that have no result.
    fn failed(
        &mut self,
        results: Vec<(CellId, String)>,
        position: &mut Position,
        state: &mut RunState,
    ) -> Result<(), Error> {
        for (cell, error) in results {
            position.index += 1;
            (self.observe)(Event::Failure {
                cell,
                error: &error,
            });
            let count = state.failures.entry(cell).or_default();
            *count = (count.0 + 1, error.clone());
            self.log.append(&Entry::Failure {
                round: position.round,
                cell,
                error,
            })?;
        }
        Ok(())
    }
}

/// The state of a run.
struct RunState {
    values: CellValues,
    failures: BTreeMap<CellId, (u32, String)>,
    active: BTreeSet<CellId>,
    pace: Pace,
    before_run: Option<Noise>,
    /// Seconds of the last sample of each cell.
    took: BTreeMap<CellId, f64>,
    /// The end of the sample before the present one.
    since: Duration,
}

/// The position of a batch in a run.
struct Position {
    round: u32,
    /// The number of complete rounds after this one; 0 in the warm-up.
    slot: u32,
    index: usize,
    of: usize,
}

impl Position {
    /// Returns the time until the run ends: the minimum rounds at the fastest pace seen, and the maximum at the slowest.
    fn left(&self, repetition: &Repetition, pace: &Pace) -> (Duration, Duration) {
        let rest = 1.0 - self.index as f64 / self.of.max(1) as f64;
        let time = |rounds: u32, round: Duration| {
            round.mul_f64(f64::from(rounds.saturating_sub(self.slot)) + rest)
        };
        (
            time(repetition.rounds, pace.shortest()),
            time(repetition.most_rounds, pace.longest()),
        )
    }
}

/// The durations of rounds.
struct Pace {
    estimated: Duration,
    /// The duration of the warm-up, which omits cells on first-touch storage.
    warm_up: Option<Duration>,
    rounds: Vec<Duration>,
}

impl Pace {
    fn new(estimated: Duration) -> Self {
        Pace {
            estimated,
            warm_up: None,
            rounds: Vec::new(),
        }
    }

    fn add(&mut self, round: u32, took: Duration) {
        if round == 0 {
            self.warm_up = Some(took);
        } else {
            self.rounds.push(took);
        }
    }

    /// Later rounds measure only a part of the cells.
    fn scale(&mut self, cells: usize, measured: usize) {
        let share = (cells as f64 / measured.max(1) as f64).min(1.0);
        for round in &mut self.rounds {
            *round = round.mul_f64(share);
        }
    }

    fn shortest(&self) -> Duration {
        let before = self.warm_up.unwrap_or(self.estimated).min(self.estimated);
        self.rounds.iter().min().copied().unwrap_or(before)
    }

    fn longest(&self) -> Duration {
        let before = self.warm_up.unwrap_or(self.estimated).max(self.estimated);
        match self.rounds.iter().max() {
            // A round may still take longer than any before it.
            Some(longest) => longest.mul_f64(1.25),
            None => before.mul_f64(SLOWEST),
        }
    }
}

/// Returns the number of the next round; 0 if the run has not begun.
fn next_round(past: &[Entry]) -> u32 {
    let begun = past.iter().filter_map(|entry| match entry {
        Entry::Round(round) => Some(round.round),
        _ => None,
    });
    begun.max().map_or(0, |round| round + 1)
}

/// Counts the rounds of a journal, without the warm-up, that have a result or a failure for each of their cells.
pub(crate) fn complete_rounds(entries: &[Entry]) -> u32 {
    let mut open: BTreeMap<u32, usize> = BTreeMap::new();
    for entry in entries {
        match entry {
            Entry::Round(round) => {
                open.insert(round.round, round.order.len());
            }
            Entry::Sample(Sample { round, .. }) | Entry::Failure { round, .. } => {
                if let Some(left) = open.get_mut(round) {
                    *left = left.saturating_sub(1);
                }
            }
            Entry::LeftOut { .. } | Entry::Resumed { .. } | Entry::Ended { .. } => {}
        }
    }
    let complete = open
        .iter()
        .filter(|(round, left)| **round > 0 && **left == 0);
    u32::try_from(complete.count()).unwrap_or(u32::MAX)
}

fn engine_of(engines: &mut [Box<dyn Engine>], kind: EngineKind) -> Option<&mut Box<dyn Engine>> {
    engines.iter_mut().find(|engine| engine.kind() == kind)
}
