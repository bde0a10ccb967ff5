//! The common part of loss-based controllers: slow start, one reaction per flight, and undoing it.

use std::fmt::Debug;
use std::time::Duration;

use super::slow_start::SlowStart;
use super::{
    Controller, ControllerConfig, Coordinated, MAXIMUM_WINDOW, MINIMUM_WINDOW_PACKETS, Phase,
};
use crate::Instant;
use crate::samples::{AckSample, CeSample, LossSample, RttView, SentSample};

/// Lower bound of the share of growth.
const MINIMUM_SHARE: f64 = 1e-6;

/// The growth of a window in congestion avoidance, and its dependence on earlier congestion.
///
/// [`LossBasedController`] implements the rest of a controller; it resets the growth to its default where a coordinator
/// enters slow start.
pub trait Growth: Copy + Default + Debug + Send {
    /// A short, lower-case name for logs and command lines.
    const NAME: &'static str;

    /// The part of the window kept after a congestion event, unless it is configured.
    const BACKOFF: f64;

    /// Whether it can grow like several connections, whose number is [`GrowthSample::flows`].
    const EMULATES: bool = false;

    /// Congestion at a window of `window` bytes, of which the part `backoff` is kept.
    fn on_congestion(&mut self, window: u64, backoff: f64);

    /// The window after an acknowledgment in congestion avoidance, in bytes.
    fn grow(&mut self, sample: &GrowthSample) -> u64;

    /// Persistent congestion: earlier measurements of the path no longer apply.
    fn on_collapse(&mut self) {
        *self = Self::default();
    }

    /// The latest reaction is undone; `before` is the state of growth before it.
    fn restore(&mut self, before: Self) {
        *self = before;
    }

    /// A coordinator set the window from `before` to `after` bytes. It may do so every round, which must not
    /// stop growth.
    fn on_window_set(&mut self, before: u64, after: u64);

    /// Sending has been app-limited since `since`.
    fn pause(&mut self, _since: Instant) {}

    /// Sending is no longer app-limited.
    fn resume(&mut self, _now: Instant) {}
}

/// An acknowledgment in congestion avoidance, and the state of the controller.
#[derive(Clone, Copy, Debug)]
pub struct GrowthSample {
    /// When it arrived.
    pub now: Instant,
    /// Bytes it acknowledged.
    pub acked: u64,
    /// The window, in bytes.
    pub window: u64,
    /// Growth of Reno in a round trip, in bytes: a full datagram, or the controller's share of one.
    pub unit: f64,
    /// The part of one connection's growth that the controller takes.
    pub share: f64,
    /// The smoothed round-trip time.
    pub rtt: Duration,
    /// The part of the window kept after a congestion event.
    pub backoff: f64,
    /// The number of connections that the growth emulates.
    pub flows: f64,
}

/// A controller whose window grows until packets are lost or marked (RFC 9002, section 7).
#[derive(Debug)]
pub struct LossBasedController<G> {
    bytes: u64,
    /// `u64::MAX` until something ends slow start.
    ssthresh: u64,
    max_datagram_size: u64,
    backoff: f64,
    flows: f64,
    share: f64,
    /// When the latest reduction happened: losses of packets sent until then cause no further one.
    recovery_start: Option<Instant>,
    recovering: bool,
    /// Whether a coordinator has put the controller back into slow start during recovery.
    resumes: bool,
    app_limited: bool,
    slow_start: SlowStart,
    pub(super) growth: G,
    before: Option<Before<G>>,
    /// The latest reduction in proportion to marks.
    marked: Option<Marked>,
}

/// A reduction in proportion to marks.
#[derive(Clone, Copy, Debug)]
struct Marked {
    at: Instant,
    /// The window before it, in bytes.
    before: u64,
}

/// The state before the latest reaction, kept while losses alone caused it, so that it can be undone if spurious.
#[derive(Clone, Copy, Debug)]
struct Before<G> {
    bytes: u64,
    ssthresh: u64,
    growth: G,
}

impl<G: Growth> LossBasedController<G> {
    /// A controller for a new path.
    pub fn new(config: ControllerConfig) -> Self {
        let flows = match G::EMULATES {
            true => f64::from(config.emulated_flows.max(1)),
            false => 1.0,
        };
        let backoff = config.backoff.unwrap_or(G::BACKOFF);
        let mut controller = Self {
            bytes: 0,
            ssthresh: u64::MAX,
            max_datagram_size: config.max_datagram_size,
            // One of the connections backs off.
            backoff: (flows - 1.0 + backoff) / flows,
            flows,
            share: 1.0,
            recovery_start: None,
            recovering: false,
            resumes: false,
            app_limited: false,
            slow_start: SlowStart::new(config.slow_start_exit, config.slow_start_growth),
            growth: G::default(),
            before: None,
            marked: None,
        };
        controller.put(config.initial_window);
        controller
    }

    /// Sets the window within its bounds.
    fn put(&mut self, bytes: u64) {
        let minimum = MINIMUM_WINDOW_PACKETS.saturating_mul(self.max_datagram_size);
        self.bytes = bytes.min(MAXIMUM_WINDOW).max(minimum);
    }

    /// Ends slow start at the present window.
    fn leave_slow_start(&mut self) {
        self.ssthresh = self.ssthresh.min(self.bytes);
    }

    fn remember(&mut self) {
        self.before = Some(Before {
            bytes: self.bytes,
            ssthresh: self.ssthresh,
            growth: self.growth,
        });
    }

    /// Undoes the latest reaction; further losses of packets sent until then are still ignored.
    fn restore(&mut self, before: &Before<G>) {
        self.put(self.bytes.max(before.bytes));
        self.ssthresh = before.ssthresh;
        self.growth.restore(before.growth);
        self.recovering = false;
        self.before = None;
    }

    /// Whether a packet sent at `sent_at` was sent after the latest reduction (RFC 9002, section 7.3.2).
    fn is_after_reduction(&self, sent_at: Instant) -> bool {
        self.recovery_start.is_none_or(|start| sent_at > start)
    }

    /// A packet sent at `sent_at` was lost or marked: reacts once per flight.
    fn on_congestion(&mut self, now: Instant, sent_at: Instant) {
        if !self.is_after_reduction(sent_at) {
            return;
        }
        self.remember();
        self.recovering = true;
        self.resumes = false;
        self.recovery_start = Some(now);
        // The reduction for marks of the same flight counts towards that for a loss, and stays if the loss was
        // spurious.
        let marked = self.marked.take().filter(|marked| sent_at <= marked.at);
        let from = marked.map_or(self.bytes, |marked| marked.before.max(self.bytes));
        if marked.is_some() {
            self.before = None;
        }
        self.growth.on_congestion(from, self.backoff);
        self.put(((from as f64 * self.backoff).round() as u64).min(self.bytes));
        self.ssthresh = self.bytes;
    }

    /// A packet sent at `sent_at` was marked, and `part` of the window is kept. Returns whether it reduced the window,
    /// which it does not within a flight with a lost packet. Growth continues, and losses are still answered.
    pub(super) fn reduce_in_proportion(
        &mut self,
        now: Instant,
        sent_at: Instant,
        part: f64,
    ) -> bool {
        self.before = None;
        if !self.is_after_reduction(sent_at) {
            return false;
        }
        self.marked = Some(Marked {
            at: now,
            before: self.bytes,
        });
        self.put((self.bytes as f64 * part).round() as u64);
        self.ssthresh = self.bytes;
        true
    }

    /// Persistent congestion: starts over from the minimum window (RFC 9002, section 7.6.2).
    ///
    /// Losses of packets sent until now cause no further reduction, so that a loss detected late does not end
    /// the slow start that follows.
    fn collapse(&mut self, now: Instant) {
        self.put(0);
        self.recovering = false;
        self.recovery_start = Some(now);
        self.slow_start.reset();
        self.growth.on_collapse();
    }

    /// Processes an acknowledgment in slow start.
    fn search(&mut self, now: Instant, ack: &AckSample) {
        let growth = self
            .slow_start
            .on_ack(now, ack, self.bytes, self.max_datagram_size);
        match growth {
            // The remembered state stays: a loss before the collapse may still turn out to be spurious.
            None => self.leave_slow_start(),
            Some(_) if ack.app_limited => {}
            Some(bytes) => self.put(self.bytes.saturating_add(bytes)),
        }
    }
}

impl<G: Growth> Controller for LossBasedController<G> {
    fn on_sent(&mut self, _now: Instant, _sent: &SentSample) {}

    fn on_ack(&mut self, now: Instant, ack: &AckSample) {
        self.app_limited = ack.app_limited;
        let sent_at = ack.largest_acked_sent_at;
        // After a coordinator has re-entered slow start, packets sent at the very moment of the reduction count as sent
        // after it.
        self.recovering &= self
            .recovery_start
            .is_some_and(|start| sent_at < start || sent_at == start && !self.resumes);
        let searches = self.in_slow_start();
        if searches && !self.recovering {
            self.search(now, ack);
        }
        if ack.app_limited {
            self.growth.pause(now);
            return;
        }
        self.growth.resume(now);
        if !searches && !self.recovering {
            let next = self.growth.grow(&GrowthSample {
                now,
                acked: ack.bytes,
                window: self.bytes,
                unit: self.share * self.max_datagram_size as f64,
                share: self.share,
                rtt: ack.rtt.smoothed,
                backoff: self.backoff,
                flows: self.flows,
            });
            self.put(next);
            // A window that shrinks stays in congestion avoidance.
            self.leave_slow_start();
        }
    }

    fn on_loss(&mut self, now: Instant, loss: &LossSample) {
        self.on_congestion(now, loss.latest_sent_at);
        if loss.persistent {
            self.collapse(now);
        }
    }

    fn on_ce(&mut self, now: Instant, ce: &CeSample) {
        self.on_congestion(now, ce.sent_at);
        self.before = None;
    }

    fn on_spurious_loss(&mut self, _now: Instant, sent_at: Instant) {
        if let Some(before) = self.before
            && !self.is_after_reduction(sent_at)
        {
            self.restore(&before);
        }
    }

    fn on_idle(&mut self, now: Instant, idle: Duration) {
        self.growth.pause(now - idle);
    }

    fn on_mtu(&mut self, mtu: u64) {
        self.max_datagram_size = mtu.max(1);
        self.put(self.bytes);
    }

    fn window(&self) -> u64 {
        self.bytes
    }

    /// One window per smoothed round-trip time, times 2 in slow start and 1.25 otherwise, so that pacing does not
    /// limit the use of the window (RFC 9002, section 7.7).
    fn pacing_rate(&self, rtt: &RttView) -> u64 {
        let quarters = if self.in_slow_start() { 8 } else { 5 };
        let nanos = u64::try_from(rtt.smoothed.as_nanos()).unwrap_or(u64::MAX);
        let per_second = self.bytes.saturating_mul(1_000_000_000) / nanos.max(1);
        (per_second.saturating_mul(quarters) / 4).max(1)
    }

    fn phase(&self) -> Phase {
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

    fn in_slow_start(&self) -> bool {
        self.bytes < self.ssthresh
    }

    fn ssthresh(&self) -> Option<u64> {
        (self.ssthresh != u64::MAX).then_some(self.ssthresh)
    }

    fn name(&self) -> &'static str {
        G::NAME
    }
}

impl<G: Growth> Coordinated for LossBasedController<G> {
    fn set_window(&mut self, bytes: u64) {
        let (searches, before) = (self.in_slow_start(), self.bytes);
        self.put(bytes);
        if !searches {
            self.leave_slow_start();
        }
        self.before = None;
        self.growth.on_window_set(before, self.bytes);
    }

    fn set_share(&mut self, share: f64) {
        if share > 0.0 {
            self.share = share.clamp(MINIMUM_SHARE, 1.0);
        }
    }

    fn enter_slow_start(&mut self) {
        self.ssthresh = u64::MAX;
        self.resumes = true;
        self.before = None;
        self.slow_start.reset();
        self.growth = G::default();
    }

    fn exit_slow_start(&mut self) {
        self.leave_slow_start();
        // The window may still be restored, but not slow start.
        if let Some(before) = &mut self.before {
            before.ssthresh = before.ssthresh.min(before.bytes);
        }
    }

    fn set_ssthresh(&mut self, bytes: u64) {
        self.ssthresh = bytes;
        self.before = None;
        self.slow_start.reset();
        self.growth = G::default();
    }
}

#[cfg(test)]
mod tests;
