//! Whether QEMU gets at a file: by permission bits and access lists, and whether somebody listens on a socket.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::fact::Fact;

/// What permission bits and access lists let QEMU's user do, as they were when the facts were collected.
///
/// libvirt gives an image itself to that user before it starts the guest (`dynamic_ownership`), but never a directory.
/// Security modules decide besides.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct QemuAccess {
    /// Whether it may go through every directory above.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub search: Fact<bool>,
    /// The uppermost directory it may not go through; absent when there is none.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub stopped_at: Fact<String>,
    /// Whether the file's own permissions let it read.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub read: Fact<bool>,
    /// Whether the file's own permissions let it write; connecting to a socket needs this.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub write: Fact<bool>,
}

/// A socket that a daemon serves, as of vhost-user. Nobody connected to it: many daemons serve one client only.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Socket {
    /// Whether somebody listens on it in the collector's network namespace.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub listening: Fact<bool>,
    /// Whether the collector may connect to it.
    #[serde(default, skip_serializing_if = "Fact::is_not_collected")]
    pub connectable: Fact<bool>,
}
