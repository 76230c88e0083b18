//! Internal to vmdisk: measures disk configurations on the host it runs on.
//!
//! A [`Plan`] is a list of [`Cell`]s: a [`Configuration`] (one disk of the model, with its
//! guest), a [`Workload`], an engine and a [`Phase`]. An [`Engine`] turns cells into [`Measurement`]s. The
//! method runs every cell once in each round, in an order shuffled by a recorded seed; each
//! measurement is written to the [`Journal`] of the run as a [`Sample`] immediately, so
//! that a stopped run keeps its samples and can be resumed.
//!
//! # The steps of an engine
//!
//! 1. [`Engine::refuses`] reports, before anything is created, which cells it cannot run, and why.
//! 2. [`Engine::prepare`] creates the storage of a configuration once: an image, filled with incompressible
//!    data if there is a [`Phase::Steady`] cell.
//! 3. [`Engine::run`] receives the cells of one *batch* (cells that share [`Engine::batch`]: one boot of a
//!    guest) in the order of measurement, and emits one result for each. Storage of a
//!    [`Phase::FirstTouch`] cell is created before each sample, outside the timed seconds.
//! 4. [`Engine::cleanup`] removes the files that the engine created, and nothing else; it runs once, also after
//!    a failure or [`Cancel`].
//!
//! A measurement records what was really run: every command line, every job, and in
//! [`Semantics`] whether the required flushes arrived. An engine never prints, and checks
//! its [`Cancel`] at least once a second.

#![deny(clippy::too_many_lines, clippy::excessive_nesting)]

mod cancel;
mod engine;
mod engine_kind;
pub mod engines;
mod error;
pub mod guest;
pub mod host_changes;
mod journal;
mod measurement;
mod method;
pub mod mock;
mod plan;
mod programs;
pub mod report;
pub mod safety;

pub use cancel::Cancel;
pub use engine::{Emit, Engine, RunContext};
pub use engine_kind::EngineKind;
pub use error::{Error, TextLocation};
pub use journal::{
    Entry, Header, Journal, Log, RECORDS, REPORTS, ReadJournal, SCHEMA_VERSION, Sample, taken,
};
pub use measurement::{
    Accelerator, CommandRecord, DeviceUse, Direction, Latency, Measurement, PERCENTILES, Semantics,
    WriteCache,
};
pub use method::{
    CellValues, Comparison, Ended, Estimate, Event, HostMonitor, Interval, MIN_ROUNDS,
    MachineMonitor, Noise, Repetition, Round, Runner, SLOWEST, Settings, Summary, Verdict,
    estimate,
};
pub use plan::{
    Access, Amount, BlockLoad, Cell, CellId, CellView, Configuration, ConfigurationRecord,
    FindingSeverity, InstallReplay, LeftOut, Limits, LinterFinding, Load, MAX_PLAN_BYTES, Metric,
    NamedPair, PRESETS, Phase, Plan, PlanOptions, PlanRecord, Preset, Proposal, Storage, Workload,
    allowed_processors, factors, hash_of, numa_nodes, plan_proposals, read_plan,
};
pub use report::{BenchResult, CellResult, DeviceShare, LIMIT};
