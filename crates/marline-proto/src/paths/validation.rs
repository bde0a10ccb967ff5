//! Path validation (RFC 9000, section 8.2): proof that the peer receives at an address.

use std::time::Duration;

use marline_wire::frame::{PathChallenge, PathResponse};

use crate::limits::{MIN_DATAGRAM_SIZE, PATH_CHALLENGES, PATH_RESPONSES};
use crate::rng::SecureRng;
use crate::time::Instant;

/// Probe timeouts before a validation fails (RFC 9000, section 8.2.4).
const FAILS_AFTER: u32 = 3;

/// The size of a packet with a PATH_CHALLENGE, in bytes, about.
const CHALLENGE_PACKET: u64 = 44;

/// With fewer challenges left than this, the time between them grows.
const SCARCE: u64 = 4;

/// The longest time between two challenges of a validation without a deadline.
const MAX_INTERVAL: Duration = Duration::from_secs(5);

/// What a PATH_RESPONSE proved.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Proof {
    /// The peer receives at the address, but the challenge was in a small datagram: the validation
    /// goes on with one of at least 1200 bytes, which the lifted limit now permits.
    Address,
    /// The peer receives at the address and the path carries 1200 bytes: done.
    Path,
}

#[derive(Clone, Copy, Debug)]
struct Challenge {
    data: [u8; 8],
    /// Whether its datagram had at least 1200 bytes.
    full: bool,
}

/// A validation of one 4-tuple under way.
///
/// A challenge is sent at once and then at doubling intervals, each with data of its own; an answer to any of the
/// latest [`PATH_CHALLENGES`] counts. The loss of a packet with a challenge needs no repair.
#[derive(Clone, Debug)]
pub(crate) struct Validation {
    /// The latest challenges, written in turn.
    challenges: [Option<Challenge>; PATH_CHALLENGES],
    /// How many were ever written.
    written: usize,
    next: Instant,
    /// The time from the next challenge to the one after it.
    interval: Duration,
    /// When the validation fails; `None` if it lasts as long as the connection.
    deadline: Option<Instant>,
    times: ValidationTimes,
}

/// How long a validation waits for answers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ValidationTimes {
    /// From the first challenge to the second: the probe timeout of the path to be validated.
    pub(crate) interval: Duration,
    /// The larger of the current probe timeout and that of a path with the initial RTT; the validation fails after
    /// three of it.
    pub(crate) pto: Duration,
}

impl Validation {
    /// Starts at `now`.
    pub(crate) fn new(now: Instant, times: ValidationTimes) -> Self {
        Self {
            challenges: [None; PATH_CHALLENGES],
            written: 0,
            next: now,
            interval: times.interval,
            deadline: Some(now + times.pto.saturating_mul(FAILS_AFTER)),
            times,
        }
    }

    /// Goes on without a deadline.
    pub(crate) fn persist(&mut self) {
        self.deadline = None;
    }

    /// Whether a challenge is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next && !self.is_expired(now)
    }

    /// Whether it has failed: the path is unusable.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| now >= deadline)
    }

    /// When it fails.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// When to look at [`Self::is_due`] or [`Self::is_expired`] again.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.deadline.into_iter().fold(self.next, Instant::min)
    }

    /// Appends a PATH_CHALLENGE if one is due and `buf` stays within `limit` bytes. Returns whether it did: the
    /// datagram is then to be expanded to 1200 bytes if the amplification limit permits, and its final size passed to
    /// [`Self::on_sent`].
    ///
    /// The fewer challenges the `credit` of the amplification limit allows after this one, the longer each waits, so
    /// that the last ones are not spent on the beginning of an outage.
    pub(crate) fn write_frames(
        &mut self,
        now: Instant,
        rng: &mut SecureRng,
        credit: u64,
        buf: &mut Vec<u8>,
        limit: usize,
    ) -> bool {
        let mut frame = PathChallenge { data: [0; 8] };
        if !self.is_due(now) || buf.len() + frame.size() > limit {
            return false;
        }
        rng.fill(&mut frame.data);
        frame.encode(buf);
        self.challenges[self.written % PATH_CHALLENGES] = Some(Challenge {
            data: frame.data,
            full: false,
        });
        self.written += 1;
        let left = (credit.saturating_sub(1) / CHALLENGE_PACKET).min(SCARCE);
        self.next = now + self.interval * (1 << (SCARCE - left));
        let longest = match self.deadline {
            Some(_) => self.times.pto,
            None => MAX_INTERVAL,
        };
        self.interval = (self.interval * 2).min(longest);
        true
    }

    /// The challenge written last left in a datagram of `size` bytes.
    pub(crate) fn on_sent(&mut self, size: usize) {
        let last = self.written.wrapping_sub(1) % PATH_CHALLENGES;
        if let Some(challenge) = &mut self.challenges[last] {
            challenge.full = size >= usize::from(MIN_DATAGRAM_SIZE);
        }
    }

    /// A PATH_RESPONSE arrived, on whatever path. `None` if it answers no challenge of this
    /// validation.
    pub(crate) fn on_response(&mut self, now: Instant, frame: &PathResponse) -> Option<Proof> {
        let slot = self
            .challenges
            .iter_mut()
            .find(|slot| slot.is_some_and(|challenge| challenge.data == frame.data))?;
        if slot.take()?.full {
            return Some(Proof::Path);
        }
        self.next = now;
        self.interval = self.times.interval;
        self.deadline = Some(now + self.times.pto.saturating_mul(FAILS_AFTER));
        Some(Proof::Address)
    }
}

/// Answers owed on one 4-tuple.
///
/// Each challenge is answered once and never again: if the answer is lost the peer asks anew. Of a
/// flood only the latest are answered.
#[derive(Clone, Debug, Default)]
pub(crate) struct Responses {
    pending: [[u8; 8]; PATH_RESPONSES],
    len: usize,
}

impl Responses {
    /// A PATH_CHALLENGE arrived on this 4-tuple.
    pub(crate) fn on_challenge(&mut self, frame: &PathChallenge) {
        if self.len == PATH_RESPONSES {
            self.pending.rotate_left(1);
            self.len -= 1;
        }
        self.pending[self.len] = frame.data;
        self.len += 1;
    }

    /// Whether an answer is due, in a datagram that is to be padded to 1200 bytes as far as the
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
