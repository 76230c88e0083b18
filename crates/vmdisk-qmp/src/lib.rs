//! Internal to vmdisk: starts a QEMU, or connects to a running one, and queries it over QMP.
//!
//! [`Launch`] starts a binary with a private socket for its monitor; [`QemuProcess`] is the running
//! process, which is killed on drop. [`Client`] alone connects to the socket of a QEMU that another program started.
//! Every wait has a timeout, and every error includes QEMU's own messages.
//!
//! ```no_run
//! use serde_json::json;
//! use vmdisk_qmp::Launch;
//!
//! let mut qemu = Launch::paused("qemu-system-x86_64").args(["-machine", "none"]).start()?;
//! let nodes = qemu.ask("query-named-block-nodes", json!({}))?;
//! assert_eq!(nodes, json!([]));
//! # Ok::<(), vmdisk_qmp::QmpError>(())
//! ```

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod client;
mod connect;
mod error;
mod event;
mod introspect;
mod launch;
mod qemu;
mod schema;
mod stderr;

pub use client::{Client, Greeting};
pub use error::QmpError;
pub use event::Event;
pub use introspect::introspect;
pub use launch::Launch;
pub use qemu::QemuProcess;
pub use stderr::OutputCollector;
