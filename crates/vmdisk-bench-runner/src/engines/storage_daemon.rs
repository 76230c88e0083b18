//! qemu-storage-daemon: QEMU's block layer behind a virtqueue and an event loop, or behind an NBD socket.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::Duration;

use vmdisk_facts::Target;
use vmdisk_model::CacheMode;

use super::daemon::{Daemon, Export, PROGRAM};
use super::fio::{self, Installed, IoEngine, Target as FioTarget};
use super::flushes::CountedDevice;
use super::generator::{self, Driven, Range};
use super::node::Nodes;
use super::workplace::{Fresh, Place, Workplace};
use super::{one_by_one, version};
use crate::programs::{self, ProcessorTime};
use crate::{
    BlockLoad, Cancel, CellView, Emit, Engine, EngineKind, Error, Load, Measurement, Phase,
    RunContext,
};

/// What sends requests to the daemon.
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
    workplace: Workplace,
    client: Client,
    target: Target,
    /// How fio would send requests to something else than NBD.
    io_engine: Option<IoEngine>,
}

impl StorageDaemon {
    pub(crate) fn new(workplace: &Workplace, client: Client) -> Self {
        Self {
            workplace: workplace.clone(),
            client,
            target: Target::default(),
            io_engine: None,
        }
    }

    fn measure(&self, cell: &CellView<'_>, context: &RunContext<'_>) -> Result<Measurement, Error> {
        let Load::Blocks(blocks) = &cell.workload.load else {
            return Err(Error::Semantics("a daemon knows no files".to_owned()));
        };
        self.workplace.measure_on(cell, context.cancel, |place| {
            self.sample(cell, blocks, place, context)
        })
    }

    fn sample(
        &self,
        cell: &CellView<'_>,
        blocks: &BlockLoad,
        place: &Place,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let configuration = cell.configuration;
        let nodes = Nodes::of(configuration, place, &self.target)?;
        let cache = configuration.disk().backend.effective_cache();
        let export = match self.client {
            Client::VhostUser => Export::VhostUserBlk {
                queues: blocks.jobs.max(1),
                has_iothread: configuration.disk().frontend.iothread.is_some(),
            },
            Client::Nbd => Export::Nbd,
        };
        let scratch = self.workplace.scratch()?;
        let name = self.workplace.name("daemon");
        let mut daemon = Daemon::start(&scratch, &name, &nodes, export, cache, context.cancel)?;
        let counted = CountedDevice::of(&place.path);
        let processor_time = ProcessorTime::begin(daemon.processor_seconds());
        let measured = match self.client {
            Client::VhostUser => self.generated(cell, blocks, place, &daemon, context),
            Client::Nbd => self.fio(cell, place, &daemon, context),
        };
        // A daemon that died is the better reason.
        daemon.check()?;
        let mut measured = measured?;
        measured.qemu_cpu_seconds =
            processor_time.of_sample(daemon.processor_seconds(), measured.seconds);
        if let Some(counted) = &counted {
            // Without a volatile cache flushes have no effect.
            let reaches = match cache {
                CacheMode::None | CacheMode::Writeback => true,
                CacheMode::Writethrough | CacheMode::Directsync | CacheMode::Unsafe => false,
            };
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
        place: &Place,
        daemon: &Daemon,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let generated = generator::generate(
            Driven::VhostUser(&daemon.short_path()),
            blocks,
            cell.workload,
            Range {
                offset: place.offset,
                length: place.length,
            },
            context.seed,
            context.cancel,
        )?;
        Ok(generated.measurement(blocks))
    }

    fn fio(
        &self,
        cell: &CellView<'_>,
        place: &Place,
        daemon: &Daemon,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let name = self.workplace.name("fio");
        // The names of socket, job and log are of files in one directory.
        let uri = format!("nbd+unix:///disk?socket={}", daemon.socket);
        let target = FioTarget::Nbd {
            uri: &uri,
            length: place.length,
        };
        let io_engine = fio::needed(self.io_engine)?;
        let job = fio::job(cell.workload, target, io_engine, context.seed, Some(&name));
        let scratch = self.workplace.scratch()?;
        fio::run(&scratch, &name, job, cell.workload, context.cancel)
    }
}

impl Engine for StorageDaemon {
    fn kind(&self) -> EngineKind {
        match self.client {
            Client::VhostUser => EngineKind::StorageDaemon,
            Client::Nbd => EngineKind::StorageDaemonNbd,
        }
    }

    fn versions(&mut self) -> Result<BTreeMap<String, String>, Error> {
        let (text, target) = version::of_qemu(PROGRAM)?;
        self.target = target;
        let mut versions = BTreeMap::from([(PROGRAM.to_owned(), text)]);
        match self.client {
            Client::VhostUser => {
                versions.extend([version::of_generator()]);
            }
            Client::Nbd => {
                let Installed { version, io_engine } = fio::installed()?;
                self.io_engine = io_engine;
                versions.insert("fio".to_owned(), version);
            }
        }
        Ok(versions)
    }

    fn refuses(&self, cell: &CellView<'_>) -> Option<String> {
        if !programs::is_installed(PROGRAM) {
            return Some(format!("{PROGRAM} is not installed"));
        }
        let why = match &cell.workload.load {
            Load::InstallReplay(_) => "a daemon's disk has no file system to install on",
            Load::Blocks(_) if self.client == Client::Nbd && !programs::is_installed("fio") => {
                "fio is not installed"
            }
            Load::Blocks(blocks) if blocks.is_blocking && blocks.depth > 1 => {
                "a blocking call is one request at a time"
            }
            Load::Blocks(_)
                if self.client == Client::Nbd
                    && matches!(cell.configuration.storage, crate::Storage::Device { .. }) =>
            {
                "fio over NBD cannot keep away from the marker at a device's ends"
            }
            Load::Blocks(_) => {
                return Workplace::refuses(cell.configuration, cell.phase == Phase::FirstTouch);
            }
        };
        Some(why.to_owned())
    }

    fn overhead(&self) -> Duration {
        Duration::from_secs(1)
    }

    fn space(&self, cells: &[CellView<'_>]) -> Vec<(PathBuf, u64)> {
        self.workplace.space(cells, Fresh::OneAtATime)
    }

    fn prepare(&mut self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        self.workplace.prepare(cells, cancel)
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
        self.workplace.clear()
    }
}
