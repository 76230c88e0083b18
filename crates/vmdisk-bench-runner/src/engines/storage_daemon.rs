//! qemu-storage-daemon: QEMU's block layer, driven by fio over NBD.

use std::collections::BTreeMap;
use std::time::Duration;

use vmdisk_facts::Target;
use vmdisk_model::CacheMode;

use super::counters::Counters;
use super::daemon::{Daemon, Export, PROGRAM};
use super::fio::{self, InstalledFio, IoEngine, Target as FioTarget};
use super::node::Nodes;
use super::one_by_one::{one_by_one, ramp};
use super::storage::PreparedStorage;
use super::version;
use super::workspace::Workspace;
use crate::programs::{self, ProcessorTime};
use crate::{
    CellView, Emit, Engine, EngineKind, Error, Load, Measurement, Phase, RunContext, Storage,
    Workload,
};

/// qemu-storage-daemon with fio as its client.
#[derive(Debug)]
pub(crate) struct StorageDaemon {
    workspace: Workspace,
    target: Target,
    io_engine: Option<IoEngine>,
}

impl StorageDaemon {
    pub(crate) fn new(workspace: &Workspace) -> Self {
        Self {
            workspace: workspace.clone(),
            target: Target::default(),
            io_engine: None,
        }
    }

    fn measure(&self, cell: &CellView<'_>, context: &RunContext<'_>) -> Result<Measurement, Error> {
        self.workspace.measure_on(cell, context.cancel, |storage| {
            self.sample(cell, storage, context)
        })
    }

    fn sample(
        &self,
        cell: &CellView<'_>,
        storage: &PreparedStorage,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let configuration = cell.configuration;
        let mut nodes = Nodes::of(configuration, storage, &self.target)?;
        if matches!(configuration.storage, Storage::Device { .. }) {
            // The markers at both ends of a device stay.
            nodes = nodes.within(storage);
        }
        let cache = configuration.disk().backend.effective_cache();
        let scratch = self.workspace.scratch()?;
        let name = self.workspace.name("daemon");
        let launcher = &configuration.launcher;
        let mut daemon = Daemon::start(
            &scratch,
            &name,
            &nodes,
            Export::Nbd,
            cache,
            launcher,
            context.cancel,
        )?;
        let run = |workload: &Workload| self.fio(cell, workload, storage, &daemon, context);
        ramp(cell, storage, run)?;
        let processor_time = ProcessorTime::begin(daemon.processor_seconds());
        let counters = Counters::begin(storage.counted_path());
        let measured = run(cell.workload);
        // If the daemon exited, its message is the better explanation.
        daemon.check()?;
        let mut measured = measured?;
        measured.qemu_cpu_seconds =
            processor_time.of_sample(daemon.processor_seconds(), measured.seconds);
        counters.end(cell, storage.length, &mut measured);
        // Without a volatile cache flushes have no effect.
        let reaches = matches!(cache, CacheMode::None | CacheMode::Writeback);
        counters.note_flushes(cell, &mut measured, reaches);
        measured.commands.insert(0, daemon.command.clone());
        daemon.stop();
        Ok(measured)
    }

    fn fio(
        &self,
        cell: &CellView<'_>,
        workload: &Workload,
        storage: &PreparedStorage,
        daemon: &Daemon,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let name = self.workspace.name("fio");
        // Socket and job are named relative to one directory.
        let uri = format!("nbd+unix:///disk?socket={}", daemon.socket);
        let target = FioTarget::Nbd {
            uri: &uri,
            length: storage.length,
        };
        let io_engine = fio::needed(self.io_engine)?;
        let job = fio::job(workload, cell.phase, target, io_engine, context.seed);
        let scratch = self.workspace.scratch()?;
        // Only the daemon is pinned: fio is the client.
        fio::run(&scratch, &name, job, &[], workload, context.cancel)
    }
}

impl Engine for StorageDaemon {
    fn kind(&self) -> EngineKind {
        EngineKind::StorageDaemon
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.workspace)
    }

    fn versions(&mut self, _cells: &[CellView<'_>]) -> Result<BTreeMap<String, String>, Error> {
        let (text, target) = version::of_qemu(PROGRAM)?;
        self.target = target;
        let InstalledFio { version, io_engine } = fio::installed()?;
        self.io_engine = io_engine;
        Ok(BTreeMap::from([
            (PROGRAM.to_owned(), text),
            ("fio".to_owned(), version),
        ]))
    }

    fn refuses(&self, cell: &CellView<'_>) -> Option<String> {
        for program in [PROGRAM, "fio"] {
            if !programs::is_installed(program) {
                return Some(format!("{program} is not installed"));
            }
        }
        if matches!(cell.workload.load, Load::InstallReplay(_)) {
            return Some(
                "an install replay needs a file system, which a daemon's disk does not have"
                    .to_owned(),
            );
        }
        Workspace::refuses(cell.configuration, cell.phase == Phase::FirstTouch)
    }

    fn overhead(&self, _batch: &[CellView<'_>]) -> Duration {
        Duration::from_secs(1)
    }

    fn run(
        &mut self,
        batch: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        one_by_one(batch, context, emit, |cell| self.measure(cell, context))
    }
}
