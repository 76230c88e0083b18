//! A qemu-storage-daemon that serves one disk on a socket.

use std::fs::{File, OpenOptions};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use vmdisk_model::CacheMode;

use super::node::Nodes;
use crate::programs::{self, Running};
use crate::{Cancel, CommandRecord, Error};

pub(crate) const PROGRAM: &str = "qemu-storage-daemon";

/// Timeout for the daemon to serve a disk.
const PATIENCE: Duration = Duration::from_secs(20);

/// How a disk is served.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Export {
    VhostUserBlk {
        queues: u32,
        has_iothread: bool,
    },
    /// An event loop of its own makes QEMU 7.2 abort when the first client leaves, and fio comes twice.
    Nbd,
}

/// A daemon that runs; it ends with its value.
#[derive(Debug)]
pub(crate) struct Daemon {
    running: Running,
    directory: PathBuf,
    folder: File,
    /// Name of the socket in the directory that the daemon runs in.
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
        cancel: &Cancel,
    ) -> Result<Self, Error> {
        // A path within a directory is short enough for any socket, wherever the directory is.
        let socket = format!("{name}.socket");
        let mut argv = vec![PROGRAM.to_owned()];
        argv.extend(nodes.words("--blockdev"));
        let top = nodes.top();
        // The write cache is the export's: without it each write is followed by a flush.
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
            running: Running::start(&mut command)?,
            directory: directory.to_owned(),
            folder,
            socket,
            errors,
            command: CommandRecord::new(argv),
        };
        let until = Instant::now() + PATIENCE;
        // The daemon makes its socket before it listens on it, and the export before it serves.
        while !daemon.listens() {
            cancel.check()?;
            daemon.check()?;
            if Instant::now() > until {
                return Err(Error::Budget(format!(
                    "{PROGRAM} does not listen after {} s",
                    PATIENCE.as_secs()
                )));
            }
            std::thread::sleep(Duration::from_millis(10));
        }
        Ok(daemon)
    }

    /// The socket by a path that is short whatever the directory's is.
    pub(crate) fn short_path(&self) -> PathBuf {
        PathBuf::from(format!("/proc/self/fd/{}", self.folder.as_raw_fd())).join(&self.socket)
    }

    fn listens(&self) -> bool {
        let path = self.short_path();
        let Ok(mounted) = std::fs::read_to_string("/proc/net/unix") else {
            return path.exists();
        };
        // Flag 00010000 is a socket that listens; connecting to see would take the only connection there is.
        mounted.lines().any(|line| {
            let mut words = line.split_whitespace();
            let (flags, name) = (words.nth(3), words.next_back());
            flags == Some("00010000") && name == Some(self.socket.as_str())
        }) && path.exists()
    }

    /// An error if it has exited.
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
            "it said nothing".to_owned()
        } else {
            text.to_owned()
        }
    }

    /// Processor time that it has used so far.
    pub(crate) fn processor_seconds(&self) -> Option<f64> {
        self.running.processor_seconds()
    }

    /// Ends it in order, so that the image is closed.
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
