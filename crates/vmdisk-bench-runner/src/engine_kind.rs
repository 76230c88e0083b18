//! The kinds of engines.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The engine of a cell; results of different engines are compared only if the plan asks for it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "kebab-case")]
pub enum EngineKind {
    /// fio on a file or device of the host, without QEMU.
    HostFio,
    /// `qemu-img bench`, retired: it sends requests in order regardless of the workload. Existing results remain
    /// readable.
    QemuImgBench,
    /// The vhost-user-blk export of qemu-storage-daemon: block layer, virtqueue and event loop, without a guest.
    StorageDaemon,
    /// The NBD export of qemu-storage-daemon, driven by fio.
    StorageDaemonNbd,
    /// A guest kernel on QEMU's device model.
    Guest,
    /// Preset numbers without a disk, for tests of the method.
    Mock,
}

impl EngineKind {
    /// Every engine that a plan may select.
    pub const ALL: [EngineKind; 5] = [
        EngineKind::HostFio,
        EngineKind::StorageDaemon,
        EngineKind::StorageDaemonNbd,
        EngineKind::Guest,
        EngineKind::Mock,
    ];

    /// Returns the name used in plans and results.
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

    /// Returns the measured path as one line for reports.
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
            EngineKind::Mock => "nothing: preset numbers",
        }
    }
}

impl std::fmt::Display for EngineKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}
