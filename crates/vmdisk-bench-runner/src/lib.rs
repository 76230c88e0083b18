//! Measures disk configurations on the host it runs on.
//!
//! A [`Plan`] is a list of [`Cell`]s: a [`Configuration`] (one disk of the model, in the guest around
//! it), a [`Workload`], an engine and a [`Phase`]. An [`Engine`] turns cells into [`Measurement`]s. The
//! method runs every cell once in each round, in an order shuffled by a recorded seed; each
//! measurement goes into the [`Journal`] of the run as a [`Sample`] immediately, so
//! that a stopped run keeps its samples and can be resumed.
//!
//! # What an engine does
//!
//! 1. [`Engine::refuses`] says, before anything exists, which cells it cannot run, and why.
//! 2. [`Engine::prepare`] makes what a configuration needs once: an image, filled with incompressible
//!    data where a [`Phase::Steady`] cell is to come.
//! 3. [`Engine::run`] gets the cells of one *batch* (cells that share [`Engine::batch`]: one boot of a
//!    guest) in the order in which they are to run, and emits one result for each. Storage of a
//!    [`Phase::FirstTouch`] cell is made anew before each sample, outside what is timed.
//! 4. [`Engine::cleanup`] removes the files that the engine created, and nothing else; it runs once, also after
//!    a failure or [`Cancel`].
//!
//! A measurement says what was really run: every command line, every job, and in
//! [`Semantics`] whether flushes arrived that the cell depends on. An engine never prints, and looks at
//! its [`Cancel`] at least once a second.

mod cancel;
mod engine;
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
pub use engine::{Emit, Engine, EngineKind, RunContext};
pub use error::{Error, Place};
pub use journal::{
    Entry, Header, Journal, Log, REPORTS, ReadJournal, SCHEMA_VERSION, Sample, taken,
};
pub use measurement::{
    Accelerator, CommandRecord, Direction, Latency, Measurement, PERCENTILES, Semantics,
    SeriesPoint, WriteCache,
};
pub use method::{
    Comparison, Ended, Estimate, Event, FEWEST_ROUNDS, Interval, Machine, Noise, Repetition, Round,
    Runner, SLOWEST, Settings, Summary, Surroundings, Values, Verdict, estimate,
};
pub use plan::{
    Access, Amount, BlockLoad, Cell, CellId, CellView, Configuration, ConfigurationRecord, FACTORS,
    Finding, FindingSeverity, InstallReplay, LeftOut, Limits, Load, MAX_PLAN_BYTES, Metric,
    PRESETS, Phase, Plan, PlanRecord, Preset, Proposal, Storage, Wishes, Workload, hash_of,
    plan_proposals, read_plan,
};
pub use report::{BenchResult, CellResult};
