//! fio on a file or device of the host: what there is to lose.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use super::fio::{self, IoEngine, Target};
use super::flushes::CountedDevice;
use super::workplace::{Place, Workplace};
use crate::programs;
use crate::{
    Cancel, CellView, CommandRecord, Emit, Engine, EngineKind, Error, Load, Measurement, Phase,
    RunContext, Storage,
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

    fn measure(
        &mut self,
        cell: &CellView<'_>,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let configuration = cell.configuration;
        let place = self.workplace.place(cell, context.cancel)?;
        let settled = self.workplace.settle(configuration, &place)?;
        let measured = self.sample(cell, &place, context);
        drop(settled);
        let discarded = self.workplace.discard_fresh(cell);
        let measured = measured?;
        discarded?;
        Ok(measured)
    }

    fn sample(
        &mut self,
        cell: &CellView<'_>,
        place: &Place,
        context: &RunContext<'_>,
    ) -> Result<Measurement, Error> {
        let scratch = self.workplace.scratch()?;
        let name = self.workplace.name("fio");
        let job_path = scratch.join(format!("{name}.fio"));
        let output = scratch.join(format!("{name}.json"));
        let log = scratch.join(&name);
        // Beside the image, so that it is on the file system that is asked about.
        let replay = place.path.with_extension("files");
        let path = place.path.to_string_lossy();
        let replay_path = replay.to_string_lossy();
        let target = match &cell.workload.load {
            Load::Blocks(_) => Target::File {
                path: &path,
                offset: place.offset,
                length: place.length,
            },
            Load::InstallReplay(_) => {
                fs::create_dir(&replay).map_err(|error| Error::io("create", &replay, error))?;
                Target::Directory { path: &replay_path }
            }
        };
        let io_engine = self
            .io_engine
            .ok_or_else(|| missing("fio with libaio or io_uring"))?;
        let log_text = log.to_string_lossy();
        let job = fio::job(
            cell.workload,
            target,
            io_engine,
            context.seed,
            Some(&log_text),
        );
        fs::write(&job_path, &job).map_err(|error| Error::io("write", &job_path, error))?;
        let mut argv = vec![
            "fio".to_owned(),
            "--eta=never".to_owned(),
            format!("--output={}", output.display()),
            "--output-format=json".to_owned(),
        ];
        let writes = match &cell.workload.load {
            Load::Blocks(blocks) => blocks.access.writes(),
            Load::InstallReplay(_) => true,
        };
        if !writes {
            // fio refuses to write then, whatever the job says.
            argv.push("--readonly".to_owned());
        }
        argv.push(job_path.display().to_string());
        let counted = CountedDevice::of(&place.path);
        let limit = Duration::from_secs(60) + 10 * cell.workload.duration();
        let ended = programs::output(&argv, limit, context.cancel);
        let report = fs::read_to_string(&output).unwrap_or_default();
        let ended = ended.map_err(|error| {
            if let Error::Program { program, detail } = error {
                // fio writes what is wrong where its report should be.
                let said = report.lines().next().unwrap_or_default();
                return Error::program(program, format!("{detail} {said}"));
            }
            error
        })?;
        let mut measured = fio::measurement(&report, cell.workload)?;
        if let Some(counted) = &counted {
            measured.semantics.write_cache = counted.write_cache();
            counted.note(&mut measured.semantics, true);
        }
        let series = log.with_file_name(format!("{name}_iops.log"));
        if let Ok(text) = fs::read_to_string(&series) {
            measured.series = fio::series(&text, fio::block_bytes(cell.workload));
        }
        measured.commands.push(CommandRecord::new(argv));
        measured.inputs.insert("job".to_owned(), job);
        measured.notes = self.workplace.notes(place);
        measured
            .notes
            .extend(ended.stderr.lines().map(str::to_owned));
        for left in [&job_path, &output, &series] {
            let _ = fs::remove_file(left);
        }
        let _ = fs::remove_dir_all(&replay);
        Ok(measured)
    }
}

pub(crate) fn missing(what: &str) -> Error {
    Error::Missing {
        what: what.to_owned(),
        needed_for: "this engine".to_owned(),
        help: "install it".to_owned(),
    }
}

/// What fio is, and how it can send requests.
pub(crate) fn installed() -> Result<(String, Option<IoEngine>), Error> {
    let version = programs::run("fio", &["--version"])?;
    let list = programs::run("fio", &["--enghelp"])?;
    Ok((version.trim().to_owned(), IoEngine::of_list(&list)))
}

/// Bytes of the file system that the storage of a configuration takes at most.
pub(crate) fn space_bytes(cells: &[CellView<'_>]) -> u64 {
    let Some(first) = cells.first() else {
        return 0;
    };
    let size = first.configuration.size.0;
    match first.configuration.storage {
        Storage::Device { .. } | Storage::ThinVolume { .. } => 0,
        Storage::File { .. } => {
            // An image with its tables; what it is filled from goes before the next is made.
            let image = size + size / 64 + (1 << 20);
            let has = |phase: Phase| u64::from(cells.iter().any(|cell| cell.phase == phase));
            image * (has(Phase::FirstTouch) + 2 * has(Phase::Steady))
        }
    }
}

impl Engine for HostFio {
    fn kind(&self) -> EngineKind {
        EngineKind::HostFio
    }

    fn versions(&mut self) -> Result<BTreeMap<String, String>, Error> {
        let (version, io_engine) = installed()?;
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

    fn space_bytes(&self, cells: &[CellView<'_>]) -> u64 {
        space_bytes(cells)
    }

    fn prepare(&mut self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        self.workplace.needs(space_bytes(cells));
        for cell in cells {
            if cell.phase == Phase::Steady {
                self.workplace.steady(cell.configuration, cancel)?;
            }
        }
        Ok(())
    }

    fn run(
        &mut self,
        batch: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        for cell in batch {
            context.cancel.check()?;
            let measured = self.measure(cell, context);
            emit(cell.id, measured);
        }
        Ok(())
    }

    fn cleanup(&mut self) -> Result<(), Error> {
        self.workplace.clear()
    }
}
