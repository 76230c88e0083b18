//! Every sample as comma-separated values (RFC 4180).

use std::collections::BTreeSet;

use ::csv::{Terminator, Writer, WriterBuilder};

use super::latency::suffices;
use super::result::BenchResult;
use crate::{Direction, Latency, Metric, PERCENTILES, Sample};

/// Formats every sample as a line, with the factors of its configuration as columns.
pub fn csv(result: &BenchResult) -> String {
    let plan = &result.header.plan;
    let factors: BTreeSet<&str> = plan
        .configurations
        .iter()
        .flat_map(|configuration| configuration.factors.keys().map(String::as_str))
        .filter(|factor| !has_own_column(factor))
        .collect();
    let mut writer = WriterBuilder::new()
        .terminator(Terminator::CRLF)
        .from_writer(Vec::new());
    write(&mut writer, &heads(&factors));
    for sample in &result.samples {
        let cell = &plan.cells[sample.cell.0];
        let configuration = &plan.configurations[cell.configuration];
        let mut row = vec![
            configuration.name.clone(),
            plan.workloads[cell.workload].name.clone(),
            cell.phase.name().to_owned(),
            cell.engine.name().to_owned(),
            word(&sample.measurement.accelerator),
        ];
        let value = |factor: &&str| configuration.factors.get(*factor).cloned();
        row.extend(
            factors
                .iter()
                .map(|factor| value(factor).unwrap_or_default()),
        );
        figures(&mut row, sample, result);
        write(&mut writer, &row);
    }
    let bytes = writer
        .into_inner()
        .expect("writing to a vector cannot fail");
    String::from_utf8(bytes).expect("the writer was given UTF-8")
}

/// Returns true for factors that already have a column under another heading.
fn has_own_column(factor: &str) -> bool {
    matches!(factor, "engine" | "name")
}

fn heads(factors: &BTreeSet<&str>) -> Vec<String> {
    let mut heads: Vec<String> = [
        "configuration",
        "workload",
        "phase",
        "engine",
        "accelerator",
    ]
    .iter()
    .chain(factors)
    .chain(&[
        "round",
        "position",
        "at_seconds",
        "counts",
        "value",
        "unit",
        "seconds",
    ])
    .map(|head| (*head).to_owned())
    .collect();
    for direction in ["read", "write"] {
        heads
            .extend(["requests", "iops", "bytes_per_second"].map(|it| format!("{direction}_{it}")));
        heads.extend(percentile_heads(direction));
    }
    heads.extend(percentile_heads("flush"));
    heads.extend(
        [
            "flushes_asked",
            "flushes_seen",
            "processor_seconds",
            "covered",
            "device",
            "device_read_bytes",
            "device_written_bytes",
            "device_flushes",
            "device_busy_seconds",
            "complaints",
            "notes",
        ]
        .map(str::to_owned),
    );
    heads
}

fn percentile_heads(operation: &str) -> impl Iterator<Item = String> {
    PERCENTILES
        .iter()
        .map(move |percentile| format!("{operation}_p{percentile}_ns"))
}

fn figures(row: &mut Vec<String>, sample: &Sample, result: &BenchResult) {
    let metric = result.metric(sample.cell);
    let measurement = &sample.measurement;
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    let whole = |value: Option<u64>| value.map_or_else(String::new, |value| value.to_string());
    row.extend([
        sample.round.to_string(),
        sample.position.to_string(),
        format!("{:.3}", sample.at_seconds),
        sample.counts().to_string(),
        number(measurement.value(metric)),
        unit(metric).to_owned(),
        number(Some(measurement.seconds)),
    ]);
    for direction in [&measurement.read, &measurement.write] {
        let direction: Option<&Direction> = direction.as_ref();
        let requests = direction.map(|direction| direction.operations);
        row.push(whole(requests));
        row.push(number(direction.map(|direction| direction.iops)));
        row.push(number(
            direction.map(|direction| direction.bytes_per_second),
        ));
        let latency = direction.and_then(|direction| direction.latency.as_ref());
        percentiles(row, latency, requests);
    }
    let semantics = &measurement.semantics;
    percentiles(row, measurement.sync.as_ref(), semantics.flushes_asked);
    row.push(whole(semantics.flushes_asked));
    row.push(whole(semantics.flushes_seen));
    row.push(number(measurement.host_cpu_seconds()));
    row.push(number(measurement.covered));
    let device = measurement.devices.first();
    row.push(device.map_or_else(String::new, |device| device.name.clone()));
    row.push(whole(device.map(|device| device.read_bytes)));
    row.push(whole(device.map(|device| device.written_bytes)));
    row.push(whole(device.and_then(|device| device.flushes)));
    row.push(number(device.map(|device| device.busy_seconds)));
    row.push(semantics.complaints.join("; "));
    row.push(measurement.notes.join("; "));
}

/// The unit of the compared figure.
const fn unit(metric: Metric) -> &'static str {
    match metric {
        Metric::Iops => "iops",
        Metric::Throughput => "bytes/s",
        // The reciprocal of a latency.
        Metric::Latency => "1/s",
    }
}

/// Adds percentiles, if there are enough requests.
fn percentiles(row: &mut Vec<String>, latency: Option<&Latency>, requests: Option<u64>) {
    row.extend(PERCENTILES.map(|percentile| {
        let nanoseconds = latency
            .filter(|_| suffices(requests.unwrap_or(0), percentile))
            .and_then(|latency| latency.percentiles_ns.get(percentile));
        nanoseconds.map_or_else(String::new, u64::to_string)
    }));
}

/// Returns the JSON name of a value.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

fn write(writer: &mut Writer<Vec<u8>>, row: &[String]) {
    writer
        .write_record(row)
        .expect("writing to a vector cannot fail, and all rows have the same length");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_unit_is_that_of_the_value() {
        let value = |metric| {
            let latency = Latency {
                mean_ns: 2e6,
                ..Latency::default()
            };
            let write = Direction {
                operations: 1,
                bytes: 4096,
                bytes_per_second: 8192.0,
                iops: 2.0,
                latency: Some(latency),
            };
            let measured = crate::Measurement {
                write: Some(write),
                ..crate::Measurement::default()
            };
            (measured.value(metric).unwrap(), unit(metric))
        };
        assert_eq!(value(Metric::Iops), (2.0, "iops"));
        assert_eq!(value(Metric::Throughput), (8192.0, "bytes/s"));
        assert_eq!(value(Metric::Latency), (500.0, "1/s"), "of 2 ms");
    }
}
