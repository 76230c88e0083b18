//! Latencies of the requests of one sample.

use hdrhistogram::Histogram;

use crate::{Latency, PERCENTILES};

/// A histogram of latencies, to two significant digits.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    histogram: Histogram<u64>,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self {
            histogram: Histogram::new(2).expect("a histogram has zero to five digits"),
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    pub(crate) fn add(&mut self, ns: u64) {
        self.histogram
            .record(ns)
            .expect("a resizable histogram accepts every value");
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    /// Returns the latency; `None` without requests.
    pub(crate) fn latency(&self) -> Option<Latency> {
        let count = self.histogram.len();
        if count == 0 {
            return None;
        }
        let percentile = |name: &str| {
            let share = name.parse::<f64>().unwrap_or(50.0) / 100.0;
            self.histogram
                .value_at_quantile(share)
                .clamp(self.min_ns, self.max_ns)
        };
        Some(Latency {
            mean_ns: self.sum_ns as f64 / count as f64,
            min_ns: Some(self.min_ns),
            max_ns: Some(self.max_ns),
            percentiles_ns: PERCENTILES
                .iter()
                .map(|name| ((*name).to_owned(), percentile(name)))
                .collect(),
            histogram: self
                .histogram
                .iter_recorded()
                .map(|step| (step.value_iterated_to(), step.count_at_value()))
                .collect(),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_close_to_the_exact_values() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.latency(), None);
        for value in 1..=10_000 {
            latencies.add(value * 1000);
        }
        let latency = latencies.latency().unwrap();
        assert_eq!(
            (latency.min_ns, latency.max_ns),
            (Some(1000), Some(10_000_000))
        );
        assert!((latency.mean_ns - 5_000_500.0).abs() < 1.0);
        for (name, value) in [("50", 5.0e6), ("99", 9.9e6), ("99.9", 9.99e6)] {
            let found = latency.percentiles_ns[name] as f64;
            assert!((found / value - 1.0).abs() < 0.02, "{name}: {found}");
        }
        let counted: u64 = latency.histogram.iter().map(|(_, count)| count).sum();
        assert_eq!(counted, 10_000);
    }

    #[test]
    fn a_latency_of_any_length_is_counted() {
        let mut latencies = Latencies::new();
        for value in [0, 1, 1 << 40, u64::MAX] {
            latencies.add(value);
        }
        let histogram = latencies.latency().unwrap().histogram;
        let counts = histogram.iter().map(|(_, count)| count);
        assert_eq!(counts.sum::<u64>(), 4);
    }
}
