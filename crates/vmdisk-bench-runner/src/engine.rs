//! What turns cells into measurements.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Cancel, CellId, CellView, Error, Measurement};

/// Which engine measures a cell; results of different engines are compared only where a plan asks for that.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// fio on a file or device of the host: no QEMU at all.
    HostFio,
    /// `qemu-img bench`, retired: it sends requests in order, whatever the workload says. Results made with it can
    /// still be read.
    QemuImgBench,
    /// qemu-storage-daemon's vhost-user-blk export: block layer, virtqueue and event loop, no guest.
    StorageDaemon,
    /// qemu-storage-daemon's NBD export, driven by fio.
    StorageDaemonNbd,
    /// A real guest kernel on a real device model.
    Guest,
    /// No disk at all: planted numbers, for tests of the method.
    Mock,
}

impl EngineKind {
    /// Every engine that a plan may name.
    pub const ALL: [EngineKind; 5] = [
        EngineKind::HostFio,
        EngineKind::StorageDaemon,
        EngineKind::StorageDaemonNbd,
        EngineKind::Guest,
        EngineKind::Mock,
    ];

    /// The word that plans and results use.
    pub const fn name(self) -> &'static str {
        match self {
            EngineKind::HostFio => "host-fio",
            EngineKind::QemuImgBench => "qemu-img-bench",
            EngineKind::StorageDaemon => "storage-daemon",
            EngineKind::StorageDaemonNbd => "storage-daemon-nbd",
            EngineKind::Guest => "guest",
            EngineKind::Mock => "mock",
        }
    }

    /// The path that the engine measures, in one line for reports.
    pub const fn measures(self) -> &'static str {
        match self {
            EngineKind::HostFio => "the host's file or device, without QEMU",
            EngineKind::QemuImgBench => {
                "QEMU's block layer and image format, with requests in order at a fixed stride"
            }
            EngineKind::StorageDaemon => {
                "QEMU's block layer behind a virtqueue and an event loop, without a guest"
            }
            EngineKind::StorageDaemonNbd => "QEMU's block layer behind an NBD socket",
            EngineKind::Guest => "a guest's kernel on QEMU's device model: the whole path",
            EngineKind::Mock => "nothing: planted numbers",
        }
    }
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// What surrounds the measuring of one batch.
#[derive(Debug)]
pub struct RunContext<'a> {
    /// The round, from 1; 0 is the warm-up, whose samples are kept and not counted.
    pub round: u32,
    /// Asks to stop.
    pub cancel: &'a Cancel,
    /// A number that differs in each round and cell order, for generators that want one.
    pub seed: u64,
}

/// Takes the result of one cell, as soon as there is one.
pub type Emit<'a> = dyn FnMut(CellId, Result<Measurement, Error>) + 'a;

/// Turns cells into measurements.
///
/// Methods are called from one thread, in the order listed in the crate's documentation.
pub trait Engine {
    /// Which engine this is.
    fn kind(&self) -> EngineKind;

    /// Names and versions of the programs that it uses, for the record; read once, before the first round.
    ///
    /// # Errors
    /// If a program that every cell needs is missing.
    fn versions(&mut self) -> Result<BTreeMap<String, String>, Error>;

    /// Why it cannot run a cell; `None` if it can.
    fn refuses(&self, cell: &CellView<'_>) -> Option<String>;

    /// Cells with the same word here are handed to [`Engine::run`] together, such as the disks of one
    /// boot. The default runs each cell on its own.
    fn batch(&self, cell: &CellView<'_>) -> String {
        format!("{}", cell.id.0)
    }

    /// How long one start of a batch takes beyond the time of its workloads, about.
    fn overhead(&self) -> Duration;

    /// Bytes that files take at most at once, by the directory they are made in, given all cells of the engine.
    fn space(&self, cells: &[CellView<'_>]) -> Vec<(PathBuf, u64)>;

    /// Makes what the cells of one configuration need, once.
    ///
    /// # Errors
    /// If it cannot be made; the cells are then left out with this reason.
    fn prepare(&mut self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error>;

    /// Measures the cells of one batch, in this order, and emits a result for each.
    ///
    /// # Errors
    /// If no further cell of the batch can be measured; cells without a result count as failed with this error.
    fn run(
        &mut self,
        batch: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error>;

    /// Removes what the engine made.
    ///
    /// # Errors
    /// If something could not be removed: all of it, in one text.
    fn cleanup(&mut self) -> Result<(), Error>;
}
