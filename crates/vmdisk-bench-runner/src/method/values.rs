//! The counted figures of a run, and their comparisons.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::MIN_ROUNDS;
use super::statistics::{Interval, LogRatio, holm};
use crate::{Cell, CellId, Measurement, Metric, Sample, Workload};

impl Measurement {
    /// Returns the compared figure; `None` if it was not measured.
    pub fn value(&self, metric: Metric) -> Option<f64> {
        let of = |direction: &Option<crate::Direction>| {
            direction.as_ref().map_or(0.0, |direction| match metric {
                Metric::Iops => direction.iops,
                Metric::Throughput => direction.bytes_per_second,
                Metric::Latency => direction
                    .latency
                    .as_ref()
                    .map_or(0.0, |latency| 1e9 / latency.mean_ns),
            })
        };
        let value = of(&self.read) + of(&self.write);
        (value.is_finite() && value > 0.0).then_some(value)
    }
}

impl Sample {
    /// Returns true if the sample counts: it is not a warm-up and passed its checks.
    pub fn counts(&self) -> bool {
        self.round > 0 && self.measurement.semantics.complaints.is_empty()
    }
}

/// The counted figures, by cell and round.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct CellValues(Vec<BTreeMap<u32, f64>>);

impl CellValues {
    /// Creates an empty set for a plan with these cells.
    pub fn new(cells: &[Cell]) -> Self {
        CellValues(vec![BTreeMap::new(); cells.len()])
    }

    /// Collects the figures of samples.
    pub fn of<'a>(
        cells: &[Cell],
        workloads: &[Workload],
        samples: impl IntoIterator<Item = &'a Sample>,
    ) -> Self {
        let mut values = CellValues::new(cells);
        for sample in samples {
            values.add(cells, workloads, sample);
        }
        values
    }

    /// Adds the figure of a sample, if the sample counts.
    pub fn add(&mut self, cells: &[Cell], workloads: &[Workload], sample: &Sample) {
        let Some(cell) = cells.get(sample.cell.0) else {
            return;
        };
        let metric = workloads[cell.workload].metric;
        if let (true, Some(value)) = (sample.counts(), sample.measurement.value(metric)) {
            self.0[sample.cell.0].insert(sample.round, value);
        }
    }

    /// Returns the figures of a cell, by round.
    pub fn of_cell(&self, id: CellId) -> &BTreeMap<u32, f64> {
        &self.0[id.0]
    }

    /// Returns the ratios of a cell to its baseline, for each round with both.
    pub fn ratios(&self, id: CellId, baseline: CellId) -> Vec<f64> {
        let baseline = self.of_cell(baseline);
        self.of_cell(id)
            .iter()
            .filter_map(|(round, value)| Some(value / baseline.get(round)?))
            .collect()
    }

    /// Returns every comparison of a plan, in cell order; verdicts are corrected for the number of comparisons.
    pub fn comparisons(&self, cells: &[Cell], alpha: f64) -> Vec<Comparison> {
        let with_baseline = cells.iter().enumerate();
        let pairs = with_baseline.filter_map(|(index, cell)| Some((CellId(index), cell.baseline?)));
        self.compared(pairs, alpha)
    }

    /// Returns the comparison of each pair of a cell and its baseline; verdicts are corrected for the number of pairs.
    pub(crate) fn compared(
        &self,
        pairs: impl Iterator<Item = (CellId, CellId)>,
        alpha: f64,
    ) -> Vec<Comparison> {
        let mut comparisons: Vec<Comparison> = pairs
            .map(|(cell, baseline)| {
                let ratios = self.ratios(cell, baseline);
                let known = LogRatio::of(&ratios);
                Comparison {
                    cell,
                    baseline,
                    interval: known.map(|known| known.interval(alpha)),
                    p_value: known
                        .filter(|_| ratios.len() >= MIN_ROUNDS as usize)
                        .map(LogRatio::p_value),
                    ratios,
                    verdict: Verdict::TooFewRounds,
                }
            })
            .collect();
        let p_values: Vec<Option<f64>> = comparisons.iter().map(|it| it.p_value).collect();
        for (comparison, is_shown) in comparisons.iter_mut().zip(holm(&p_values, alpha)) {
            if let (Some(interval), Some(_)) = (comparison.interval, comparison.p_value) {
                comparison.verdict = Verdict::of(interval, is_shown);
            }
        }
        comparisons
    }
}

/// The comparison of a cell with its baseline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Comparison {
    /// The cell.
    pub cell: CellId,
    /// Its baseline.
    pub baseline: CellId,
    /// The ratio of each round that has both cells.
    pub ratios: Vec<f64>,
    /// The interval of the true ratio; unset with fewer than two rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval: Option<Interval>,
    /// The probability of ratios this far from 1 by chance; unset with too few rounds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p_value: Option<f64>,
    /// The verdict.
    pub verdict: Verdict,
}

/// The verdict of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Verdict {
    /// Faster than its baseline.
    Faster,
    /// Slower than its baseline.
    Slower,
    /// No difference is shown, and differences above 10 % are ruled out.
    AboutEqual,
    /// No difference is shown, and large ones are not ruled out.
    Inconclusive,
    /// Fewer than six rounds cannot show a difference.
    TooFewRounds,
}

/// The largest difference between cells that count as about equal.
pub(crate) const ABOUT_EQUAL: f64 = 0.10;

impl Verdict {
    /// Returns the verdict on an interval, given whether the correction shows a difference.
    pub fn of(interval: Interval, is_shown: bool) -> Self {
        match (is_shown, interval.ratio > 1.0) {
            (true, true) => Verdict::Faster,
            (true, false) => Verdict::Slower,
            (false, _) if interval.largest_difference() <= ABOUT_EQUAL => Verdict::AboutEqual,
            (false, _) => Verdict::Inconclusive,
        }
    }

    /// Formats the verdict with the interval it is based on.
    pub(crate) fn in_words(self, interval: Option<Interval>) -> String {
        match (self, interval) {
            (Verdict::Faster, _) => "faster".to_owned(),
            (Verdict::Slower, _) => "slower".to_owned(),
            (Verdict::AboutEqual, Some(interval)) => {
                format!(
                    "about equal (within ±{})",
                    percent(interval.largest_difference())
                )
            }
            (Verdict::AboutEqual, None) => "about equal".to_owned(),
            (Verdict::Inconclusive, Some(interval)) => {
                format!(
                    "inconclusive ({} to {})",
                    ratio(interval.low),
                    ratio(interval.high)
                )
            }
            (Verdict::Inconclusive, None) => "inconclusive".to_owned(),
            (Verdict::TooFewRounds, _) => "too few rounds".to_owned(),
        }
    }
}

impl Comparison {
    /// Formats the verdict: `faster`, `about equal (within ±4 %)`, `inconclusive (0.09 to 4.7)`.
    pub fn in_words(&self) -> String {
        if self.verdict == Verdict::TooFewRounds {
            return format!("too few rounds ({} of {MIN_ROUNDS})", self.ratios.len());
        }
        self.verdict.in_words(self.interval)
    }
}

/// Formats a ratio: `1.23`, `0.087`, `12.5`.
pub fn ratio(value: f64) -> String {
    let digits = match value {
        size if size >= 10.0 => 1,
        size if size >= 0.1 => 2,
        _ => 3,
    };
    format!("{value:.digits$}")
}

/// Formats a share as a percentage, with one decimal below 10 %.
pub(crate) fn percent(share: f64) -> String {
    if !share.is_finite() {
        "∞".to_owned()
    } else if share < 0.0995 {
        format!("{:.1} %", share * 100.0)
    } else {
        format!("{:.0} %", share * 100.0)
    }
}
