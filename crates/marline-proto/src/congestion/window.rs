//! What all window-based controllers share: slow start, one reduction per flight, undoing it.

use super::slow_start::SlowStart;
use super::{ControllerConfig, MAXIMUM_WINDOW, MINIMUM_WINDOW_PACKETS, Phase};
use crate::Instant;
use crate::samples::{AckSample, RttView};

/// Full datagrams that may leave unpaced (RFC 9002, section 7.7).
const BURST_PACKETS: u64 = 10;

/// A congestion window and where it stands.
///
/// Controllers own one and say only how much a congestion event takes and how congestion avoidance
/// grows.
#[derive(Debug)]
pub(super) struct Window {
    bytes: u64,
    /// `u64::MAX` until something ends slow start.
    ssthresh: u64,
    max_datagram_size: u64,
    /// When the latest reduction happened: what was sent until then belongs to it.
    recovery_start: Option<Instant>,
    recovering: bool,
    app_limited: bool,
    /// Window and threshold before the latest reduction, while that may be undone.
    undo: Option<(u64, u64)>,
    slow_start: SlowStart,
}

impl Window {
    pub(super) fn new(config: ControllerConfig) -> Self {
        let mut window = Self {
            bytes: 0,
            ssthresh: u64::MAX,
            max_datagram_size: config.max_datagram_size,
            recovery_start: None,
            recovering: false,
            app_limited: false,
            undo: None,
            slow_start: SlowStart::new(config.slow_start_exit),
        };
        window.put(config.initial_window);
        window
    }

    pub(super) fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn max_datagram_size(&self) -> u64 {
        self.max_datagram_size
    }

    pub(super) fn set_max_datagram_size(&mut self, bytes: u64) {
        self.max_datagram_size = bytes.max(1);
        self.put(self.bytes);
    }

    pub(super) fn in_slow_start(&self) -> bool {
        self.bytes < self.ssthresh
    }

    pub(super) fn ssthresh(&self) -> Option<u64> {
        (self.ssthresh != u64::MAX).then_some(self.ssthresh)
    }

    pub(super) fn phase(&self) -> Phase {
        if self.recovering {
            Phase::Recovery
        } else if self.app_limited {
            Phase::ApplicationLimited
        } else if self.in_slow_start() {
            Phase::SlowStart
        } else {
            Phase::CongestionAvoidance
        }
    }

    /// Sets the window within its bounds.
    pub(super) fn put(&mut self, bytes: u64) {
        let minimum = MINIMUM_WINDOW_PACKETS.saturating_mul(self.max_datagram_size);
        self.bytes = bytes.min(MAXIMUM_WINDOW).max(minimum);
    }

    /// Takes an acknowledgment, growing in slow start; returns the bytes that congestion avoidance
    /// may grow by, if that is where the window stands.
    pub(super) fn on_ack(&mut self, now: Instant, ack: &AckSample) -> Option<u64> {
        self.app_limited = ack.app_limited;
        if self.recovering && !self.is_recovered_by(ack.largest_acked_sent_at) {
            return None;
        }
        self.recovering = false;
        if !self.in_slow_start() {
            return (!ack.app_limited).then_some(ack.bytes);
        }
        let growth = self
            .slow_start
            .on_ack(now, ack, self.bytes, self.max_datagram_size);
        match growth {
            None => self.exit_slow_start(),
            Some(_) if ack.app_limited => {}
            Some(bytes) => self.put(self.bytes.saturating_add(bytes)),
        }
        None
    }

    /// Whether an acknowledged packet was sent after the latest reduction.
    fn is_recovered_by(&self, sent_at: Instant) -> bool {
        self.recovery_start.is_none_or(|start| sent_at > start)
    }

    /// Begins a recovery period, unless a packet sent at `sent_at` belongs to the present one
    /// (RFC 9002, section 7.3.2). On `true` the caller reduces the window.
    pub(super) fn enter_recovery(&mut self, now: Instant, sent_at: Instant) -> bool {
        if !self.is_recovered_by(sent_at) {
            return false;
        }
        self.recovering = true;
        self.recovery_start = Some(now);
        true
    }

    /// Multiplies the window by `factor` and ends slow start there.
    pub(super) fn reduce(&mut self, factor: f64) {
        self.undo = Some((self.bytes, self.ssthresh));
        self.put((self.bytes as f64 * factor).round() as u64);
        self.ssthresh = self.bytes;
    }

    /// The latest reduction must stand.
    pub(super) fn forbid_undo(&mut self) {
        self.undo = None;
    }

    /// Takes back the latest reduction, if it covered a packet sent at `sent_at`; says whether it
    /// did.
    pub(super) fn undo(&mut self, sent_at: Instant) -> bool {
        if self.is_recovered_by(sent_at) {
            return false;
        }
        let Some((bytes, ssthresh)) = self.undo.take() else {
            return false;
        };
        self.put(self.bytes.max(bytes));
        self.ssthresh = ssthresh;
        self.recovering = false;
        true
    }

    /// Persistent congestion: starts over from the minimum window (RFC 9002, section 7.6.2).
    ///
    /// What was sent until now belongs to the collapse: a loss found late must not end the slow
    /// start that follows.
    pub(super) fn collapse(&mut self, now: Instant) {
        self.put(0);
        self.recovering = false;
        self.recovery_start = Some(now);
        self.slow_start.reset();
    }

    pub(super) fn enter_slow_start(&mut self) {
        self.ssthresh = u64::MAX;
        self.forbid_undo();
        self.slow_start.reset();
    }

    pub(super) fn exit_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.bytes);
    }

    /// One window per smoothed round-trip time, faster by a margin so that pacing never is what
    /// limits: twice in slow start, a quarter otherwise (RFC 9002, section 7.7).
    pub(super) fn pacing_rate(&self, rtt: &RttView) -> u64 {
        let quarters = if self.in_slow_start() { 8 } else { 5 };
        let nanos = u64::try_from(rtt.smoothed.as_nanos()).unwrap_or(u64::MAX);
        let per_second = self.bytes.saturating_mul(1_000_000_000) / nanos.max(1);
        (per_second.saturating_mul(quarters) / 4).max(1)
    }

    pub(super) fn send_quantum(&self) -> u64 {
        self.bytes
            .min(BURST_PACKETS.saturating_mul(self.max_datagram_size))
    }
}
