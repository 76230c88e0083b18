//! The settings of a run, and what its journal records beside samples.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::looks::Repetition;
use super::noise::Noise;
use crate::CellId;

/// The settings of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Seed of every order.
    pub seed: u64,
    /// Number of rounds.
    pub repetition: Repetition,
    /// Seconds after which no further round starts.
    pub time_budget_seconds: f64,
    /// True if cells on steady storage run once before the first round, uncounted.
    pub has_warm_up: bool,
    /// True if the run may measure on a machine that is not quiet; such samples are marked.
    pub accepts_noise: bool,
}

/// One round of a run, recorded when it begins.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(deny_unknown_fields)]
pub struct Round {
    /// Its number; 0 is the warm-up.
    pub round: u32,
    /// Start of the round, in seconds since the run began.
    pub at_seconds: f64,
    /// The cells, in the order of measurement.
    pub order: Vec<CellId>,
    /// Steps per second of arithmetic without a disk.
    pub control: f64,
    /// Other activity on the machine.
    pub noise: Noise,
    /// The disturbing part of that activity; samples of the round still count, and the report names it.
    pub disturbances: Vec<String>,
}

/// Why a run ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Ended {
    /// Every comparison has the requested precision.
    Precise,
    /// All rounds are complete.
    AllRounds,
    /// Another round would have exceeded the time budget.
    TimeBudget,
    /// It was stopped and can be resumed.
    Stopped,
    /// No remaining cell could be measured.
    NothingLeft,
}
