//! The whole method with a simulated engine.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use super::estimate::RoundTime;
use super::*;
use crate::mock::Mock;
use crate::{Cancel, CellId, Engine, Entry, Error, Plan, PlanOptions, read_plan};

const TWO: &str = "
version: 1
name: test
question: is b faster than a?
size: 64M
phases: [steady]
workloads: [4k-random-write-qd32]
fixed: {engine: mock}
configurations: [{name: a}, {name: b}]
baseline: {name: a}
";

fn plan(text: &str) -> Plan {
    read_plan(text, "test", &PlanOptions::default()).unwrap()
}

fn settings(seed: u64, repetition: Repetition) -> Settings {
    Settings {
        seed,
        repetition,
        time_budget_seconds: 1e6,
        has_warm_up: false,
        accepts_noise: false,
    }
}

fn fixed() -> Repetition {
    Repetition::default()
}

fn adaptive(precision: f64) -> Repetition {
    Repetition {
        most_rounds: 24,
        precision,
        ..Repetition::default()
    }
}

/// A machine whose clock advances by a second at each reading.
#[derive(Default)]
struct Still {
    seconds: u64,
    /// Until then everything takes eight times as long.
    slow_until: u64,
    noise: Noise,
}

impl MachineMonitor for Still {
    fn elapsed(&mut self) -> Duration {
        self.seconds += if self.seconds < self.slow_until { 8 } else { 1 };
        Duration::from_secs(self.seconds)
    }

    fn noise(&mut self, _is_before_run: bool) -> Noise {
        self.noise.clone()
    }

    fn control(&mut self) -> f64 {
        1.0
    }
}

fn run_on(
    machine: &mut Still,
    plan: &Plan,
    settings: &Settings,
    mock: Mock,
    cancel: &Cancel,
    past: &[Entry],
) -> (Result<Ended, Error>, Vec<Entry>) {
    let mut log: Vec<Entry> = past.to_vec();
    let mut engines: Vec<Box<dyn Engine>> = vec![Box::new(mock)];
    let runner = Runner {
        plan,
        settings,
        engines: &mut engines,
        machine,
        log: &mut log,
        cancel,
        observe: &mut |_| {},
    };
    let ended = runner.run(past);
    (ended, log)
}

fn run(plan: &Plan, settings: &Settings, mock: Mock) -> (Ended, Vec<Entry>) {
    let (ended, log) = run_on(
        &mut Still::default(),
        plan,
        settings,
        mock,
        &Cancel::new(),
        &[],
    );
    (ended.unwrap(), log)
}

fn rounds(entries: &[Entry]) -> Vec<&Round> {
    entries
        .iter()
        .filter_map(|entry| {
            let Entry::Round(round) = entry else {
                return None;
            };
            Some(round)
        })
        .collect()
}

fn values_of(plan: &Plan, entries: &[Entry]) -> CellValues {
    CellValues::of(
        &plan.cells,
        &plan.workloads,
        entries.iter().filter_map(Entry::sample),
    )
}

/// Returns the only comparison of a run.
fn comparison(plan: &Plan, settings: &Settings, entries: &[Entry]) -> Comparison {
    let complete = complete_rounds(entries);
    let values = values_of(plan, entries);
    let alpha = settings.repetition.alpha(complete);
    let mut comparisons = values.comparisons(&plan.cells, alpha);
    assert_eq!(comparisons.len(), 1);
    comparisons.remove(0)
}

/// Returns the comparisons of `times` simulated runs, each with its own seed.
fn verdicts(times: u64, repetition: &Repetition, mock: impl Fn(u64) -> Mock) -> Vec<Comparison> {
    let plan = plan(TWO);
    (0..times)
        .map(|seed| {
            let settings = settings(seed, repetition.clone());
            let (_, log) = run(&plan, &settings, mock(seed.wrapping_mul(7_919) + 1));
            comparison(&plan, &settings, &log)
        })
        .collect()
}

fn share(comparisons: &[Comparison], verdict: Verdict) -> f64 {
    let with = comparisons
        .iter()
        .filter(|comparison| comparison.verdict == verdict);
    with.count() as f64 / comparisons.len() as f64
}

fn none_shown(comparisons: &[Comparison]) -> f64 {
    share(comparisons, Verdict::AboutEqual) + share(comparisons, Verdict::Inconclusive)
}

/// Prints the figure of a simulation, visible with `--nocapture`.
fn tell(what: &str, figure: f64) {
    println!("{what}: {figure:.5}");
}

#[test]
fn a_planted_difference_of_10_percent_is_found() {
    for repetition in [fixed(), adaptive(0.03)] {
        let faster = verdicts(300, &repetition, |seed| Mock::new(seed).level("b", 1.1));
        assert!(
            share(&faster, Verdict::Faster) > 0.95,
            "{}",
            share(&faster, Verdict::Faster)
        );
        tell(
            "10 % planted, found in this share",
            share(&faster, Verdict::Faster),
        );
        assert_eq!(share(&faster, Verdict::Slower), 0.0);
        let covered = faster.iter().filter(|comparison| {
            let interval = comparison.interval.unwrap();
            interval.low < 1.1 && 1.1 < interval.high
        });
        assert!(covered.count() >= 280, "the intervals hold the truth");
        let slower = verdicts(100, &repetition, |seed| {
            Mock::new(seed).level("b", 1.0 / 1.1)
        });
        assert!(share(&slower, Verdict::Slower) > 0.95);
    }
}

#[test]
fn a_planted_difference_of_0_is_no_difference_shown_in_94_of_100_runs_fixed() {
    let found = verdicts(2_000, &fixed(), Mock::new);
    let none = none_shown(&found);
    tell("0 % planted, fixed rounds, none shown in this share", none);
    assert!(none >= 0.94, "{none}");
    // An interval that is too wide would pass this test, but find no difference.
    assert!(none <= 0.965, "{none}");
}

#[test]
fn a_planted_difference_of_0_is_no_difference_shown_in_94_of_100_runs_adaptive() {
    // The precision is about that of a run of twelve rounds: some runs stop early, and some use all rounds.
    let found = verdicts(2_000, &adaptive(0.03), Mock::new);
    let none = none_shown(&found);
    tell("0 % planted, adaptive, none shown in this share", none);
    assert!(none >= 0.94, "{none}");
    let lengths: BTreeSet<usize> = found
        .iter()
        .map(|comparison| comparison.ratios.len())
        .collect();
    assert!(lengths.len() >= 3, "looks were used: {lengths:?}");
}

#[test]
fn drift_does_not_bias_the_result() {
    // 2 % from sample to sample: if `a` were always first, `b` would seem 2 % faster in each round.
    let drifting = |seed| Mock::new(seed).noise(0.01).drift(0.02);
    let found = verdicts(2_000, &fixed(), drifting);
    let logarithms: Vec<f64> = found
        .iter()
        .map(|comparison| comparison.interval.unwrap().ratio.ln())
        .collect();
    let mean = logarithms.iter().sum::<f64>() / logarithms.len() as f64;
    tell("drift of 2 % a sample, mean logarithm of the ratio", mean);
    tell(
        "drift of 2 % a sample, none shown in this share",
        none_shown(&found),
    );
    // One run varies by about 0.01, so the mean of 2,000 runs by about 0.0002.
    assert!(mean.abs() < 0.001, "{mean}");
    assert!(none_shown(&found) >= 0.94);
}

#[test]
fn a_round_has_every_cell_once_in_an_order_that_the_seed_decides() {
    let text = TWO.replace(
        "[{name: a}, {name: b}]",
        "[{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]",
    );
    let plan = plan(&text);
    let (_, log) = run(&plan, &settings(3, fixed()), Mock::new(1));
    let orders: Vec<_> = rounds(&log)
        .into_iter()
        .map(|round| round.order.clone())
        .collect();
    assert_eq!(orders.len(), 6);
    for order in &orders {
        assert_eq!(order.iter().collect::<BTreeSet<_>>().len(), 5);
    }
    let distinct: BTreeSet<_> = orders.iter().collect();
    assert!(distinct.len() >= 5, "{orders:?}");
    for pair in orders.chunks(2) {
        let backwards: Vec<_> = pair[1].iter().rev().copied().collect();
        assert_eq!(pair[0], backwards);
    }
    let (_, again) = run(&plan, &settings(3, fixed()), Mock::new(2));
    let again: Vec<_> = rounds(&again)
        .into_iter()
        .map(|round| round.order.clone())
        .collect();
    assert_eq!(again, orders);
    let (_, other) = run(&plan, &settings(4, fixed()), Mock::new(2));
    assert!(
        rounds(&other)
            .into_iter()
            .zip(&orders)
            .any(|(round, order)| round.order != *order)
    );
}

#[test]
fn a_run_that_is_precise_enough_ends_at_its_next_look() {
    let plan = plan(TWO);
    let settings = settings(1, adaptive(0.05));
    let (ended, log) = run(&plan, &settings, Mock::new(1).noise(0.005));
    assert_eq!((ended, rounds(&log).len()), (Ended::Precise, 6));
    let (ended, log) = run(&plan, &settings, Mock::new(1).noise(0.3));
    assert_eq!((ended, rounds(&log).len()), (Ended::AllRounds, 24));
}

#[test]
fn a_warm_up_is_recorded_but_does_not_count() {
    let plan = plan(TWO);
    let mut settings = settings(1, fixed());
    settings.has_warm_up = true;
    let (_, log) = run(&plan, &settings, Mock::new(1));
    assert_eq!(rounds(&log)[0].round, 0);
    let samples = log
        .iter()
        .filter(|entry| matches!(entry, Entry::Sample(_)))
        .count();
    assert_eq!(samples, 14);
    let values = values_of(&plan, &log);
    assert_eq!(values.of_cell(crate::CellId(0)).len(), 6);
}

#[test]
fn a_stopped_run_keeps_its_samples_and_resumes() {
    let plan = plan(TWO);
    let settings = settings(1, fixed());
    let cancel = Cancel::new();
    let mock = Mock::new(1).stop_after(5, &cancel);
    let (ended, log) = run_on(&mut Still::default(), &plan, &settings, mock, &cancel, &[]);
    assert_eq!(ended.unwrap(), Ended::Stopped);
    assert_eq!(
        log.iter()
            .filter(|entry| matches!(entry, Entry::Sample(_)))
            .count(),
        5
    );
    let (ended, log) = run_on(
        &mut Still::default(),
        &plan,
        &settings,
        Mock::new(2),
        &Cancel::new(),
        &log,
    );
    assert_eq!(ended.unwrap(), Ended::AllRounds);
    assert!(
        log.iter()
            .any(|entry| matches!(entry, Entry::Resumed { .. }))
    );
    // The third round was interrupted after one of its two cells, and does not count as one of the six.
    let complete = comparison(&plan, &settings, &log).ratios.len();
    assert_eq!(complete, 6);
    assert_eq!(complete_rounds(&log), 6);
    let numbers: Vec<u32> = rounds(&log).into_iter().map(|round| round.round).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
    let orders: Vec<_> = rounds(&log).into_iter().map(|round| &round.order).collect();
    assert_eq!(orders[2], orders[3], "the interrupted round is repeated");
}

#[test]
fn a_failing_cell_is_reported_and_does_not_stop_the_others() {
    let text = TWO.replace("{name: b}]", "{name: b}, {name: c}]");
    let plan = plan(&text);
    let settings = settings(1, fixed());
    let (ended, log) = run(&plan, &settings, Mock::new(1).failing("c"));
    assert_eq!(ended, Ended::AllRounds);
    let failures = log
        .iter()
        .filter(|entry| matches!(entry, Entry::Failure { .. }))
        .count();
    assert_eq!(failures, 2);
    let left_out = log.iter().find_map(|entry| {
        let Entry::LeftOut { cell, why } = entry else {
            return None;
        };
        Some((*cell, why.as_str()))
    });
    assert_eq!(
        left_out,
        Some((crate::CellId(2), "mock failed: a preset failure"))
    );
    let values = values_of(&plan, &log);
    assert_eq!(values.of_cell(crate::CellId(1)).len(), 6);
    let (ended, log) = run(&self::plan(TWO), &settings, Mock::new(1).failing("b"));
    assert_eq!(ended, Ended::NothingLeft, "a cell alone answers nothing");
    assert_eq!(rounds(&log).len(), 2);
}

#[test]
fn a_machine_that_is_not_quiet_is_refused_or_marked() {
    let plan = plan(TWO);
    let mut settings = settings(1, fixed());
    let noise = Noise {
        cpu_pressure: Some(0.6),
        ..Noise::default()
    };
    let mut machine = Still {
        noise,
        ..Still::default()
    };
    let (ended, log) = run_on(
        &mut machine,
        &plan,
        &settings,
        Mock::new(1),
        &Cancel::new(),
        &[],
    );
    assert_eq!(
        ended.unwrap_err().to_string(),
        "this machine is not quiet: tasks waited for a processor 60 % of the time"
    );
    assert!(log.is_empty());
    settings.accepts_noise = true;
    let (ended, log) = run_on(
        &mut machine,
        &plan,
        &settings,
        Mock::new(1),
        &Cancel::new(),
        &[],
    );
    assert_eq!(ended.unwrap(), Ended::AllRounds);
    assert!(
        rounds(&log)
            .iter()
            .all(|round| round.disturbances.len() == 1)
    );
}

#[test]
fn no_round_starts_that_would_exceed_the_time_budget() {
    let plan = plan(TWO);
    let mut settings = settings(1, fixed());
    // The clock advances by a second at each reading, and a round reads it a few times.
    settings.time_budget_seconds = 7.0;
    let (ended, log) = run(&plan, &settings, Mock::new(1));
    assert_eq!(ended, Ended::TimeBudget);
    let comparison = comparison(&plan, &settings, &log);
    assert!((1..6).contains(&comparison.ratios.len()));
    assert_eq!(comparison.verdict, Verdict::TooFewRounds);
    assert!(comparison.in_words().starts_with("too few rounds ("));
    // The minimum rounds are finished if they take less than twice the budget, and no further round is started.
    settings.repetition = adaptive(1e-9);
    settings.time_budget_seconds = 25.0;
    let (ended, log) = run(&plan, &settings, Mock::new(1));
    assert_eq!(ended, Ended::TimeBudget);
    assert_eq!(complete_rounds(&log), 6);
}

#[test]
fn a_sample_with_complaints_is_recorded_but_does_not_count() {
    let plan = plan(TWO);
    let (_, mut log) = run(&plan, &settings(1, fixed()), Mock::new(1));
    for entry in &mut log {
        if let Entry::Sample(sample) = entry
            && sample.round == 2
        {
            let complaints = &mut sample.measurement.semantics.complaints;
            complaints.push("no flush arrived".to_owned());
        }
    }
    let values = values_of(&plan, &log);
    assert_eq!(values.of_cell(crate::CellId(0)).len(), 5);
}

const FIVE: &str = "
version: 1
name: race
question: which one is the fastest?
size: 64M
phases: [steady]
workloads: [4k-random-write-qd32, 4k-random-write-qd1, 4k-random-read-qd1]
fixed: {engine: mock}
configurations: [{name: a}, {name: b}, {name: c}, {name: d}, {name: e}]
baseline: {name: a}
";

fn race(rounds: u32) -> Repetition {
    Repetition {
        most_rounds: rounds,
        precision: 1e-9,
        is_race: true,
        ..Repetition::default()
    }
}

#[test]
fn the_best_two_and_their_baseline_get_the_rounds_beyond_the_minimum() {
    let plan = plan(FIVE);
    let levels = [("b", 1.5), ("c", 0.7), ("d", 1.4), ("e", 0.8)];
    let mock = levels
        .into_iter()
        .fold(Mock::new(1), |mock, (name, level)| mock.level(name, level));
    let (ended, log) = run(&plan, &settings(1, race(12)), mock);
    assert_eq!(ended, Ended::AllRounds);
    let values = values_of(&plan, &log);
    for (index, cell) in plan.cells.iter().enumerate() {
        let name = &plan.configurations[cell.configuration].name;
        let rounds = if ["a", "b", "d"].contains(&name.as_str()) {
            12
        } else {
            6
        };
        assert_eq!(values.of_cell(crate::CellId(index)).len(), rounds, "{name}");
    }
}

#[test]
fn a_race_claims_false_differences_no_more_often_than_other_runs() {
    let mut plan = plan(FIVE);
    plan.leave_out(|cell| (cell.workload.name != "4k-random-write-qd1").then(String::new));
    let is_false = |seed: &u64| {
        let settings = settings(*seed, race(15));
        let (_, log) = run(&plan, &settings, Mock::new(*seed));
        let alpha = settings.repetition.alpha(complete_rounds(&log));
        let comparisons = values_of(&plan, &log).comparisons(&plan.cells, alpha);
        let mut verdicts = comparisons.iter().map(|it| it.verdict);
        verdicts.any(|it| matches!(it, Verdict::Faster | Verdict::Slower))
    };
    let found = (0..400).filter(is_false).count();
    assert!(found <= 20, "{found} of 400");
}

/// The promised precision of the minimum rounds, and the precision that they have.
fn promised(plan: &Plan, seed: u64, mock: Mock) -> (f64, f64) {
    let (mut promised, mut seen) = (None, None);
    let runner = Runner {
        plan,
        settings: &settings(seed, race(6)),
        engines: &mut [Box::new(mock) as Box<dyn Engine>],
        machine: &mut Still::default(),
        log: &mut Vec::new(),
        cancel: &Cancel::new(),
        observe: &mut |event| match event {
            Event::Expected { precision } => promised = Some(precision),
            Event::Look { precision, .. } => seen = Some(precision),
            _ => {}
        },
    };
    runner.run(&[]).unwrap();
    (promised.unwrap(), seen.unwrap())
}

#[test]
fn a_promised_precision_is_kept_and_says_something() {
    let all = plan(FIVE);
    let mut one = all.clone();
    one.leave_out(|cell| {
        let is_compared = cell.workload.name == "4k-random-write-qd1"
            && ["a", "b"].contains(&cell.configuration.name.as_str());
        (!is_compared).then(String::new)
    });
    // Too wide a promise would be kept, too.
    for (plan, widest) in [(&one, 6.0), (&all, 2.5)] {
        let mut ratios: Vec<f64> = (0..400)
            .map(|seed| {
                let noise = [0.01, 0.1][seed as usize % 2];
                let (promised, seen) = promised(plan, seed, Mock::new(seed).noise(noise));
                promised.ln_1p() / seen.ln_1p()
            })
            .collect();
        ratios.sort_by(f64::total_cmp);
        let broken = ratios.iter().filter(|it| **it < 1.0).count();
        assert!(broken <= 28, "{broken} of 400");
        assert!(ratios[200] < widest, "{} times as wide", ratios[200]);
    }
}

#[test]
fn a_race_leaves_out_what_its_time_has_no_room_for() {
    let plan = plan(FIVE);
    for (budget, cells) in [(1e6, 15), (200.0, 10), (100.0, 5), (60.0, 3), (40.0, 2)] {
        let settings = Settings {
            time_budget_seconds: budget,
            ..settings(1, race(24))
        };
        let mut machine = Still::default();
        let (ended, log) = run_on(
            &mut machine,
            &plan,
            &settings,
            Mock::new(1),
            &Cancel::new(),
            &[],
        );
        ended.unwrap();
        assert_eq!(rounds(&log)[0].order.len(), cells, "{budget}");
        assert!(complete_rounds(&log) >= 6, "{budget}");
        assert!(
            (machine.seconds as f64) < budget + 10.0,
            "{budget}: {} s",
            machine.seconds
        );
    }
}

#[test]
fn a_race_that_leaves_out_cells_after_its_first_round_has_time_for_the_others() {
    let plan = plan(FIVE);
    let settings = Settings {
        time_budget_seconds: 200.0,
        has_warm_up: false,
        ..settings(1, race(24))
    };
    let mut machine = Still {
        slow_until: 130,
        ..Still::default()
    };
    let cancel = Cancel::new();
    let (ended, log) = run_on(&mut machine, &plan, &settings, Mock::new(1), &cancel, &[]);
    ended.unwrap();
    let rounds: Vec<usize> = rounds(&log).iter().map(|it| it.order.len()).collect();
    assert!(complete_rounds(&log) >= 6, "{rounds:?}");
    assert!(rounds[1] < rounds[0], "{rounds:?}");
    assert!(machine.seconds < 210, "{} s", machine.seconds);
}

#[test]
fn a_quick_run_keeps_a_workload_that_is_cheap_and_says_what_is_left() {
    let plan = plan(FIVE);
    let first: BTreeSet<CellId> = (0..plan.cells.len()).map(CellId).collect();
    let of = |budget: f64, seconds: &dyn Fn(usize) -> f64| {
        let settings = Settings {
            time_budget_seconds: budget,
            ..settings(1, race(24))
        };
        let took = first
            .iter()
            .map(|id| (*id, seconds(plan.cells[id.0].workload)));
        let took: BTreeMap<CellId, f64> = took.collect();
        let mut active = first.clone();
        let mut said = None;
        let mut log: Vec<Entry> = Vec::new();
        let mut runner = Runner {
            plan: &plan,
            settings: &settings,
            engines: &mut [Box::new(Mock::new(1))],
            machine: &mut Still::default(),
            log: &mut log,
            cancel: &Cancel::new(),
            observe: &mut |event| {
                if let Event::Fitted { is_enough, .. } = event {
                    said = Some(is_enough);
                }
            },
        };
        runner
            .fit(RoundTime::AS_ESTIMATED, 6, &mut active, &took)
            .unwrap();
        let left: BTreeSet<usize> = active.iter().map(|id| plan.cells[id.0].workload).collect();
        (left.into_iter().collect::<Vec<_>>(), said)
    };
    // The first workload takes as long as a run.
    let slow_first = |workload: usize| if workload == 0 { 25.0 } else { 1.0 };
    assert_eq!(of(120.0, &slow_first), (vec![1, 2], Some(true)));
    assert_eq!(of(40.0, &slow_first), (vec![1], Some(true)));
    // The cheapest of those that are all too long.
    let all_slow = |workload: usize| 50.0 - 10.0 * workload as f64;
    assert_eq!(of(60.0, &all_slow), (vec![2], Some(false)));
    assert_eq!(of(1e6, &slow_first), (vec![0, 1, 2], None));
}
