//! Whether a path still answers: the state of path failure detection.
//!
//! A probe timeout (RFC 9002, section 6.2) detects failure late: it restarts with every packet sent, and takes
//! more than a round trip. If packets on another path show that the peer is alive, a path is suspected earlier:
//! when the oldest unacknowledged packet has waited longer than acknowledgments take.

use std::time::Duration;

use crate::recovery::GRANULARITY;
use crate::samples::RttView;
use crate::time::Instant;

/// Minimum allowed deviation of an answer: wireless links pause for so long.
const MIN_DEVIATION: Duration = Duration::from_millis(25);

/// Maximum initial deviation, if the other path is not slower.
const MAX_DEVIATION: Duration = Duration::from_millis(75);

/// Number of false alarms after which the allowance stops growing.
const MAX_FALSE_ALARMS: u32 = 4;

/// The latest receipt on a path, and the answer that it waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Liveness {
    /// Time of the last authenticated packet.
    received_at: Instant,
    /// Send time of the oldest packet that waits for an answer: it is newer than all acknowledged ones.
    waiting_since: Option<Instant>,
    /// Whether the peer was probed on other paths while this one waited.
    asked: bool,
    /// Whether the path is suspected: the answer is late while the peer answers on another path.
    suspected: bool,
    /// Time since which the path has not answered.
    unanswered_since: Option<Instant>,
    /// End of the latest period in which no other path worked.
    alone_until: Instant,
    /// Consecutive suspicions that were unfounded.
    false_alarms: u32,
}

impl Liveness {
    /// Time of the last authenticated packet.
    pub(crate) const fn received_at(&self) -> Instant {
        self.received_at
    }

    /// Handles an authenticated packet.
    pub(crate) fn on_received(&mut self, now: Instant) {
        self.received_at = now;
    }

    /// Handles a sent ack-eliciting packet.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
    }

    /// Handles a newly acknowledged packet; the oldest newer one was sent at `waiting_since`.
    pub(crate) fn on_acked(&mut self, waiting_since: Option<Instant>) {
        self.waiting_since = waiting_since;
        self.asked = false;
    }

    /// Called when the path works. `probed` is whether a probe timeout expired before, which justifies a suspicion.
    pub(crate) fn on_answer(&mut self, probed: bool) {
        self.false_alarms = match (self.suspected, probed) {
            (_, true) => 0,
            (true, false) => (self.false_alarms + 1).min(MAX_FALSE_ALARMS),
            (false, false) => self.false_alarms,
        };
        self.suspected = false;
        self.unanswered_since = None;
    }

    /// Handles a probe timeout.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// Suspects the path, whose answer is late.
    pub(crate) fn suspect(&mut self, now: Instant) {
        self.suspected = true;
        self.unanswered_since.get_or_insert(now);
    }

    /// Whether the path is suspected.
    pub(crate) const fn is_suspected(&self) -> bool {
        self.suspected
    }

    /// Records that the peer is probed on other paths.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }

    /// Whether the peer was probed on other paths while this one waits.
    pub(crate) const fn has_asked(&self) -> bool {
        self.asked
    }

    /// Time since which the path has not answered, after a probe timeout.
    pub(crate) const fn unanswered_since(&self) -> Option<Instant> {
        self.unanswered_since
    }

    /// Called when another path works again, after none did: the time until this path is abandoned restarts.
    pub(crate) fn on_company(&mut self, now: Instant) {
        self.alone_until = now;
    }

    /// Time since which the path has not answered while another one works.
    pub(crate) fn counts_since(&self) -> Option<Instant> {
        Some(self.unanswered_since?.max(self.alone_until))
    }

    /// Time at which the awaited answer is expected, if it takes as long as others.
    pub(crate) fn expected_at(&self, rtt: &RttView) -> Option<Instant> {
        Some(self.waiting_since? + rtt.smoothed)
    }

    /// Additional time allowed for the answer. The peer may delay acknowledgments for `max_ack_delay`; data
    /// of a path that is suspected late also waits for the other path, whose round trip takes `other_rtt`.
    pub(crate) fn patience(
        &self,
        rtt: &RttView,
        max_ack_delay: Duration,
        other_rtt: Duration,
    ) -> Duration {
        let deviation = (rtt.variance * 4).max(GRANULARITY);
        let most = MAX_DEVIATION.max(other_rtt * 3 / 2);
        let allowed = deviation.clamp(MIN_DEVIATION, most) + max_ack_delay;
        allowed.saturating_mul(1 << self.false_alarms)
    }
}

#[cfg(test)]
mod tests;
