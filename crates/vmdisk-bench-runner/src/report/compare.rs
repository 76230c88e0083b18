//! Comparison of two runs that differ in one thing only.
//!
//! Changes of the machine between two runs affect every figure. Ratios to a baseline in both runs cancel them as far as
//! they affect both cells equally, so only these ratios are compared. If the machine itself changed much, the comparison
//! has no verdict.

mod differences;
mod render;
#[cfg(test)]
mod tests;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::figures;
use crate::method::{ABOUT_EQUAL, LogRatio, geometric_mean, holm, median};
use crate::{BenchResult, CellId, Error, Interval, MIN_ROUNDS, Verdict};

pub use differences::Difference;
use differences::{Matcher, differences};

/// The verdict on a cell in both runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
#[cfg_attr(feature = "schema", schemars(rename = "Change"))]
pub enum ChangeVerdict {
    /// Faster in the second run, relative to the baseline and by more than the tolerance.
    Faster,
    /// Slower in the second run, relative to the baseline and by more than the tolerance.
    Slower,
    /// No change beyond the tolerance is shown, and a large one is ruled out.
    AboutEqual,
    /// No change beyond the tolerance is shown, and a large one is not ruled out.
    Inconclusive,
    /// One of the runs has fewer than six rounds.
    TooFewRounds,
    /// The machine changed between the runs, so the ratios may have changed with it.
    MachineChanged,
}

/// A cell and its baseline in both runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CellChange {
    /// Name of the cell in the first run.
    pub first: String,
    /// Name of the cell in the second run.
    pub second: String,
    /// Name of the baseline.
    pub baseline: String,
    /// Ratio to the baseline in the first run; unset with fewer than two rounds.
    pub first_ratio: Option<Interval>,
    /// Ratio to the baseline in the second run; unset with fewer than two rounds.
    pub second_ratio: Option<Interval>,
    /// The second ratio divided by the first.
    pub change: Option<Interval>,
    /// The probability of a change this large by chance; unset with too few rounds.
    pub p_value: Option<f64>,
    /// The verdict, corrected for the number of cells.
    pub verdict: ChangeVerdict,
}

/// A baseline of both runs. A change of a baseline cannot be distinguished from a change of the machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct BaselineChange {
    /// Name of the cell.
    pub name: String,
    /// Geometric mean in the first run, with its unit.
    pub first: String,
    /// Geometric mean in the second run, with its unit.
    pub second: String,
    /// The second divided by the first.
    pub ratio: f64,
}

/// The comparison of two runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunComparison {
    /// Version of the format.
    pub schema_version: String,
    /// When the first run began.
    pub first_began_at: String,
    /// When the second run began.
    pub second_began_at: String,
    /// The one difference; unset if the same plan was measured twice.
    pub studied: Option<Difference>,
    /// Controls of both runs, as text.
    pub controls: Vec<String>,
    /// Changes of the machine between the runs; if there are any, no cell has a verdict.
    pub machine_changes: Vec<String>,
    /// Changes up to this share are tolerated.
    pub tolerance: f64,
    /// Every cell that both runs measured with its baseline.
    pub cells: Vec<CellChange>,
    /// The baselines.
    pub baselines: Vec<BaselineChange>,
    /// Cells that only one run measured with its baseline.
    pub unmatched: Vec<String>,
}

/// Version of the format of comparisons.
const SCHEMA_VERSION: &str = "1.0";

/// Compares the second run with the first. Changes up to `tolerance`, a share, are ignored.
///
/// # Errors
/// If the runs differ in more than one thing: all differences. If they share no cell with its baseline.
pub fn compare(
    first: &BenchResult,
    second: &BenchResult,
    tolerance: f64,
) -> Result<RunComparison, Error> {
    let pairs = Matcher::new(first, second).pairs(first, second);
    let compared: Vec<Pair<'_>> = pairs
        .iter()
        .filter_map(|pair| Pair::of(first, second, *pair, &pairs))
        .collect();
    let refused = |differences: Vec<String>| Err(Error::Incomparable { differences });
    if compared.is_empty() {
        return refused(vec![
            "the runs share no cell with the same workload, phase, engine, configuration and baseline"
                .to_owned(),
        ]);
    }
    let mut differences = differences(first, second, &pairs);
    if differences.len() > 1 {
        return refused(differences.iter().map(ToString::to_string).collect());
    }
    let alpha = first.alpha.min(second.alpha);
    let baselines = baselines(first, second, &compared);
    let machine_changes = machine_changes(first, second, &baselines);
    let mut cells: Vec<CellChange> = compared.iter().map(|pair| pair.change(alpha)).collect();
    let p_values: Vec<Option<f64>> = cells.iter().map(|cell| cell.p_value).collect();
    for (cell, is_shown) in cells.iter_mut().zip(holm(&p_values, alpha)) {
        if let (Some(change), Some(_)) = (cell.change, cell.p_value) {
            cell.verdict = match machine_changes.is_empty() {
                true => ChangeVerdict::of(change, is_shown, tolerance),
                false => ChangeVerdict::MachineChanged,
            };
        }
    }
    Ok(RunComparison {
        schema_version: SCHEMA_VERSION.to_owned(),
        first_began_at: first.header.began_at.clone(),
        second_began_at: second.header.began_at.clone(),
        studied: differences.pop(),
        controls: controls(first, second),
        machine_changes,
        tolerance,
        cells,
        baselines,
        unmatched: unmatched(first, second, &compared),
    })
}

impl ChangeVerdict {
    fn of(change: Interval, is_shown: bool, tolerance: f64) -> Self {
        let margin = tolerance.max(ABOUT_EQUAL);
        let is_beyond = change.ratio > 1.0 + tolerance || change.ratio < 1.0 / (1.0 + tolerance);
        let is_small = change.largest_difference() <= margin;
        match Verdict::of(change, is_shown) {
            Verdict::Faster if is_beyond => ChangeVerdict::Faster,
            Verdict::Slower if is_beyond => ChangeVerdict::Slower,
            _ => match is_small {
                true => ChangeVerdict::AboutEqual,
                false => ChangeVerdict::Inconclusive,
            },
        }
    }
}

/// A cell and its baseline in both runs.
struct Pair<'a> {
    first: &'a BenchResult,
    second: &'a BenchResult,
    cells: (CellId, CellId),
    baselines: (CellId, CellId),
}

impl<'a> Pair<'a> {
    fn of(
        first: &'a BenchResult,
        second: &'a BenchResult,
        cells: (CellId, CellId),
        pairs: &[(CellId, CellId)],
    ) -> Option<Self> {
        let baseline =
            |result: &BenchResult, cell: CellId| result.header.plan.cells[cell.0].baseline;
        let baselines = (baseline(first, cells.0)?, baseline(second, cells.1)?);
        pairs.contains(&baselines).then_some(Pair {
            first,
            second,
            cells,
            baselines,
        })
    }

    fn change(&self, alpha: f64) -> CellChange {
        let ratios = |result: &BenchResult, cell: CellId| {
            let comparison = result.cells[cell.0].comparison.as_ref();
            comparison.map_or_else(Vec::new, |comparison| comparison.ratios.clone())
        };
        let (one, other) = (
            ratios(self.first, self.cells.0),
            ratios(self.second, self.cells.1),
        );
        let (first, second) = (LogRatio::of(&one), LogRatio::of(&other));
        let change = first.zip(second).map(|(first, second)| second.over(first));
        let fewest = one.len().min(other.len());
        CellChange {
            first: self.first.cells[self.cells.0.0].name.clone(),
            second: self.second.cells[self.cells.1.0].name.clone(),
            baseline: self.first.cells[self.baselines.0.0].name.clone(),
            first_ratio: first.map(|ratio| ratio.interval(alpha)),
            second_ratio: second.map(|ratio| ratio.interval(alpha)),
            change: change.map(|change| change.interval(alpha)),
            p_value: change
                .filter(|_| fewest >= MIN_ROUNDS as usize)
                .map(LogRatio::p_value),
            verdict: ChangeVerdict::TooFewRounds,
        }
    }
}

/// Returns the baselines of both runs, without duplicates.
fn baselines(first: &BenchResult, second: &BenchResult, pairs: &[Pair<'_>]) -> Vec<BaselineChange> {
    let mut seen = Vec::new();
    let mut found = Vec::new();
    for Pair { baselines, .. } in pairs {
        if seen.contains(baselines) {
            continue;
        }
        seen.push(*baselines);
        let (one, other) = (&first.cells[baselines.0.0], &second.cells[baselines.1.0]);
        let means = one.summary.as_ref().zip(other.summary.as_ref());
        found.extend(means.map(|(a, b)| BaselineChange {
            name: one.name.clone(),
            first: figures::figure(a.mean, first.metric(one.cell)),
            second: figures::figure(b.mean, second.metric(other.cell)),
            ratio: b.mean / a.mean,
        }));
    }
    found
}

/// Maximum change of the median speed of arithmetic without a disk.
const MAX_CONTROL_CHANGE: f64 = 1.25;
/// Maximum change of the median speed of requests without a disk between guests: boots vary more.
const MAX_GUEST_CONTROL_CHANGE: f64 = 1.5;
/// Maximum change of the share of rounds in which the machine was not quiet.
const MAX_QUIETNESS_CHANGE: f64 = 0.5;
/// Maximum change of the geometric mean of the baselines.
const MAX_BASELINE_CHANGE: f64 = 1.5;

/// Returns the medians over rounds of the arithmetic, and of the guests' requests without a disk.
fn control_medians(result: &BenchResult) -> (Option<f64>, Option<f64>) {
    let rounds = result.rounds.iter().filter(|round| round.round > 0);
    let arithmetic: Vec<f64> = rounds
        .map(|round| round.control)
        .filter(|it| *it > 0.0)
        .collect();
    let samples = result.samples.iter().filter(|sample| sample.round > 0);
    let guests: Vec<f64> = samples
        .filter_map(|sample| sample.measurement.control_iops)
        .filter(|control| *control > 0.0)
        .collect();
    (median(&arithmetic), median(&guests))
}

/// Counts the rounds in which the machine was not quiet, and all rounds.
fn disturbed(result: &BenchResult) -> (usize, usize) {
    let rounds = result.rounds.iter().filter(|round| round.round > 0);
    let disturbed = rounds
        .clone()
        .filter(|round| !round.disturbances.is_empty());
    (disturbed.count(), rounds.count())
}

fn controls(first: &BenchResult, second: &BenchResult) -> Vec<String> {
    let (one, other) = (control_medians(first), control_medians(second));
    let pair = |what: &str, values: (Option<f64>, Option<f64>), unit: &str, scale: f64| {
        let (a, b) = (values.0?, values.1?);
        Some(format!(
            "{what}: {:.1} and {:.1} {unit}",
            a / scale,
            b / scale
        ))
    };
    let ((a, of_a), (b, of_b)) = (disturbed(first), disturbed(second));
    [
        pair(
            "arithmetic without a disk",
            (one.0, other.0),
            "M steps/s",
            1e6,
        ),
        pair(
            "requests of a guest without a disk",
            (one.1, other.1),
            "k/s",
            1e3,
        ),
        Some(format!(
            "rounds in which the machine was not quiet: {a} of {of_a} and {b} of {of_b}"
        )),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// Returns the changes of the machine between two runs; empty if their ratios can be compared.
fn machine_changes(
    first: &BenchResult,
    second: &BenchResult,
    baselines: &[BaselineChange],
) -> Vec<String> {
    let changed = |values: (Option<f64>, Option<f64>), most: f64| {
        let (a, b) = (values.0?, values.1?);
        let ratio = b / a;
        (ratio > most || ratio < 1.0 / most).then_some(ratio)
    };
    let mut found = Vec::new();
    let (one, other) = (control_medians(first), control_medians(second));
    let mut note = |ratio: Option<f64>, what: &str| {
        found.extend(ratio.map(|ratio| {
            format!(
                "{what} ran at {} of its speed",
                crate::method::percent(ratio)
            )
        }));
    };
    note(
        changed((one.0, other.0), MAX_CONTROL_CHANGE),
        "arithmetic without a disk",
    );
    note(
        changed((one.1, other.1), MAX_GUEST_CONTROL_CHANGE),
        "a guest without a disk",
    );
    let ratios: Vec<f64> = baselines.iter().map(|baseline| baseline.ratio).collect();
    note(
        changed((Some(1.0), geometric_mean(&ratios)), MAX_BASELINE_CHANGE),
        "the baselines",
    );
    let share = |(part, all): (usize, usize)| part as f64 / all.max(1) as f64;
    let (a, b) = (share(disturbed(first)), share(disturbed(second)));
    if (a - b).abs() > MAX_QUIETNESS_CHANGE {
        found.push("the machine was quiet in one run only".to_owned());
    }
    found
}

/// Returns cells that are neither in a pair nor the baseline of one.
fn unmatched(first: &BenchResult, second: &BenchResult, pairs: &[Pair<'_>]) -> Vec<String> {
    let of = |result: &BenchResult, used: &dyn Fn(&Pair<'_>) -> [CellId; 2]| {
        let used: Vec<CellId> = pairs.iter().flat_map(used).collect();
        let cells = result
            .cells
            .iter()
            .filter(|cell| !used.contains(&cell.cell));
        cells.map(|cell| cell.name.clone()).collect::<Vec<_>>()
    };
    let mut names = of(first, &|pair| [pair.cells.0, pair.baselines.0]);
    names.extend(of(second, &|pair| [pair.cells.1, pair.baselines.1]));
    names.dedup();
    names
}

impl RunComparison {
    /// Returns the JSON Schema of comparisons.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(RunComparison)
    }

    /// Returns the comparison as JSON, described by `vmdisk print schema bench-compare`.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a comparison holds only text, numbers and lists");
        text.push('\n');
        text
    }

    /// Returns true if a cell has this verdict.
    pub fn has(&self, verdict: ChangeVerdict) -> bool {
        self.cells.iter().any(|cell| cell.verdict == verdict)
    }
}
