//! Whether a path still answers: the state of path failure detection.
//!
//! A probe timeout (RFC 9002, section 6.2) detects failure late: it restarts with every packet sent, and waits
//! for more than a round trip. Where packets on another path show that the peer is alive, a path is suspected
//! earlier: when the oldest packet that waits for an acknowledgment has waited longer than acknowledgments take.

use std::time::Duration;

use crate::recovery::GRANULARITY;
use crate::samples::RttView;
use crate::time::Instant;

/// The least deviation that an answer is allowed: wireless links pause for so long.
const LEAST_DEVIATION: Duration = Duration::from_millis(25);

/// The most that it is allowed at first, if the other path is no slower.
const MOST_DEVIATION: Duration = Duration::from_millis(75);

/// False alarms after which the allowance grows no more.
const MOST_FALSE_ALARMS: u32 = 4;

/// When packets last came on a path, and what it waits for.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Liveness {
    /// When the last authentic packet came.
    received_at: Instant,
    /// When the oldest packet left that waits for an answer: it is newer than all that were acknowledged.
    waiting_since: Option<Instant>,
    /// Whether the peer was asked on other paths while this one waited.
    asked: bool,
    /// Whether the answer is late while the peer answers on another path.
    suspected: bool,
    /// Since when no answer comes.
    unanswered_since: Option<Instant>,
    /// Until when no other path worked, if there was such a time.
    alone_until: Instant,
    /// Consecutive suspicions that were unfounded.
    false_alarms: u32,
}

impl Liveness {
    /// When the last authentic packet came.
    pub(crate) const fn received_at(&self) -> Instant {
        self.received_at
    }

    /// An authentic packet came.
    pub(crate) fn on_received(&mut self, now: Instant) {
        self.received_at = now;
    }

    /// A packet left that asks for an answer.
    pub(crate) fn on_sent(&mut self, now: Instant) {
        self.waiting_since.get_or_insert(now);
    }

    /// A packet was acknowledged for the first time; the oldest newer one left at `waiting_since`.
    pub(crate) fn on_acked(&mut self, waiting_since: Option<Instant>) {
        self.waiting_since = waiting_since;
        self.asked = false;
    }

    /// The path works. `probed` says whether it had a probe timeout before: then a suspicion was justified.
    pub(crate) fn on_answer(&mut self, probed: bool) {
        self.false_alarms = match (self.suspected, probed) {
            (_, true) => 0,
            (true, false) => (self.false_alarms + 1).min(MOST_FALSE_ALARMS),
            (false, false) => self.false_alarms,
        };
        self.suspected = false;
        self.unanswered_since = None;
    }

    /// A probe timeout is over.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        self.unanswered_since.get_or_insert(now);
    }

    /// The answer is late.
    pub(crate) fn suspect(&mut self, now: Instant) {
        self.suspected = true;
        self.unanswered_since.get_or_insert(now);
    }

    /// Whether the answer is late while the peer answers on another path.
    pub(crate) const fn is_suspected(&self) -> bool {
        self.suspected
    }

    /// The peer is asked on other paths.
    pub(crate) fn ask(&mut self) {
        self.asked = true;
    }

    /// Whether it was, about what this path waits for.
    pub(crate) const fn has_asked(&self) -> bool {
        self.asked
    }

    /// Since when no answer comes, if that is long.
    pub(crate) const fn unanswered_since(&self) -> Option<Instant> {
        self.unanswered_since
    }

    /// Another path works again, after none did: the time until this path is abandoned starts now.
    pub(crate) fn on_company(&mut self, now: Instant) {
        self.alone_until = now;
    }

    /// Since when no answer comes while another path works.
    pub(crate) fn counts_since(&self) -> Option<Instant> {
        Some(self.unanswered_since?.max(self.alone_until))
    }

    /// When the answer that it waits for should be here, if it takes no longer than others.
    pub(crate) fn expected_at(&self, rtt: &RttView) -> Option<Instant> {
        Some(self.waiting_since? + rtt.smoothed)
    }

    /// How much later it may be. The peer holds back acknowledgments for `max_ack_delay`; what is given
    /// up too late waits for the other path as well, which takes `other_rtt`.
    pub(crate) fn patience(
        &self,
        rtt: &RttView,
        max_ack_delay: Duration,
        other_rtt: Duration,
    ) -> Duration {
        let deviation = (rtt.variance * 4).max(GRANULARITY);
        let most = MOST_DEVIATION.max(other_rtt * 3 / 2);
        let allowed = deviation.clamp(LEAST_DEVIATION, most) + max_ack_delay;
        allowed.saturating_mul(1 << self.false_alarms)
    }
}

#[cfg(test)]
mod tests;
