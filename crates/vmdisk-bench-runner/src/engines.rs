//! Engines that measure with external programs.

pub(crate) mod counters;
mod daemon;
pub(crate) mod fio;
mod guest;
mod host_fio;
mod image_file;
pub(crate) mod latency;
mod node;
pub(crate) mod noise;
mod one_by_one;
mod socket;
mod storage;
mod storage_daemon;
mod version;
pub(crate) mod workspace;

pub use workspace::{KernelSource, Workspace};

use crate::{Engine, EngineKind};

/// Creates an engine over the storage of a run; `None` for kinds without an engine here.
pub fn engine(kind: EngineKind, workspace: &Workspace) -> Option<Box<dyn Engine>> {
    match kind {
        EngineKind::HostFio => Some(Box::new(host_fio::HostFio::new(workspace))),
        EngineKind::StorageDaemon => Some(Box::new(storage_daemon::StorageDaemon::new(workspace))),
        EngineKind::Guest => Some(Box::new(guest::Guest::new(workspace))),
        EngineKind::Mock => None,
    }
}
