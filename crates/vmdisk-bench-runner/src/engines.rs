//! The engines that measure with real programs.

mod daemon;
pub(crate) mod fio;
pub(crate) mod flushes;
pub(crate) mod generator;
mod guest;
mod host_fio;
mod image_file;
pub(crate) mod latency;
mod node;
pub(crate) mod noise;
mod storage_daemon;
mod version;
mod workplace;

pub use workplace::{KernelSource, Workplace};

use crate::{CellView, Emit, Engine, EngineKind, Error, Measurement, RunContext};

/// An engine over the storage of a run; `None` for kinds that measure nothing here.
pub fn engine(kind: EngineKind, workplace: &Workplace) -> Option<Box<dyn Engine>> {
    match kind {
        EngineKind::HostFio => Some(Box::new(host_fio::HostFio::new(workplace))),
        EngineKind::StorageDaemon => Some(Box::new(storage_daemon::StorageDaemon::new(
            workplace,
            storage_daemon::Client::VhostUser,
        ))),
        EngineKind::StorageDaemonNbd => Some(Box::new(storage_daemon::StorageDaemon::new(
            workplace,
            storage_daemon::Client::Nbd,
        ))),
        EngineKind::Guest => Some(Box::new(guest::Guest::new(workplace))),
        EngineKind::Mock | EngineKind::QemuImgBench => None,
    }
}

/// Measures the cells of a batch one after the other, as engines do that start anew for each.
fn one_by_one(
    batch: &[CellView<'_>],
    context: &RunContext<'_>,
    emit: &mut Emit<'_>,
    measure: impl Fn(&CellView<'_>) -> Result<Measurement, Error>,
) -> Result<(), Error> {
    for cell in batch {
        context.cancel.check()?;
        emit(cell.id, measure(cell));
    }
    Ok(())
}
