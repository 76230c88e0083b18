//! The kinds of engines.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

vmdisk_source::words! {
    /// The engine of a cell; results of different engines are compared only if the plan asks for it.
    #[derive(Serialize, Deserialize)]
    #[cfg_attr(feature = "schema", derive(JsonSchema))]
    #[serde(rename_all = "kebab-case")]
    pub enum EngineKind as name {
        /// fio on a file or device of the host, without QEMU.
        HostFio = "host-fio",
        /// An export of qemu-storage-daemon: QEMU's block layer without a guest.
        StorageDaemon = "storage-daemon",
        /// A guest kernel on QEMU's device model.
        Guest = "guest",
        /// Preset numbers without a disk, for tests of the method.
        Mock = "mock",
    }
}

impl EngineKind {
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
