//! Starting a QEMU with a monitor.

use std::ffi::{OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::error::QmpError;
use crate::qemu::QemuProcess;
use crate::stderr::OutputCollector;

/// The id of our character device; no other option may use it.
const CHARDEV: &str = "vmdisk-qmp";

/// The configuration of a QEMU to start.
///
/// Its monitor is a private socket, passed as standard input. Standard output
/// is discarded unless [`Launch::stdout`] is used, and standard error is collected for messages.
#[derive(Debug)]
pub struct Launch {
    program: PathBuf,
    arguments: Vec<OsString>,
    folder: Option<PathBuf>,
    stdout: Stdio,
    timeout: Duration,
}

impl Launch {
    /// Configures a QEMU with a paused guest (`-S`), without a display and the user's configuration files.
    pub fn paused(program: impl Into<PathBuf>) -> Self {
        Self::running(program).args(["-S", "-display", "none", "-no-user-config"])
    }

    /// Configures a QEMU without any arguments.
    pub fn running(program: impl Into<PathBuf>) -> Self {
        Launch {
            program: program.into(),
            arguments: Vec::new(),
            folder: None,
            stdout: Stdio::null(),
            timeout: Duration::from_secs(60),
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

    /// Sets the working directory, the base of relative paths in arguments.
    #[must_use]
    pub fn in_folder(mut self, folder: impl AsRef<Path>) -> Self {
        self.folder = Some(folder.as_ref().to_owned());
        self
    }

    /// Sets standard output, for example for a guest's serial console.
    #[must_use]
    pub fn stdout(mut self, stdout: impl Into<Stdio>) -> Self {
        self.stdout = stdout.into();
        self
    }

    /// Sets the timeout for the start and for each answer; 60 seconds by default.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Starts QEMU, and returns when its devices exist and its monitor answers.
    ///
    /// # Errors
    /// If it does not start, refuses an option ([`QmpError::Ended`] with its message), or does not answer before the timeout.
    pub fn start(self) -> Result<QemuProcess, QmpError> {
        let Launch {
            program,
            arguments,
            folder,
            stdout,
            timeout,
        } = self;
        let (ours, theirs) = UnixStream::pair()?;
        let mut command = Command::new(&program);
        command
            .args(["-chardev", &format!("socket,id={CHARDEV},fd=0")])
            .args(["-qmp", &format!("chardev:{CHARDEV}")])
            .args(arguments)
            // QEMU's own messages are in English; the C library's depend on the locale.
            .env("LC_ALL", "C")
            .stdin(OwnedFd::from(theirs))
            .stdout(stdout)
            .stderr(Stdio::piped());
        if let Some(folder) = folder {
            command.current_dir(folder);
        }
        let spawned = command.spawn();
        // The command holds the other end of the socket; QEMU's exit closes the socket only if no one else has it.
        drop(command);
        let mut child = spawned.map_err(|error| QmpError::Start { program, error })?;
        let pipe = child.stderr.take().expect("standard error is a pipe");
        let stderr = match OutputCollector::of(pipe) {
            Ok(stderr) => stderr,
            Err(error) => {
                let _ = child.kill();
                let _ = child.wait();
                return Err(error.into());
            }
        };
        QemuProcess::greet(child, stderr, ours, timeout)
    }
}
