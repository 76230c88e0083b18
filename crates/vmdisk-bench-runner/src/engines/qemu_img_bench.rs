//! `qemu-img bench`: QEMU's block layer, without a device model.

use std::collections::BTreeMap;
use std::time::Duration;

use vmdisk_facts::Target;
use vmdisk_model::CacheMode;

use super::flushes::CountedDevice;
use super::node::Nodes;
use super::workplace::{Place, Workplace};
use super::{one_by_one, version};
use crate::programs;
use crate::{
    Access, Amount, BlockLoad, Cancel, CellView, CommandRecord, Direction, Emit, Engine,
    EngineKind, Error, Load, Measurement, Phase, RunContext, Storage,
};

/// `qemu-img bench`.
#[derive(Debug)]
pub(crate) struct QemuImgBench {
    workplace: Workplace,
    target: Target,
}

impl QemuImgBench {
    pub(crate) fn new(workplace: &Workplace) -> Self {
        Self {
            workplace: workplace.clone(),
            target: Target::default(),
        }
    }

    fn measure(&self, cell: &CellView<'_>, context: &RunContext<'_>) -> Result<Measurement, Error> {
        let Load::Blocks(blocks) = &cell.workload.load else {
            return Err(Error::Semantics("qemu-img bench has no files".to_owned()));
        };
        // It runs for a number of requests, which shorter runs tell for a time.
        match cell.workload.amount {
            Amount::Operations(count) => self.sample(cell, blocks, count, context.cancel),
            Amount::Bytes(bytes) => {
                let count = bytes.div_ceil(blocks.block_bytes);
                self.sample(cell, blocks, count, context.cancel)
            }
            Amount::Seconds(wanted) => {
                const ATTEMPTS: u32 = 4;
                let mut count = 500;
                for _ in 1..ATTEMPTS {
                    let trial = self.sample(cell, blocks, count, context.cancel)?;
                    if trial.seconds >= wanted * 0.8 {
                        return Ok(trial);
                    }
                    let rate = count as f64 / trial.seconds;
                    count = (rate * wanted).round().clamp(count as f64, 1e8) as u64;
                }
                self.sample(cell, blocks, count, context.cancel)
            }
        }
    }

    fn sample(
        &self,
        cell: &CellView<'_>,
        blocks: &BlockLoad,
        count: u64,
        cancel: &Cancel,
    ) -> Result<Measurement, Error> {
        self.workplace.measure_on(cell, cancel, |place| {
            self.counted(cell, place, blocks, count, cancel)
        })
    }

    fn counted(
        &self,
        cell: &CellView<'_>,
        place: &Place,
        blocks: &BlockLoad,
        count: u64,
        cancel: &Cancel,
    ) -> Result<Measurement, Error> {
        let nodes = Nodes::of(cell.configuration, place, &self.target)?;
        let backend = &cell.configuration.disk().backend;
        let cache = backend.effective_cache();
        let mut argv: Vec<String> = ["qemu-img", "bench", "-t", cache.as_wire()]
            .map(str::to_owned)
            .into();
        let step = match blocks.access {
            // A stride that has no factor with the size in common reaches every block.
            Access::RandomRead | Access::RandomWrite | Access::RandomMixed => {
                5 * blocks.block_bytes
            }
            Access::SequentialRead | Access::SequentialWrite => blocks.block_bytes,
        };
        for (option, value) in [
            ("-c", count),
            ("-d", u64::from(blocks.depth)),
            ("-s", blocks.block_bytes),
            ("-S", step),
        ] {
            argv.extend([option.to_owned(), value.to_string()]);
        }
        if let Some(aio) = backend.aio {
            argv.extend(["-i".to_owned(), aio.as_wire().to_owned()]);
        }
        if blocks.access.writes() {
            // Zeroes may be stored as nothing.
            argv.extend(["-w".to_owned(), "--pattern=170".to_owned()]);
        }
        if let Some(every) = blocks.sync_every {
            argv.push(format!("--flush-interval={every}"));
        }
        argv.push(nodes.file_name());
        let counted = CountedDevice::of(&place.path);
        let limit = Duration::from_secs(300);
        let output = programs::output(&argv, limit, cancel)?;
        let seconds = seconds(&output.stdout).ok_or_else(|| {
            Error::program("qemu-img", format!("it said: {}", output.stdout.trim()))
        })?;
        let direction = Direction::over(count * blocks.block_bytes, count, seconds);
        let mut measured = Measurement {
            seconds,
            commands: vec![CommandRecord::new(argv)],
            ..Measurement::default()
        };
        if blocks.access.writes() {
            measured.write = Some(direction);
        } else {
            measured.read = Some(direction);
        }
        measured.semantics.flushes_asked = blocks
            .sync_every
            .filter(|_| blocks.access.writes())
            .map(|every| count / u64::from(every.max(1)));
        if let Some(counted) = &counted {
            counted.note(&mut measured.semantics, cache != CacheMode::Unsafe);
        }
        Ok(measured)
    }
}

/// From `Run completed in 0.317 seconds.`
fn seconds(text: &str) -> Option<f64> {
    let (_, rest) = text.split_once("Run completed in ")?;
    let seconds: f64 = rest.split_whitespace().next()?.parse().ok()?;
    // It prints three places.
    Some(seconds.max(0.001))
}

impl Engine for QemuImgBench {
    fn kind(&self) -> EngineKind {
        EngineKind::QemuImgBench
    }

    fn versions(&mut self) -> Result<BTreeMap<String, String>, Error> {
        let (text, target) = version::of_qemu("qemu-img")?;
        self.target = target;
        Ok(BTreeMap::from([("qemu-img".to_owned(), text)]))
    }

    fn refuses(&self, cell: &CellView<'_>) -> Option<String> {
        if !programs::is_installed("qemu-img") {
            return Some("qemu-img is not installed".to_owned());
        }
        let why = match &cell.workload.load {
            Load::InstallReplay(_) => "qemu-img bench knows no files",
            Load::Blocks(blocks) if blocks.access == Access::RandomMixed => {
                "qemu-img bench either reads or writes"
            }
            Load::Blocks(blocks) if blocks.jobs > 1 => "qemu-img bench has one job",
            Load::Blocks(blocks) if blocks.is_blocking && blocks.depth > 1 => {
                "a blocking call is one request at a time"
            }
            Load::Blocks(_) if matches!(cell.configuration.storage, Storage::Device { .. }) => {
                "qemu-img bench cannot keep away from the marker at a device's ends"
            }
            Load::Blocks(_) => {
                return Workplace::refuses(cell.configuration, cell.phase == Phase::FirstTouch);
            }
        };
        Some(why.to_owned())
    }

    fn overhead(&self) -> Duration {
        Duration::from_millis(500)
    }

    fn space_bytes(&self, cells: &[CellView<'_>]) -> u64 {
        Workplace::space_bytes(cells)
    }

    fn prepare(&mut self, cells: &[CellView<'_>], cancel: &Cancel) -> Result<(), Error> {
        self.workplace
            .prepare(cells, self.space_bytes(cells), cancel)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_only_thing_it_says_is_read() {
        let text = "Sending 1000 read requests, 4096 bytes each, 32 in parallel\nRun completed in 0.317 seconds.\n";
        assert_eq!(seconds(text), Some(0.317));
        assert_eq!(seconds("Run completed in 0.000 seconds."), Some(0.001));
        assert_eq!(seconds("qemu-img: Could not open"), None);
    }
}
