//! Every sample as comma-separated values (RFC 4180).

use std::collections::BTreeSet;

use super::result::BenchResult;
use crate::{Direction, Sample};

const PERCENTILES: [&str; 5] = ["50", "90", "95", "99", "99.9"];

/// Every sample in a line of its own, with the factors of its configuration as columns.
pub fn csv(result: &BenchResult) -> String {
    let plan = &result.header.plan;
    let factors: BTreeSet<&str> = plan
        .configurations
        .iter()
        .flat_map(|configuration| configuration.factors.keys().map(String::as_str))
        .collect();
    let mut text = String::new();
    let mut head = vec![
        "configuration",
        "workload",
        "phase",
        "engine",
        "accelerator",
    ];
    head.extend(factors.iter().filter(|factor| !head_has(factor)));
    head.extend(["round", "position", "at_seconds", "counts", "value", "unit"]);
    let latencies: Vec<String> = ["read", "write"]
        .iter()
        .flat_map(|direction| {
            let plain = ["iops", "bytes_per_second"].map(str::to_owned);
            let percentiles = PERCENTILES.map(|percentile| format!("p{percentile}_ns"));
            let columns = plain.into_iter().chain(percentiles);
            columns.map(move |column| format!("{direction}_{column}"))
        })
        .collect();
    head.extend(latencies.iter().map(String::as_str));
    head.extend(["flushes_asked", "flushes_seen", "complaints"]);
    line(&mut text, head.iter().map(|cell| (*cell).to_owned()));
    for sample in &result.samples {
        let cell = &plan.cells[sample.cell.0];
        let configuration = &plan.configurations[cell.configuration];
        let mut row = vec![
            configuration.name.clone(),
            plan.workload_name(cell),
            cell.phase.name().to_owned(),
            cell.engine.name().to_owned(),
            word(&sample.measurement.accelerator),
        ];
        let others = factors.iter().filter(|factor| !head_has(factor));
        row.extend(others.map(|factor| {
            configuration
                .factors
                .get(*factor)
                .cloned()
                .unwrap_or_default()
        }));
        figures(&mut row, sample, result);
        line(&mut text, row.into_iter());
    }
    text
}

/// True for factors that have a column under another heading already.
fn head_has(factor: &str) -> bool {
    matches!(factor, "engine" | "name")
}

fn figures(row: &mut Vec<String>, sample: &Sample, result: &BenchResult) {
    let metric = result.metric(sample.cell);
    let measurement = &sample.measurement;
    let number = |value: Option<f64>| value.map_or_else(String::new, |value| value.to_string());
    row.extend([
        sample.round.to_string(),
        sample.position.to_string(),
        format!("{:.3}", sample.at_seconds),
        sample.counts().to_string(),
        number(measurement.value(metric)),
        word(&metric),
    ]);
    for direction in [&measurement.read, &measurement.write] {
        let direction: Option<&Direction> = direction.as_ref();
        row.push(number(direction.map(|direction| direction.iops)));
        row.push(number(
            direction.map(|direction| direction.bytes_per_second),
        ));
        let latency = direction.and_then(|direction| direction.latency.as_ref());
        for percentile in PERCENTILES {
            let nanoseconds = latency.and_then(|latency| latency.percentiles_ns.get(percentile));
            row.push(nanoseconds.map_or_else(String::new, u64::to_string));
        }
    }
    let semantics = &measurement.semantics;
    for flushes in [semantics.flushes_asked, semantics.flushes_seen] {
        row.push(flushes.map_or_else(String::new, |flushes| flushes.to_string()));
    }
    row.push(semantics.complaints.join("; "));
}

/// The word that a value has in JSON.
fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        Ok(_) | Err(_) => String::new(),
    }
}

fn line(text: &mut String, cells: impl Iterator<Item = String>) {
    let quoted: Vec<String> = cells
        .map(|cell| {
            if cell.contains(['"', ',', '\n', '\r']) {
                format!("\"{}\"", cell.replace('"', "\"\""))
            } else {
                cell
            }
        })
        .collect();
    text.push_str(&quoted.join(","));
    text.push_str("\r\n");
}
