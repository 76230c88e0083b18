//! qemu-storage-daemon: QEMU's block layer with a virtqueue and an event loop, or with an NBD socket.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vmdisk_facts::Target;
use vmdisk_model::CacheMode;

use super::daemon::{Daemon, Export, PROGRAM};
use super::fio::{self, InstalledFio, IoEngine, Target as FioTarget};
use super::generator::{self, Range, RequestTarget};
use super::node::Nodes;
use super::one_by_one::one_by_one;
use super::storage::PreparedStorage;
use super::version;
use super::workspace::Workspace;
use crate::programs::{self, ProcessorTime};
use crate::{
    BlockLoad, Cancel, CellView, Emit, Engine, EngineKind, Error, Load, Measurement, Phase,
    RunContext, Storage,
};

/// The client that sends requests to the daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Client {
    /// Our generator, on vhost-user-blk.
    VhostUser,
    /// fio, over NBD.
    Nbd,
}

/// qemu-storage-daemon with a client.
#[derive(Debug)]
pub(crate) struct StorageDaemon {
    workspace: Workspace,
    client: Client,
    target: Target,
    /// The I/O engine of fio for targets other than NBD.
    io_engine: Option<IoEngine>,
}

impl StorageDaemon {
    pub(crate) fn new(workspace: &Workspace, client: Client) -> Self {
        Self {
            workspace: workspace.clone(),
            client,
            target: Target::default(),
            io_engine: None,
        }
    }

    fn measure(&self, cell: &CellView<'_>, context: &RunContext<'_>) -> Result<Measurement, Error> {
        let Load::Blocks(blocks) = &cell.workload.load else {
            return Err(Error::Semantics("a daemon cannot replay files".to_owned()));
        };
        self.workspace.measure_on(cell, context.cancel, |storage| {
            self.sample(cell, blocks, storage, context)
        })
    }

    fn sample(
        &self,
        cell: &CellView<'_>,
        blocks: &BlockLoad,
        storage: &PreparedStorage,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let configuration = cell.configuration;
        if storage.socket_queues().is_some() {
            return self.generated(cell, blocks, storage, &storage.path, context);
        }
        let nodes = Nodes::of(configuration, storage, &self.target)?;
        let cache = configuration.disk().backend.effective_cache();
        let export = match self.client {
            Client::VhostUser => Export::VhostUserBlk {
                queues: blocks.jobs.max(1),
                has_iothread: configuration.disk().frontend.iothread.is_some(),
            },
            Client::Nbd => Export::Nbd,
        };
        let scratch = self.workspace.scratch()?;
        let name = self.workspace.name("daemon");
        let launcher = &configuration.launcher;
        let mut daemon = Daemon::start(
            &scratch,
            &name,
            &nodes,
            export,
            cache,
            launcher,
            context.cancel,
        )?;
        let counted = storage.counted_device();
        let processor_time = ProcessorTime::begin(daemon.processor_seconds());
        let measured = match self.client {
            Client::VhostUser => {
                self.generated(cell, blocks, storage, &daemon.short_path(), context)
            }
            Client::Nbd => self.fio(cell, storage, &daemon, context),
        };
        // If the daemon exited, its message is the better explanation.
        daemon.check()?;
        let mut measured = measured?;
        measured.qemu_cpu_seconds =
            processor_time.of_sample(daemon.processor_seconds(), measured.seconds);
        if let Some(counted) = &counted {
            // Without a volatile cache flushes have no effect.
            let reaches = matches!(cache, CacheMode::None | CacheMode::Writeback);
            counted.note(&mut measured.semantics, reaches);
        }
        measured.commands.insert(0, daemon.command.clone());
        daemon.stop();
        Ok(measured)
    }

    fn generated(
        &self,
        cell: &CellView<'_>,
        blocks: &BlockLoad,
        storage: &PreparedStorage,
        socket: &Path,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let generated = generator::generate(
            RequestTarget::VhostUser(socket),
            blocks,
            cell.workload,
            Range {
                offset: storage.offset,
                length: storage.length,
            },
            context.seed,
            context.cancel,
        )?;
        Ok(generated.measurement(blocks))
    }

    fn fio(
        &self,
        cell: &CellView<'_>,
        storage: &PreparedStorage,
        daemon: &Daemon,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let name = self.workspace.name("fio");
        // Socket, job and log are named relative to one directory.
        let uri = format!("nbd+unix:///disk?socket={}", daemon.socket);
        let target = FioTarget::Nbd {
            uri: &uri,
            length: storage.length,
        };
        let io_engine = fio::needed(self.io_engine)?;
        let job = fio::job(cell.workload, target, io_engine, context.seed, Some(&name));
        let scratch = self.workspace.scratch()?;
        // Only the daemon is pinned: fio is the client.
        fio::run(&scratch, &name, job, &[], cell.workload, context.cancel)
    }
}

fn is_given_socket(cell: &CellView<'_>) -> bool {
    matches!(cell.configuration.storage, Storage::Socket { .. })
}

impl Engine for StorageDaemon {
    fn kind(&self) -> EngineKind {
        match self.client {
            Client::VhostUser => EngineKind::StorageDaemon,
            Client::Nbd => EngineKind::StorageDaemonNbd,
        }
    }

    fn versions(&mut self, cells: &[CellView<'_>]) -> Result<BTreeMap<String, String>, Error> {
        let mut versions = BTreeMap::new();
        // The version of the program behind a given socket is unknown.
        if cells.iter().any(|cell| !is_given_socket(cell)) {
            let (text, target) = version::of_qemu(PROGRAM)?;
            self.target = target;
            versions.insert(PROGRAM.to_owned(), text);
        }
        match self.client {
            Client::VhostUser => {
                versions.extend([version::of_generator()]);
            }
            Client::Nbd => {
                let InstalledFio { version, io_engine } = fio::installed()?;
                self.io_engine = io_engine;
                versions.insert("fio".to_owned(), version);
            }
        }
        Ok(versions)
    }

    fn refuses(&self, cell: &CellView<'_>) -> Option<String> {
        if !is_given_socket(cell) && !programs::is_installed(PROGRAM) {
            return Some(format!("{PROGRAM} is not installed"));
        }
        let why = match &cell.workload.load {
            Load::InstallReplay(_) => {
                "an install replay needs a file system, which a daemon's disk does not have"
            }
            Load::Blocks(_) if self.client == Client::Nbd && !programs::is_installed("fio") => {
                "fio is not installed"
            }
            Load::Blocks(blocks) if blocks.is_blocking && blocks.depth > 1 => {
                "blocking calls are not supported by the generator"
            }
            Load::Blocks(_)
                if self.client == Client::Nbd
                    && matches!(cell.configuration.storage, Storage::Device { .. }) =>
            {
                "fio over NBD cannot exclude the markers at both ends of a device"
            }
            Load::Blocks(_) => {
                return Workspace::refuses(cell.configuration, cell.phase == Phase::FirstTouch);
            }
        };
        Some(why.to_owned())
    }

    fn overhead(&self, _batch: &[CellView<'_>]) -> Duration {
        Duration::from_secs(1)
    }

    fn space(&self, cells: &[CellView<'_>]) -> Vec<(PathBuf, u64)> {
        self.workspace.space(cells, 1)
    }

    fn prepare(&mut self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        self.workspace.prepare(cells, cancel)
    }

    fn run(
        &mut self,
        batch: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        one_by_one(batch, context, emit, |cell| self.measure(cell, context))
    }

    fn cleanup(&mut self) -> Result<(), Error> {
        self.workspace.clear()
    }
}
