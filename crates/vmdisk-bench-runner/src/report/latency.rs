//! Latencies of a cell, merged over every sample that counts.

use std::collections::BTreeMap;

use hdrhistogram::Histogram;
#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::Serialize;

use crate::method::median;
use crate::{Latency, PERCENTILES, Sample};

/// The operation that a latency belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Reads.
    Read,
    /// Writes, without the flushes after them.
    Write,
    /// Flushes.
    Flush,
}

impl Operation {
    /// Every operation.
    pub const ALL: [Operation; 3] = [Operation::Read, Operation::Write, Operation::Flush];

    /// Returns the name used in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Operation::Read => "read",
            Operation::Write => "write",
            Operation::Flush => "flush",
        }
    }
}

/// Latencies of one operation in a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Distribution {
    /// Number of requests.
    pub requests: u64,
    /// Percentiles in nanoseconds, if at least ten requests were slower.
    pub percentiles_ns: BTreeMap<String, f64>,
}

/// Minimum number of slower requests for a percentile.
const MIN_SLOWER: f64 = 10.0;

/// Returns true if the number of requests is sufficient for a percentile.
pub(crate) fn suffices(requests: u64, percentile: &str) -> bool {
    let share = percentile.parse::<f64>().unwrap_or(100.0) / 100.0;
    requests as f64 * (1.0 - share) >= MIN_SLOWER - 1e-6
}

/// Merges the latencies of samples, by operation.
pub(super) fn of(samples: &[&Sample]) -> BTreeMap<Operation, Distribution> {
    let of_one = |operation: Operation| {
        let counted: Vec<(u64, &Latency)> = samples
            .iter()
            .filter_map(|sample| counted(sample, operation))
            .collect();
        Some((operation, distribution(&counted)?))
    };
    Operation::ALL.into_iter().filter_map(of_one).collect()
}

/// Returns the latency of an operation in a sample, with the number of requests.
pub(super) fn counted(sample: &Sample, operation: Operation) -> Option<(u64, &Latency)> {
    let measurement = &sample.measurement;
    let direction = match operation {
        Operation::Read => measurement.read.as_ref()?,
        Operation::Write => measurement.write.as_ref()?,
        Operation::Flush => {
            let latency = measurement.sync.as_ref()?;
            let in_histogram = latency.histogram.iter().map(|(_, count)| count).sum();
            let asked = measurement.semantics.flushes_asked.unwrap_or(0);
            return Some((
                if in_histogram > 0 {
                    in_histogram
                } else {
                    asked
                },
                latency,
            ));
        }
    };
    Some((direction.operations, direction.latency.as_ref()?))
}

fn distribution(counted: &[(u64, &Latency)]) -> Option<Distribution> {
    let requests: u64 = counted.iter().map(|(count, _)| count).sum();
    let has_histograms = counted
        .iter()
        .all(|(_, latency)| !latency.histogram.is_empty());
    if requests == 0 {
        return None;
    }
    if !has_histograms {
        // Older results: the median over the rounds with enough requests.
        let percentile = |name: &&str| {
            let enough = counted.iter().filter(|(count, _)| suffices(*count, name));
            let values: Vec<f64> = enough
                .filter_map(|(_, latency)| Some(*latency.percentiles_ns.get(*name)? as f64))
                .collect();
            Some(((*name).to_owned(), median(&values)?))
        };
        return Some(Distribution {
            requests,
            percentiles_ns: PERCENTILES.iter().filter_map(percentile).collect(),
        });
    }
    let mut merged: Histogram<u64> = Histogram::new(2).ok()?;
    for (nanoseconds, count) in counted.iter().flat_map(|(_, latency)| &latency.histogram) {
        merged
            .record_n(*nanoseconds, *count)
            .expect("a resizable histogram accepts every value");
    }
    let percentiles_ns = PERCENTILES
        .iter()
        .filter(|name| suffices(merged.len(), name))
        .map(|name| {
            let share = name.parse::<f64>().unwrap_or(50.0) / 100.0;
            ((*name).to_owned(), merged.value_at_quantile(share) as f64)
        })
        .collect();
    Some(Distribution {
        requests,
        percentiles_ns,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn latency(pairs: &[(u64, u64)]) -> Latency {
        Latency {
            histogram: pairs.to_vec(),
            percentiles_ns: BTreeMap::from([("99".to_owned(), 7)]),
            ..Latency::default()
        }
    }

    #[test]
    fn a_percentile_is_shown_only_if_ten_requests_are_slower() {
        for (requests, percentile, shown) in [
            (999, "99", false),
            (1_000, "99", true),
            (9_999, "99.9", false),
            (10_000, "99.9", true),
            (20, "50", true),
        ] {
            assert_eq!(
                suffices(requests, percentile),
                shown,
                "{requests} {percentile}"
            );
        }
        let few = latency(&[(1_000, 120)]);
        let found = distribution(&[(120, &few)]).unwrap();
        let names: Vec<&str> = found.percentiles_ns.keys().map(String::as_str).collect();
        assert_eq!(names, ["50", "90"]);
    }

    #[test]
    fn samples_are_merged_and_not_averaged() {
        // A fast and a slow sample: the merged tail is the tail of the slow one.
        let fast = latency(&[(1_000, 10_000)]);
        let slow = latency(&[(1_000_000, 1_000)]);
        let found = distribution(&[(10_000, &fast), (1_000, &slow)]).unwrap();
        assert_eq!(found.requests, 11_000);
        assert!((found.percentiles_ns["99"] / 1e6 - 1.0).abs() < 0.02);
        assert!((found.percentiles_ns["50"] / 1e3 - 1.0).abs() < 0.02);
    }

    #[test]
    fn results_without_histograms_show_percentiles_of_sufficient_rounds() {
        let old = latency(&[]);
        let found = distribution(&[(500, &old), (2_000, &old)]).unwrap();
        assert_eq!(
            found.percentiles_ns,
            BTreeMap::from([("99".to_owned(), 7.0)])
        );
        let found = distribution(&[(500, &old), (600, &old)]).unwrap();
        assert!(found.percentiles_ns.is_empty());
        assert_eq!(distribution(&[]), None);
    }
}
