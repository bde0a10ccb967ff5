//! Reproducible synthetic data.

/// A SplitMix64 generator.
#[derive(Debug)]
pub(super) struct Noise(u64);

impl Noise {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Uniform in [0, 1).
    pub(super) const fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut bits = self.0;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        bits ^= bits >> 31;
        (bits >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Approximately normal.
    pub(super) fn normal(&mut self, mean: f64, deviation: f64) -> f64 {
        let sum: f64 = (0..12).map(|_| self.uniform()).sum();
        deviation.mul_add(sum - 6.0, mean)
    }

    /// Around `median`, with a long right tail.
    pub(super) fn skewed(&mut self, median: f64, spread: f64) -> f64 {
        let normal = self.normal(0.0, spread);
        let tail = if self.uniform() < 0.04 { 0.8 } else { 0.0 };
        // Approximates an exponential function.
        median * (1.0 + normal + normal * normal / 2.0 + tail * self.uniform())
    }

    pub(super) fn many(&mut self, count: usize, median: f64, spread: f64) -> Vec<f64> {
        (0..count).map(|_| self.skewed(median, spread)).collect()
    }
}
