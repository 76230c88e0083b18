//! The interface of engines, which turn cells into measurements.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use crate::engines::workspace::Workspace;
use crate::{Cancel, CellId, CellView, EngineKind, Error, Measurement};

/// The context of one batch.
#[derive(Debug)]
pub struct RunContext<'a> {
    /// The round, from 1; 0 is the warm-up, whose samples are recorded but not counted.
    pub round: u32,
    /// Cancels the run.
    pub cancel: &'a Cancel,
    /// A seed for generators, different for each round and cell order.
    pub seed: u64,
}

/// Receives the result of one cell as soon as it is available.
pub type Emit<'a> = dyn FnMut(CellId, Result<Measurement, Error>) + 'a;

/// Turns cells into measurements.
///
/// Methods are called from one thread, in the order listed in the crate's documentation.
pub trait Engine {
    /// Returns the kind of this engine.
    fn kind(&self) -> EngineKind;

    /// Returns the storage of its configurations, if it has any.
    fn workspace(&self) -> Option<&Workspace>;

    /// Returns names and versions of its programs for the record, given all its cells; called once, before the first
    /// round.
    ///
    /// # Errors
    /// If a program that every cell needs is missing.
    fn versions(&mut self, cells: &[CellView<'_>]) -> Result<BTreeMap<String, String>, Error>;

    /// Returns why it cannot run a cell; `None` if it can.
    fn refuses(&self, cell: &CellView<'_>) -> Option<String>;

    /// Returns a batch key. Cells with the same key are passed to [`Engine::run`] together, such as the disks of one
    /// boot. The default runs each cell on its own.
    fn batch(&self, cell: &CellView<'_>) -> String {
        format!("{}", cell.id.0)
    }

    /// Returns the approximate time to start the programs of a batch, in addition to its workloads.
    fn overhead(&self, batch: &[CellView<'_>]) -> Duration;

    /// Returns the largest number of bytes that files take at once, by directory, given all cells of the engine.
    fn space(&self, cells: &[CellView<'_>]) -> Vec<(PathBuf, u64)> {
        let workspace = self.workspace();
        workspace.map_or_else(Vec::new, |workspace| workspace.space(cells, 1))
    }

    /// Creates the storage of one configuration, once.
    ///
    /// # Errors
    /// If it cannot be created; the cells are then left out with this reason.
    fn prepare(&mut self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        match self.workspace() {
            Some(workspace) => workspace.prepare(cells, cancel),
            None => cancel.check(),
        }
    }

    /// Measures the cells of one batch in this order and emits a result for each.
    ///
    /// # Errors
    /// If no further cell of the batch can be measured; cells without a result count as failed with this error.
    fn run(
        &mut self,
        batch: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error>;

    /// Removes everything that the engine created.
    ///
    /// # Errors
    /// If something could not be removed: all such failures in one text.
    fn cleanup(&mut self) -> Result<(), Error> {
        self.workspace().map_or(Ok(()), Workspace::clear)
    }
}
