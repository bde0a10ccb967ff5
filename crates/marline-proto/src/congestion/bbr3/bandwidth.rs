//! The largest delivery rate of two probing cycles (sections 5.5.2 to 5.5.5).

/// The windowed maximum of the delivery rate, in bytes per second (`BBR.max_bw`): of the present probing cycle and
/// the one before.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxBandwidth {
    previous: u64,
    present: u64,
}

impl MaxBandwidth {
    /// The maximum; 0 before the first sample.
    pub(super) fn get(&self) -> u64 {
        self.previous.max(self.present)
    }

    /// Adds a sample of the present cycle.
    pub(super) fn update(&mut self, bandwidth: u64) {
        self.present = self.present.max(bandwidth);
    }

    /// A cycle ends: drops the samples of the one before it. Without a sample in the present cycle the previous one
    /// stays, as in Linux; the draft would forget the bandwidth of a path without measurements.
    pub(super) fn advance(&mut self) {
        if self.present > 0 {
            self.previous = std::mem::take(&mut self.present);
        }
    }

    /// Replaces all samples.
    pub(super) fn reset(&mut self, bandwidth: u64) {
        *self = Self {
            previous: 0,
            present: bandwidth,
        };
    }
}
