//! What can go wrong between us and a QEMU.

use std::io;
use std::path::PathBuf;
use std::process::ExitStatus;
use std::time::Duration;

/// Why a QEMU could not be started, reached or asked.
#[derive(Debug, thiserror::Error)]
pub enum QmpError {
    /// The program could not be started at all.
    #[error("{} does not start: {error}", program.display())]
    Start {
        /// The program.
        program: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// The process ended; what it wrote says why.
    #[error("{}", ended(*status, said))]
    Ended {
        /// How it ended; unknown for a process that is not ours.
        status: Option<ExitStatus>,
        /// What it wrote to its standard error.
        said: String,
    },
    /// There was no answer in time.
    #[error("no answer to {waiting_for} within {} seconds{}", limit.as_secs_f32(), after(said))]
    Late {
        /// The command, or `the greeting`.
        waiting_for: String,
        /// How long was waited.
        limit: Duration,
        /// What the process wrote to its standard error so far.
        said: String,
    },
    /// QEMU understood a command and would not do it.
    #[error("{command}: {description}")]
    Refused {
        /// The command.
        command: String,
        /// QMP's class of the error, such as `CommandNotFound`; nearly all are `GenericError`.
        class: String,
        /// QEMU's text.
        description: String,
    },
    /// What came is not QMP.
    #[error("this is not QMP: {0:?}")]
    NotQmp(String),
    /// There is nobody at a socket.
    #[error("no QMP socket at {}: {error}", path.display())]
    Connect {
        /// The socket.
        path: PathBuf,
        /// What the operating system says.
        error: io::Error,
    },
    /// The socket failed.
    #[error("the QMP socket failed: {0}")]
    Socket(#[from] io::Error),
}

impl QmpError {
    /// What QEMU wrote to its standard error before this happened; empty where nothing is known of that.
    pub fn said(&self) -> &str {
        match self {
            Self::Ended { said, .. } | Self::Late { said, .. } => said,
            Self::Start { .. }
            | Self::Refused { .. }
            | Self::NotQmp(_)
            | Self::Connect { .. }
            | Self::Socket(_) => "",
        }
    }
}

fn ended(status: Option<ExitStatus>, said: &str) -> String {
    let how = status.map_or_else(
        || "closed its monitor".to_owned(),
        |status| format!("ended ({status})"),
    );
    match said.trim() {
        "" => format!("QEMU {how} and wrote nothing"),
        said => format!("QEMU {how}: {said}"),
    }
}

fn after(said: &str) -> String {
    match said.trim() {
        "" => String::new(),
        said => format!("; QEMU wrote: {said}"),
    }
}
