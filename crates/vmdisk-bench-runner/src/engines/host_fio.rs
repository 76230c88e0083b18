//! fio on a file or device of the host: the upper bound for guests.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::time::Duration;

use super::counters::Counters;
use super::fio::{self, InstalledFio, IoEngine, Target};
use super::one_by_one::{one_by_one, ramp};
use super::storage::PreparedStorage;
use super::workspace::Workspace;
use crate::programs;
use crate::{
    CellView, Emit, Engine, EngineKind, Error, Load, Measurement, Phase, RunContext, Storage,
    Workload,
};

/// fio on the host.
#[derive(Debug)]
pub(crate) struct HostFio {
    workspace: Workspace,
    io_engine: Option<IoEngine>,
}

impl HostFio {
    pub(crate) fn new(workspace: &Workspace) -> Self {
        Self {
            workspace: workspace.clone(),
            io_engine: None,
        }
    }

    fn measure(&self, cell: &CellView<'_>, context: &RunContext<'_>) -> Result<Measurement, Error> {
        let io_engine = fio::needed(self.io_engine)?;
        self.workspace.measure_on(cell, context.cancel, |storage| {
            // Next to the image, so that it is on the measured file system.
            let replay = storage.path.with_extension("files");
            let measured = self.sample(cell, storage, &replay, io_engine, context);
            let _ = fs::remove_dir_all(&replay);
            measured
        })
    }

    fn sample(
        &self,
        cell: &CellView<'_>,
        storage: &PreparedStorage,
        replay: &Path,
        io_engine: IoEngine,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let (path, replay_path) = (storage.path.to_string_lossy(), replay.to_string_lossy());
        let target = match &cell.workload.load {
            Load::Blocks(_) => Target::File {
                path: &path,
                offset: storage.offset,
                length: storage.length,
                is_buffered: cell.configuration.is_buffered,
            },
            Load::InstallReplay(_) => {
                fs::create_dir(replay).map_err(|error| Error::io("create", replay, error))?;
                Target::Directory { path: &replay_path }
            }
        };
        let name = self.workspace.name("fio");
        let scratch = self.workspace.scratch()?;
        let launcher = &cell.configuration.launcher;
        let run = |workload: &Workload| {
            let job = fio::job(workload, cell.phase, target, io_engine, context.seed);
            fio::run(&scratch, &name, job, launcher, workload, context.cancel)
        };
        ramp(cell, storage, run)?;
        let counters = Counters::begin(storage.counted_path());
        let mut measured = run(cell.workload)?;
        if cell.configuration.is_buffered {
            let note = "requests go through the host's page cache, which is part of the result";
            measured.notes.push(note.to_owned());
        }
        measured.semantics.write_cache = counters.write_cache();
        counters.end(cell, storage.length, &mut measured);
        counters.note_flushes(cell, &mut measured, true);
        Ok(measured)
    }
}

impl Engine for HostFio {
    fn kind(&self) -> EngineKind {
        EngineKind::HostFio
    }

    fn workspace(&self) -> Option<&Workspace> {
        Some(&self.workspace)
    }

    fn versions(&mut self, _cells: &[CellView<'_>]) -> Result<BTreeMap<String, String>, Error> {
        let InstalledFio { version, io_engine } = fio::installed()?;
        self.io_engine = io_engine;
        Ok(BTreeMap::from([("fio".to_owned(), version)]))
    }

    fn refuses(&self, cell: &CellView<'_>) -> Option<String> {
        if !programs::is_installed("fio") {
            return Some("fio is not installed".to_owned());
        }
        let is_file = matches!(cell.configuration.storage, Storage::File { .. });
        if matches!(cell.workload.load, Load::InstallReplay(_)) && !is_file {
            return Some(
                "an install replay needs a file system, which a device does not have".to_owned(),
            );
        }
        Workspace::refuses(cell.configuration, cell.phase == Phase::FirstTouch)
    }

    fn overhead(&self, _batch: &[CellView<'_>]) -> Duration {
        Duration::from_millis(500)
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
