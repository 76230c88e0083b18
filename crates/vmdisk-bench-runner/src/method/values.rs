//! The figures that count, and what they say of each other.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::statistics::{Interval, ratio_interval};
use crate::{Cell, CellId, Measurement, Metric, Sample, Workload};

impl Measurement {
    /// The figure that is compared; `None` if there is none that can be.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let of = |direction: &Option<crate::Direction>| {
            direction.as_ref().map_or(0.0, |direction| match metric {
                Metric::Iops => direction.iops,
                Metric::Throughput => direction.bytes_per_second,
            })
        };
        let value = of(&self.read) + of(&self.write);
        (value.is_finite() && value > 0.0).then_some(value)
    }
}

impl Sample {
    /// True if it counts: it is no warm-up and was what its cell means.
    pub fn counts(&self) -> bool {
        self.round > 0 && self.measurement.semantics.complaints.is_empty()
    }
}

/// The figures that count, by cell and round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Values(Vec<BTreeMap<u32, f64>>);

impl Values {
    /// No figures yet, of a plan with these cells.
    pub fn new(cells: &[Cell]) -> Self {
        Values(vec![BTreeMap::new(); cells.len()])
    }

    /// The figures of samples.
    pub fn of<'a>(
        cells: &[Cell],
        workloads: &[Workload],
        samples: impl IntoIterator<Item = &'a Sample>,
    ) -> Self {
        let mut values = Values::new(cells);
        for sample in samples {
            values.add(cells, workloads, sample);
        }
        values
    }

    /// Adds the figure of a sample, if it counts.
    pub fn add(&mut self, cells: &[Cell], workloads: &[Workload], sample: &Sample) {
        let Some(cell) = cells.get(sample.cell.0) else {
            return;
        };
        let metric = workloads[cell.workload].metric;
        if let (true, Some(value)) = (sample.counts(), sample.measurement.value(metric)) {
            self.0[sample.cell.0].insert(sample.round, value);
        }
    }

    /// The figures of a cell, by round.
    pub fn of_cell(&self, id: CellId) -> &BTreeMap<u32, f64> {
        &self.0[id.0]
    }

    /// What a cell is compared with its baseline: the ratio of each round that has both.
    pub fn ratios(&self, id: CellId, baseline: CellId) -> Vec<f64> {
        let baseline = self.of_cell(baseline);
        self.of_cell(id)
            .iter()
            .filter_map(|(round, value)| Some(value / baseline.get(round)?))
            .collect()
    }

    /// Every comparison of a plan, in the order of its cells.
    pub fn comparisons(&self, cells: &[Cell], alpha: f64) -> Vec<Comparison> {
        cells
            .iter()
            .enumerate()
            .filter_map(|(index, cell)| {
                let (cell, baseline) = (CellId(index), cell.baseline?);
                let ratios = self.ratios(cell, baseline);
                let interval = ratio_interval(&ratios, alpha);
                Some(Comparison {
                    cell,
                    baseline,
                    verdict: Verdict::of(ratios.len(), interval),
                    interval,
                    ratios,
                })
            })
            .collect()
    }
}

/// What a cell is compared with its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The cell.
    pub cell: CellId,
    /// What it is divided by.
    pub baseline: CellId,
    /// The ratio of each round that has both.
    pub ratios: Vec<f64>,
    /// The interval of the true ratio; unset with fewer than two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// What may be said.
    pub verdict: Verdict,
}

/// What may be said of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Faster than its baseline.
    Faster,
    /// Slower than its baseline.
    Slower,
    /// The interval includes 1: no difference shown, and larger ones than it includes are ruled out.
    NoDifferenceShown,
    /// Fewer rounds than six: nothing may be said.
    TooFewRounds,
}

impl Verdict {
    /// What an interval says.
    pub fn of(rounds: usize, interval: Option<Interval>) -> Self {
        match interval {
            Some(interval) if rounds >= super::FEWEST_ROUNDS as usize => {
                if interval.low > 1.0 {
                    Verdict::Faster
                } else if interval.high < 1.0 {
                    Verdict::Slower
                } else {
                    Verdict::NoDifferenceShown
                }
            }
            Some(_) | None => Verdict::TooFewRounds,
        }
    }
}

impl Comparison {
    /// What may be said, for people: `1.23 times as fast`, `no difference shown (±4 %)`.
    pub fn in_words(&self) -> String {
        let ratio = self.interval.map_or(1.0, |interval| interval.ratio);
        let largest = self
            .interval
            .map_or(f64::INFINITY, |interval| interval.largest_difference());
        match self.verdict {
            Verdict::Faster => format!("faster, {}", factor(ratio)),
            Verdict::Slower => format!("slower, {}", factor(ratio)),
            Verdict::NoDifferenceShown => none_shown(largest),
            Verdict::TooFewRounds => format!(
                "too few rounds to tell ({} of {})",
                self.ratios.len(),
                super::FEWEST_ROUNDS
            ),
        }
    }
}

/// A ratio for people: `+12 %`, `-7 %`, and from twice on `3.4 times`.
pub(crate) fn factor(ratio: f64) -> String {
    if ratio >= 2.0 {
        format!("{ratio:.1} times")
    } else if ratio <= 0.5 && ratio > 0.0 {
        format!("1/{:.1}", 1.0 / ratio)
    } else {
        format!("{:+.0} %", (ratio - 1.0) * 100.0)
    }
}

/// What an interval that includes 1 says: `no difference shown (±4.1 %)`, and how wide it is where percents make no
/// sense any more.
pub(crate) fn none_shown(largest: f64) -> String {
    if largest < 1.0 {
        format!("no difference shown (±{})", percent(largest))
    } else if largest.is_finite() {
        format!("no difference shown (up to {:.1} times)", 1.0 + largest)
    } else {
        "no difference shown".to_owned()
    }
}

/// A share for people, with a digit behind the point below 10 %.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        "∞".to_owned()
    } else if share < 0.0995 {
        format!("{:.1} %", share * 100.0)
    } else {
        format!("{:.0} %", share * 100.0)
    }
}
