//! The engines that measure with real programs.

mod daemon;
mod fio;
mod flushes;
mod generator;
mod host_fio;
mod latency;
mod node;
mod noise;
mod qemu_img_bench;
mod storage_daemon;
mod workplace;

pub use workplace::Workplace;

use crate::{Engine, EngineKind};

/// An engine over the storage of a run; `None` for [`EngineKind::Mock`], which measures nothing.
pub fn engine(kind: EngineKind, workplace: &Workplace) -> Option<Box<dyn Engine>> {
    match kind {
        EngineKind::HostFio => Some(Box::new(host_fio::HostFio::new(workplace))),
        EngineKind::QemuImgBench => Some(Box::new(qemu_img_bench::QemuImgBench::new(workplace))),
        EngineKind::StorageDaemon => Some(Box::new(storage_daemon::StorageDaemon::new(
            workplace,
            storage_daemon::Client::VhostUser,
        ))),
        EngineKind::StorageDaemonNbd => Some(Box::new(storage_daemon::StorageDaemon::new(
            workplace,
            storage_daemon::Client::Nbd,
        ))),
        EngineKind::Guest | EngineKind::Mock => None,
    }
}
