//! qemu-storage-daemon: QEMU's block layer behind a virtqueue and an event loop, or behind an NBD socket.

use std::collections::BTreeMap;
use std::fs;
use std::time::Duration;

use vmdisk_facts::Target;
use vmdisk_model::CacheMode;

use super::daemon::{Daemon, Export, PROGRAM};
use super::fio::{self, Target as FioTarget};
use super::flushes::CountedDevice;
use super::generator::{self, Driven, Range};
use super::host_fio::{installed, missing, space_bytes};
use super::node::Nodes;
use super::qemu_img_bench::version;
use super::workplace::{Place, Workplace};
use crate::programs;
use crate::{
    BlockLoad, Cancel, CellView, CommandRecord, Emit, Engine, EngineKind, Error, Load, Measurement,
    Phase, RunContext, Semantics,
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
}

impl StorageDaemon {
    pub(crate) fn new(workplace: &Workplace, client: Client) -> Self {
        Self {
            workplace: workplace.clone(),
            client,
            target: Target::default(),
        }
    }

    fn measure(&self, cell: &CellView<'_>, context: &RunContext<'_>) -> Result<Measurement, Error> {
        let configuration = cell.configuration;
        let Load::Blocks(blocks) = &cell.workload.load else {
            return Err(Error::Semantics("a daemon knows no files".to_owned()));
        };
        let place = self.workplace.place(cell, context.cancel)?;
        let nodes = Nodes::of(configuration, &place, &self.target)?;
        let settled = self.workplace.settle(configuration, &place)?;
        let backend = &configuration.disk().backend;
        let cache = backend.effective_cache();
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
        let measured = match self.client {
            Client::VhostUser => self.generated(cell, blocks, &place, &daemon, context),
            Client::Nbd => self.fio(cell, &place, &daemon, context),
        };
        // A daemon that died is the better reason.
        daemon.check()?;
        let mut measured = measured?;
        if let Some(counted) = &counted {
            // Without a volatile cache there is nothing to flush, whatever is asked for.
            let reaches = match cache {
                CacheMode::None | CacheMode::Writeback => true,
                CacheMode::Writethrough | CacheMode::Directsync | CacheMode::Unsafe => false,
            };
            counted.note(&mut measured.semantics, reaches);
        }
        measured.commands.insert(0, daemon.command.clone());
        measured.notes.extend(self.workplace.notes(&place));
        daemon.stop();
        drop(settled);
        self.workplace.discard_fresh(cell)?;
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
        let (_, io_engine) = installed()?;
        let io_engine = io_engine.ok_or_else(|| missing("fio with libaio or io_uring"))?;
        let scratch = self.workplace.scratch()?;
        let name = self.workplace.name("fio");
        let uri = format!("nbd+unix:///disk?socket={}", daemon.socket);
        let target = FioTarget::Nbd {
            uri: &uri,
            length: place.length,
        };
        let job = fio::job(cell.workload, target, io_engine, context.seed, Some(&name));
        let path = scratch.join(format!("{name}.fio"));
        fs::write(&path, &job).map_err(|error| Error::io("write", &path, error))?;
        let argv = ["fio", "--eta=never", "--output-format=json"]
            .map(str::to_owned)
            .into_iter()
            .chain([format!("{name}.fio")])
            .collect::<Vec<_>>();
        let limit = Duration::from_secs(60) + 10 * cell.workload.duration();
        // The names of socket, job and log are of files there.
        let output = programs::output_in(&scratch, &argv, limit, context.cancel)?;
        let mut measured = fio::measurement(&output.stdout, cell.workload)?;
        let series = scratch.join(format!("{name}_iops.log"));
        if let Ok(text) = fs::read_to_string(&series) {
            measured.series = fio::series(&text, fio::block_bytes(cell.workload));
        }
        for left in [&path, &series] {
            let _ = fs::remove_file(left);
        }
        measured.commands.push(CommandRecord::new(argv));
        measured.inputs.insert("job".to_owned(), job);
        Ok(measured)
    }
}

impl generator::Generated {
    pub(crate) fn measurement(self, blocks: &BlockLoad) -> Measurement {
        let generator::Generated {
            read,
            write,
            sync,
            flushes,
            seconds,
            series,
        } = self;
        let asks = blocks.sync_every.is_some() || blocks.ends_with_sync;
        Measurement {
            read,
            write,
            sync,
            seconds,
            series,
            semantics: Semantics {
                flushes_asked: (asks && blocks.access.writes()).then_some(flushes),
                ..Semantics::default()
            },
            ..Measurement::default()
        }
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
        let (text, target) = version(PROGRAM)?;
        self.target = target;
        let mut versions = BTreeMap::from([(PROGRAM.to_owned(), text)]);
        match self.client {
            Client::VhostUser => {
                versions.insert(
                    "generator".to_owned(),
                    format!("vmdisk {}", env!("CARGO_PKG_VERSION")),
                );
            }
            Client::Nbd => {
                versions.insert("fio".to_owned(), installed()?.0);
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
