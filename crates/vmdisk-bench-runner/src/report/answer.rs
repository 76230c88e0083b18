//! The answer to the question of a run, as sentences.

use super::figures::count;
use super::result::BenchResult;
use crate::method::{percent, ratio};
use crate::{Accelerator, Comparison, Interval, Phase, Verdict};

/// Maximum number of differences with separate sentences.
const MAX_SENTENCES: usize = 6;

/// Returns the answer: the largest differences first, then equal and inconclusive comparisons.
pub(crate) fn answer(result: &BenchResult) -> Vec<String> {
    let has_phases = result
        .header
        .plan
        .cells
        .iter()
        .any(|cell| cell.phase == Phase::FirstTouch);
    let compared: Vec<NamedComparison<'_>> = result
        .comparisons()
        .filter_map(|comparison| NamedComparison::of(result, comparison, has_phases))
        .collect();
    let mut shown: Vec<&NamedComparison<'_>> = compared
        .iter()
        .filter(|it| matches!(it.comparison.verdict, Verdict::Faster | Verdict::Slower))
        .collect();
    shown.sort_by(|a, b| b.interval.size().total_cmp(&a.interval.size()));
    let mut sentences: Vec<String> = shown
        .iter()
        .take(MAX_SENTENCES)
        .map(|compared| compared.sentence())
        .collect();
    if shown.len() > MAX_SENTENCES {
        let more = shown.len() - MAX_SENTENCES;
        let more = count(more, "more difference", "more differences");
        sentences.push(format!("The tables show {more}."));
    }
    for compared in &compared {
        if compared.comparison.verdict == Verdict::AboutEqual && sentences.len() < 2 * MAX_SENTENCES
        {
            sentences.push(compared.equality());
        }
    }
    let inconclusive = compared
        .iter()
        .filter(|it| it.comparison.verdict == Verdict::Inconclusive)
        .count();
    if inconclusive > 0 && inconclusive == compared.len() {
        let all = count(inconclusive, "comparison is", "comparisons are");
        sentences.push(format!(
            "No difference is shown or ruled out: {all} inconclusive."
        ));
    } else if inconclusive > 0 {
        sentences.push(format!(
            "{inconclusive} of {} inconclusive.",
            count(compared.len(), "comparison is", "comparisons are")
        ));
    }
    if compared.is_empty() {
        sentences.push("No comparison yet: verdicts need six rounds.".to_owned());
    }
    sentences
}

/// Returns the accelerators of the guests for the first line of a report; empty without guests.
pub(crate) fn accelerator_label(result: &BenchResult) -> &'static str {
    let has = |accelerator| {
        let mut cells = result.cells.iter();
        cells.any(|cell| cell.accelerator == accelerator)
    };
    match (has(Accelerator::Tcg), has(Accelerator::Kvm)) {
        (true, true) => " [guests ran under KVM and under TCG]",
        (true, false) => " [guests ran under TCG: emulated processors]",
        (false, true) => " [guests ran under KVM]",
        (false, false) => "",
    }
}

/// A comparison with the names for its sentence.
struct NamedComparison<'a> {
    name: &'a str,
    baseline: &'a str,
    workload: String,
    comparison: &'a Comparison,
    interval: Interval,
}

impl<'a> NamedComparison<'a> {
    fn of(result: &'a BenchResult, comparison: &'a Comparison, has_phases: bool) -> Option<Self> {
        let plan = &result.header.plan;
        comparison.p_value?;
        let cell = plan.cells[comparison.cell.0];
        let workload = &plan.workloads[cell.workload].name;
        Some(NamedComparison {
            name: plan.configuration_of(comparison.cell),
            baseline: plan.configuration_of(comparison.baseline),
            workload: match has_phases {
                true => format!("{workload} ({})", cell.phase.name()),
                false => workload.clone(),
            },
            comparison,
            interval: comparison.interval?,
        })
    }

    fn sentence(&self) -> String {
        format!(
            "{} is {} × [{}, {}] as fast as {} for {}.",
            self.name,
            ratio(self.interval.ratio),
            ratio(self.interval.low),
            ratio(self.interval.high),
            self.baseline,
            self.workload
        )
    }

    fn equality(&self) -> String {
        format!(
            "{} and {} are about equal for {} (within ±{}).",
            self.name,
            self.baseline,
            self.workload,
            percent(self.interval.largest_difference())
        )
    }
}
