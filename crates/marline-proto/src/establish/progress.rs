//! Progress of the handshake, and its parameters outside TLS: connection IDs, the token of a Retry
//! packet, deadlines.

use std::net::SocketAddr;
use std::time::Duration;

use marline_wire::{ConnectionId, Side, TransportError};

use crate::handshake::ExpectedIds;
use crate::time::Instant;

/// The initial connection IDs of a handshake.
#[derive(Clone, Copy, Debug)]
pub(crate) struct HandshakeIds {
    /// Destination connection ID of the client's first Initial packet.
    pub(crate) original_destination: ConnectionId,
    /// Our connection ID.
    pub(crate) local: ConnectionId,
    /// The peer's connection ID, once known: a client learns it from the server's first packet.
    pub(crate) peer: Option<ConnectionId>,
    /// The server's source connection ID in its Retry packet, if it sent one.
    pub(crate) retry_source: Option<ConnectionId>,
}

/// State of one handshake, beside that of TLS.
#[derive(Debug)]
pub(crate) struct Progress {
    side: Side,
    ids: HandshakeIds,
    /// The peer's address during the handshake.
    remote: SocketAddr,
    began: Instant,
    /// Timeout of the handshake; `None` once it is complete.
    deadline: Option<Instant>,
    took: Option<Duration>,
    /// Whether the handshake is confirmed (RFC 9001, section 4.1.2).
    confirmed: bool,
    /// Time at which a server discards the keys of 0-RTT packets.
    zero_rtt_until: Option<Instant>,
    /// Token in our Initial packets.
    initial_token: Vec<u8>,
    /// Whether any packet of the peer was authenticated.
    packet_opened: bool,
}

impl Progress {
    /// Starts a handshake with the peer at `remote`, which times out after `timeout`.
    pub(crate) fn new(
        now: Instant,
        side: Side,
        ids: HandshakeIds,
        remote: SocketAddr,
        timeout: Duration,
    ) -> Self {
        Self {
            side,
            ids,
            remote,
            began: now,
            deadline: Some(now + timeout),
            took: None,
            confirmed: false,
            zero_rtt_until: None,
            initial_token: Vec::new(),
            packet_opened: false,
        }
    }

    /// Start of the connection.
    pub(crate) const fn began(&self) -> Instant {
        self.began
    }

    /// Duration of the handshake, once it is complete.
    pub(crate) const fn took(&self) -> Option<Duration> {
        self.took
    }

    /// Time at which the handshake was complete.
    pub(crate) fn completed_at(&self) -> Option<Instant> {
        self.took.map(|took| self.began + took)
    }

    pub(crate) const fn is_complete(&self) -> bool {
        self.took.is_some()
    }

    /// Whether the handshake is confirmed (RFC 9001, section 4.1.2).
    pub(crate) const fn is_confirmed(&self) -> bool {
        self.confirmed
    }

    /// Destination connection ID of the client's first Initial packet, which names the connection in logs.
    pub(crate) const fn original_destination(&self) -> ConnectionId {
        self.ids.original_destination
    }

    /// Our connection ID during the handshake.
    pub(crate) const fn local_cid(&self) -> ConnectionId {
        self.ids.local
    }

    /// The peer's connection ID during the handshake, once known.
    pub(crate) const fn peer_cid(&self) -> Option<ConnectionId> {
        self.ids.peer
    }

    /// The peer's address during the handshake.
    pub(crate) const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// Token in our Initial packets.
    pub(crate) fn initial_token(&self) -> &[u8] {
        &self.initial_token
    }

    pub(crate) fn set_initial_token(&mut self, token: Vec<u8>) {
        self.initial_token = token;
    }

    /// Whether any packet of the peer was authenticated.
    pub(crate) const fn has_opened_packet(&self) -> bool {
        self.packet_opened
    }

    pub(crate) fn on_packet_opened(&mut self) {
        self.packet_opened = true;
    }

    /// Whether this is a client that has received no packet: it accepts Retry and Version Negotiation packets.
    pub(crate) const fn is_untouched_client(&self) -> bool {
        self.side.is_client() && !self.packet_opened
    }

    /// Checks the connection IDs in the peer's transport parameters (RFC 9000, section 7.3).
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR if they differ from those of the packets.
    pub(crate) fn check_ids(
        &self,
        params: &marline_wire::params::TransportParameters,
    ) -> Result<(), TransportError> {
        let expected = ExpectedIds {
            side: self.side,
            original_destination: self.ids.original_destination,
            initial_source: self.ids.peer.unwrap_or_default(),
            retry_source: self.ids.retry_source,
        };
        expected.check(params)
    }

    /// Processes the source connection ID of a long header: the server's first one is its ID (RFC 9000, section 7.2).
    pub(crate) fn on_source(&mut self, source: ConnectionId) -> Source {
        match self.ids.peer {
            Some(known) if known == source => Source::Known,
            Some(_) => Source::Wrong,
            None => {
                self.ids.peer = Some(source);
                Source::New
            }
        }
    }

    /// Whether a Retry packet from `source` to `destination`, in answer to packets to `current`, is accepted: a
    /// client accepts one, before any other packet (RFC 9000, section 17.2.5.2).
    pub(crate) fn takes_retry(
        &self,
        source: ConnectionId,
        destination: ConnectionId,
        current: ConnectionId,
    ) -> bool {
        self.is_untouched_client()
            && self.ids.retry_source.is_none()
            && source != current
            && destination == self.ids.local
    }

    /// Processes an authentic Retry packet.
    pub(crate) fn on_retry(&mut self, source: ConnectionId, token: &[u8]) {
        self.ids.retry_source = Some(source);
        self.initial_token = token.to_vec();
    }

    pub(crate) fn on_complete(&mut self, now: Instant) {
        self.deadline = None;
        self.took = Some(now - self.began);
    }

    /// Records that the handshake is confirmed; returns whether it was not before.
    pub(crate) fn on_confirmed(&mut self) -> bool {
        !std::mem::replace(&mut self.confirmed, true)
    }

    /// Server: keeps the keys of 0-RTT packets until then, for reordered packets (RFC 9001, section 4.9.3).
    pub(crate) fn keep_zero_rtt_until(&mut self, until: Option<Instant>) {
        self.zero_rtt_until = until;
    }

    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        self.deadline.into_iter().chain(self.zero_rtt_until).min()
    }

    /// Whether the handshake timed out.
    pub(crate) fn is_late(&self, now: Instant) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether the keys of 0-RTT packets are to be discarded now; true once.
    pub(crate) fn take_zero_rtt_expiry(&mut self, now: Instant) -> bool {
        self.zero_rtt_until.take_if(|until| *until <= now).is_some()
    }
}

#[cfg(test)]
impl Progress {
    pub(crate) fn set_local_cid(&mut self, id: ConnectionId) {
        self.ids.local = id;
    }

    pub(crate) fn retry_source(&self) -> Option<ConnectionId> {
        self.ids.retry_source
    }
}

/// The match of a packet's source connection ID with the peer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Source {
    Known,
    /// The first packet, which sets the peer's ID.
    New,
    Wrong,
}
