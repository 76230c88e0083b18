//! An engine without a disk: it returns preset numbers, for tests of everything around engines.

use crate::engines::workspace::Workspace;
use std::collections::BTreeMap;
use std::time::Duration;

use crate::method::Random;
use crate::{
    Cancel, CellId, CellView, Direction, Emit, Engine, EngineKind, Error, Latency, Measurement,
    Metric, RunContext,
};

/// Preset numbers: a level for each configuration, plus noise and drift.
#[derive(Debug)]
pub struct Mock {
    random: Random,
    levels: BTreeMap<String, f64>,
    noise: f64,
    drift: f64,
    measured: u32,
    failing: Option<String>,
    stop_after: Option<(u32, Cancel)>,
}

impl Mock {
    /// Gives every configuration the same level, with noise of 3 %.
    pub fn new(seed: u64) -> Self {
        Mock {
            random: Random::new(seed),
            levels: BTreeMap::new(),
            noise: 0.03,
            drift: 0.0,
            measured: 0,
            failing: None,
            stop_after: None,
        }
    }

    /// Sets the level of a configuration: 1.1 is 10 % faster than the default.
    pub fn level(mut self, configuration: &str, level: f64) -> Self {
        self.levels.insert(configuration.to_owned(), level);
        self
    }

    /// Sets the noise: the standard deviation of the logarithm.
    pub fn noise(mut self, deviation: f64) -> Self {
        self.noise = deviation;
        self
    }

    /// Sets the drift: each sample is faster than the previous one by this share.
    pub fn drift(mut self, share: f64) -> Self {
        self.drift = share;
        self
    }

    /// Makes a configuration fail every time.
    pub fn failing(mut self, configuration: &str) -> Self {
        self.failing = Some(configuration.to_owned());
        self
    }

    /// Cancels the run after this many samples.
    pub fn stop_after(mut self, samples: u32, cancel: &Cancel) -> Self {
        self.stop_after = Some((samples, cancel.clone()));
        self
    }

    fn measure(&mut self, cell: &CellView<'_>) -> Measurement {
        let level = self
            .levels
            .get(&cell.configuration.name)
            .copied()
            .unwrap_or(1.0);
        let drift = (1.0 + self.drift).powf(f64::from(self.measured));
        let factor = level * drift * (self.noise * self.random.normal()).exp();
        self.measured += 1;
        let block_bytes = match cell.workload.metric {
            Metric::Iops | Metric::Latency => 4096,
            Metric::Throughput => 1 << 20,
        };
        let iops = 20_000.0 * factor;
        let seconds = 2.0;
        let operations = (iops * seconds) as u64;
        let mut direction = Direction::over(operations * block_bytes, operations, seconds);
        // The preset figure before rounding.
        direction.iops = iops;
        direction.bytes_per_second = iops * block_bytes as f64;
        let nanoseconds = 1e9 / iops;
        let percentile = |times: f64| (nanoseconds * times) as u64;
        direction.latency = Some(Latency {
            mean_ns: nanoseconds,
            min_ns: Some(percentile(0.5)),
            max_ns: Some(percentile(20.0)),
            percentiles_ns: BTreeMap::from([
                ("50".to_owned(), percentile(0.9)),
                ("90".to_owned(), percentile(2.0)),
                ("99".to_owned(), percentile(5.0)),
                ("99.9".to_owned(), percentile(12.0)),
            ]),
            histogram: [(0.9, 0.5), (2.0, 0.4), (5.0, 0.09), (12.0, 0.01)]
                .map(|(times, share)| (percentile(times), (operations as f64 * share) as u64))
                .to_vec(),
        });
        Measurement {
            write: Some(direction),
            seconds,
            notes: vec!["preset numbers: nothing was measured".to_owned()],
            ..Measurement::default()
        }
    }
}

impl Engine for Mock {
    fn kind(&self) -> EngineKind {
        EngineKind::Mock
    }

    fn workspace(&self) -> Option<&Workspace> {
        None
    }

    fn versions(&mut self, _cells: &[CellView<'_>]) -> Result<BTreeMap<String, String>, Error> {
        Ok(BTreeMap::from([("mock".to_owned(), "1".to_owned())]))
    }

    fn refuses(&self, _cell: &CellView<'_>) -> Option<String> {
        None
    }

    fn overhead(&self, _batch: &[CellView<'_>]) -> Duration {
        Duration::ZERO
    }

    fn run(
        &mut self,
        batch: &[CellView<'_>],
        context: &RunContext<'_>,
        emit: &mut Emit<'_>,
    ) -> Result<(), Error> {
        for cell in batch {
            context.cancel.check()?;
            if self.failing.as_ref() == Some(&cell.configuration.name) {
                emit(cell.id, Err(Error::program("mock", "a preset failure")));
                continue;
            }
            let id: CellId = cell.id;
            let measurement = self.measure(cell);
            emit(id, Ok(measurement));
            if let Some((samples, cancel)) = &self.stop_after
                && self.measured >= *samples
            {
                cancel.cancel();
            }
        }
        Ok(())
    }
}
