//! fio on a file or device of the host: what there is to lose.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::fio::{self, Installed, IoEngine, Target};
use super::flushes::CountedDevice;
use super::one_by_one;
use super::workplace::{Fresh, Place, Workplace};
use crate::programs;
use crate::{
    Cancel, CellView, Emit, Engine, EngineKind, Error, Load, Measurement, Phase, RunContext,
    Storage,
};

/// fio on the host.
#[derive(Debug)]
pub(crate) struct HostFio {
    workplace: Workplace,
    io_engine: Option<IoEngine>,
}

impl HostFio {
    pub(crate) fn new(workplace: &Workplace) -> Self {
        Self {
            workplace: workplace.clone(),
            io_engine: None,
        }
    }

    fn measure(&self, cell: &CellView<'_>, context: &RunContext<'_>) -> Result<Measurement, Error> {
        let io_engine = fio::needed(self.io_engine)?;
        self.workplace.measure_on(cell, context.cancel, |place| {
            // Beside the image, so that it is on the file system that is asked about.
            let replay = place.path.with_extension("files");
            let measured = self.sample(cell, place, &replay, io_engine, context);
            let _ = fs::remove_dir_all(&replay);
            measured
        })
    }

    fn sample(
        &self,
        cell: &CellView<'_>,
        place: &Place,
        replay: &Path,
        io_engine: IoEngine,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let (path, replay_path) = (place.path.to_string_lossy(), replay.to_string_lossy());
        let target = match &cell.workload.load {
            Load::Blocks(_) => Target::File {
                path: &path,
                offset: place.offset,
                length: place.length,
                is_buffered: cell.configuration.is_buffered,
            },
            Load::InstallReplay(_) => {
                fs::create_dir(replay).map_err(|error| Error::io("create", replay, error))?;
                Target::Directory { path: &replay_path }
            }
        };
        let name = self.workplace.name("fio");
        let job = fio::job(cell.workload, target, io_engine, context.seed, Some(&name));
        let counted = CountedDevice::of(&place.path);
        let scratch = self.workplace.scratch()?;
        let mut measured = fio::run(&scratch, &name, job, cell.workload, context.cancel)?;
        if cell.configuration.is_buffered {
            let note =
                "requests go through the page cache of the host, which is part of what is measured";
            measured.notes.push(note.to_owned());
        }
        if let Some(counted) = &counted {
            measured.semantics.write_cache = counted.write_cache();
            counted.note(&mut measured.semantics, true);
        }
        Ok(measured)
    }
}

impl Engine for HostFio {
    fn kind(&self) -> EngineKind {
        EngineKind::HostFio
    }

    fn versions(&mut self) -> Result<BTreeMap<String, String>, Error> {
        let Installed { version, io_engine } = fio::installed()?;
        self.io_engine = io_engine;
        Ok(BTreeMap::from([("fio".to_owned(), version)]))
    }

    fn refuses(&self, cell: &CellView<'_>) -> Option<String> {
        if !programs::is_installed("fio") {
            return Some("fio is not installed".to_owned());
        }
        let is_file = matches!(cell.configuration.storage, Storage::File { .. });
        if matches!(cell.workload.load, Load::InstallReplay(_)) && !is_file {
            return Some("an install needs a file system, and a device has none".to_owned());
        }
        Workplace::refuses(cell.configuration, cell.phase == Phase::FirstTouch)
    }

    fn overhead(&self) -> Duration {
        Duration::from_millis(500)
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
