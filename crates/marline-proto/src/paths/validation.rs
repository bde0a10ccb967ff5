//! Path validation (RFC 9000, section 8.2): proof that the peer receives at an address.

use std::time::Duration;

use marline_wire::frame::{PathChallenge, PathResponse};

use crate::limits::{MIN_DATAGRAM_SIZE, PATH_CHALLENGES, PATH_RESPONSES};
use crate::rng::SecureRng;
use crate::time::Instant;

/// Probe timeouts before a validation is given up (RFC 9000, section 8.2.4).
const PATIENCE: u32 = 3;

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
/// A challenge is sent at once and then every probe timeout, each with data of its own; an answer
/// to any of the latest [`PATH_CHALLENGES`] counts. The loss of a packet with a challenge needs no
/// repair.
#[derive(Clone, Debug)]
pub(crate) struct Validation {
    /// The latest challenges, written in turn.
    challenges: [Option<Challenge>; PATH_CHALLENGES],
    /// How many were ever written.
    written: usize,
    next: Instant,
    deadline: Instant,
    pto: Duration,
}

impl Validation {
    /// Starts at `now`. `pto` is the larger of the current probe timeout and that of a path with the
    /// initial RTT.
    pub(crate) fn new(now: Instant, pto: Duration) -> Self {
        Self {
            challenges: [None; PATH_CHALLENGES],
            written: 0,
            next: now,
            deadline: now + pto.saturating_mul(PATIENCE),
            pto,
        }
    }

    /// Whether a challenge is due.
    pub(crate) fn is_due(&self, now: Instant) -> bool {
        now >= self.next && !self.is_expired(now)
    }

    /// Whether to give up: the path is unusable.
    pub(crate) fn is_expired(&self, now: Instant) -> bool {
        now >= self.deadline
    }

    /// When it is given up.
    pub(crate) fn deadline(&self) -> Instant {
        self.deadline
    }

    /// When to look at [`Self::is_due`] or [`Self::is_expired`] again.
    pub(crate) fn next_timeout(&self) -> Instant {
        self.next.min(self.deadline)
    }

    /// Appends a PATH_CHALLENGE if one is due and `buf` stays within `limit` bytes. Returns whether
    /// it did: the datagram is then to be padded to 1200 bytes as far as the amplification limit
    /// permits, and its final size passed to [`Self::on_sent`].
    pub(crate) fn write_frames(
        &mut self,
        now: Instant,
        rng: &mut SecureRng,
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
        self.next = now + self.pto;
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
        self.deadline = now + self.pto.saturating_mul(PATIENCE);
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
