//! A qemu-storage-daemon that exports one disk on a socket.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use vmdisk_model::CacheMode;

use super::node::Nodes;
use crate::programs::{self, RunningProgram};
use crate::{Cancel, CommandRecord, Error};

pub(crate) const PROGRAM: &str = "qemu-storage-daemon";

/// Timeout for the daemon to listen on its socket.
const TIMEOUT: Duration = Duration::from_secs(20);

/// The protocol of the export.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Export {
    VhostUserBlk {
        queues: u32,
        has_iothread: bool,
    },
    /// Without an iothread: with one, QEMU 7.2 aborts when the first client disconnects, and fio connects twice.
    Nbd,
}

/// A running daemon; dropping it stops the daemon.
#[derive(Debug)]
pub(crate) struct Daemon {
    running: RunningProgram,
    directory: PathBuf,
    folder: File,
    /// Name of the socket in the daemon's working directory.
    pub(crate) socket: String,
    errors: PathBuf,
    pub(crate) command: CommandRecord,
}

impl Daemon {
    /// Starts a daemon in a directory and waits until it listens.
    pub(crate) fn start(
        directory: &Path,
        name: &str,
        nodes: &Nodes,
        export: Export,
        cache: CacheMode,
        launcher: &[String],
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        // A relative path is short enough for a socket address, wherever the directory is.
        let socket = format!("{name}.socket");
        let mut argv = launcher.to_vec();
        argv.push(PROGRAM.to_owned());
        argv.extend(nodes.words("--blockdev"));
        let top = nodes.top();
        // The export has the write cache: with `writethrough`, each write is followed by a flush.
        let write_through = match cache {
            CacheMode::Writethrough | CacheMode::Directsync => "on",
            CacheMode::None | CacheMode::Writeback | CacheMode::Unsafe => "off",
        };
        match export {
            Export::VhostUserBlk {
                queues,
                has_iothread,
            } => {
                let mut export = format!(
                    "type=vhost-user-blk,id=export,node-name={top},writable=on,writethrough={write_through},\
                     num-queues={queues},addr.type=unix,addr.path={socket}"
                );
                if has_iothread {
                    argv.extend(["--object".to_owned(), "iothread,id=iothread".to_owned()]);
                    export.push_str(",iothread=iothread");
                }
                argv.extend(["--export".to_owned(), export]);
            }
            Export::Nbd => {
                argv.extend([
                    "--nbd-server".to_owned(),
                    format!("addr.type=unix,addr.path={socket},max-connections=0"),
                    "--export".to_owned(),
                    format!(
                        "type=nbd,id=export,node-name={top},name=disk,writable=on,writethrough={write_through}"
                    ),
                ]);
            }
        }
        let errors = directory.join(format!("{name}.errors"));
        let said = OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&errors)
            .map_err(|error| Error::io("create", &errors, error))?;
        let folder = File::open(directory).map_err(|error| Error::io("open", directory, error))?;
        let mut command = programs::command(&argv);
        command
            .current_dir(directory)
            .stdout(Stdio::null())
            .stderr(said);
        let mut daemon = Self {
            running: RunningProgram::start(&mut command)?,
            directory: directory.to_owned(),
            folder,
            socket,
            errors,
            command: CommandRecord::new(argv),
        };
        let until = Instant::now() + TIMEOUT;
        // The daemon binds the socket before it listens, and creates the export before it serves it.
        while !daemon.listens() {
            cancel.check()?;
            daemon.check()?;
            if Instant::now() > until {
                return Err(Error::Budget(format!(
                    "{PROGRAM} did not listen within {} s",
                    TIMEOUT.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(daemon)
    }

    /// Returns a short path of the socket, independent of the length of the directory's path.
    pub(crate) fn short_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd())).join(&self.socket)
    }

    fn listens(&self) -> bool {
        let path = self.short_path();
        let Ok(mounted) = std::fs::read_to_string("/proc/net/unix") else {
            return path.exists();
        };
        // Flag 00010000 marks a listening socket; a test connection would use up the only one the export accepts.
        mounted.lines().any(|line| {
            let mut words = line.split_whitespace();
            let (flags, name) = (words.nth(3), words.next_back());
            flags == Some("00010000") && name == Some(self.socket.as_str())
        }) && path.exists()
    }

    /// Returns an error if the daemon has exited.
    pub(crate) fn check(&mut self) -> Result<(), Error> {
        match self.running.ended()? {
            None => Ok(()),
            Some(status) => Err(Error::program(
                PROGRAM,
                format!("{} ({status})", self.said()),
            )),
        }
    }

    fn said(&self) -> String {
        let text = std::fs::read_to_string(&self.errors).unwrap_or_default();
        let text = text.trim();
        if text.is_empty() {
            "no output".to_owned()
        } else {
            text.to_owned()
        }
    }

    /// Returns the processor time used so far.
    pub(crate) fn processor_seconds(&self) -> Option<f64> {
        self.running.processor_seconds()
    }

    /// Shuts the daemon down so that the image is closed.
    pub(crate) fn stop(mut self) {
        self.running.stop();
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        self.running.stop();
        let _ = std::fs::remove_file(self.directory.join(&self.socket));
        let _ = std::fs::remove_file(&self.errors);
    }
}
