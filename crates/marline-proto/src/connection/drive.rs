//! The handshake moves on: keys appear and go, the peer's settings become known.

use marline_wire::frame::{AckFrequency, NewToken};
use marline_wire::packet::{ProtectedHeader, ProtectedKind, Retry, retry};
use marline_wire::params::TransportParameters;
use marline_wire::{ErrorCode, TransportError};

use super::Connection;
use super::events::{EndpointEvent, Event};
use super::peer::Peer;
use crate::coordination::bundle::{Membership, MembershipId};
use crate::crypto::{self, OneRttKeys};
use crate::handshake::{HandshakeStep, Source};
use crate::level::SpaceId;
use crate::limits::MAX_ADDRESS_TOKEN;
use crate::observe;
use crate::observe::events::{ConnectionState, Initiator, KeyKind, KeyTrigger, ParametersSet};
use crate::paths::Slot;
use crate::streams::PeerLimits;
use crate::time::Instant;

impl Connection {
    /// Acts on what TLS did.
    ///
    /// # Errors
    ///
    /// What the peer's parameters violate.
    pub(super) fn drive_handshake(&mut self, now: Instant) -> Result<(), TransportError> {
        while let Some(step) = self.handshake.poll() {
            match step {
                HandshakeStep::HandshakeKeys(keys) => {
                    self.keys.handshake = Some(keys);
                    self.tell_keys(now, KeyKind::Handshake, KeyTrigger::Tls);
                }
                HandshakeStep::OneRttKeys { keys, secrets } => {
                    let mut keys = OneRttKeys::new(*keys, *secrets);
                    if let Some(interval) = self.config.key_update_interval {
                        keys.update_after(interval);
                    }
                    self.keys.one_rtt = Some(Box::new(keys));
                    if self.side.is_client() {
                        self.keys.zero_rtt = None;
                    }
                    self.tell_keys(now, KeyKind::OneRtt, KeyTrigger::Tls);
                }
                HandshakeStep::ZeroRttKeys { keys, remembered } => {
                    self.keys.zero_rtt = Some(Box::new(keys));
                    if let Some(params) = remembered {
                        self.streams.set_peer_limits(&peer_limits(&params))?;
                        self.datagrams
                            .set_peer_limit(params.max_datagram_frame_size.unwrap_or(0));
                        self.tell(now, &observe::Event::ParametersRestored(&params));
                    }
                    self.tell_keys(now, KeyKind::ZeroRtt, KeyTrigger::Tls);
                }
                HandshakeStep::PeerParameters(params) => self.on_parameters(now, &params)?,
                HandshakeStep::ZeroRttAccepted => {}
                HandshakeStep::ZeroRttRejected => self.on_zero_rtt_rejected(),
                HandshakeStep::Complete => self.on_handshake_complete(now),
            }
        }
        Ok(())
    }

    fn on_parameters(
        &mut self,
        now: Instant,
        params: &TransportParameters,
    ) -> Result<(), TransportError> {
        self.progress.check_ids(params)?;
        self.check_multipath(params.initial_max_path_id)?;
        self.streams.set_peer_limits(&peer_limits(params))?;
        self.datagrams
            .set_peer_limit(params.max_datagram_frame_size.unwrap_or(0));
        self.peer = Peer::from(params);
        self.peer.grease_fixed_bit &= self.config.grease;
        self.idle.heed_peer(self.peer.max_idle_timeout);
        let path = &mut self.paths[Slot::FIRST];
        path.local_cids.set_limit(params.active_connection_id_limit);
        path.tuples
            .active
            .mtu
            .set_peer_limit(params.max_udp_payload_size);
        if let Some(token) = params.stateless_reset_token {
            path.remote_cids.set_first_token(token);
        }
        if let Some(preferred) = &params.preferred_address {
            path.remote_cids
                .set_preferred(preferred.connection_id, preferred.stateless_reset_token);
        }
        self.paths.want_ids();
        self.coordination.peer_coordinates = params.coordinates_bundles;
        if self.side.is_server() {
            self.remember_bundle(params.bundle.map(|named| Membership {
                id: MembershipId(named.id),
                connections: named.connections,
            }));
            // An address that is not proven may be anybody's.
            if self.is_resumed() && self.paths.main().tuples.active.amplification.is_validated() {
                self.mailbox.endpoint.push_back(EndpointEvent::Resumed);
            }
        }
        let event = ParametersSet {
            initiator: Initiator::Remote,
            tls_cipher: None,
            parameters: params,
        };
        self.tell(now, &observe::Event::ParametersSet(event));
        self.report_negotiated(now);
        Ok(())
    }

    /// What went out early is due again, under the server's real limits.
    fn on_zero_rtt_rejected(&mut self) {
        self.keys.zero_rtt = None;
        let path = &mut self.paths[Slot::FIRST];
        path.recovery.discard_packets(&mut path.space.sent);
        self.streams.on_zero_rtt_rejected();
        self.mailbox.application.push_back(Event::ZeroRttRejected);
    }

    fn on_handshake_complete(&mut self, now: Instant) {
        self.begin_multipath();
        self.progress.on_complete(now);
        self.mailbox.application.push_back(Event::Connected);
        self.mailbox
            .endpoint
            .push_back(EndpointEvent::HandshakeDone);
        self.tell_state(now, ConnectionState::HandshakeComplete);
        self.learn_first_window(now);
        self.begin_resumption(now, false);
        self.join_bundle(now, false);
        self.request_ack_frequency();
        if self.side.is_server() {
            self.announcements.handshake_done.announce();
            self.give_address_token(now);
            self.confirm(now);
        }
    }

    /// The handshake is confirmed (RFC 9001, section 4.1.2).
    fn confirm(&mut self, now: Instant) {
        if !self.progress.on_confirmed() {
            return;
        }
        self.discard_keys(now, SpaceId::Initial);
        self.discard_keys(now, SpaceId::Handshake);
        // Packets that were overtaken may still come (RFC 9001, section 4.9.3).
        let until = self.keys.zero_rtt.as_ref().map(|_| now + self.pto() * 3);
        self.progress.keep_zero_rtt_until(until);
        if let Some(keys) = &mut self.keys.one_rtt {
            keys.on_handshake_confirmed();
        }
        self.mailbox
            .application
            .push_back(Event::HandshakeConfirmed);
        self.tell_state(now, ConnectionState::HandshakeConfirmed);
        self.try_preferred_address(now);
    }

    pub(super) fn on_handshake_done(&mut self, now: Instant) -> Result<(), TransportError> {
        if self.side.is_server() {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "HANDSHAKE_DONE from a client",
            ));
        }
        self.confirm(now);
        Ok(())
    }

    /// Keys of a level are of no more use (RFC 9001, section 4.9).
    pub(super) fn discard_keys(&mut self, now: Instant, space: SpaceId) {
        let kind = match space {
            SpaceId::Initial if self.keys.initial.take().is_some() => KeyKind::Initial,
            SpaceId::Handshake if self.keys.handshake.take().is_some() => KeyKind::Handshake,
            _ => return,
        };
        if space == SpaceId::Initial {
            self.progress.set_initial_token(Vec::new());
        }
        self.discard_space(space);
        self.tell_keys_discarded(now, kind);
    }

    /// Whether a long header comes from whom it should: the server's first one tells its ID
    /// (RFC 9000, section 7.2).
    pub(super) fn accept_source(&mut self, header: &ProtectedHeader) -> bool {
        if header.kind == ProtectedKind::Short {
            return true;
        }
        let source = self.progress.on_source(header.scid);
        if source == Source::New {
            let path = &mut self.paths[Slot::FIRST];
            path.remote_cids.replace_first(header.scid);
        }
        source != Source::Wrong
    }

    /// The server wants our address proven (RFC 9000, section 17.2.5.2).
    pub(super) fn on_retry(&mut self, packet: &Retry<'_>) {
        let current = *self.paths[Slot::FIRST].remote_cids.active();
        let usable = self.progress.takes_retry(packet.scid, packet.dcid, current)
            && packet.token.len() <= MAX_ADDRESS_TOKEN;
        let pseudo = retry::pseudo_packet(self.progress.original_destination(), packet.without_tag);
        if !usable || !crypto::verify_retry_tag(&pseudo, &packet.integrity_tag) {
            return;
        }
        self.progress.on_retry(packet.scid, packet.token);
        self.paths[Slot::FIRST]
            .remote_cids
            .replace_first(packet.scid);
        self.keys.initial = Some(Box::new(crypto::initial_keys(&packet.scid, self.side)));
        self.handshake.on_retry();
        // What was sent is neither acknowledged nor lost: it goes out again, 0-RTT data too.
        self.resend_all(Slot::FIRST, SpaceId::Initial);
        self.resend_all(Slot::FIRST, SpaceId::Data);
        self.paths[Slot::FIRST].recovery.reset_pto_count();
    }

    pub(super) fn on_new_token(&mut self, frame: &NewToken<'_>) -> Result<(), TransportError> {
        let Some(client) = &self.client else {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "NEW_TOKEN from a client",
            ));
        };
        if frame.token.len() <= MAX_ADDRESS_TOKEN {
            client.tokens.put(&client.server_name, frame.token);
        }
        Ok(())
    }

    fn request_ack_frequency(&mut self) {
        let Some(wish) = self.config.ack_frequency else {
            return;
        };
        if let Some(shortest) = self.peer.min_ack_delay {
            let max_delay = wish.max_delay.max(shortest);
            let announcement = &mut self.announcements.ack_frequency;
            announcement.announce(wish.threshold, max_delay, wish.reordering_threshold);
            self.peer.max_ack_delay = self.peer.max_ack_delay.max(max_delay);
        }
    }

    /// The peer wants to be acknowledged otherwise.
    pub(super) fn on_ack_frequency(
        &mut self,
        now: Instant,
        frame: &AckFrequency,
    ) -> Result<(), TransportError> {
        let Some(requested) = self.ack_request.on_frame(frame)? else {
            return Ok(());
        };
        for path in self.paths.iter_mut() {
            path.ack_policy.on_frequency(&requested);
        }
        self.tell_ack_frequency(now, frame);
        Ok(())
    }

    /// Whether `token` is what a stateless reset from the peer would end in.
    pub(super) fn is_reset_token(&self, token: &[u8; 16]) -> bool {
        self.paths
            .iter()
            .filter_map(|path| path.remote_cids.active_reset_token())
            .any(|known| crypto::ResetKey::matches(&known, token))
    }
}

fn peer_limits(params: &TransportParameters) -> PeerLimits {
    PeerLimits {
        max_data: params.initial_max_data,
        max_stream_data_bidi_local: params.initial_max_stream_data_bidi_local,
        max_stream_data_bidi_remote: params.initial_max_stream_data_bidi_remote,
        max_stream_data_uni: params.initial_max_stream_data_uni,
        max_streams_bidi: params.initial_max_streams_bidi,
        max_streams_uni: params.initial_max_streams_uni,
    }
}
