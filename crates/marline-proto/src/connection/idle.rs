//! Idle timeout and keep-alive (RFC 9000, section 10.1).

use std::time::Duration;

use crate::time::Instant;

/// Maximum interval between PINGs for the same missing response.
const MAX_RESPONSE_INTERVAL: Duration = Duration::from_secs(15);

/// Minimum number of probes per idle timeout, once their intervals no longer grow, so that a path that recovers late in
/// it is detected.
const PROBES_WITHIN_TIMEOUT: u32 = 6;

/// Timer after which a client that awaits a response sends a PING: an end that only receives would never learn
/// that its address has changed, or that the server has restarted.
#[derive(Debug)]
struct ResponseTimer {
    first: Duration,
    /// Time from the last packet to the PING; doubles with each PING as long as no stream data arrives.
    interval: Duration,
    at: Option<Instant>,
    /// Stream bytes received so far.
    bytes: u64,
}

/// The idle timeout and the keep-alive timer.
#[derive(Debug)]
pub(super) struct Idle {
    timeout: Option<Duration>,
    keep_alive: Option<Duration>,
    deadline: Option<Instant>,
    ping_at: Option<Instant>,
    response: Option<ResponseTimer>,
    /// Whether an ack-eliciting packet was sent since the last received packet: only the first restarts the timer.
    sent_since: bool,
    /// Minimum of the timeout: three probe timeouts.
    floor: Duration,
    /// Time of the last received packet.
    received_at: Option<Instant>,
}

impl Idle {
    /// `response_ping` is the time without a response after which a PING is sent.
    pub(super) fn new(
        timeout: Option<Duration>,
        keep_alive: Option<Duration>,
        response_ping: Option<Duration>,
    ) -> Self {
        let response = response_ping.map(|first| ResponseTimer {
            first,
            interval: first,
            at: None,
            bytes: 0,
        });
        Self {
            response,
            timeout,
            keep_alive,
            deadline: None,
            ping_at: None,
            sent_since: false,
            floor: Duration::ZERO,
            received_at: None,
        }
    }

    /// Applies the peer's idle timeout: the smaller value of both ends counts.
    pub(super) fn apply_peer_timeout(&mut self, timeout: Option<Duration>) {
        self.timeout = match (self.timeout, timeout) {
            (Some(ours), Some(theirs)) => Some(ours.min(theirs)),
            (ours, theirs) => ours.or(theirs),
        };
    }

    /// Handles a received packet; `floor` is three probe timeouts, `bytes` the stream bytes received so far.
    pub(super) fn on_received(&mut self, now: Instant, floor: Duration, bytes: u64) {
        self.floor = floor;
        self.received_at = Some(now);
        self.sent_since = false;
        self.restart(now);
        if let Some(response) = &mut self.response {
            if bytes != response.bytes {
                response.bytes = bytes;
                response.interval = response.first;
            }
            response.at = Some(now + response.interval.max(floor));
        }
    }

    /// Time of the last received packet.
    pub(super) const fn received_at(&self) -> Option<Instant> {
        self.received_at
    }

    /// Handles a sent ack-eliciting packet.
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

    /// Maximum interval between probes of a peer that does not answer.
    pub(super) fn longest_pause(&self) -> Option<Duration> {
        Some(self.timeout? / PROBES_WITHIN_TIMEOUT)
    }

    pub(super) fn next_timeout(&self) -> Option<Instant> {
        let response = self.response.as_ref().and_then(|response| response.at);
        let pings = self.ping_at.into_iter().chain(response);
        self.deadline.into_iter().chain(pings).min()
    }

    pub(super) fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether a PING is due; `true` once.
    pub(super) fn take_ping(&mut self, now: Instant) -> bool {
        self.ping_at.take_if(|at| *at <= now).is_some()
    }

    /// Whether a PING is due because of a missing response; `true` once.
    pub(super) fn take_response_ping(&mut self, now: Instant) -> bool {
        let Some(response) = &mut self.response else {
            return false;
        };
        let is_due = response.at.take_if(|at| *at <= now).is_some();
        if is_due {
            response.interval = (response.interval * 2).min(MAX_RESPONSE_INTERVAL);
        }
        is_due
    }
}
