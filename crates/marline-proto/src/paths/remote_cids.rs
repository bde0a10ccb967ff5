//! Connection IDs issued by the peer (RFC 9000, section 5.1.2).

use std::collections::VecDeque;

use marline_wire::frame::{NewConnectionId, PathRetireConnectionId, RetireConnectionId};
use marline_wire::{ConnectionId, ErrorCode, PathId, TransportError};

use crate::limits::{REMOTE_CIDS, RETIRED_CIDS};

/// A change of the stateless reset tokens that end this connection. Only tokens of IDs in use count
/// (RFC 9000, section 10.3.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TokenChange {
    /// A datagram that ends with the token resets the connection.
    Add([u8; 16]),
    /// A datagram that ends with the token no longer resets the connection.
    Remove([u8; 16]),
}

/// A connection ID issued by the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RemoteCid {
    /// Its sequence number.
    pub(crate) sequence: u64,
    pub(crate) id: ConnectionId,
}

#[derive(Clone, Copy, Debug)]
struct Remote {
    sequence: u64,
    id: ConnectionId,
    reset_token: Option<[u8; 16]>,
    /// Whether a path uses, or used, it.
    used: bool,
}

/// An unacknowledged RETIRE_CONNECTION_ID.
#[derive(Clone, Copy, Debug)]
struct Retired {
    sequence: u64,
    in_flight: bool,
}

/// IDs that the peer issued and we have not retired. One is active: the main path's. A path being
/// probed takes another with [`Self::next_unused`].
///
/// After any call that may add or retire IDs, drain [`Self::poll_token_change`], and assign another
/// ID to paths whose ID is no longer [held](Self::holds).
#[derive(Clone, Debug)]
pub(crate) struct RemoteCids {
    active: Remote,
    others: Vec<Remote>,
    retire_prior_to: u64,
    seen: Seen,
    retired: Vec<Retired>,
    changes: VecDeque<TokenChange>,
}

impl RemoteCids {
    /// Starts with the ID of the handshake, sequence number 0: chosen by the client for its first
    /// Initial, by the peer otherwise.
    pub(crate) fn new(first: ConnectionId) -> Self {
        let mut seen = Seen::default();
        seen.insert(0);
        Self {
            active: Remote {
                sequence: 0,
                id: first,
                reset_token: None,
                used: true,
            },
            others: Vec::new(),
            retire_prior_to: 0,
            seen,
            retired: Vec::new(),
            changes: VecDeque::new(),
        }
    }

    /// Starts with the first ID issued for a path that is not open.
    pub(crate) fn reserved(frame: &NewConnectionId) -> Self {
        let mut seen = Seen::default();
        seen.insert(frame.sequence);
        Self {
            active: Remote {
                used: true,
                ..Remote::unused(frame.sequence, frame.id, frame.reset_token)
            },
            others: Vec::new(),
            retire_prior_to: frame.retire_prior_to,
            seen,
            retired: Vec::new(),
            changes: VecDeque::new(),
        }
    }

    /// Called when the path is opened: its stateless resets count.
    pub(crate) fn begin_use(&mut self) {
        self.changes.clear();
        self.changes
            .extend(self.active.reset_token.map(TokenChange::Add));
    }

    /// Called when the path is abandoned: no ID is used any more, and no stateless reset counts. No
    /// frames are needed for that.
    pub(crate) fn retire_all(&mut self) {
        self.retired.clear();
        let used = self.held().filter(|remote| remote.used);
        let removed: Vec<_> = used
            .filter_map(|remote| remote.reset_token.map(TokenChange::Remove))
            .collect();
        self.changes.extend(removed);
        self.active.reset_token = None;
        self.others.clear();
    }

    /// Whether `id` is known to be issued by the peer.
    pub(crate) fn has(&self, id: &ConnectionId) -> bool {
        self.held().any(|remote| remote.id == *id)
    }

    /// The ID for packets on the main path.
    #[inline]
    pub(crate) const fn active(&self) -> &ConnectionId {
        &self.active.id
    }

    /// Sequence number of [`Self::active`].
    pub(crate) const fn active_sequence(&self) -> u64 {
        self.active.sequence
    }

    /// The stateless reset token of [`Self::active`], if known.
    pub(crate) const fn active_reset_token(&self) -> Option<[u8; 16]> {
        self.active.reset_token
    }

    /// Whether ID `sequence` may still be used.
    pub(crate) fn holds(&self, sequence: u64) -> bool {
        self.held().any(|remote| remote.sequence == sequence)
    }

    /// Replaces the ID of the handshake with the Source Connection ID of a Retry or of the server's
    /// first Initial (RFC 9000, section 7.2).
    pub(crate) fn replace_first(&mut self, id: ConnectionId) {
        debug_assert_eq!(self.active.sequence, 0);
        self.active.id = id;
    }

    /// Sets the server's `stateless_reset_token`, which belongs to the ID of the handshake.
    pub(crate) fn set_first_token(&mut self, token: [u8; 16]) {
        debug_assert_eq!(self.active.sequence, 0);
        self.active.reset_token = Some(token);
        self.changes.push_back(TokenChange::Add(token));
    }

    /// Adds the ID of the server's `preferred_address`, sequence number 1.
    pub(crate) fn set_preferred(&mut self, id: ConnectionId, reset_token: [u8; 16]) {
        if self.seen.insert(1) {
            self.others.push(Remote::unused(1, id, reset_token));
        }
    }

    /// Handles NEW_CONNECTION_ID, which may require others to be retired. The active ID may change.
    ///
    /// # Errors
    ///
    /// `PROTOCOL_VIOLATION` if the peer uses zero-length IDs, or the frame contradicts an earlier
    /// one; `CONNECTION_ID_LIMIT_ERROR` if our limit is exceeded, or if more retirements are
    /// unacknowledged than we track (RFC 9000, sections 5.1.1, 5.1.2 and 19.15).
    pub(crate) fn on_new_connection_id(
        &mut self,
        frame: &NewConnectionId,
    ) -> Result<(), TransportError> {
        let error =
            |code, reason| Err(TransportError::new(code, reason).in_frame(NewConnectionId::TYPE));
        if self.active.id.is_empty() {
            return error(
                ErrorCode::PROTOCOL_VIOLATION,
                "a connection ID beside a zero-length one",
            );
        }
        if self.held().any(|remote| remote.contradicts(frame)) {
            return error(
                ErrorCode::PROTOCOL_VIOLATION,
                "a connection ID issued twice, differently",
            );
        }
        if !self.holds(frame.sequence) {
            self.admit(frame);
        }
        self.retire_prior_to = self.retire_prior_to.max(frame.retire_prior_to);
        self.retire_as_asked();
        if self.held().count() > REMOTE_CIDS {
            return error(
                ErrorCode::CONNECTION_ID_LIMIT_ERROR,
                "more connection IDs than allowed",
            );
        }
        if self.retired.len() > RETIRED_CIDS {
            return error(
                ErrorCode::CONNECTION_ID_LIMIT_ERROR,
                "too many connection IDs to retire at once",
            );
        }
        Ok(())
    }

    /// Whether there is an ID that no 4-tuple has used.
    pub(crate) fn has_unused(&self) -> bool {
        self.others.iter().any(|remote| !remote.used)
    }

    /// Takes an ID that no 4-tuple has used. `None` until the peer issues more.
    pub(crate) fn next_unused(&mut self) -> Option<RemoteCid> {
        let next = self
            .others
            .iter_mut()
            .filter(|remote| !remote.used)
            .min_by_key(|remote| remote.sequence)?;
        next.used = true;
        self.changes.extend(next.reset_token.map(TokenChange::Add));
        Some(RemoteCid {
            sequence: next.sequence,
            id: next.id,
        })
    }

    /// Makes ID `sequence`, taken before, the active one: the connection migrated to its path. The
    /// old one stays until [`Self::retire`], unless the peer requested its retirement.
    pub(crate) fn activate(&mut self, sequence: u64) {
        if let Some(next) = self
            .others
            .iter_mut()
            .find(|remote| remote.sequence == sequence && remote.used)
        {
            std::mem::swap(&mut self.active, next);
            self.retire_as_asked();
        }
    }

    /// Retires ID `sequence`, which no path uses any more. The active ID stays.
    pub(crate) fn retire(&mut self, sequence: u64) {
        self.retire_where(|remote| remote.sequence == sequence);
    }

    /// The next change of reset tokens, oldest first.
    pub(crate) fn poll_token_change(&mut self) -> Option<TokenChange> {
        self.changes.pop_front()
    }

    /// Whether `write_frames` has something to write.
    pub(crate) fn has_frames(&self) -> bool {
        self.retired.iter().any(|retired| !retired.in_flight)
    }

    /// Appends the RETIRE_CONNECTION_ID frames that are due while `buf` stays within `limit` bytes,
    /// and gives `tokens` the sequence number of each. With multipath, the frames contain `path`.
    pub(crate) fn write_frames(
        &mut self,
        path: Option<PathId>,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(u64),
    ) {
        for retired in self.retired.iter_mut().filter(|retired| !retired.in_flight) {
            let sequence = retired.sequence;
            let written = match path {
                None => {
                    let frame = RetireConnectionId { sequence };
                    let fits = buf.len() + frame.size() <= limit;
                    if fits {
                        frame.encode(buf);
                    }
                    fits
                }
                Some(path_id) => {
                    let frame = PathRetireConnectionId { path_id, sequence };
                    let fits = buf.len() + frame.size() <= limit;
                    if fits {
                        frame.encode(buf);
                    }
                    fits
                }
            };
            if !written {
                break;
            }
            retired.in_flight = true;
            tokens(retired.sequence);
        }
    }

    /// Handles the acknowledgment of the frame that retired `sequence`.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        self.retired.retain(|retired| retired.sequence != sequence);
    }

    /// Handles the loss of the frame that retired `sequence`.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        for retired in &mut self.retired {
            if retired.sequence == sequence {
                retired.in_flight = false;
            }
        }
    }

    fn held(&self) -> impl Iterator<Item = &Remote> {
        std::iter::once(&self.active).chain(&self.others)
    }

    /// Adds an ID that is not held: a new one, or one that was retired.
    fn admit(&mut self, frame: &NewConnectionId) {
        let sequence = frame.sequence;
        if self.seen.insert(sequence) {
            self.others
                .push(Remote::unused(sequence, frame.id, frame.reset_token));
        } else if sequence < self.seen.base
            && self
                .retired
                .iter()
                .all(|retired| retired.sequence != sequence)
        {
            // Too old to know whether it was retired: retiring it again is harmless.
            self.retired.push(Retired {
                sequence,
                in_flight: false,
            });
        }
    }

    /// Applies the largest Retire Prior To. If it covers every ID we have, the active one is used
    /// until the peer issues another: frames may be reordered.
    fn retire_as_asked(&mut self) {
        let bound = self.retire_prior_to;
        if self.active.sequence < bound {
            let successor = self
                .others
                .iter_mut()
                .filter(|remote| remote.sequence >= bound && !remote.used)
                .min_by_key(|remote| remote.sequence);
            if let Some(successor) = successor {
                successor.used = true;
                self.changes
                    .extend(successor.reset_token.map(TokenChange::Add));
                std::mem::swap(&mut self.active, successor);
            }
        }
        self.retire_where(|remote| remote.sequence < bound);
    }

    /// Retires the matching IDs, except the active one.
    fn retire_where(&mut self, matches: impl Fn(&Remote) -> bool) {
        let gone = self.others.extract_if(.., |remote| matches(remote));
        for remote in gone {
            self.retired.push(Retired {
                sequence: remote.sequence,
                in_flight: false,
            });
            if remote.used {
                self.changes
                    .extend(remote.reset_token.map(TokenChange::Remove));
            }
        }
    }
}

impl Remote {
    const fn unused(sequence: u64, id: ConnectionId, reset_token: [u8; 16]) -> Self {
        Self {
            sequence,
            id,
            reset_token: Some(reset_token),
            used: false,
        }
    }

    /// Whether `frame` contradicts the known number or ID.
    fn contradicts(&self, frame: &NewConnectionId) -> bool {
        let same_sequence = self.sequence == frame.sequence;
        let same_id = self.id == frame.id;
        let same_token = self
            .reset_token
            .is_none_or(|token| token == frame.reset_token);
        same_sequence != same_id || (same_id && !same_token)
    }
}

/// The sequence numbers received: exact for the latest 128, earlier ones count as seen.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    /// Bit `n` stands for `base + n`.
    bits: u128,
    base: u64,
}

impl Seen {
    /// Records `sequence`; returns whether it is new.
    fn insert(&mut self, sequence: u64) -> bool {
        let Some(offset) = sequence.checked_sub(self.base) else {
            return false;
        };
        let shift = offset.saturating_sub(127);
        if shift > 0 {
            let shifted = u32::try_from(shift)
                .ok()
                .and_then(|by| self.bits.checked_shr(by));
            self.bits = shifted.unwrap_or(0);
            self.base += shift;
        }
        let bit = 1 << (offset - shift);
        let new = self.bits & bit == 0;
        self.bits |= bit;
        new
    }
}

#[cfg(test)]
mod tests;
