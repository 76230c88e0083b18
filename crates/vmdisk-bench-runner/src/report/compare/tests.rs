//! Error rates of comparisons between simulated runs: false differences, and differences that are missed.

use std::collections::BTreeMap;

use super::*;
use crate::method::Random;
use crate::{
    Direction, EngineKind, Entry, Header, Measurement, Noise, PlanOptions, Repetition, Round,
    Sample, Settings, read_plan,
};

const PLAN: &str = "
version: 1
name: simulated
question: is there a difference?
size: 64M
phases: [steady]
workloads: [4k-random-write-qd32, 4k-random-read-qd32]
fixed: {engine: mock}
configurations: [{name: a}, {name: b}, {name: c}]
baseline: {name: a}
";

/// The simulated differences of a run.
struct Planted {
    /// The machine as a whole.
    machine: f64,
    /// Configuration `b` relative to the others.
    level: f64,
}

/// Simulated runs: rounds of a machine with varying speed, and cells with random noise.
struct Simulation {
    random: Random,
    header: Header,
}

impl Simulation {
    fn new(seed: u64) -> Self {
        let plan = read_plan(PLAN, "simulated", &PlanOptions::default()).unwrap();
        Simulation {
            random: Random::new(seed),
            header: Header {
                schema_version: crate::SCHEMA_VERSION.to_owned(),
                vmdisk: "0".to_owned(),
                plan: plan.record(),
                plan_hash: String::new(),
                settings: Settings {
                    seed,
                    repetition: Repetition::default(),
                    time_budget_seconds: 1e6,
                    has_warm_up: false,
                    accepts_noise: true,
                },
                began_at: "2026-11-20T09:00:00Z".to_owned(),
                environment: BTreeMap::new(),
                facts_hash: None,
                versions: BTreeMap::from([(EngineKind::Mock, BTreeMap::new())]),
                request: serde_json::Value::Null,
            },
        }
    }

    fn scatter(&mut self, deviation: f64) -> f64 {
        (deviation * self.random.normal()).exp()
    }

    fn run(&mut self, planted: &Planted) -> BenchResult {
        let cells = self.header.plan.cells.clone();
        let mut entries = Vec::new();
        for round in 1..=MIN_ROUNDS {
            let machine = planted.machine * self.scatter(0.2);
            entries.push(Entry::Round(Round {
                round,
                at_seconds: 0.0,
                order: (0..cells.len()).map(CellId).collect(),
                control: 4e8 * planted.machine * self.scatter(0.02),
                noise: Noise::default(),
                disturbances: Vec::new(),
            }));
            for (index, cell) in cells.iter().enumerate() {
                let level = if cell.configuration == 1 {
                    planted.level
                } else {
                    1.0
                };
                let iops = 2e4 * machine * level * self.scatter(0.05);
                entries.push(Entry::Sample(Sample {
                    round,
                    position: 0,
                    cell: CellId(index),
                    at_seconds: 0.0,
                    measurement: Measurement {
                        write: Some(Direction {
                            iops,
                            ..Direction::default()
                        }),
                        seconds: 1.0,
                        ..Measurement::default()
                    },
                }));
            }
        }
        BenchResult::of(self.header.clone(), entries).unwrap()
    }
}

fn claims_a_difference(result: &BenchResult) -> bool {
    let comparisons = result
        .cells
        .iter()
        .filter_map(|cell| cell.comparison.as_ref());
    let mut verdicts = comparisons.map(|comparison| comparison.verdict);
    verdicts.any(|verdict| matches!(verdict, Verdict::Faster | Verdict::Slower))
}

/// A share with its 95 % interval (Wilson 1927).
fn share(found: u32, of: u32) -> [f64; 3] {
    let (n, z) = (f64::from(of), 1.96);
    let share = f64::from(found) / n;
    let middle = share + z * z / (2.0 * n);
    let half = z * (share * (1.0 - share) / n + z * z / (4.0 * n * n)).sqrt();
    [
        (middle - half) / (1.0 + z * z / n),
        share,
        (middle + half) / (1.0 + z * z / n),
    ]
}

#[test]
fn of_10_000_pairs_that_are_alike_at_most_5_percent_are_called_different() {
    const PAIRS: u32 = 10_000;
    let mut simulation = Simulation::new(1);
    let (mut of_report, mut of_compare, mut changed) = (0, 0, 0);
    for _ in 0..PAIRS {
        let mut run = || {
            let machine = simulation.scatter(0.1);
            simulation.run(&Planted {
                machine,
                level: 1.0,
            })
        };
        let (first, second) = (run(), run());
        of_report += u32::from(claims_a_difference(&first));
        let compared = compare(&first, &second, 0.0).unwrap();
        of_compare +=
            u32::from(compared.has(ChangeVerdict::Faster) || compared.has(ChangeVerdict::Slower));
        changed += u32::from(compared.has(ChangeVerdict::MachineChanged));
    }
    println!(
        "false verdicts of {PAIRS}: report {:.4?}, compare {:.4?}; machine changed: {:.4?}",
        share(of_report, PAIRS),
        share(of_compare, PAIRS),
        share(changed, PAIRS)
    );
    for found in [of_report, of_compare] {
        assert!(share(found, PAIRS)[1] <= 0.05, "{found} of {PAIRS}");
    }
    // A correction that never reports a difference would pass otherwise.
    assert!(of_report > PAIRS / 100 && of_compare > PAIRS / 100);
    assert!(changed < PAIRS / 4, "{changed}");
}

#[test]
fn a_slowdown_of_20_percent_is_found_in_18_of_20_pairs_and_nothing_else_is() {
    let mut simulation = Simulation::new(2);
    let mut found = (0, 0);
    for _ in 0..20 {
        let mut run = |level: f64| {
            simulation.run(&Planted {
                machine: 1.0,
                level,
            })
        };
        let (first, second) = (run(1.0), run(0.8));
        let is_b = |name: &str| name.starts_with("b ");
        let slow = second.cells.iter().filter(|cell| {
            let comparison = cell.comparison.as_ref();
            comparison.is_some_and(|it| it.verdict == Verdict::Slower && is_b(&cell.name))
        });
        found.0 += u32::from(slow.count() == 2);
        let compared = compare(&first, &second, 0.05).unwrap();
        let slower = compared
            .cells
            .iter()
            .filter(|cell| cell.verdict == ChangeVerdict::Slower);
        found.1 += u32::from(slower.filter(|cell| is_b(&cell.second)).count() == 2);
    }
    println!("20 % slower, found by report and by compare in {found:?} of 20");
    assert!(found.0 >= 18 && found.1 >= 18, "{found:?}");
}
