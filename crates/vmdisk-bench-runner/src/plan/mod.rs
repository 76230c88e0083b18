//! Plans: configurations, workloads and cells.

mod configuration;
mod factor;
mod guest_choice;
mod limits;
mod matrix;
mod meaning;
mod phase;
mod pinning;
mod presets;
mod proposal;
mod record;
#[cfg(test)]
mod tests;
mod word;
mod workload;

use std::collections::{BTreeMap, BTreeSet};

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use configuration::{Configuration, FindingSeverity, LinterFinding, Storage};
pub use factor::factors;
pub use limits::Limits;
pub use matrix::{MAX_PLAN_BYTES, PlanOptions, read_plan};
pub use phase::Phase;
pub use pinning::{allowed_processors, numa_nodes};
pub use presets::{PRESETS, Preset};
pub use proposal::{Proposal, plan_proposals};
pub use record::{ConfigurationRecord, PlanRecord, hash_of};
pub use workload::{Access, Amount, BlockLoad, InstallReplay, Load, Metric, Workload};

use crate::EngineKind;

/// A complete plan: engines make no choices.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the preset or the file.
    pub name: String,
    /// The question that it answers.
    pub question: String,
    /// The configurations, each prepared once per engine.
    pub configurations: Vec<Configuration>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// The cells that each round measures.
    pub cells: Vec<Cell>,
    /// Requested items that are not measured, with the reason.
    pub left_out: Vec<LeftOut>,
    /// Pairs of configurations that the question also compares, by their names.
    pub pairs: Vec<NamedPair>,
}

/// Two configurations by their names: the second is the baseline.
pub type NamedPair = (String, String);

impl Plan {
    /// Returns a cell with everything it refers to.
    ///
    /// # Panics
    /// If the number is not one of [`Plan::cells`].
    pub fn view(&self, id: CellId) -> CellView<'_> {
        let cell = &self.cells[id.0];
        CellView {
            id,
            engine: cell.engine,
            phase: cell.phase,
            configuration: &self.configurations[cell.configuration],
            workload: &self.workloads[cell.workload],
        }
    }

    /// Removes cells that `reason` rejects, and everything that only they used.
    ///
    /// Cells whose baseline is removed stay, and are measured without a comparison. If two cells are compared only with
    /// each other, as a disk before and after a change, both are removed: one of them answers nothing.
    pub fn leave_out(&mut self, reason: impl Fn(&CellView<'_>) -> Option<String>) {
        let mut reasons: Vec<Option<String>> = self.views().map(|cell| reason(&cell)).collect();
        for (one, other) in self.pairs() {
            let why = |gone: usize| {
                let name = &self.configurations[self.cells[gone].configuration].name;
                format!("{name}, which it is compared with, is left out")
            };
            match (reasons[one].is_some(), reasons[other].is_some()) {
                (true, false) => reasons[other] = Some(why(one)),
                (false, true) => reasons[one] = Some(why(other)),
                (true, true) | (false, false) => {}
            }
        }
        if reasons.iter().all(Option::is_none) {
            return;
        }
        let left_out = self.group_left_out(&reasons);
        // The new index of each remaining cell.
        let mut places = Vec::with_capacity(reasons.len());
        let mut kept = 0;
        for reason in &reasons {
            places.push(reason.is_none().then_some(CellId(kept)));
            kept += usize::from(reason.is_none());
        }
        let mut stays = reasons.iter().map(Option::is_none);
        self.cells.retain(|_| stays.next().unwrap_or(true));
        for cell in &mut self.cells {
            cell.baseline = cell.baseline.and_then(|baseline| places[baseline.0]);
        }
        self.left_out.extend(left_out);
        self.drop_unused();
    }

    /// Returns cells that are compared only with each other: a baseline and its single comparison.
    fn pairs(&self) -> Vec<(usize, usize)> {
        let mut compared: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, cell) in self.cells.iter().enumerate() {
            if let Some(baseline) = cell.baseline {
                compared.entry(baseline.0).or_default().push(place);
            }
        }
        compared
            .into_iter()
            .filter_map(|(baseline, cells)| match cells[..] {
                [only] => Some((baseline, only)),
                _ => None,
            })
            .collect()
    }

    /// Groups removed cells by reason; a configuration or workload that is removed completely is
    /// named alone.
    fn group_left_out(&self, reasons: &[Option<String>]) -> Vec<LeftOut> {
        let mut by_reason: BTreeMap<&str, Vec<CellView<'_>>> = BTreeMap::new();
        for (cell, reason) in self.views().zip(reasons) {
            if let Some(reason) = reason {
                by_reason.entry(reason).or_default().push(cell);
            }
        }
        let count = |of: &dyn Fn(&Cell) -> bool| self.cells.iter().filter(|cell| of(cell)).count();
        by_reason
            .into_iter()
            .map(|(why, mut cells)| {
                let mut what: Vec<String> = Vec::new();
                for (index, configuration) in self.configurations.iter().enumerate() {
                    let is_its = |view: &CellView<'_>| self.cells[view.id.0].configuration == index;
                    let all = count(&|cell| cell.configuration == index);
                    if all > 0 && cells.iter().filter(|view| is_its(view)).count() == all {
                        what.push(configuration.name.clone());
                        cells.retain(|view| !is_its(view));
                    }
                }
                for (index, workload) in self.workloads.iter().enumerate() {
                    let is_its = |view: &CellView<'_>| self.cells[view.id.0].workload == index;
                    let all = count(&|cell| cell.workload == index);
                    if all > 0 && cells.iter().filter(|view| is_its(view)).count() == all {
                        what.push(workload.name.clone());
                        cells.retain(|view| !is_its(view));
                    }
                }
                what.extend(cells.iter().map(CellView::name));
                LeftOut {
                    what: what.join(", "),
                    why: why.to_owned(),
                }
            })
            .collect()
    }

    /// Removes configurations and workloads without cells, and pairs without a configuration.
    fn drop_unused(&mut self) {
        let used: BTreeSet<usize> = self.cells.iter().map(|cell| cell.configuration).collect();
        let order: Vec<usize> = used.into_iter().collect();
        let mut index = 0;
        self.configurations.retain(|_| {
            index += 1;
            order.binary_search(&(index - 1)).is_ok()
        });
        let used: BTreeSet<usize> = self.cells.iter().map(|cell| cell.workload).collect();
        let workloads: Vec<usize> = used.into_iter().collect();
        let mut index = 0;
        self.workloads.retain(|_| {
            index += 1;
            workloads.binary_search(&(index - 1)).is_ok()
        });
        let place = |order: &[usize], old: usize| {
            order
                .binary_search(&old)
                .expect("everything that a cell refers to was kept")
        };
        for cell in &mut self.cells {
            cell.configuration = place(&order, cell.configuration);
            cell.workload = place(&workloads, cell.workload);
        }
        let is_left = |name: &String| self.configurations.iter().any(|it| it.name == *name);
        self.pairs
            .retain(|(one, other)| is_left(one) && is_left(other));
    }

    /// Leaves out the configurations without these names, unless a named one is compared with them.
    pub fn keep_only(&mut self, names: &[String]) {
        let is_named = |cell: &Cell| names.contains(&self.configurations[cell.configuration].name);
        let kept = self.cells.iter().filter(|cell| is_named(cell));
        let with_baselines = kept.flat_map(|cell| {
            let baseline = cell.baseline.map(|id| self.cells[id.0].configuration);
            [Some(cell.configuration), baseline]
        });
        let kept: BTreeSet<usize> = with_baselines.flatten().collect();
        let kept: BTreeSet<String> = kept
            .iter()
            .map(|it| self.configurations[*it].name.clone())
            .collect();
        self.leave_out(|cell| {
            let is_kept = kept.contains(&cell.configuration.name);
            (!is_kept).then(|| "--only does not name it".to_owned())
        });
    }

    /// Makes every timed sample this long, without a ramp: its program would take longer to start.
    pub fn shorten(&mut self, seconds: f64) {
        for workload in &mut self.workloads {
            if let Amount::Seconds(timed) = &mut workload.amount {
                *timed = timed.min(seconds);
                workload.ramp_seconds = 0.0;
            }
        }
    }

    /// Returns all cells, in plan order.
    pub fn views(&self) -> impl Iterator<Item = CellView<'_>> {
        (0..self.cells.len()).map(|index| self.view(CellId(index)))
    }
}

/// One thing that is measured in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Cell {
    /// The index in [`Plan::configurations`].
    pub configuration: usize,
    /// The index in [`Plan::workloads`].
    pub workload: usize,
    /// The engine.
    pub engine: EngineKind,
    /// The state of the storage.
    pub phase: Phase,
    /// The index in [`Plan::cells`] of the cell it is divided by, in the same round; `None` for a baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub baseline: Option<CellId>,
}

/// The index of a cell in [`Plan::cells`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(transparent)]
pub struct CellId(pub usize);

/// A cell with everything it refers to.
#[derive(Clone, Copy, Debug)]
pub struct CellView<'a> {
    /// The index.
    pub id: CellId,
    /// The engine.
    pub engine: EngineKind,
    /// The state of the storage.
    pub phase: Phase,
    /// The disk and its guest.
    pub configuration: &'a Configuration,
    /// The workload.
    pub workload: &'a Workload,
}

impl CellView<'_> {
    /// Returns the name of the cell: configuration, workload and phase.
    pub fn name(&self) -> String {
        format!(
            "{} {} {}",
            self.configuration.name,
            self.workload.name,
            self.phase.name()
        )
    }
}

/// A requested item that is not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// Its name.
    pub what: String,
    /// The reason.
    pub why: String,
}
