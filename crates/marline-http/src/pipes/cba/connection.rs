//! Connection awareness: the smoothed round-trip time.

/// SRTT_t (eq. 3).
#[derive(Clone, Copy, Debug)]
pub struct Srtt {
    gamma: f64,
    ms: Option<f64>,
}

impl Srtt {
    /// A filter without a sample; `gamma` is the weight of the value before.
    pub fn new(gamma: f64) -> Self {
        Self { gamma, ms: None }
    }

    /// The smoothed round-trip time in milliseconds after a sample; the first sample is taken as it is.
    pub fn on_sample(&mut self, rtt_ms: f64) -> f64 {
        let before = self.ms.unwrap_or(rtt_ms);
        let now = self.gamma * before + (1.0 - self.gamma) * rtt_ms;
        self.ms = Some(now);
        now
    }

    /// The smoothed round-trip time in milliseconds, once there is a sample.
    pub fn ms(&self) -> Option<f64> {
        self.ms
    }
}
