//! Comparisons of one run that its plan did not make: with another baseline, and of any pairs.

use super::figures::count;
use super::table::{Group, groups, with_interval};
use crate::{BenchResult, CellId, CellValues, Comparison, Error, NamedPair, PlanRecord};

impl PlanRecord {
    /// Returns each cell with its baseline, and then the named pairs that these leave out.
    pub(crate) fn compared(&self) -> Vec<(CellId, CellId)> {
        let cells = || (0..self.cells.len()).map(CellId);
        let of_baselines = cells().filter_map(|cell| Some((cell, self.cells[cell.0].baseline?)));
        let mut compared: Vec<(CellId, CellId)> = of_baselines.collect();
        let is = |cell: CellId, name: &str| self.configuration_of(cell) == name;
        let place = |cell: CellId| (self.cells[cell.0].workload, self.cells[cell.0].phase);
        for (one, other) in &self.pairs {
            for cell in cells().filter(|cell| is(*cell, one)) {
                let mut others = cells().filter(|it| place(*it) == place(cell));
                let pair = others.find(|it| is(*it, other)).map(|it| (cell, it));
                compared.extend(pair.filter(|pair| !compared.contains(pair)));
            }
        }
        compared
    }

    /// Returns the name of the configuration of a cell.
    pub(crate) fn configuration_of(&self, cell: CellId) -> &str {
        &self.configurations[self.cells[cell.0].configuration].name
    }
}

impl BenchResult {
    /// Compares every cell with that of the named configuration, for the same workload and phase, and no other pairs.
    ///
    /// # Errors
    /// If the run has no such configuration.
    pub fn with_baseline(mut self, name: &str) -> Result<Self, Error> {
        let plan = &mut self.header.plan;
        let wanted = plan.configurations.iter().position(|it| it.name == name);
        let wanted = wanted.ok_or_else(|| unknown(&self, name))?;
        let plan = &mut self.header.plan;
        let cells = plan.cells.clone();
        for cell in &mut plan.cells {
            let is_baseline = |other: &&crate::Cell| {
                let of_other = (other.configuration, other.workload, other.phase);
                of_other == (wanted, cell.workload, cell.phase)
            };
            let baseline = cells.iter().position(|other| is_baseline(&other));
            cell.baseline = baseline
                .filter(|_| cell.configuration != wanted)
                .map(CellId);
        }
        plan.pairs.clear();
        Ok(self.concluded_again())
    }
}

fn unknown(result: &BenchResult, name: &str) -> Error {
    let configurations = result.header.plan.configurations.iter();
    let names: Vec<&str> = configurations.map(|it| it.name.as_str()).collect();
    Error::refused(
        format!("to compare with `{name}`"),
        format!(
            "the run has no such configuration, only {}",
            names.join(", ")
        ),
    )
}

/// Formats the comparison of pairs, of all pairs if none is named, for each workload and phase. Intervals come from the
/// paired rounds, and verdicts are corrected for the number of pairs.
///
/// # Errors
/// If the run has no configuration of that name.
pub fn pairs(result: &BenchResult, named: &[NamedPair]) -> Result<String, Error> {
    let plan = &result.header.plan;
    for name in named.iter().flat_map(|(one, other)| [one, other]) {
        if !plan.configurations.iter().any(|it| it.name == *name) {
            return Err(unknown(result, name));
        }
    }
    let is_wanted = |one: &str, other: &str| {
        named.is_empty()
            || named
                .iter()
                .any(|(first, second)| first == one && second == other)
    };
    let groups = groups(result);
    let mut wanted = Vec::new();
    for group in &groups {
        for (nth, (one, cell)) in group.rows.iter().enumerate() {
            for (mth, (other, baseline)) in group.rows.iter().enumerate() {
                // Of all pairs, each is compared once, with the earlier one as the baseline.
                if nth != mth && is_wanted(one, other) && (!named.is_empty() || mth < nth) {
                    wanted.push((cell.cell, baseline.cell));
                }
            }
        }
    }
    let values = CellValues::of(&plan.cells, &plan.workloads, &result.samples);
    let comparisons = values.compared(wanted.iter().copied(), result.alpha);
    let mut text = format!(
        "{}: {}, verdicts corrected for their number (Holm)\n",
        plan.name,
        count(comparisons.len(), "comparison", "comparisons")
    );
    for group in groups {
        let of_group: Vec<String> = comparisons
            .iter()
            .filter(|it| group.rows.iter().any(|(_, cell)| cell.cell == it.cell))
            .map(|comparison| format!("  {}\n", line(result, comparison)))
            .collect();
        if !of_group.is_empty() {
            let head = format!("\n{}, {}\n", group.workload, group.phase.name());
            text.push_str(&head);
            text.extend(of_group);
        }
    }
    Ok(text)
}

/// Returns the lines about the named pairs of a group.
pub(super) fn lines<'a>(
    result: &'a BenchResult,
    group: &'a Group<'_>,
) -> impl Iterator<Item = String> + 'a {
    let is_its = |cell: CellId| group.rows.iter().any(|(_, it)| it.cell == cell);
    let pairs = result.pairs.iter().filter(move |it| is_its(it.cell));
    pairs.map(|comparison| line(result, comparison))
}

fn line(result: &BenchResult, comparison: &Comparison) -> String {
    let plan = &result.header.plan;
    let [one, other] =
        [comparison.cell, comparison.baseline].map(|cell| plan.configuration_of(cell));
    let ratio = comparison.interval.map(with_interval).unwrap_or_default();
    format!("{one} : {other}  {ratio}  {}", comparison.in_words())
}
