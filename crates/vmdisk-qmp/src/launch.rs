//! Starting a QEMU that answers us.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::QmpError;
use crate::qemu::Qemu;
use crate::said::Said;

/// The id of our character device; no other option may use it.
const CHARDEV: &str = "vmdisk-qmp";

/// A QEMU to be started.
///
/// Its monitor is a socket that only this process has, at the descriptor of its standard input; standard output
/// goes nowhere unless [`Launch::stdout`] says otherwise, and standard error is kept for messages.
#[derive(Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    stdout: Stdio,
    patience: Duration,
}

impl Launch {
    /// A QEMU whose guest does not run (`-S`), without a display and without the settings of this user.
    pub fn paused(program: impl Into<PathBuf>) -> Self {
        Self::running(program).args(["-S", "-display", "none", "-no-user-config"])
    }

    /// A QEMU of which nothing is said yet but its arguments.
    pub fn running(program: impl Into<PathBuf>) -> Self {
        Launch {
            program: program.into(),
            arguments: Vec::new(),
            folder: None,
            stdout: Stdio::null(),
            patience: Duration::from_secs(30),
        }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, argument: impl AsRef<OsStr>) -> Self {
        self.arguments.push(argument.as_ref().to_owned());
        self
    }

    /// Adds arguments.
    #[must_use]
    pub fn args(mut self, arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Self {
        let arguments = arguments
            .into_iter()
            .map(|argument| argument.as_ref().to_owned());
        self.arguments.extend(arguments);
        self
    }

    /// Starts it in a folder, to which the relative paths of its arguments belong.
    #[must_use]
    pub fn in_folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Says where standard output goes, such as that of a guest's serial console.
    #[must_use]
    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = stdout.into();
        self
    }

    /// Sets the longest wait for the start and for each answer; 30 seconds if nothing is said.
    #[must_use]
    pub fn patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    /// Starts it, and returns when it has made all its devices and answers.
    ///
    /// # Errors
    /// If it does not start, refuses an option ([`QmpError::Ended`] with its text), or does not answer in time.
    pub fn start(self) -> Result<Qemu, QmpError> {
        let Launch {
            program,
            arguments,
            folder,
            stdout,
            patience,
        } = self;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&program);
        command
            .args(["-chardev", &format!("socket,id={CHARDEV},fd=0")])
            .args(["-qmp", &format!("chardev:{CHARDEV}")])
            .args(arguments)
            // QEMU's own texts are in English; the C library's are in what the environment says.
            .env("LC_ALL", "C")
            .stdin(OwnedFd::from(theirs))
            .stdout(stdout)
            .stderr(Stdio::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let spawned = command.spawn();
        // It holds the other end of the socket: QEMU's end is seen only when QEMU alone has it.
        drop(command);
        let mut child = spawned.map_err(|error| QmpError::Start { program, error })?;
        let pipe = child
            .stderr
            .take()
            .expect("standard error was asked to be a pipe");
        let said = match Said::of(pipe) {
            Ok(said) => said,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.into());
            }
        };
        Qemu::greet(child, said, ours, patience)
    }
}
