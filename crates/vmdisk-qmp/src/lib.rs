//! Starts a QEMU, or connects to one that runs, and asks it things over QMP.
//!
//! [`Launch`] starts a binary whose monitor is a socket that nobody else can reach; [`Qemu`] is the running
//! process, which ends with its value. [`Client`] alone talks to a socket of a QEMU that somebody else started.
//! Every wait has an end, and every error says what QEMU itself wrote.
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

mod client;
mod connect;
mod error;
mod event;
mod launch;
mod qemu;
mod said;

pub use client::{Client, Greeting};
pub use error::QmpError;
pub use event::Event;
pub use launch::Launch;
pub use qemu::Qemu;
