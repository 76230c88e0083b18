//! What a step of a capture reports to the first: one JSON object per line.

use std::io::Write as _;

use serde::{Deserialize, Serialize};

use crate::start::CapturedStart;

/// What happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CaptureEvent {
    /// QEMU was started.
    Start(CapturedStart),
    /// A question, such as `--version`, that no QEMU on this machine answers.
    Unanswered(String),
    /// A program ran that starts programs elsewhere.
    NotFollowed(String),
    /// A folder in which writes fail, with the reason.
    ReadOnly(String, String),
    /// All processes have ended: the status of the first, and the last command that failed.
    Ended(i32, Option<String>),
    /// The sandbox could not be made.
    Refused(FailedStep),
}

/// A step of the sandbox that failed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailedStep {
    /// What was tried.
    pub step: String,
    /// The error.
    pub error: String,
}

impl FailedStep {
    pub(crate) fn new(step: impl Into<String>, error: impl std::fmt::Display) -> Self {
        FailedStep {
            step: step.into(),
            error: error.to_string(),
        }
    }
}

impl CaptureEvent {
    /// Writes a line to standard output, which is the pipe to the first step.
    pub(crate) fn report(&self) {
        let mut line = serde_json::to_vec(self).expect("it has no maps");
        line.push(b'\n');
        // The reader is gone only if the whole capture ends.
        let _ = std::io::stdout().lock().write_all(&line);
    }
}
