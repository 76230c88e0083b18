//! Measuring without batches.

use crate::{CellView, Emit, Error, Measurement, RunContext};

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
