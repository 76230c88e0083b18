//! One boot: starts QEMU, reads the guest's messages, and queries QEMU for the flushes that arrived.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use rustix::fs::MemfdFlags;
use serde_json::{Value, json};
use vmdisk_facts::Target;
use vmdisk_model::{CacheMode, FrontendKind};
use vmdisk_qmp::Client;

use super::line::{self, DiskOfBoot, Name};
use crate::engines::counters::Counters;
use crate::engines::daemon::{Daemon, Export};
use crate::engines::node::Nodes;
use crate::engines::workspace::{Workspace, drop_cached};
use crate::guest::message::{DiskName, GuestJob, JOB_PATH, Message, Outcome, PORT, Task, messages};
use crate::guest::program::limit;
use crate::guest::{Archive, Kernel};
use crate::programs::{self, ProcessorTime, RunningProgram};
use crate::{
    Accelerator, CellView, CommandRecord, Emit, Error, Measurement, RunContext, Semantics,
    WriteCache,
};

/// Timeout for the guest's first message.
const KVM_TIMEOUT: Duration = Duration::from_secs(15);
const TCG_TIMEOUT: Duration = Duration::from_secs(180);

/// A cell with its disk in this boot.
#[derive(Debug)]
pub(super) struct TaskOfBoot<'a> {
    pub(super) cell: CellView<'a>,
    pub(super) disk: usize,
    pub(super) seed: u64,
    pub(super) fills: Vec<String>,
    pub(super) ramp: Option<String>,
    pub(super) fio: Option<String>,
}

/// Why a boot failed or ended early.
#[derive(Debug)]
pub(super) enum Failure {
    /// The guest sent no message, so it did not use its disks.
    NeverUp(String),
    Other(Error),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Failure::Other(error)
    }
}

impl From<Failure> for Error {
    fn from(failure: Failure) -> Self {
        match failure {
            Failure::NeverUp(why) => Error::program("the guest", why),
            Failure::Other(error) => error,
        }
    }
}

/// The input of a boot.
#[derive(Debug)]
pub(super) struct Session<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) target: &'a Target,
    pub(super) kernel: &'a Kernel,
    pub(super) archive: &'a [u8],
    pub(super) accelerator: Accelerator,
    /// True if a guest of this run has already started in the same way.
    pub(super) is_proven: bool,
    /// Why guests are emulated, if they are.
    pub(super) reason: &'a str,
}

/// Files of a boot, removed on drop.
#[derive(Debug)]
struct Files {
    directory: PathBuf,
    folder: File,
    name: String,
}

impl Files {
    fn new(workspace: &Workspace) -> Result<Self, Error> {
        let directory = workspace.scratch()?;
        let folder =
            File::open(&directory).map_err(|error| Error::io("open", &directory, error))?;
        Ok(Self {
            directory,
            folder,
            name: workspace.name("guest"),
        })
    }

    /// Returns the name of a file in QEMU's working directory.
    fn name(&self, kind: &str) -> String {
        format!("{}.{kind}", self.name)
    }

    fn path(&self, kind: &str) -> PathBuf {
        self.directory.join(self.name(kind))
    }

    /// Returns a path that is short enough for a socket.
    fn short_path(&self, kind: &str) -> PathBuf {
        Path::new(&format!("/proc/self/fd/{}", self.folder.as_raw_fd())).join(self.name(kind))
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        for kind in ["console", "port", "errors", "qmp"] {
            let _ = fs::remove_file(self.path(kind));
        }
    }
}

impl Session<'_> {
    /// Boots the guest and emits a result for each finished task.
    pub(super) fn run(
        &self,
        disks: &[DiskOfBoot<'_>],
        tasks: &[TaskOfBoot<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Failure> {
        let files = Files::new(self.workspace)?;
        let daemons = self.daemons(disks, context)?;
        let sockets: Vec<Option<String>> = disks
            .iter()
            .zip(&daemons)
            .map(|(disk, daemon)| match daemon {
                Some(daemon) => Some(daemon.socket.clone()),
                None => disk
                    .storage
                    .socket_queues()
                    .map(|_| disk.storage.path.display().to_string()),
            })
            .collect();
        let (mut argv, names) = line::words(
            disks,
            &sockets,
            self.accelerator,
            self.target,
            self.archive.len() as u64,
        )?;
        // All disks of a boot have the same launcher.
        let launcher = disks.first().map(|disk| &disk.configuration.launcher);
        argv.splice(0..0, launcher.into_iter().flatten().cloned());
        let job = job(tasks, &names, disks);
        let initrd = self.initrd(&job)?;
        argv.extend(self.boot_words(&files, &initrd)?);
        let errors = File::create_new(files.path("errors"))
            .map_err(|error| Error::io("create", files.path("errors"), error))?;
        let mut command = programs::command(&argv);
        command
            .current_dir(&files.directory)
            .stdout(Stdio::null())
            .stderr(errors);
        let mut qemu = RunningProgram::start(&mut command)?;
        let mut monitor = GuestMonitor {
            session: self,
            files: &files,
            disks,
            daemons: &daemons,
            names: &names,
            argv,
            client: None,
            control_iops: None,
            processor_time: ProcessorTime::begin(None),
            flushes: Vec::new(),
            counters: None,
        };
        let outcome = monitor.follow(&mut qemu, &job, tasks, context, emit);
        // Quit in order if possible, so that images are closed.
        if let Some(client) = &mut monitor.client {
            let _ = client.ask("quit", json!({}));
        }
        let ended = Instant::now() + Duration::from_secs(5);
        while Instant::now() < ended && matches!(qemu.ended(), Ok(None)) && outcome.is_ok() {
            std::thread::sleep(Duration::from_millis(20));
        }
        qemu.stop();
        outcome
    }

    /// Starts a daemon for each disk that needs one.
    fn daemons(
        &self,
        disks: &[DiskOfBoot<'_>],
        context: &RunContext<'_>,
    ) -> Result<Vec<Option<Daemon>>, Error> {
        disks
            .iter()
            .map(|disk| {
                let configuration = disk.configuration;
                let is_given = disk.storage.socket_queues().is_some();
                if !configuration.is_served_by_daemon || is_given {
                    return Ok(None);
                }
                let nodes = Nodes::of(configuration, &disk.storage, self.target)?;
                let frontend = &configuration.disk().frontend;
                let queues = frontend
                    .queues
                    .unwrap_or(configuration.guest.effective_vcpus());
                let export = Export::VhostUserBlk {
                    queues,
                    has_iothread: frontend.iothread.is_some(),
                };
                let cache = configuration.disk().backend.effective_cache();
                let scratch = self.workspace.scratch()?;
                let name = self.workspace.name("daemon");
                let launcher = &configuration.launcher;
                let cancel = context.cancel;
                Daemon::start(&scratch, &name, &nodes, export, cache, launcher, cancel).map(Some)
            })
            .collect()
    }

    fn boot_words(&self, files: &Files, initrd: &File) -> Result<Vec<String>, Error> {
        let kernel =
            self.kernel.image.to_str().ok_or_else(|| {
                Error::refused("to boot the kernel", "its path is not valid UTF-8")
            })?;
        // QEMU 7.2 sets wrong flags after CMPXCHG16B, which makes kernels since 6.11 panic; this CPU does not have it.
        let cpu = match self.accelerator {
            Accelerator::Kvm => "host",
            Accelerator::Tcg | Accelerator::NoGuest => "max,cx16=off",
        };
        Ok([
            "-cpu",
            cpu,
            "-no-reboot",
            "-display",
            "none",
            "-kernel",
            kernel,
            "-initrd",
            &format!("/proc/self/fd/{}", initrd.as_raw_fd()),
            "-append",
            "console=ttyS0 quiet panic=-1 loglevel=3 no_timer_check",
            "-serial",
            &format!("file:{}", files.name("console")),
            "-device",
            "virtio-serial-pci",
            "-chardev",
            &format!(
                "socket,id=vmdisk-bench-port,path={},server=on,wait=off",
                files.name("port")
            ),
            "-device",
            &format!("virtserialport,chardev=vmdisk-bench-port,name={PORT}"),
            "-qmp",
            &format!("unix:{},server=on,wait=off", files.name("qmp")),
        ]
        .map(str::to_owned)
        .into())
    }

    /// Returns the shared archive followed by one with the job, in memory so that the disk is idle when
    /// measuring begins.
    fn initrd(&self, job: &GuestJob) -> Result<File, Error> {
        let failed =
            |error: std::io::Error| Error::io("make", "the guest's initial file system", error);
        let mut second = Archive::default();
        let text = serde_json::to_vec(job).expect("a job holds only text and numbers");
        second.file(JOB_PATH, text, false);
        // QEMU inherits it.
        let memory = rustix::fs::memfd_create("vmdisk-bench-initrd", MemfdFlags::empty())
            .map_err(|error| failed(error.into()))?;
        let mut file = File::from(memory);
        // Both archives end at a multiple of 512 bytes, where the kernel looks for the next one.
        file.write_all(self.archive)
            .and_then(|()| file.write_all(&second.bytes()))
            .map_err(failed)?;
        Ok(file)
    }
}

fn job(tasks: &[TaskOfBoot<'_>], names: &[Name], disks: &[DiskOfBoot<'_>]) -> GuestJob {
    let tasks = tasks
        .iter()
        .map(|task| {
            let disk = &disks[task.disk];
            Task {
                disk: if disk.configuration.is_served_by_daemon {
                    DiskName::TheOther
                } else {
                    DiskName::Serial(names[task.disk].serial.clone())
                },
                workload: task.cell.workload.clone(),
                seed: task.seed,
                fills: task.fills.clone(),
                ramp: task.ramp.clone(),
                fio: task.fio.clone(),
            }
        })
        .collect();
    GuestJob { tasks }
}

/// The host's view of a running guest.
struct GuestMonitor<'a> {
    session: &'a Session<'a>,
    files: &'a Files,
    disks: &'a [DiskOfBoot<'a>],
    daemons: &'a [Option<Daemon>],
    names: &'a [Name],
    argv: Vec<String>,
    client: Option<Client>,
    control_iops: Option<f64>,
    /// Processor time of QEMU and its daemons since the last task.
    processor_time: ProcessorTime,
    /// Flushes that had arrived at each disk before the current task, if QEMU counts them.
    flushes: Vec<Option<u64>>,
    /// The devices of the host below the disk of the current task.
    counters: Option<Counters>,
}

/// The effect of a message.
enum Received {
    /// The guest starts the task with this index, if there is one.
    Ready(usize),
    /// The message names an unknown task.
    Unknown,
    /// All tasks are done.
    End,
}

impl GuestMonitor<'_> {
    fn follow(
        &mut self,
        qemu: &mut RunningProgram,
        job: &GuestJob,
        tasks: &[TaskOfBoot<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Failure> {
        let mut port: Option<UnixStream> = None;
        let timeout = match self.session.accelerator {
            Accelerator::Kvm if !self.session.is_proven => KVM_TIMEOUT,
            Accelerator::Kvm | Accelerator::Tcg | Accelerator::NoGuest => TCG_TIMEOUT,
        };
        let mut until = Instant::now() + timeout;
        let mut is_up = false;
        let mut read = Vec::new();
        loop {
            context.cancel.check()?;
            let ended = qemu.ended()?;
            let before = read.len();
            match &mut port {
                // The socket exists as soon as QEMU has read its options.
                None => port = self.connect(),
                // A port that cannot be read has sent nothing, and the end of QEMU is noticed below.
                Some(port) => drop(port.read_to_end(&mut read)),
            }
            let read_now = read.len() - before;
            let whole = read
                .iter()
                .rposition(|byte| *byte == b'\n')
                .map_or(0, |at| at + 1);
            let (news, strange) = messages(&read[..whole]);
            read.drain(..whole);
            if let Some(line) = strange.first() {
                return Err(
                    Error::program("the guest", format!("unexpected message `{line}`")).into(),
                );
            }
            for message in news {
                match self.receive(message, qemu, tasks, emit)? {
                    Received::Ready(next) => {
                        is_up = true;
                        until = Instant::now() + job.tasks.get(next).map_or(timeout, limit);
                        self.begin(tasks.get(next), qemu, port.as_mut())?;
                    }
                    Received::Unknown => {}
                    Received::End => return Ok(()),
                }
            }
            if let Some(status) = ended {
                if read_now > 0 {
                    continue;
                }
                return Err(self.failure(is_up, &format!("QEMU exited ({status})")));
            }
            if Instant::now() > until {
                let what = if is_up {
                    "a task took too long".to_owned()
                } else {
                    format!("the guest did not start within {} s", timeout.as_secs())
                };
                return Err(self.failure(is_up, &what));
            }
            std::thread::sleep(Duration::from_millis(30));
        }
    }

    fn connect(&self) -> Option<UnixStream> {
        let port = UnixStream::connect(self.files.short_path("port")).ok()?;
        port.set_nonblocking(true).ok()?;
        Some(port)
    }

    /// Prepares a task, so that no disk of the boot has pending or cached data, and lets the guest begin it.
    fn begin(
        &mut self,
        task: Option<&TaskOfBoot<'_>>,
        qemu: &RunningProgram,
        port: Option<&mut UnixStream>,
    ) -> Result<(), Error> {
        let (Some(task), Some(port)) = (task, port) else {
            return Ok(());
        };
        self.session.workspace.verify(task.cell.configuration)?;
        for disk in self.disks {
            drop_cached(&disk.storage)?;
        }
        self.counters = Some(Counters::begin(
            self.disks[task.disk].storage.counted_path(),
        ));
        self.processor_time = ProcessorTime::begin(self.processor_seconds(qemu));
        // A guest that is gone is noticed when it sends nothing.
        let _ = port.write_all(b"\n");
        Ok(())
    }

    /// Processes one message of the guest.
    fn receive(
        &mut self,
        message: Message,
        qemu: &RunningProgram,
        tasks: &[TaskOfBoot<'_>],
        emit: &mut Emit<'_>,
    ) -> Result<Received, Failure> {
        match message {
            Message::Hello {
                release: _,
                uptime_seconds: _,
                not_loaded,
                control_iops,
            } => {
                self.control_iops = Some(control_iops);
                if let Some(first) = not_loaded.first() {
                    let why = format!("a driver failed to load: {first}");
                    return Err(Error::program("the guest", why).into());
                }
                let socket = self.files.short_path("qmp");
                self.client = Client::connect(&socket, Duration::from_secs(10)).ok();
                self.begin_counting();
                Ok(Received::Ready(0))
            }
            Message::Done { task, outcome } => {
                let Some(of_boot) = tasks.get(task) else {
                    return Ok(Received::Unknown);
                };
                self.session.workspace.verify(of_boot.cell.configuration)?;
                let result = match outcome {
                    Outcome::Failed(why) => Err(Error::program("the guest", why)),
                    Outcome::Measured(mut measured) => {
                        let used = self.processor_seconds(qemu);
                        measured.qemu_cpu_seconds =
                            self.processor_time.of_sample(used, measured.seconds);
                        Ok(self.complete(measured, of_boot))
                    }
                };
                emit(of_boot.cell.id, result);
                Ok(Received::Ready(task + 1))
            }
            // The counters of its sample begin now.
            Message::Ramped { task } => {
                self.begin_counting();
                Ok(Received::Ready(task))
            }
            Message::End => Ok(Received::End),
        }
    }

    /// Returns the processor time used so far by QEMU and the daemons of its disks; `None` if another program serves one.
    fn processor_seconds(&self, qemu: &RunningProgram) -> Option<f64> {
        if self
            .disks
            .iter()
            .any(|disk| disk.storage.socket_queues().is_some())
        {
            return None;
        }
        let daemons = self.daemons.iter().flatten();
        let of_daemons: Option<f64> = daemons.map(Daemon::processor_seconds).sum();
        Some(qemu.processor_seconds()? + of_daemons?)
    }

    fn failure(&self, is_up: bool, what: &str) -> Failure {
        let errors = fs::read_to_string(self.files.path("errors")).unwrap_or_default();
        let console = fs::read(self.files.path("console")).unwrap_or_default();
        let console = String::from_utf8_lossy(&console);
        let mut said: Vec<&str> = errors
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .take(3)
            .collect();
        let last: Vec<&str> = console
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .collect();
        // The lines before the panic give the reason; the lines after it are a stack trace.
        let cut = last
            .iter()
            .position(|line| line.contains("Kernel panic"))
            .map_or(last.len(), |at| at + 1);
        said.extend(&last[cut.saturating_sub(5)..cut]);
        let why = if said.is_empty() {
            what.to_owned()
        } else {
            format!("{what}: {}", said.join(" / "))
        };
        if is_up {
            Failure::Other(Error::program("the guest", why))
        } else {
            Failure::NeverUp(why)
        }
    }

    fn begin_counting(&mut self) {
        self.flushes = self
            .disks
            .iter()
            .zip(self.names)
            .map(|(disk, name)| {
                let client = self.client.as_mut().filter(|_| !is_counted_by_host(disk))?;
                flushes_of_qemu(client, &name.device)
            })
            .collect();
    }

    /// Adds the host's observations to the guest's measurement, and checks its flushes.
    fn complete(&mut self, mut measured: Measurement, of_boot: &TaskOfBoot<'_>) -> Measurement {
        measured.accelerator = self.session.accelerator;
        measured.control_iops = self.control_iops;
        let disk = &self.disks[of_boot.disk];
        if let Some(daemon) = &self.daemons[of_boot.disk] {
            measured.commands.push(daemon.command.clone());
        }
        if disk.configuration.is_served_by_daemon {
            measured.notes.push(
                "config-wce=off was added to the device: without it QEMU loses every flush to its daemon"
                    .to_owned(),
            );
        }
        measured
            .commands
            .push(CommandRecord::new(self.argv.clone()));
        if self.session.accelerator == Accelerator::Tcg {
            measured.notes.push(format!(
                "emulated (TCG): {}; compare these figures only with each other",
                self.session.reason
            ));
        }
        measured.notes.extend(disk.storage.notes());
        let cache = disk.configuration.disk().backend.effective_cache();
        if disk.storage.socket_queues().is_none() {
            expected_cache(cache, &mut measured.semantics);
        }
        if let Some(counters) = self.counters.take() {
            counters.end(&of_boot.cell, disk.storage.length, &mut measured);
            if is_counted_by_host(disk) {
                let sent = measured.semantics.flushes_seen;
                counters.note_flushes(&of_boot.cell, &mut measured, cache != CacheMode::Unsafe);
                // The guest's count is more accurate: other programs use the host's disk too.
                measured.semantics.flushes_seen = sent;
            }
        }
        if !is_counted_by_host(disk) {
            let device = &self.names[of_boot.disk].device;
            let client = self.client.as_mut();
            let now = client.and_then(|client| flushes_of_qemu(client, device));
            let before = std::mem::replace(&mut self.flushes[of_boot.disk], now);
            if let (Some(asked), Some(before), Some(now)) =
                (measured.semantics.flushes_asked, before, now)
                && measured.semantics.write_cache == Some(WriteCache::WriteBack)
                && now.saturating_sub(before) < of_boot.cell.workload.load.least_flushes(asked)
            {
                measured.semantics.complaints.push(format!(
                    "{asked} flushes were requested, but only {} arrived at QEMU",
                    now.saturating_sub(before)
                ));
            }
        }
        measured
    }
}

/// Returns true if QEMU does not count the flushes of a disk: its daemon does the I/O, or the controller is NVMe.
fn is_counted_by_host(disk: &DiskOfBoot<'_>) -> bool {
    let configuration = disk.configuration;
    let kind = configuration.guest.frontend_kind(configuration.disk());
    configuration.is_served_by_daemon || kind == FrontendKind::Nvme
}

/// Adds a complaint if the guest's write cache does not match the cache mode.
fn expected_cache(cache: CacheMode, semantics: &mut Semantics) {
    let expected = match cache {
        CacheMode::None | CacheMode::Writeback | CacheMode::Unsafe => WriteCache::WriteBack,
        CacheMode::Writethrough | CacheMode::Directsync => WriteCache::WriteThrough,
    };
    if let Some(seen) = semantics.write_cache
        && seen != expected
    {
        semantics.complaints.push(format!(
            "cache={} means {expected:?}, but the guest sees {seen:?}",
            cache.as_str()
        ));
    }
}

/// Returns the flushes that have arrived at a device since QEMU started.
fn flushes_of_qemu(client: &mut Client, device: &str) -> Option<u64> {
    let answer = client.ask("query-blockstats", json!({})).ok()?;
    flushes_in(&answer, device)
}

/// Returns the count of the device with this name in its path: `/machine/peripheral/vda/virtio-backend`.
fn flushes_in(answer: &Value, device: &str) -> Option<u64> {
    let of_device = answer.as_array()?.iter().find(|stats| {
        stats["qdev"]
            .as_str()
            .is_some_and(|path| path.split('/').any(|part| part == device))
    })?;
    of_device["stats"]["flush_operations"].as_u64()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flushes_are_found_by_the_name_of_the_device() {
        let answer = json!([
            {"device": "", "qdev": "/machine/peripheral/vda/virtio-backend", "stats": {"flush_operations": 7}},
            {"device": "", "qdev": "sda", "stats": {"flush_operations": 9}},
            {"device": "x", "stats": {}}
        ]);
        assert_eq!(flushes_in(&answer, "vda"), Some(7));
        assert_eq!(flushes_in(&answer, "sda"), Some(9));
        assert_eq!(flushes_in(&answer, "vd"), None);
    }

    #[test]
    fn a_write_cache_that_contradicts_the_cache_mode_is_reported() {
        let mut semantics = Semantics {
            write_cache: Some(WriteCache::WriteThrough),
            ..Semantics::default()
        };
        expected_cache(CacheMode::None, &mut semantics);
        assert_eq!(semantics.complaints.len(), 1);
        semantics.complaints.clear();
        expected_cache(CacheMode::Directsync, &mut semantics);
        assert!(semantics.complaints.is_empty());
    }
}
