//! Connection IDs issued to the peer (RFC 9000, section 5.1.1).

use std::collections::VecDeque;

use marline_wire::frame::{NewConnectionId, PathNewConnectionId, RetireConnectionId};
use marline_wire::{ConnectionId, ErrorCode, PathId, TransportError};

use crate::limits::{LOCAL_CIDS, RESERVED_CIDS};

/// Delivery state of an ID.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Delivery {
    /// Its NEW_CONNECTION_ID was not sent yet.
    New,
    InFlight,
    Lost,
    /// Acknowledged, or sent during the handshake.
    Known,
}

#[derive(Clone, Copy, Debug)]
struct Issued {
    sequence: u64,
    id: ConnectionId,
    reset_token: [u8; 16],
    delivery: Delivery,
}

/// IDs that we issued and the peer has not retired: packets sent to any of them are ours.
///
/// The caller generates and routes IDs: [`Self::want_more`] returns the number that the peer could
/// use, [`Self::issue`] adds them.
#[derive(Clone, Debug)]
pub(crate) struct LocalCids {
    /// By ascending sequence number.
    issued: VecDeque<Issued>,
    next_sequence: u64,
    retire_prior_to: u64,
    /// IDs with lower sequence numbers are to be replaced, once the peer has completed an earlier request.
    replace_before: u64,
    /// Maximum number of IDs that the peer may hold.
    limit: usize,
    /// Whether our ID is zero-length, so that there is only one.
    zero_length: bool,
}

impl LocalCids {
    /// Starts with the ID of the handshake, sequence number 0.
    pub(crate) fn new(first: ConnectionId) -> Self {
        let mut cids = Self {
            issued: VecDeque::new(),
            next_sequence: 0,
            retire_prior_to: 0,
            replace_before: 0,
            limit: 1,
            zero_length: first.is_empty(),
        };
        cids.push(first, [0; 16], Delivery::Known);
        cids
    }

    /// Starts without an ID, for a path that is not open.
    pub(crate) const fn reserved() -> Self {
        Self {
            issued: VecDeque::new(),
            next_sequence: 0,
            retire_prior_to: 0,
            replace_before: 0,
            limit: RESERVED_CIDS,
            zero_length: false,
        }
    }

    /// Sets the peer's `active_connection_id_limit`; our own limit applies as well.
    pub(crate) fn set_limit(&mut self, active_connection_id_limit: u64) {
        self.limit = usize::try_from(active_connection_id_limit)
            .map_or(LOCAL_CIDS, |limit| limit.clamp(1, LOCAL_CIDS));
    }

    /// Number of further IDs that the peer could hold, and that make no more than `most`.
    pub(crate) fn want_more(&self, most: usize) -> usize {
        if self.zero_length {
            return 0;
        }
        let held = self.iter_from(self.retire_prior_to).count();
        self.limit.min(most).saturating_sub(held)
    }

    /// Adds a new ID, to be sent in NEW_CONNECTION_ID; returns its sequence number.
    ///
    /// `reset_token` is the stateless reset token of the ID.
    pub(crate) fn issue(&mut self, id: ConnectionId, reset_token: [u8; 16]) -> u64 {
        debug_assert!(self.want_more(self.limit) > 0, "the peer could not hold it");
        self.push(id, reset_token, Delivery::New)
    }

    /// Adds the ID of the `preferred_address` transport parameter; its sequence number is 1 (RFC
    /// 9000, section 5.1.1), so no ID may be issued before.
    pub(crate) fn issue_preferred(&mut self, id: ConnectionId, reset_token: [u8; 16]) {
        let sequence = self.push(id, reset_token, Delivery::Known);
        debug_assert_eq!(sequence, 1);
    }

    /// Has all IDs issued so far replaced by new ones, as soon as [`Self::retire_replaced`] can request it.
    pub(crate) fn replace_all(&mut self) {
        self.replace_before = self.next_sequence;
    }

    /// Requests the peer to retire the IDs that are to be replaced; new ones then take their places, and carry the request.
    ///
    /// Without effect while the peer has not completed the previous request (RFC 9000, section 5.1.2).
    pub(crate) fn retire_replaced(&mut self) -> bool {
        let pending = self
            .issued
            .front()
            .is_some_and(|first| first.sequence < self.retire_prior_to);
        if self.zero_length || pending || self.replace_before <= self.retire_prior_to {
            return false;
        }
        self.retire_prior_to = self.replace_before;
        true
    }

    /// Requests the peer to retire all IDs before `sequence`; returns whether that is possible now.
    #[cfg(test)]
    pub(crate) fn retire_prior_to(&mut self, sequence: u64) -> bool {
        let before = self.replace_before;
        self.replace_before = sequence.min(self.next_sequence);
        let is_possible = self.retire_replaced();
        if !is_possible {
            self.replace_before = before;
        }
        is_possible
    }

    /// As [`Self::retire_prior_to`], for all IDs issued so far.
    #[cfg(test)]
    pub(crate) fn retire_all(&mut self) -> bool {
        self.retire_prior_to(self.next_sequence)
    }

    /// Handles the retirement of an ID by the peer, in a packet sent to `destination`. Returns the ID
    /// if it was active: it no longer routes to us.
    ///
    /// # Errors
    ///
    /// `PROTOCOL_VIOLATION` if the number was never sent, or is that of the packet's own ID, or we
    /// use zero-length IDs (RFC 9000, section 19.16).
    pub(crate) fn on_retire(
        &mut self,
        frame: &RetireConnectionId,
        destination: &ConnectionId,
    ) -> Result<Option<ConnectionId>, TransportError> {
        let violation = |reason| {
            Err(TransportError::new(ErrorCode::PROTOCOL_VIOLATION, reason)
                .in_frame(RetireConnectionId::TYPE))
        };
        if self.zero_length {
            return violation("retires a zero-length connection ID");
        }
        if frame.sequence >= self.next_sequence {
            return violation("retires a connection ID that was never issued");
        }
        let Some(position) = self.position(frame.sequence) else {
            return Ok(None);
        };
        let issued = self.issued[position];
        if issued.delivery == Delivery::New {
            return violation("retires a connection ID that was never sent");
        }
        if issued.id == *destination {
            return violation("retires the destination connection ID of its packet");
        }
        self.issued.remove(position);
        Ok(Some(issued.id))
    }

    /// Whether `write_frames` has something to write.
    pub(crate) fn has_frames(&self) -> bool {
        self.issued.iter().any(Issued::is_due)
    }

    /// Appends the NEW_CONNECTION_ID frames that are due while `buf` stays within `limit` bytes, and
    /// gives `tokens` the sequence number of each. With multipath, the frames contain `path`.
    pub(crate) fn write_frames(
        &mut self,
        path: Option<PathId>,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(u64),
    ) {
        for issued in self.issued.iter_mut().filter(|issued| issued.is_due()) {
            let frame = NewConnectionId {
                sequence: issued.sequence,
                retire_prior_to: self.retire_prior_to.min(issued.sequence),
                id: issued.id,
                reset_token: issued.reset_token,
            };
            let written = match path {
                None => {
                    let fits = buf.len() + frame.size() <= limit;
                    if fits {
                        frame.encode(buf);
                    }
                    fits
                }
                Some(path_id) => {
                    let issued = frame;
                    let frame = PathNewConnectionId { path_id, issued };
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
            issued.delivery = Delivery::InFlight;
            tokens(issued.sequence);
        }
    }

    /// Handles the acknowledgment of the frame that carried `sequence`.
    pub(crate) fn on_acked(&mut self, sequence: u64) {
        if let Some(position) = self.position(sequence) {
            self.issued[position].delivery = Delivery::Known;
        }
    }

    /// Handles the loss of the frame that carried `sequence`.
    pub(crate) fn on_lost(&mut self, sequence: u64) {
        if let Some(position) = self.position(sequence)
            && self.issued[position].delivery == Delivery::InFlight
        {
            self.issued[position].delivery = Delivery::Lost;
        }
    }

    /// Whether packets sent to `id` are ours.
    pub(crate) fn contains(&self, id: &ConnectionId) -> bool {
        self.issued.iter().any(|issued| issued.id == *id)
    }

    /// Whether the peer is known to have an ID.
    pub(crate) fn is_known(&self) -> bool {
        let mut issued = self.issued.iter();
        issued.any(|issued| issued.delivery == Delivery::Known)
    }

    /// The sequence number of the next ID.
    pub(crate) const fn next_sequence(&self) -> u64 {
        self.next_sequence
    }

    /// The IDs that route to us.
    pub(crate) fn iter(&self) -> impl Iterator<Item = ConnectionId> + '_ {
        self.iter_from(0)
    }

    fn iter_from(&self, sequence: u64) -> impl Iterator<Item = ConnectionId> + '_ {
        self.issued
            .iter()
            .filter(move |issued| issued.sequence >= sequence)
            .map(|issued| issued.id)
    }

    fn push(&mut self, id: ConnectionId, reset_token: [u8; 16], delivery: Delivery) -> u64 {
        let sequence = self.next_sequence;
        self.next_sequence += 1;
        self.issued.push_back(Issued {
            sequence,
            id,
            reset_token,
            delivery,
        });
        sequence
    }

    fn position(&self, sequence: u64) -> Option<usize> {
        self.issued
            .binary_search_by_key(&sequence, |issued| issued.sequence)
            .ok()
    }
}

impl Issued {
    const fn is_due(&self) -> bool {
        matches!(self.delivery, Delivery::New | Delivery::Lost)
    }
}

#[cfg(test)]
mod tests;
