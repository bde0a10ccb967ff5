//! Cross traffic: other flows in the queue. Not of the draft.
//!
//! Between probes this controller sends no more than the path delivers, and leaves room: a standing queue that no packet of a round
//! finds empty, or losses beside a queue in excess of random loss, are caused by cross traffic. The draft lowers its bounds only to
//! its delivery rate, so that flows that reduce their window to 0.5 or 0.7 for the same losses (NewReno, CUBIC) leave it ever more.
//! With cross traffic, this controller keeps [`BETA`] of its rate, ends a probe with the first losses in excess of random loss,
//! raises its bound as slowly as they do, and leaves more room between probes. After a probe it is back at its bound within a round
//! trip, while CUBIC flows take seconds: of a bound that caused losses it keeps less than it reached.
//!
//! Flows of BBR version 1 empty their queue every ten seconds, all at once, to measure the delay. The longer cross traffic was
//! present, the longer the queue has to be empty before the path is probed early. Regular probes end that wait, and after
//! [`CYCLES`] of them without a sign of cross traffic it is forgotten.
//!
//! A managed queue marks packets with ECT(0) where it drops those of others, rarely and long before it is full: each such mark ends
//! a probe, and between probes, beside a queue, it indicates cross traffic as a loss does.

use std::time::Duration;

use super::bounds::{BETA, HEADROOM};
use super::loss::LOSS_THRESHOLD;
use super::{Bbr3, ProbeBwPhase, State};
use crate::Instant;
use crate::samples::RateSample;

/// Probing cycles without a sign of other flows after which they are forgotten.
const CYCLES: u8 = 4;

/// The part of the long-term bound that is left to them.
const SHARED_HEADROOM: f64 = 0.2;

/// The part kept of a long-term bound that caused losses or marks.
const KEPT_OF_BOUND: f64 = 0.95;

/// The part kept after marks in place of drops (RFC 8511): a managed queue is short.
const KEPT_AFTER_MARKS: f64 = 0.85;

/// Ratio of the time for which other flows were known to the time of an empty queue after which they are considered ended.
const GONE_AFTER: u32 = 8;

/// Standard deviations above the expected random loss that are not ascribed to other flows.
const DEVIATIONS: f64 = 2.0;

/// A queue of other flows stands: it raises all round-trip times of a round by more than this multiple of the differences between
/// them. The delays of a radio fluctuate.
const STANDING: f64 = 1.5;

/// Range of the round-trip times of a round.
#[derive(Clone, Copy, Debug, Default)]
struct RttRange {
    smallest: Option<Duration>,
    largest: Duration,
}

impl RttRange {
    fn add(&mut self, rtt: Duration) {
        self.smallest = Some(self.smallest.map_or(rtt, |smallest| smallest.min(rtt)));
        self.largest = self.largest.max(rtt);
    }

    /// Whether a standing queue raises them above `path`, the delay of the empty path.
    fn is_of_standing_queue(&self, path: Option<Duration>) -> bool {
        let Some((smallest, path)) = self.smallest.zip(path) else {
            return false;
        };
        let difference = self.largest.saturating_sub(smallest);
        smallest.saturating_sub(path) >= difference.mul_f64(STANDING)
    }
}

/// The state of cross traffic detection.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct CrossTraffic {
    /// Cycles for which other flows are still assumed.
    cycles: u8,
    /// When they were first seen since the latest pause of this controller.
    first_seen: Option<Instant>,
    /// Whether this controller has been cruising since the round began, and no packet found the queue empty.
    only_queued: bool,
    /// The round-trip times of this round.
    rtts: RttRange,
    /// Start of the time since which this controller leaves room; `None` if it does not.
    room_since: Option<Instant>,
    /// Bytes lost in this round that this controller did not cause: the queue of a startup or a probe drops packets after these
    /// end. Once other flows are known, all losses count, as they do for them.
    lost: u64,
    /// Whether packets of this round that count in `lost` were marked in place of a drop.
    is_marked: bool,
}

impl CrossTraffic {
    pub(super) fn is_present(&self) -> bool {
        self.cycles > 0
    }

    /// The loss rate of a round that is tolerated in excess of random loss.
    pub(super) fn loss_threshold(&self) -> f64 {
        match self.is_present() {
            true => 0.0,
            false => LOSS_THRESHOLD,
        }
    }

    /// The part kept of the bytes in flight at which a probe caused losses or marks.
    pub(super) fn kept_of_bound(&self) -> f64 {
        match self.is_present() {
            true => KEPT_OF_BOUND,
            false => 1.0,
        }
    }

    /// The part of the long-term bound that is left to other flows.
    pub(super) fn headroom(&self) -> f64 {
        match self.is_present() {
            true => SHARED_HEADROOM,
            false => HEADROOM,
        }
    }

    /// A packet was acknowledged after `rtt`; whether it `meets_queue`.
    pub(super) fn on_rtt(&mut self, rtt: Duration, meets_queue: bool) {
        self.rtts.add(rtt);
        self.only_queued &= meets_queue;
    }

    /// Sets whether packets sent from now on leave room.
    pub(super) fn set_room(&mut self, now: Instant, leaves_room: bool) {
        self.room_since = leaves_room.then(|| self.room_since.unwrap_or(now));
    }

    /// A packet of `bytes` that left at `sent_at` was lost.
    pub(super) fn on_lost(&mut self, sent_at: Instant, bytes: u64) {
        if self.counts(sent_at) {
            self.lost = self.lost.saturating_add(bytes);
        }
    }

    /// Whether other flows may cause the loss or mark of a packet sent at `sent_at`.
    fn counts(&self, sent_at: Instant) -> bool {
        self.is_present() || self.room_since.is_some_and(|since| sent_at > since)
    }

    /// A packet that left at about `sent_at` was marked in place of a drop.
    pub(super) fn on_marked(&mut self, sent_at: Instant) {
        self.is_marked |= self.counts(sent_at);
    }

    pub(super) fn on_cycle(&mut self) {
        self.cycles = self.cycles.saturating_sub(1);
    }

    pub(super) fn on_seen(&mut self, now: Instant) {
        if !self.is_present() {
            self.first_seen = Some(now);
        }
        self.cycles = CYCLES;
    }

    /// Restarts after a pause in sending, during which other flows may have ended.
    pub(super) fn restart(&mut self, now: Instant) {
        self.first_seen = Some(now);
    }

    /// Whether they may still be present though the queue has been empty since `empty_since`.
    pub(super) fn may_return(&self, now: Instant, empty_since: Instant) -> bool {
        let known_for = self
            .first_seen
            .map(|first| empty_since.saturating_since(first));
        now.saturating_since(empty_since) < known_for.unwrap_or_default() / GONE_AFTER
    }

    /// A round ends; `is_cruising` is the state at its end, `path` the delay of the empty path.
    pub(super) fn end_round(&mut self, now: Instant, is_cruising: bool, path: Option<Duration>) {
        let rtts = std::mem::take(&mut self.rtts);
        if is_cruising && self.only_queued && rtts.is_of_standing_queue(path) {
            self.on_seen(now);
        }
        self.only_queued = is_cruising;
        self.lost = 0;
        self.is_marked = false;
    }
}

impl Bbr3 {
    /// Whether other flows are known, and the queue has not been empty for long enough to consider them ended.
    pub(super) fn waits_for_others(&self, now: Instant) -> bool {
        let empty_since = self.fast_reprobe.empty_since();
        self.cross_traffic.is_present()
            && empty_since.is_none_or(|empty_since| self.cross_traffic.may_return(now, empty_since))
    }

    /// Whether this controller now leaves room, so that losses are caused by other flows.
    pub(super) fn leaves_room(&self) -> bool {
        match self.state {
            State::ProbeBw(ProbeBwPhase::Cruise) => true,
            State::ProbeBw(ProbeBwPhase::Down) => self.cross_traffic.is_present(),
            _ => false,
        }
    }

    /// The part of a round that may be marked in place of drops while the path is probed. Loss-based flows answer each mark, and
    /// there are no random marks.
    pub(super) fn mark_threshold(&self) -> f64 {
        match self.config.coexist && self.full_pipe.is_reached() {
            true => 0.0,
            false => self.cross_traffic.loss_threshold(),
        }
    }

    /// The part kept after losses, or marks in place of drops, of the round that ends, if other flows caused them.
    pub(super) fn kept_beside_others(&self, rate: &RateSample) -> Option<f64> {
        if !self.leaves_room() || self.cycle.is_stopping() {
            return None;
        }
        let lost = self.cross_traffic.lost;
        if self.has_queues() && self.exceeds_deviations(lost, rate.in_flight_at_send, DEVIATIONS) {
            return Some(BETA);
        }
        (self.cross_traffic.is_marked && self.meets_queue()).then_some(KEPT_AFTER_MARKS)
    }
}
