//! Internal to vmdisk: the I/O path of a disk: each step from the guest's device to the drives, and what becomes of a read, a write, a flush
//! and a discard there.
//!
//! [`trace`] derives an [`IoPath`] from the model, the facts of the host and the target. Each statement has its
//! [`StatementBasis`]: a setting, a fact, a documented behaviour, or the command that collects the missing fact. This crate reads
//! no files and renders nothing.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod attach;
mod backend;
mod chain;
mod device;
mod frontend;
mod host;
mod image;
mod loss;
mod path;
mod tracer;

pub use attach::{RULE_LAYERS, step_of};
pub use path::{
    CrashLoss, IoPath, Layer, Property, RequestEffect, RequestKind, RequestOutcome, Statement,
    StatementBasis, Survival, TraceStep,
};
pub use tracer::trace;
