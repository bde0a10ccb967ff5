//! Bounds that losses and marks set (sections 2.9.2 and 5.5.10).

/// No bound.
pub(super) const UNBOUNDED: u64 = u64::MAX;

/// The part of a short-term bound that a round with losses keeps, at least (`BBR.Beta`).
pub(super) const BETA: f64 = 0.7;

/// The part of the long-term bound that is left to other flows (`BBR.Headroom`).
pub(super) const HEADROOM: f64 = 0.15;

/// Bounds on the bandwidth in bytes per second, and on the bytes in flight.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bounds {
    /// Bytes in flight that probing found to be safe (`BBR.inflight_longterm`).
    pub(super) in_flight: u64,
    /// Short-term bound on the bandwidth after losses since the last probe (`BBR.bw_shortterm`).
    pub(super) short_bandwidth: u64,
    /// Short-term bound on the bytes in flight (`BBR.inflight_shortterm`).
    pub(super) short_in_flight: u64,
}

impl Default for Bounds {
    fn default() -> Self {
        Self {
            in_flight: UNBOUNDED,
            short_bandwidth: UNBOUNDED,
            short_in_flight: UNBOUNDED,
        }
    }
}

impl Bounds {
    /// Clears the bounds set by losses since the last probe.
    pub(super) fn reset_short_term(&mut self) {
        self.short_bandwidth = UNBOUNDED;
        self.short_in_flight = UNBOUNDED;
    }

    /// Initializes unset short-term bounds to `bandwidth` and `in_flight`.
    pub(super) fn begin_short_term(&mut self, bandwidth: u64, in_flight: u64) {
        if self.short_bandwidth == UNBOUNDED {
            self.short_bandwidth = bandwidth;
        }
        self.begin_short_in_flight(in_flight);
    }

    /// Initializes an unset short-term bound on the bytes in flight to `in_flight`.
    pub(super) fn begin_short_in_flight(&mut self, in_flight: u64) {
        if self.short_in_flight == UNBOUNDED {
            self.short_in_flight = in_flight;
        }
    }

    /// Lowers the short-term bounds after a round with losses, but not below the delivery of that round.
    pub(super) fn reduce(&mut self, latest_bandwidth: u64, latest_volume: u64) {
        self.short_bandwidth = latest_bandwidth.max(scale(self.short_bandwidth, BETA));
        self.short_in_flight = latest_volume.max(scale(self.short_in_flight, BETA));
    }

    /// Raises the bounds to at least those of `before`.
    pub(super) fn restore(&mut self, before: &Self) {
        self.in_flight = self.in_flight.max(before.in_flight);
        self.short_bandwidth = self.short_bandwidth.max(before.short_bandwidth);
        self.short_in_flight = self.short_in_flight.max(before.short_in_flight);
    }

    /// The long-term bound without the part `headroom` that is left to other flows: at least a datagram.
    pub(super) fn with_headroom(&self, headroom: f64, datagram: u64) -> u64 {
        if self.in_flight == UNBOUNDED {
            return UNBOUNDED;
        }
        let headroom = scale(self.in_flight, headroom).max(datagram);
        self.in_flight.saturating_sub(headroom)
    }
}

/// `bytes` times `factor`, rounded down.
pub(super) fn scale(bytes: u64, factor: f64) -> u64 {
    (bytes as f64 * factor) as u64
}
