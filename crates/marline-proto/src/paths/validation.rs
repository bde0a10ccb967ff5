//! Path validation (RFC 9000, section 8.2): proof that the peer receives at an address.

use std::time::Duration;

use marline_wire::frame::{PathChallenge, PathResponse};

use crate::limits::{MIN_DATAGRAM_SIZE, PATH_CHALLENGES, PATH_RESPONSES};
use crate::recovery::pto;
use crate::rng::SecureRng;
use crate::time::Instant;

/// Number of probe timeouts before a validation fails (RFC 9000, section 8.2.4).
const FAILS_AFTER: u32 = 3;

/// Minimum interval between challenges: a host may take as long to answer.
const MIN_INTERVAL: Duration = Duration::from_millis(25);

/// Number of intervals before the last challenge that the amplification limit allows.
const INTERVALS_BEFORE_LAST: u32 = 2;

/// Maximum interval between challenges of a validation without a deadline.
const MAX_INTERVAL: Duration = Duration::from_secs(5);

/// The result of a PATH_RESPONSE.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The address is validated, but the challenge was in a small datagram: the validation
    /// continues with one of at least 1200 bytes, which the lifted limit now permits.
    Address,
    /// The address is validated and the path carries 1200 bytes: the validation is complete.
    Path,
}

#[derive(Clone, Copy, Debug)]
struct Challenge {
    data: [u8; 8],
    /// Whether its datagram had at least 1200 bytes.
    full: bool,
}

/// A validation in progress of one 4-tuple.
///
/// Challenges are sent immediately and then at doubling intervals, each with different data; an answer to any of
/// the latest [`PATH_CHALLENGES`] counts. Lost challenges are not retransmitted.
#[derive(Clone, Debug)]
pub(crate) struct Validation {
    /// Latest challenges, overwritten in turn.
    challenges: [Option<Challenge>; PATH_CHALLENGES],
    /// Number of challenges written.
    written: usize,
    /// Time at which the first challenge is due.
    began: Instant,
    /// Send time of the latest challenge since then.
    sent_at: Option<Instant>,
    /// Number of challenges sent since then.
    sent: u32,
    /// Time at which the validation fails; `None` if it lasts as long as the connection.
    deadline: Option<Instant>,
    times: ValidationTimes,
}

/// Timeouts of a validation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidationTimes {
    /// Probe timeout of a path without a sample.
    pub(crate) unknown: Duration,
    /// Larger of the current probe timeout and that of a path with the initial RTT of RFC 9002; the validation fails
    /// after three times this value.
    pub(crate) pto: Duration,
}

/// Conditions for the time of the next challenge, which change with each received datagram.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ChallengePace {
    /// Interval from the first challenge to the second: the probe timeout of the 4-tuple, or an assumed one.
    pub(crate) interval: Duration,
    /// Number of datagrams with a challenge that the amplification limit allows.
    pub(crate) affordable: u64,
}

impl Validation {
    /// Starts a validation at `now`.
    pub(crate) fn new(now: Instant, times: ValidationTimes) -> Self {
        Self {
            challenges: [None; PATH_CHALLENGES],
            written: 0,
            began: now,
            sent_at: None,
            sent: 0,
            deadline: Some(now + times.pto.saturating_mul(FAILS_AFTER)),
            times,
        }
    }

    /// Continues without a deadline.
    pub(crate) fn persist(&mut self) {
        self.deadline = None;
    }

    /// The probe timeout of a path without a sample.
    pub(crate) fn unknown_pto(&self) -> Duration {
        self.times.unknown
    }

    /// Whether a challenge is due.
    pub(crate) fn is_due(&self, now: Instant, pace: &ChallengePace) -> bool {
        !self.is_expired(now) && self.next(pace).is_some_and(|next| next <= now)
    }

    /// Time at which the next challenge is due; `None` if the amplification limit allows none.
    ///
    /// The last allowed challenge waits longer, so that it is not spent at the start of an outage.
    fn next(&self, pace: &ChallengePace) -> Option<Instant> {
        let Some(sent_at) = self.sent_at else {
            return (pace.affordable > 0).then_some(self.began);
        };
        let longest = match self.deadline {
            Some(_) => self.times.pto,
            None => MAX_INTERVAL,
        };
        let interval = pto::backoff(pace.interval.max(MIN_INTERVAL), self.sent - 1).min(longest);
        match pace.affordable {
            0 => None,
            1 => Some(sent_at + interval * INTERVALS_BEFORE_LAST),
            _ => Some(sent_at + interval),
        }
    }

    /// Whether the validation has failed.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// Whether the validation lasts as long as the connection.
    pub(crate) fn is_persistent(&self) -> bool {
        self.deadline.is_none()
    }

    /// Time at which to check [`Self::is_due`] or [`Self::is_expired`] again.
    pub(crate) fn next_timeout(&self, pace: &ChallengePace) -> Option<Instant> {
        self.deadline.into_iter().chain(self.next(pace)).min()
    }

    /// Appends a PATH_CHALLENGE if one is due and `buf` stays within `limit` bytes. Returns whether it did: the
    /// datagram must then be expanded to 1200 bytes if the amplification limit permits, and its final size passed to
    /// [`Self::on_sent`].
    pub(crate) fn write_frames(
        &mut self,
        now: Instant,
        rng: &mut SecureRng,
        pace: &ChallengePace,
        buf: &mut Vec<u8>,
        limit: usize,
    ) -> bool {
        let mut frame = PathChallenge { data: [0; 8] };
        if !self.is_due(now, pace) || buf.len() + frame.size() > limit {
            return false;
        }
        rng.fill(&mut frame.data);
        frame.encode(buf);
        self.challenges[self.written % PATH_CHALLENGES] = Some(Challenge {
            data: frame.data,
            full: false,
        });
        self.written += 1;
        self.sent_at = Some(now);
        self.sent += 1;
        true
    }

    /// Records that the latest challenge was sent in a datagram of `size` bytes.
    pub(crate) fn on_sent(&mut self, size: usize) {
        let last = self.written.wrapping_sub(1) % PATH_CHALLENGES;
        if let Some(challenge) = &mut self.challenges[last] {
            challenge.full = size >= usize::from(MIN_DATAGRAM_SIZE);
        }
    }

    /// Handles a PATH_RESPONSE received on any path. `None` if it does not match a challenge of this validation.
    pub(crate) fn on_response(&mut self, now: Instant, frame: &PathResponse) -> Option<Proof> {
        let slot = self
            .challenges
            .iter_mut()
            .find(|slot| slot.is_some_and(|challenge| challenge.data == frame.data))?;
        if slot.take()?.full {
            return Some(Proof::Path);
        }
        self.began = now;
        self.sent_at = None;
        self.sent = 0;
        self.deadline = Some(now + self.times.pto.saturating_mul(FAILS_AFTER));
        Some(Proof::Address)
    }
}

/// Pending PATH_RESPONSEs of one 4-tuple.
///
/// Each challenge is answered once: if the answer is lost the peer sends another. Of a flood only
/// the latest are answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Responses {
    pending: [[u8; 8]; PATH_RESPONSES],
    len: usize,
}

impl Responses {
    /// Handles a PATH_CHALLENGE received on this 4-tuple.
    pub(crate) fn on_challenge(&mut self, frame: &PathChallenge) {
        if self.len == PATH_RESPONSES {
            self.pending.rotate_left(1);
            self.len -= 1;
        }
        self.pending[self.len] = frame.data;
        self.len += 1;
    }

    /// Whether an answer is due, in a datagram that must be padded to 1200 bytes as far as the
    /// amplification limit permits (RFC 9000, section 8.2.2).
    pub(crate) const fn is_due(&self) -> bool {
        self.len != 0
    }

    /// Appends the PATH_RESPONSEs that fit while `buf` stays within `limit` bytes. Returns whether
    /// there were any.
    pub(crate) fn write_frames(&mut self, buf: &mut Vec<u8>, limit: usize) -> bool {
        let mut written = 0;
        for &data in &self.pending[..self.len] {
            let frame = PathResponse { data };
            if buf.len() + frame.size() > limit {
                break;
            }
            frame.encode(buf);
            written += 1;
        }
        self.pending[..self.len].rotate_left(written);
        self.len -= written;
        written != 0
    }
}

#[cfg(test)]
mod tests;
