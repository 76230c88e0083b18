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
    /// An export of qemu-storage-daemon: QEMU's block layer without a guest.
    StorageDaemon,
    /// A guest kernel on QEMU's device model.
    Guest,
    /// Preset numbers without a disk, for tests of the method.
    Mock,
}

impl EngineKind {
    /// Every engine that a plan may select.
    pub const ALL: [EngineKind; 4] = [
        EngineKind::HostFio,
        EngineKind::StorageDaemon,
        EngineKind::Guest,
        EngineKind::Mock,
    ];

    /// Returns the name used in plans and results.
    pub const fn name(self) -> &'static str {
        match self {
            EngineKind::HostFio => "host-fio",
            EngineKind::StorageDaemon => "storage-daemon",
            EngineKind::Guest => "guest",
            EngineKind::Mock => "mock",
        }
    }

    /// Returns the measured path as one line for reports.
    pub const fn measures(self) -> &'static str {
        match self {
            EngineKind::HostFio => "the host's file or device, without QEMU",
            EngineKind::StorageDaemon => {
                "QEMU's block layer and image format behind a socket, without a guest"
            }
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
