//! Data that cannot be compressed or deduplicated.

/// A sequence of bytes from a seed (xorshift64*).
#[derive(Clone, Debug)]
pub(crate) struct Noise(u64);

impl Noise {
    pub(crate) fn new(seed: u64) -> Self {
        // A state of zero would stay zero.
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    /// Returns a number in `0..bound`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next()) * u128::from(bound)) >> 64) as u64
    }

    pub(crate) fn fill(&mut self, bytes: &mut [u8]) {
        for word in bytes.chunks_mut(8) {
            let noise = self.next().to_le_bytes();
            word.copy_from_slice(&noise[..word.len()]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_two_blocks_of_noise_are_equal() {
        let mut noise = Noise::new(0);
        let mut bytes = vec![0; 1 << 20];
        noise.fill(&mut bytes);
        let blocks: std::collections::HashSet<&[u8]> = bytes.chunks(4096).collect();
        assert_eq!(blocks.len(), 256);
        let ones: u32 = bytes.iter().map(|byte| byte.count_ones()).sum();
        let share = f64::from(ones) / (8.0 * bytes.len() as f64);
        assert!((0.49..0.51).contains(&share), "{share}");
        assert!((0..1000).all(|_| noise.below(7) < 7));
    }
}
