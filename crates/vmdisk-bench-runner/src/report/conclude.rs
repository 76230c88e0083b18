//! Results from the observations of a run: of its journal, or of a result file.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::result::{BenchResult, CellResult, DeviceShare};
use super::{latency, remarks};
use crate::method::{complete_rounds, geometric_mean};
use crate::{
    CellId, CellValues, Comparison, Ended, Entry, Error, Header, LeftOut, Round, SCHEMA_VERSION,
    Sample, Summary,
};

impl BenchResult {
    /// Computes the result from the entries of a journal.
    ///
    /// # Errors
    /// If entries name cells that the plan does not have, or the plan is inconsistent.
    pub fn of(header: Header, entries: Vec<Entry>) -> Result<Self, Error> {
        let wrong = |message: String| Error::malformed("the run's journal", None, message);
        if let Some(problem) = header.problem() {
            return Err(wrong(problem));
        }
        let complete = complete_rounds(&entries);
        let plan = &header.plan;
        let count = plan.cells.len();
        let mut raw = Observations {
            ended: None,
            complete,
            rounds: Vec::new(),
            samples: Vec::new(),
            left_out: plan.left_out.clone(),
            failures: vec![0_u32; count],
        };
        for entry in entries {
            let known = |cell: CellId| {
                let message = format!("cell {} is not in the plan", cell.0);
                (cell.0 < count)
                    .then_some(cell)
                    .ok_or_else(|| wrong(message))
            };
            match entry {
                Entry::Sample(sample) => {
                    known(sample.cell)?;
                    raw.samples.push(sample);
                }
                Entry::Failure {
                    round: _,
                    cell,
                    error: _, /* the last is why it is left out */
                } => raw.failures[known(cell)?.0] += 1,
                Entry::Round(round) => {
                    raw.ended = None;
                    raw.rounds.push(round);
                }
                Entry::LeftOut { cell, why } => raw.left_out.push(LeftOut {
                    what: plan.cell_name(known(cell)?),
                    why,
                }),
                Entry::Resumed { at_seconds: _ } => raw.ended = None,
                Entry::Ended {
                    ended: why,
                    at_seconds: _,
                } => raw.ended = Some(why),
            }
        }
        Ok(raw.concluded(header))
    }

    /// Computes the result again, after its plan was changed.
    pub(super) fn concluded_again(self) -> Self {
        let failures = self.cells.iter().map(|cell| cell.failures).collect();
        Observations {
            ended: self.ended,
            complete: self.complete_rounds,
            rounds: self.rounds,
            samples: self.samples,
            left_out: self.left_out,
            failures,
        }
        .concluded(self.header)
    }

    /// Reads a result that [`BenchResult::to_json`] wrote.
    ///
    /// # Errors
    /// If the text is not a result, or has another version.
    pub fn from_json(text: &str, called: &str) -> Result<Self, Error> {
        let wrong = |line, message: String| Error::malformed(called, line, message);
        let written: ResultFile = serde_json::from_str(text)
            .map_err(|error| wrong(Some(error.line()), error.to_string()))?;
        if written.schema_version != SCHEMA_VERSION {
            let message = format!(
                "the result has version {}; this vmdisk reads version {SCHEMA_VERSION}",
                written.schema_version
            );
            return Err(wrong(None, message));
        }
        written.concluded().map_err(|problem| wrong(None, problem))
    }
}

/// The observations from which the rest of a result is computed.
struct Observations {
    ended: Option<Ended>,
    complete: u32,
    rounds: Vec<Round>,
    samples: Vec<Sample>,
    left_out: Vec<LeftOut>,
    failures: Vec<u32>,
}

impl Observations {
    fn concluded(self, header: Header) -> BenchResult {
        let Observations {
            ended,
            complete,
            rounds,
            samples,
            left_out,
            failures,
        } = self;
        let plan = &header.plan;
        let alpha = header.settings.repetition.alpha(complete);
        let values = CellValues::of(&plan.cells, &plan.workloads, &samples);
        let is_of_plan = |it: &Comparison| plan.cells[it.cell.0].baseline == Some(it.baseline);
        let (of_cells, pairs): (Vec<_>, Vec<_>) = values
            .compared(plan.compared().into_iter(), alpha)
            .into_iter()
            .partition(is_of_plan);
        let mut comparisons: BTreeMap<CellId, Comparison> = of_cells
            .into_iter()
            .map(|comparison| (comparison.cell, comparison))
            .collect();
        let mut by_cell: Vec<Vec<&Sample>> = vec![Vec::new(); plan.cells.len()];
        for sample in &samples {
            by_cell[sample.cell.0].push(sample);
        }
        let cells = by_cell
            .iter()
            .enumerate()
            .map(|(index, samples)| {
                let cell = CellId(index);
                CellResult {
                    name: plan.cell_name(cell),
                    failures: failures[index],
                    comparison: comparisons.remove(&cell),
                    devices: device_shares(samples),
                    ..describe(cell, values.of_cell(cell), samples)
                }
            })
            .collect();
        let mut result = BenchResult {
            schema_version: SCHEMA_VERSION.to_owned(),
            ended,
            complete_rounds: complete,
            alpha,
            cells,
            pairs,
            left_out,
            remarks: Vec::new(),
            rounds,
            samples,
            header,
        };
        result.remarks = remarks::of(&result);
        result
    }
}

/// The observations of a result file; all conclusions are computed again.
#[derive(Deserialize)]
struct ResultFile {
    schema_version: String,
    header: Header,
    #[serde(default)]
    ended: Option<Ended>,
    cells: Vec<ResultFileCell>,
    left_out: Vec<LeftOut>,
    rounds: Vec<Round>,
    samples: Vec<Sample>,
}

#[derive(Deserialize)]
struct ResultFileCell {
    failures: u32,
}

impl ResultFile {
    /// Returns the result, or the first inconsistency.
    fn concluded(self) -> Result<BenchResult, String> {
        if let Some(problem) = self.header.problem() {
            return Err(problem);
        }
        let count = self.header.plan.cells.len();
        let is_whole =
            self.cells.len() == count && self.samples.iter().all(|sample| sample.cell.0 < count);
        if !is_whole {
            return Err("its cells are not the cells of its plan".to_owned());
        }
        let ResultFile {
            schema_version: _,
            header,
            ended,
            cells,
            left_out,
            rounds,
            samples,
        } = self;
        let failures: Vec<u32> = cells.iter().map(|cell| cell.failures).collect();
        // The round of a failure is not recorded, so cells that failed are not required.
        let is_complete = |round: &&Round| {
            let measured = samples.iter().filter(|sample| sample.round == round.round);
            let expected = round
                .order
                .iter()
                .filter(|cell| failures.get(cell.0) == Some(&0));
            round.round > 0 && measured.count() >= expected.count()
        };
        let complete = rounds.iter().filter(is_complete).count();
        Ok(Observations {
            ended,
            complete: u32::try_from(complete).unwrap_or(u32::MAX),
            rounds,
            samples,
            left_out,
            failures,
        }
        .concluded(header))
    }
}

fn processor_time(samples: &[&Sample]) -> Option<f64> {
    let of_one = |sample: &&Sample| {
        let measurement = &sample.measurement;
        let directions = [&measurement.read, &measurement.write];
        let requests: u64 = directions
            .into_iter()
            .flatten()
            .map(|direction| direction.operations)
            .sum();
        let seconds = measurement.host_cpu_seconds()?;
        (requests > 0).then(|| seconds * 1e9 / requests as f64)
    };
    geometric_mean(&samples.iter().filter_map(of_one).collect::<Vec<_>>())
}

/// Divides the bytes of devices by the requested bytes of the samples that count.
fn device_shares(samples: &[&Sample]) -> Vec<DeviceShare> {
    // The counters of older runs include a ramp, of which fio reported nothing.
    let has_ramp = |job: &String| job.contains("\nramp_time=");
    let mut inputs = samples.iter().flat_map(|it| it.measurement.inputs.values());
    if inputs.any(has_ramp) {
        return Vec::new();
    }
    let mut asked = 0;
    let mut arrived: Vec<(&str, u64)> = Vec::new();
    for sample in samples.iter().filter(|sample| sample.counts()) {
        let measurement = &sample.measurement;
        let directions = [&measurement.read, &measurement.write];
        asked += directions
            .into_iter()
            .flatten()
            .map(|it| it.bytes)
            .sum::<u64>();
        for device in &measurement.devices {
            let bytes = device.read_bytes + device.written_bytes;
            match arrived.iter_mut().find(|(name, _)| *name == device.name) {
                Some((_, sum)) => *sum += bytes,
                None => arrived.push((&device.name, bytes)),
            }
        }
    }
    arrived
        .into_iter()
        .map(|(name, bytes)| DeviceShare {
            name: name.to_owned(),
            share: bytes as f64 / u64::max(asked, 1) as f64,
        })
        .collect()
}

/// Computes the result of a cell from its samples.
fn describe(cell: CellId, values: &BTreeMap<u32, f64>, samples: &[&Sample]) -> CellResult {
    let counted: Vec<&Sample> = samples
        .iter()
        .copied()
        .filter(|sample| sample.counts())
        .collect();
    let in_order: Vec<f64> = values.values().copied().collect();
    let complaints = samples
        .iter()
        .flat_map(|it| &it.measurement.semantics.complaints);
    let kinds = complaints.map(|complaint| (remarks::kind_of(complaint), complaint.clone()));
    let kinds: BTreeMap<String, String> = kinds.collect();
    CellResult {
        cell,
        name: String::new(),
        values: values.clone(),
        summary: Summary::of(&in_order),
        comparison: None,
        latencies: latency::of(&counted),
        processor_ns_per_request: processor_time(&counted),
        accelerator: samples
            .iter()
            .map(|sample| sample.measurement.accelerator)
            .max()
            .unwrap_or_default(),
        failures: 0,
        devices: Vec::new(),
        complaints: kinds.into_values().collect(),
    }
}
