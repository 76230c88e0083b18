//! The run itself: complete rounds, each in an order of its own.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::estimate::{SLOWEST, estimate};
use super::looks::Repetition;
use super::noise::{Noise, Surroundings};
use super::random::Random;
use super::values::Values;
use crate::{
    Cancel, CellId, CellView, Engine, EngineKind, Entry, Error, Log, Measurement, Phase, Plan,
    RunContext, Sample,
};

/// How a run is done.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Decides every order.
    pub seed: u64,
    /// How often it repeats itself.
    pub repetition: Repetition,
    /// Seconds after which no round begins any more.
    pub time_budget_seconds: f64,
    /// Whether cells with steady storage run once before the first round, uncounted.
    pub has_warm_up: bool,
    /// Whether it measures on a machine that is not quiet, and marks what it measures.
    pub accepts_noise: bool,
}

/// One round of a run, as it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its number; 0 is the warm-up.
    pub round: u32,
    /// When it began, in seconds since the run began.
    pub at_seconds: f64,
    /// The cells, in the order in which they run.
    pub order: Vec<CellId>,
    /// Steps per second of arithmetic without a disk.
    pub control: f64,
    /// What else the machine was doing.
    pub noise: Noise,
    /// What of that disturbs; samples of the round count all the same, and the report says so.
    pub disturbances: Vec<String>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every comparison has the requested precision.
    Precise,
    /// All rounds are complete.
    AllRounds,
    /// Another round would not have fitted into the time.
    TimeBudget,
    /// It was stopped and can be resumed.
    Stopped,
    /// No cell was left that could be measured.
    NothingLeft,
}

/// An event of a run in progress.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// The storage of a configuration is being made.
    Preparing {
        /// Its name.
        configuration: &'a str,
    },
    /// A round begins.
    Round {
        /// The round.
        round: &'a Round,
        /// Most rounds there will be.
        of: u32,
    },
    /// A cell was measured.
    Sample {
        /// The sample.
        sample: &'a Sample,
        /// How many of the round are done.
        done: usize,
        /// How many the round has.
        of: usize,
        /// Time left until the run ends: at least, and at most unless the machine grows slower.
        left: (Duration, Duration),
    },
    /// A cell could not be measured.
    Failure {
        /// The cell.
        cell: CellId,
        /// Why.
        error: &'a str,
    },
    /// The run looked at its results.
    Looked {
        /// After this many rounds.
        round: u32,
        /// The least precise of the comparisons: 0.05 means ±5 %.
        precision: f64,
    },
}

/// Everything that a run works with.
pub struct Runner<'a> {
    /// The plan.
    pub plan: &'a Plan,
    /// How.
    pub settings: &'a Settings,
    /// What measures; each kind once.
    pub engines: &'a mut [Box<dyn Engine>],
    /// The machine.
    pub surroundings: &'a mut dyn Surroundings,
    /// Where everything goes.
    pub log: &'a mut dyn Log,
    /// Asks to stop.
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
    /// Measures, until the results are precise enough, all rounds are complete, the time is up or
    /// somebody stops it. `past` holds the journal of a run that is resumed.
    ///
    /// Engines have cleaned up when this returns, whatever it returns.
    ///
    /// # Errors
    /// If the machine is not quiet and that was not accepted, or the journal cannot be written. What
    /// fails in a cell is an entry of the journal.
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
        let at_seconds = self.surroundings.elapsed().as_secs_f64();
        self.log.append(&Entry::Ended { ended, at_seconds })?;
        cleaned.map(|()| ended)
    }

    fn rounds(&mut self, past: &[Entry]) -> Result<Ended, Error> {
        let plan = self.plan;
        let noise = self.surroundings.noise(true);
        let disturbances = noise.disturbances();
        if !disturbances.is_empty() && !self.settings.accepts_noise {
            return Err(Error::NotQuiet { disturbances });
        }
        let estimate = estimate(plan, self.settings, self.engines);
        estimate.check_room()?;
        let mut course = Course {
            values: Values::of(
                &plan.cells,
                &plan.workloads,
                past.iter().filter_map(Entry::sample),
            ),
            failures: BTreeMap::new(),
            active: self.prepare()?,
            pace: Pace::new(estimate.round),
            before_run: Some(noise),
        };
        let repetition = &self.settings.repetition;
        let looks: BTreeSet<u32> = repetition.looks().into_iter().collect();
        let mut number = next_round(past);
        let mut complete = complete_rounds(past);
        if !past.is_empty() {
            let at_seconds = self.surroundings.elapsed().as_secs_f64();
            self.log.append(&Entry::Resumed { at_seconds })?;
        }
        if number == 0 {
            if self.settings.has_warm_up && self.can_compare(&course.active) {
                self.round(0, 0, &mut course)?;
            }
            number = 1;
        }
        while complete < repetition.most_rounds {
            self.cancel.check()?;
            if !self.can_compare(&course.active) {
                return Ok(Ended::NothingLeft);
            }
            if self.is_out_of_time(complete, &course) {
                return Ok(Ended::TimeBudget);
            }
            self.round(number, complete + 1, &mut course)?;
            number += 1;
            complete += 1;
            if looks.contains(&complete) {
                let precision = self.precision(complete, &course);
                (self.observe)(Event::Looked {
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

    /// True if another round would not fit into the time budget. The rounds without which nothing can be shown may
    /// take twice the budget.
    fn is_out_of_time(&mut self, complete: u32, course: &Course) -> bool {
        let would_end = (self.surroundings.elapsed() + course.pace.longest()).as_secs_f64();
        let budget = self.settings.time_budget_seconds;
        if complete < self.settings.repetition.rounds {
            complete > 0 && would_end > 2.0 * budget
        } else {
            would_end > budget
        }
    }

    /// True if some active cell has an active baseline; in a plan without baselines, if a cell is active.
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

    /// The least precise comparison after some rounds; infinite if there is none.
    fn precision(&self, complete: u32, course: &Course) -> f64 {
        let alpha = self.settings.repetition.alpha(complete);
        let comparisons = course.values.comparisons(&self.plan.cells, alpha);
        comparisons
            .iter()
            .filter(|comparison| course.active.contains(&comparison.cell))
            .map(|comparison| {
                comparison
                    .interval
                    .map_or(f64::INFINITY, |interval| interval.precision())
            })
            .reduce(f64::max)
            .unwrap_or(f64::INFINITY)
    }

    /// Makes the storage of every configuration; the cells that can be measured.
    fn prepare(&mut self) -> Result<BTreeSet<CellId>, Error> {
        let plan = self.plan;
        let mut groups: BTreeMap<(usize, EngineKind), Vec<CellView<'_>>> = BTreeMap::new();
        for view in plan.views() {
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
                None => Err(Error::Missing {
                    what: format!("the engine {kind}"),
                    needed_for: cells[0].configuration.name.clone(),
                    help: "give it to the run".to_owned(),
                }),
            };
            match prepared {
                Ok(()) => active.extend(cells.iter().map(|cell| cell.id)),
                Err(Error::Cancelled) => return Err(Error::Cancelled),
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

    /// One round: every active cell once. The slot counts complete rounds and decides the order, so that a round that
    /// was interrupted is repeated with its own order.
    fn round(&mut self, number: u32, slot: u32, course: &mut Course) -> Result<(), Error> {
        let noise = match course.before_run.take() {
            Some(noise) => noise,
            None => self.surroundings.noise(false),
        };
        let began = self.surroundings.elapsed();
        let batches = self.order(slot, &course.active);
        let round = Round {
            round: number,
            at_seconds: began.as_secs_f64(),
            order: batches
                .iter()
                .flat_map(|(_, cells)| cells.iter().copied())
                .collect(),
            control: self.surroundings.control(),
            disturbances: noise.disturbances(),
            noise,
        };
        self.log.append(&Entry::Round(round.clone()))?;
        (self.observe)(Event::Round {
            round: &round,
            of: self.settings.repetition.most_rounds,
        });
        let mut place = Place {
            round: number,
            slot,
            position: 0,
            of: round.order.len(),
        };
        for (kind, cells) in &batches {
            self.cancel.check()?;
            self.batch(*kind, cells, &mut place, course)?;
        }
        let took = self.surroundings.elapsed().saturating_sub(began);
        course.pace.add(number, took);
        // Who fails twice and never succeeds fails for a reason that another round does not change.
        let hopeless: Vec<CellId> = course
            .failures
            .iter()
            .filter(|(cell, (count, _))| *count >= 2 && course.values.of_cell(**cell).is_empty())
            .map(|(cell, _)| *cell)
            .collect();
        for cell in hopeless {
            let (_, why) = course.failures.remove(&cell).unwrap_or_default();
            course.active.remove(&cell);
            self.leave_out(cell, why)?;
        }
        Ok(())
    }

    /// The batches of a round: shuffled, and cells shuffled in each.
    ///
    /// Each second round has the order of the one before it backwards. What changes steadily through
    /// both, such as a machine that grows warm, then cancels out; with six orders of their own, one run
    /// in 32 of two cells would have the same cell first each time, and be certain of what is not so.
    fn order(&self, round: u32, active: &BTreeSet<CellId>) -> Vec<(EngineKind, Vec<CellId>)> {
        let mut batches: BTreeMap<(EngineKind, String), Vec<CellId>> = BTreeMap::new();
        for id in active {
            let view = self.plan.view(*id);
            // The first touch has nothing to warm up.
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

    /// The cells of one batch.
    fn batch(
        &mut self,
        kind: EngineKind,
        cells: &[CellId],
        place: &mut Place,
        course: &mut Course,
    ) -> Result<(), Error> {
        let plan = self.plan;
        let views: Vec<CellView<'_>> = cells.iter().map(|id| plan.view(*id)).collect();
        let context = RunContext {
            round: place.round,
            cancel: self.cancel,
            seed: Random::new(
                self.settings.seed ^ (u64::from(place.round) << 32) ^ place.position as u64,
            )
            .next(),
        };
        let mut missing: BTreeSet<CellId> = cells.iter().copied().collect();
        let mut broken = Ok(());
        let mut results: Vec<(CellId, String)> = Vec::new();
        let Runner {
            settings,
            engines,
            surroundings,
            log,
            observe,
            ..
        } = self;
        let engine = engine_of(engines, kind).expect("cells without their engine are not active");
        let mut emit = |id: CellId, result: Result<Measurement, Error>| {
            if !missing.remove(&id) || broken.is_err() {
                return;
            }
            let at = surroundings.elapsed();
            let measurement = match result {
                Ok(measurement) => measurement,
                Err(Error::Cancelled) => {
                    broken = Err(Error::Cancelled);
                    return;
                }
                Err(error) => {
                    results.push((id, error.to_string()));
                    return;
                }
            };
            let sample = Sample {
                round: place.round,
                position: place.position as u32,
                cell: id,
                at_seconds: at.as_secs_f64(),
                measurement,
            };
            place.position += 1;
            let left = place.left(&settings.repetition, &course.pace);
            course.values.add(&plan.cells, &plan.workloads, &sample);
            observe(Event::Sample {
                sample: &sample,
                done: place.position,
                of: place.of,
                left,
            });
            broken = log.append(&Entry::Sample(sample));
        };
        let ended = engine.run(&views, &context, &mut emit);
        let why = match ended {
            Err(Error::Cancelled) => return Err(Error::Cancelled),
            Err(error) => error.to_string(),
            Ok(()) => "the engine gave no result".to_owned(),
        };
        broken?;
        results.extend(missing.into_iter().map(|id| (id, why.clone())));
        for (cell, error) in results {
            place.position += 1;
            (self.observe)(Event::Failure {
                cell,
                error: &error,
            });
            let count = course.failures.entry(cell).or_default();
            *count = (count.0 + 1, error.clone());
            self.log.append(&Entry::Failure {
                round: place.round,
                cell,
                error,
            })?;
        }
        Ok(())
    }
}

/// The state of a run.
struct Course {
    values: Values,
    failures: BTreeMap<CellId, (u32, String)>,
    active: BTreeSet<CellId>,
    pace: Pace,
    before_run: Option<Noise>,
}

/// Where in a run something happens.
struct Place {
    round: u32,
    /// Rounds that are complete once this one is; 0 in the warm-up.
    slot: u32,
    position: usize,
    of: usize,
}

impl Place {
    /// The time until the run ends: with the least rounds at the fastest pace seen, and with the most at the slowest.
    fn left(&self, repetition: &Repetition, pace: &Pace) -> (Duration, Duration) {
        let rest = 1.0 - self.position as f64 / self.of.max(1) as f64;
        let time = |rounds: u32, round: Duration| {
            round.mul_f64(f64::from(rounds.saturating_sub(self.slot)) + rest)
        };
        (
            time(repetition.rounds, pace.shortest()),
            time(repetition.most_rounds, pace.longest()),
        )
    }
}

/// How long rounds take.
struct Pace {
    estimated: Duration,
    /// The warm-up, in which cells of first-touch storage do not run.
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

/// The number of the next round of a run; 0 if it has not begun.
fn next_round(past: &[Entry]) -> u32 {
    let begun = past.iter().filter_map(|entry| match entry {
        Entry::Round(round) => Some(round.round),
        Entry::Sample(_)
        | Entry::Failure { .. }
        | Entry::LeftOut { .. }
        | Entry::Resumed { .. }
        | Entry::Ended { .. } => None,
    });
    begun.max().map_or(0, |round| round + 1)
}

/// How many rounds of a journal, without the warm-up, have a result or a failure for each of their cells.
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
