//! Latencies, counted in classes whose width is a sixty-fourth of their value.

use crate::Latency;

/// Bits of a value that are kept.
const BITS: u32 = 6;

/// How often each latency was seen.
#[derive(Clone, Debug)]
pub(crate) struct Latencies {
    classes: Vec<u64>,
    count: u64,
    sum_ns: u128,
    min_ns: u64,
    max_ns: u64,
}

impl Latencies {
    pub(crate) fn new() -> Self {
        Self {
            classes: vec![0; class(u64::MAX) + 1],
            count: 0,
            sum_ns: 0,
            min_ns: u64::MAX,
            max_ns: 0,
        }
    }

    pub(crate) fn add(&mut self, ns: u64) {
        self.classes[class(ns)] += 1;
        self.count += 1;
        self.sum_ns += u128::from(ns);
        self.min_ns = self.min_ns.min(ns);
        self.max_ns = self.max_ns.max(ns);
    }

    pub(crate) fn add_all(&mut self, other: &Self) {
        for (class, count) in self.classes.iter_mut().zip(&other.classes) {
            *class += count;
        }
        self.count += other.count;
        self.sum_ns += other.sum_ns;
        self.min_ns = self.min_ns.min(other.min_ns);
        self.max_ns = self.max_ns.max(other.max_ns);
    }

    pub(crate) fn count(&self) -> u64 {
        self.count
    }

    /// `None` if nothing was seen.
    pub(crate) fn latency(&self) -> Option<Latency> {
        if self.count == 0 {
            return None;
        }
        let percentiles = [("50", 0.5), ("90", 0.9), ("99", 0.99), ("99.9", 0.999)];
        Some(Latency {
            mean_ns: self.sum_ns as f64 / self.count as f64,
            min_ns: Some(self.min_ns),
            max_ns: Some(self.max_ns),
            percentiles_ns: percentiles
                .into_iter()
                .map(|(name, share)| (name.to_owned(), self.percentile(share)))
                .collect(),
        })
    }

    /// The largest value of the class that the percentile is in.
    fn percentile(&self, share: f64) -> u64 {
        let rank = ((self.count as f64 * share).ceil() as u64).clamp(1, self.count);
        let mut seen = 0;
        for (class, count) in self.classes.iter().enumerate() {
            seen += count;
            if seen >= rank {
                return last_of(class).clamp(self.min_ns, self.max_ns);
            }
        }
        self.max_ns
    }
}

fn class(ns: u64) -> usize {
    let shift = (u64::BITS - ns.leading_zeros()).saturating_sub(BITS + 1);
    // At most 58 groups of 64 classes and the first 128 values.
    ((ns >> shift) + (u64::from(shift) << BITS)) as usize
}

fn last_of(class: usize) -> u64 {
    let class = class as u64;
    let group = (class >> BITS).saturating_sub(1);
    let first = (class - (group << BITS)) << group;
    first + ((1_u64 << group) - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_is_no_wider_than_a_sixty_fourth_of_what_is_in_it() {
        let mut before = None;
        for shift in 0..63 {
            for offset in 0..9_u128 {
                let value = (1_u64 << shift) + ((offset << shift) / 9) as u64;
                let class = class(value);
                assert!(before <= Some(class), "classes rise with values");
                before = Some(class);
                let last = last_of(class);
                assert!(
                    last >= value && last - value <= value / 64,
                    "{value} is in {last}"
                );
            }
        }
        assert!(last_of(class(u64::MAX)) == u64::MAX);
    }

    #[test]
    fn percentiles_are_near_those_of_the_values() {
        let mut latencies = Latencies::new();
        assert_eq!(latencies.latency(), None);
        for value in 1..=10_000 {
            latencies.add(value * 1000);
        }
        let mut both = Latencies::new();
        both.add_all(&latencies);
        let latency = both.latency().unwrap();
        assert_eq!(both.count(), 10_000);
        assert_eq!(
            (latency.min_ns, latency.max_ns),
            (Some(1000), Some(10_000_000))
        );
        assert!((latency.mean_ns - 5_000_500.0).abs() < 1.0);
        for (name, value) in [("50", 5.0e6), ("99", 9.9e6), ("99.9", 9.99e6)] {
            let found = latency.percentiles_ns[name] as f64;
            assert!((found / value - 1.0).abs() < 0.02, "{name}: {found}");
        }
    }
}
