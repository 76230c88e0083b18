//! Random numbers from a seed, identical in every version of this program.

/// SplitMix64 (Steele, Lea and Flood 2014): small, and sufficient for orders and simulated noise.
#[derive(Clone, Debug)]
pub(crate) struct Random(u64);

impl Random {
    /// Starts the sequence of a seed.
    pub(crate) const fn new(seed: u64) -> Self {
        Random(seed)
    }

    /// Returns the next number.
    pub(crate) const fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a uniformly distributed number in `0..bound`.
    fn below(&mut self, bound: u64) -> u64 {
        // Numbers after the last multiple of `bound` would favour small results.
        let limit = u64::MAX - u64::MAX % bound;
        loop {
            let number = self.next();
            if number < limit {
                return number % bound;
            }
        }
    }

    /// Returns a uniformly distributed number in `0.0..1.0`.
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Returns a number from the standard normal distribution (Box and Muller 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (2.0 * std::f64::consts::PI * self.unit()).cos()
    }

    /// Shuffles uniformly (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, things: &mut [T]) {
        for last in (1..things.len()).rev() {
            let chosen = self.below(last as u64 + 1) as usize;
            things.swap(last, chosen);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_at_every_position_equally_often() {
        let mut counts = [[0_u32; 5]; 5];
        for seed in 0..5_000 {
            let mut order = [0, 1, 2, 3, 4];
            Random::new(seed).shuffle(&mut order);
            for (place, thing) in order.into_iter().enumerate() {
                counts[thing][place] += 1;
            }
        }
        // 1,000 expected, with a standard deviation of 28.
        for row in counts {
            for count in row {
                assert!((880..=1_120).contains(&count), "{counts:?}");
            }
        }
    }

    #[test]
    fn normal_numbers_have_mean_0_and_deviation_1() {
        let mut random = Random::new(1);
        let numbers: Vec<f64> = (0..20_000).map(|_| random.normal()).collect();
        let mean = numbers.iter().sum::<f64>() / 20_000.0;
        let variance = numbers.iter().map(|n| (n - mean).powi(2)).sum::<f64>() / 20_000.0;
        assert!(mean.abs() < 0.03, "{mean}");
        assert!((variance - 1.0).abs() < 0.04, "{variance}");
    }
}
