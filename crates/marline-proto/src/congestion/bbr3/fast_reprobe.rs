//! Probing for bandwidth before the draft's time. Not of the draft.
//!
//! For 2 to 3 seconds after a probe the draft sends no more than the path delivered then. If that was too little, because
//! connections of the same page had the rest or a radio's delays hid that the rate still grew, most of a page is affected. So
//! this controller probes early on paths with a queue, until losses have answered startup: when packets find the queue empty,
//! and, without known cross traffic, as long as each probe finds more than the one before. Probes that find no more double the
//! pause to the next. A queue that stays empty also shows that cross traffic has ended, as after other connections of the same page.
//!
//! Where nothing was ever lost or marked, so that the queue had room for startup, or where losses bound the bytes in flight, a
//! probe of an empty queue need not fill the path first, and sends at twice the bandwidth until a packet meets a queue.
//! Spurious losses count as well.
//!
//! Losses lower the short-term bounds to the delivery rate at that time until the next probe, though the rate of a radio
//! recovers within a fraction of a second. While this controller cruises, each round without congestion in which a packet
//! finds the queue empty widens them.

use super::bounds::UNBOUNDED;
use super::loss::LOSS_THRESHOLD;
use super::window::{WINDOW_GAIN, product};
use super::{Bbr3, State};
use crate::Instant;
use crate::samples::PacketLoss;

/// Rounds from a probe that found more to the next.
const SHORTEST_PAUSE: u64 = 4;

/// Longest pause in rounds: by then the draft's time is earlier.
const LONGEST_PAUSE: u64 = 1 << 10;

/// Lost packets of a probe up to which it is not considered answered.
const MIN_LOSSES: u64 = 2;

/// A probe found more if the bandwidth grew by more than one part in this many.
const GROWTH: u64 = 16;

/// A round without a queue widens the short-term bounds by one part in this many of the gap to the bandwidth.
const WIDENED: u64 = 4;

/// Smallest widening, in datagrams.
const MIN_WIDENED: u64 = 4;

/// The state of early probing.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct FastReprobe {
    /// Whether a packet found the queue empty in this round.
    found_empty: bool,
    /// When this round began.
    round_began: Option<Instant>,
    /// When the first of the preceding consecutive rounds began that each had such a packet and ended while this controller
    /// was cruising.
    empty_since: Option<Instant>,
    /// The bandwidth after the latest probe, in bytes per second.
    found: u64,
    /// Rounds until the next.
    pause: u64,
    /// Whether losses answered the packets sent after startup.
    met_losses: bool,
    /// Whether any packet was lost or marked, in startup or at random.
    was_full: bool,
    /// Whether the present probe began with an empty queue, and no packet has met one since.
    is_open: bool,
}

impl FastReprobe {
    /// Processes an acknowledged packet, and whether it `meets_queue`.
    pub(super) fn on_rtt(&mut self, meets_queue: bool) {
        self.found_empty |= !meets_queue;
        self.is_open &= !meets_queue;
    }

    /// A probe begins, before the draft's time if it `is_early`; `bounded` is whether losses have bounded the bytes in flight.
    pub(super) fn begin_probe(&mut self, is_early: bool, bounded: bool) {
        self.is_open = is_early && self.empty_since.is_some() && (bounded || !self.was_full);
    }

    /// Whether this is a probe of an empty queue.
    pub(super) fn is_open(&self) -> bool {
        self.is_open
    }

    /// A packet was lost or marked.
    pub(super) fn on_full(&mut self) {
        self.was_full = true;
        self.is_open = false;
    }

    /// Losses or marks answered the packets sent.
    pub(super) fn on_congestion(&mut self) {
        self.met_losses = true;
    }

    /// A round ends; `is_cruising` is the state at its end.
    pub(super) fn end_round(&mut self, now: Instant, is_cruising: bool) {
        let was_empty = std::mem::take(&mut self.found_empty) && is_cruising;
        let began = self.round_began.replace(now).unwrap_or(now);
        self.empty_since = was_empty.then(|| self.empty_since.unwrap_or(began));
    }

    /// Restarts after a pause in sending, which is not evidence about the queue.
    pub(super) fn restart(&mut self, now: Instant) {
        self.round_began = Some(now);
        self.empty_since = self.empty_since.map(|_| now);
    }

    /// Start of the period of an empty queue that lasts to the end of the latest round.
    pub(super) fn empty_since(&self) -> Option<Instant> {
        self.empty_since
    }

    /// Startup, or a probe, ended with this `bandwidth`.
    pub(super) fn end_probe(&mut self, bandwidth: u64) {
        self.pause = match bandwidth > self.found.saturating_add(self.found / GROWTH) {
            true => SHORTEST_PAUSE,
            false => (self.pause * 2).min(LONGEST_PAUSE),
        };
        self.found = bandwidth;
        self.empty_since = None;
        self.is_open = false;
    }

    pub(super) fn is_due(&self, rounds_since_probe: u64) -> bool {
        !self.met_losses && (self.empty_since.is_some() || rounds_since_probe > self.pause)
    }
}

impl Bbr3 {
    /// Losses or marks lower the bounds, not counting the flight that ended startup.
    pub(super) fn note_congestion(&mut self) {
        if self.full_pipe.is_reached() && !matches!(self.state, State::Drain { .. }) {
            self.fast_reprobe.on_congestion();
        }
    }

    /// A packet of a probe was lost. Random losses count as well: where packets cannot queue, as before a policer, losses of
    /// probes are easily mistaken for them.
    pub(super) fn note_probe_loss(&mut self, lost: &PacketLoss) {
        let least = MIN_LOSSES.saturating_mul(self.max_datagram_size);
        let part = (lost.in_flight_at_send as f64 * LOSS_THRESHOLD) as u64;
        if lost.lost > least.max(part) {
            self.fast_reprobe.on_congestion();
        }
    }

    /// Widens the short-term bounds after a round without congestion.
    pub(super) fn widen_short_term(&mut self) {
        let Some(min_rtt) = self.min_rtt.get() else {
            return;
        };
        // Marks answered in proportion lower only the bytes in flight, by the right amount.
        let by_losses = self.bounds.short_bandwidth != UNBOUNDED;
        if !self.config.fast_reprobe || self.fast_reprobe.empty_since.is_none() || !by_losses {
            return;
        }
        let delay = min_rtt + self.jitter;
        let bandwidth = self.bandwidth.get();
        let missing = bandwidth.saturating_sub(self.bounds.short_bandwidth);
        let least = MIN_WIDENED.saturating_mul(self.max_datagram_size);
        let bytes = (product(missing, delay, 1.0) / WIDENED).max(least);
        let in_flight = self.in_flight_at(bandwidth, WINDOW_GAIN);
        let rate = (bytes as f64 / delay.as_secs_f64().max(1e-6)) as u64;
        widen(&mut self.bounds.short_bandwidth, rate, bandwidth);
        widen(&mut self.bounds.short_in_flight, bytes, in_flight);
    }

    /// Whether the path is probed before the draft's time.
    pub(super) fn probes_early(&self, now: Instant) -> bool {
        self.config.fast_reprobe
            && self.has_queues()
            && !self.waits_for_others(now)
            && self.fast_reprobe.is_due(self.cycle.rounds_since_up)
    }
}

/// Widens `bound` by `growth`, but not beyond `most`.
pub(super) fn widen(bound: &mut u64, growth: u64, most: u64) {
    *bound = bound.saturating_add(growth).min(most).max(*bound);
}
