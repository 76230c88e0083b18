//! Errors of starting or querying a QEMU.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a QEMU could not be started, reached or queried.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// The program could not be started.
    #[error("could not start {}: {error}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The process exited; its standard error says why.
    #[error("{}", ended(*status, stderr))]
    Ended {
        /// Its exit status; unknown if another program started it.
        status: Option<ExitStatus>,
        /// Its standard error.
        stderr: String,
    },
    /// There was no answer before the timeout.
    #[error("no answer to {waiting_for} within {} seconds{}", limit.as_secs_f32(), after(stderr))]
    Timeout {
        /// The command, or `the greeting`.
        waiting_for: String,
        /// The timeout.
        limit: Duration,
        /// The standard error of the process so far.
        stderr: String,
    },
    /// QEMU refused a command.
    #[error("{command}: {description}")]
    Refused {
        /// The command.
        command: String,
        /// The QMP class of the error, such as `CommandNotFound`; nearly all are `GenericError`.
        class: String,
        /// QEMU's message.
        description: String,
    },
    /// A message is not QMP.
    #[error("not a QMP message: {0:?}")]
    NotQmp(String),
    /// A socket cannot be connected.
    #[error("could not connect to QMP socket {}: {error}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// The operating system's error.
        error: io::Error,
    },
    /// The socket failed.
    #[error("the QMP socket failed: {0}")]
    Socket(#[from] io::Error),
}

impl QmpError {
    /// Returns QEMU's standard error before the failure; empty if it is unknown.
    pub fn stderr(&self) -> &str {
        match self {
            Self::Ended { stderr, .. } | Self::Timeout { stderr, .. } => stderr,
            _ => "",
        }
    }
}

fn ended(status: Option<ExitStatus>, stderr: &str) -> String {
    let how = status.map_or_else(
        || "closed its monitor".to_owned(),
        |status| format!("exited ({status})"),
    );
    match stderr.trim() {
        "" => format!("QEMU {how} without a message"),
        stderr => format!("QEMU {how}: {stderr}"),
    }
}

fn after(stderr: &str) -> String {
    match stderr.trim() {
        "" => String::new(),
        stderr => format!("; QEMU wrote: {stderr}"),
    }
}
