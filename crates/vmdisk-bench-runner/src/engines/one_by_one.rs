//! Measuring without batches, each sample after its ramp.

use super::storage::PreparedStorage;
use super::workspace::drop_cached;
use crate::{CellView, Emit, Error, Measurement, RunContext, Workload};

/// Measures the cells of a batch one after the other.
pub(super) fn one_by_one(
    batch: &[CellView<'_>],
    context: &RunContext<'_>,
    emit: &mut Emit<'_>,
    measure: impl Fn(&CellView<'_>) -> Result<Measurement, Error>,
) -> Result<(), Error> {
    for cell in batch {
        context.cancel.check()?;
        match measure(cell) {
            Err(error) if error.ends_run() => return Err(error),
            result => emit(cell.id, result),
        }
    }
    Ok(())
}

/// Runs the load of a steady cell for its ramp, and writes and drops what it left in the page cache.
pub(super) fn ramp(
    cell: &CellView<'_>,
    storage: &PreparedStorage,
    run: impl FnOnce(&Workload) -> Result<Measurement, Error>,
) -> Result<(), Error> {
    match cell.workload.ramp(cell.phase).map(|ramp| run(&ramp)) {
        None => Ok(()),
        Some(Err(error)) if error.ends_run() => Err(error),
        // A short ramp may end without a request.
        Some(_) => drop_cached(storage),
    }
}
