//! Idle timeout and keep-alive (RFC 9000, section 10.1).

use std::time::Duration;

use crate::time::Instant;

/// The idle timeout and the keep-alive timer.
#[derive(Debug)]
pub(super) struct Idle {
    timeout: Option<Duration>,
    keep_alive: Option<Duration>,
    deadline: Option<Instant>,
    ping_at: Option<Instant>,
    /// Whether an ack-eliciting packet was sent since one was last received: only the first restarts the timer.
    sent_since: bool,
    /// The least timeout: three probe timeouts.
    floor: Duration,
}

impl Idle {
    pub(super) fn new(timeout: Option<Duration>, keep_alive: Option<Duration>) -> Self {
        Self {
            timeout,
            keep_alive,
            deadline: None,
            ping_at: None,
            sent_since: false,
            floor: Duration::ZERO,
        }
    }

    /// The peer's idle timeout is known: the smaller of both counts.
    pub(super) fn apply_peer_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = match (self.timeout, timeout) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// A packet was received; `floor` is three probe timeouts.
    pub(super) fn on_received(&mut self, now: Instant, floor: Duration) {
        self.floor = floor;
        self.sent_since = false;
        self.restart(now);
    }

    /// An ack-eliciting packet was sent.
    pub(super) fn on_sent(&mut self, now: Instant) {
        if !self.sent_since {
            self.sent_since = true;
            self.restart(now);
        }
    }

    fn restart(&mut self, now: Instant) {
        self.deadline = self.timeout.map(|timeout| now + timeout.max(self.floor));
        self.ping_at = self.keep_alive.map(|interval| now + interval);
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(self.ping_at).min()
    }

    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether a PING is due; `true` once.
    pub(super) fn take_ping(&mut self, now: Instant) -> bool {
        self.ping_at.take_if(|at| *at <= now).is_some()
    }
}
