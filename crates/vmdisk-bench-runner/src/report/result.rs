//! The result of a run, as data.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use super::latency::{Distribution, Operation, counted};
use crate::method::geometric_mean;
use crate::{
    Accelerator, CellId, Comparison, Ended, Header, LeftOut, Metric, Phase, Round, Sample, Summary,
};

/// The result of a run: the content of all reports, and every sample.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct BenchResult {
    /// Version of the format.
    pub schema_version: String,
    /// The description of the run.
    pub header: Header,
    /// Why it ended; unset if it was interrupted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ended: Option<Ended>,
    /// Rounds in which every cell was measured or failed, without the warm-up.
    pub complete_rounds: u32,
    /// Probability that an interval misses the true ratio; smaller than requested if the run was adaptive.
    pub alpha: f64,
    /// The cells, in plan order.
    pub cells: Vec<CellResult>,
    /// The comparisons of the named pairs of the plan that no cell has with its baseline.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<Comparison>,
    /// Items that were not measured, or not in every round.
    pub left_out: Vec<LeftOut>,
    /// Caveats for readers of the figures.
    pub remarks: Vec<String>,
    /// The rounds.
    pub rounds: Vec<Round>,
    /// Every sample, including those that do not count.
    pub samples: Vec<Sample>,
}

/// The result of one cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct CellResult {
    /// The cell.
    pub cell: CellId,
    /// Its name in reports.
    pub name: String,
    /// The figure of each round, if it counts.
    pub values: BTreeMap<u32, f64>,
    /// Its summary; unset without figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Summary>,
    /// Its comparison with its baseline.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comparison: Option<Comparison>,
    /// Latencies of all samples that count, by operation.
    pub latencies: BTreeMap<Operation, Distribution>,
    /// Processor time of the host per request in nanoseconds, if the engine measures it: the geometric mean of
    /// the samples that count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processor_ns_per_request: Option<f64>,
    /// Bytes that reached each device of the host, the uppermost first, as a share of the bytes that were requested.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub devices: Vec<DeviceShare>,
    /// How guest CPUs ran.
    pub accelerator: Accelerator,
    /// Number of failures.
    pub failures: u32,
    /// Complaints about samples that do not count, one of each kind.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub complaints: Vec<String>,
}

/// The part of the requested bytes that reached a device of the host.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DeviceShare {
    /// Its kernel name, such as `nvme0n1`.
    pub name: String,
    /// Its bytes divided by the requested bytes of the same samples; above 1 with metadata, copies and other programs.
    pub share: f64,
}

impl BenchResult {
    /// Returns the result as JSON, described by `vmdisk print schema bench`.
    pub fn to_json(&self) -> String {
        let mut text = serde_json::to_string_pretty(self)
            .expect("a result holds only text, numbers, lists and maps with text as keys");
        text.push('\n');
        text
    }

    /// Returns the JSON Schema of results.
    #[cfg(feature = "schema")]
    pub fn json_schema() -> schemars::Schema {
        schemars::schema_for!(BenchResult)
    }

    /// Returns all comparisons: those of the cells, and the named pairs.
    pub(crate) fn comparisons(&self) -> impl Iterator<Item = &Comparison> {
        let of_cells = self.cells.iter().filter(|cell| cell.summary.is_some());
        let of_cells = of_cells.filter_map(|cell| cell.comparison.as_ref());
        of_cells.chain(&self.pairs)
    }

    /// True if a comparison has enough rounds for a verdict.
    pub fn has_answer(&self) -> bool {
        self.comparisons()
            .any(|comparison| comparison.p_value.is_some())
    }

    /// True if hardly a byte of a cell reached a device: its figures are those of the host's memory. First reads of new
    /// storage need no device.
    pub(crate) fn is_of_memory(&self, cell: CellId) -> bool {
        let planned = &self.header.plan.cells[cell.0];
        let load = &self.header.plan.workloads[planned.workload].load;
        let devices = &self.cells[cell.0].devices;
        let share: f64 = devices.iter().map(|device| device.share).sum();
        let needs_device = planned.phase == Phase::Steady || load.writes();
        needs_device && !devices.is_empty() && share < 0.05
    }

    /// Returns the share of the bytes of a cell that reached each device, in words.
    pub fn at_devices(&self, cell: &CellResult) -> String {
        let shares = cell.devices.iter();
        let texts = shares.map(|it| format!("{} {:.0} %", it.name, it.share * 100.0));
        let memory = self.is_of_memory(cell.cell).then(|| "memory".to_owned());
        texts.chain(memory).collect::<Vec<_>>().join(", ")
    }

    /// Returns the number of requests of a cell by latency in nanoseconds, of all samples that count; empty where the
    /// engine measured none.
    pub fn histogram(&self, cell: CellId, operation: Operation) -> BTreeMap<u64, u64> {
        let samples = self.samples.iter();
        let samples = samples.filter(|sample| sample.cell == cell && sample.counts());
        let latencies = samples.filter_map(|sample| Some(counted(sample, operation)?.1));
        let mut merged = BTreeMap::new();
        for (nanoseconds, count) in latencies.flat_map(|latency| &latency.histogram) {
            *merged.entry(*nanoseconds).or_default() += count;
        }
        merged
    }

    /// Returns the geometric means of a cell and of its baseline in the rounds of both, with the number of these rounds.
    pub(crate) fn common_means(&self, cell: &CellResult) -> Option<(f64, f64, usize)> {
        let baseline = &self.cells[cell.comparison.as_ref()?.baseline.0].values;
        let both = cell.values.iter();
        let both = both.filter_map(|(round, value)| Some((*value, *baseline.get(round)?)));
        let (own, other): (Vec<f64>, Vec<f64>) = both.unzip();
        Some((geometric_mean(&own)?, geometric_mean(&other)?, own.len()))
    }

    /// Returns the figure by which a cell is compared.
    pub fn metric(&self, cell: CellId) -> Metric {
        let plan = &self.header.plan;
        plan.workloads[plan.cells[cell.0].workload].metric
    }
}
