//! What is to be measured.

mod configuration;
mod workload;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use configuration::{Configuration, Finding, FindingSeverity, Storage};
pub use workload::{Access, Amount, BlockLoad, InstallReplay, Load, Metric, Workload};

use crate::EngineKind;

/// What is to be measured, in full: nothing in it is left to an engine's choice.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// Name of the preset, or of the file.
    pub name: String,
    /// The question that it answers, for people.
    pub question: String,
    /// The configurations, each of which is prepared once per engine.
    pub configurations: Vec<Configuration>,
    /// The workloads.
    pub workloads: Vec<Workload>,
    /// What is measured in each round.
    pub cells: Vec<Cell>,
    /// What was asked for and is not measured, with the reason.
    pub left_out: Vec<LeftOut>,
}

impl Plan {
    /// A cell with everything it refers to.
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

    /// All cells, in the order of the plan.
    pub fn views(&self) -> impl Iterator<Item = CellView<'_>> {
        (0..self.cells.len()).map(|index| self.view(CellId(index)))
    }
}

/// One thing that is measured in each round.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cell {
    /// Which of [`Plan::configurations`].
    pub configuration: usize,
    /// Which of [`Plan::workloads`].
    pub workload: usize,
    /// What measures it.
    pub engine: EngineKind,
    /// The state of the storage.
    pub phase: Phase,
    /// Which of [`Plan::cells`] it is divided by, in the same round; `None` for a baseline.
    pub baseline: Option<CellId>,
}

/// Number of a cell: its place in [`Plan::cells`].
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(transparent)]
pub struct CellId(pub usize);

/// A cell with everything it refers to.
#[derive(Clone, Copy, Debug)]
pub struct CellView<'a> {
    /// Its number.
    pub id: CellId,
    /// What measures it.
    pub engine: EngineKind,
    /// The state of the storage.
    pub phase: Phase,
    /// The disk and its guest.
    pub configuration: &'a Configuration,
    /// What is done to the disk.
    pub workload: &'a Workload,
}

/// The state of the storage when measuring begins: two different questions.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// Made anew for each sample: what is timed includes allocating.
    FirstTouch,
    /// Written once over its whole length with incompressible data: nothing is allocated any more.
    Steady,
}

impl Phase {
    /// The word that plans and results use.
    pub const fn name(self) -> &'static str {
        match self {
            Phase::FirstTouch => "first-touch",
            Phase::Steady => "steady",
        }
    }
}

/// Something that was asked for and is not measured.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct LeftOut {
    /// What.
    pub what: String,
    /// Why.
    pub why: String,
}
