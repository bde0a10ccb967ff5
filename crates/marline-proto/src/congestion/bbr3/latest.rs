//! The delivery of the latest round, and whether it had a loss (section 5.5.10.3).

use crate::samples::RateSample;

/// The largest samples of a round that begins with a loss.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LatestDelivery {
    /// Bytes per second (`BBR.bw_latest`).
    bandwidth: u64,
    /// Bytes delivered in a round trip (`BBR.inflight_latest`).
    volume: u64,
    /// The round ends with a packet sent when at least this much had been delivered.
    round_end: u64,
    /// Whether the newest sample ended a round (`BBR.loss_round_start`).
    round_ended: bool,
    /// Whether a loss was detected in this round (`BBR.is_loss_in_round`).
    has_loss: bool,
}

impl LatestDelivery {
    pub(super) fn bandwidth(&self) -> u64 {
        self.bandwidth
    }

    pub(super) fn volume(&self) -> u64 {
        self.volume
    }

    pub(super) fn round_ended(&self) -> bool {
        self.round_ended
    }

    pub(super) fn has_loss(&self) -> bool {
        self.has_loss
    }

    /// A loss is detected when `delivered` bytes have been delivered. The first of a round restarts it, so that it
    /// measures the delivery after the loss.
    pub(super) fn on_loss(&mut self, delivered: u64) {
        if !self.has_loss {
            self.round_end = delivered;
        }
        self.has_loss = true;
    }

    /// The losses of this round, if any, are answered.
    pub(super) fn clear_loss(&mut self) {
        self.has_loss = false;
    }

    /// Processes a sample, before the model reads the maxima.
    pub(super) fn update(&mut self, rate: &RateSample) {
        self.bandwidth = self.bandwidth.max(rate.bytes_per_second());
        self.volume = self.volume.max(rate.delivered);
        self.round_ended = rate.prior_delivered >= self.round_end;
        if self.round_ended {
            self.round_end = rate.delivered_total;
        }
    }

    /// If the sample ended a round, the next one begins with it.
    pub(super) fn advance(&mut self, rate: &RateSample) {
        if self.round_ended {
            self.bandwidth = rate.bytes_per_second();
            self.volume = rate.delivered;
        }
    }

    /// Drops the measurements taken while the path was probed.
    pub(super) fn reset(&mut self) {
        self.bandwidth = 0;
        self.volume = 0;
        self.has_loss = false;
    }
}
