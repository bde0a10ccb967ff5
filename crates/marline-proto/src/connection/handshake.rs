//! Steps of the handshake: installs and discards keys, applies the peer's transport parameters.

use marline_wire::frame::NewToken;
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
    /// Applies the progress of TLS.
    ///
    /// # Errors
    ///
    /// If the peer's transport parameters violate the protocol.
    pub(super) fn drive_handshake(&mut self, now: Instant) -> Result<(), TransportError> {
        while let Some(step) = self.handshake.poll() {
            match step {
                HandshakeStep::Version(version) => self.on_version_decided(now, version),
                HandshakeStep::HandshakeKeys(keys) => {
                    self.keys.handshake = Some(keys);
                    self.on_hello_complete();
                    self.report_keys_installed(now, KeyKind::Handshake, KeyTrigger::Tls);
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
                    self.report_keys_installed(now, KeyKind::OneRtt, KeyTrigger::Tls);
                }
                HandshakeStep::ZeroRttKeys { keys, remembered } => {
                    self.keys.zero_rtt = Some(Box::new(keys));
                    if let Some(params) = remembered {
                        self.streams.set_peer_limits(&peer_limits(&params))?;
                        self.datagrams
                            .set_peer_limit(params.max_datagram_frame_size.unwrap_or(0));
                        self.emit(now, &observe::Event::ParametersRestored(&params));
                    }
                    self.report_keys_installed(now, KeyKind::ZeroRtt, KeyTrigger::Tls);
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
        self.versions.check(params)?;
        self.check_multipath(params.initial_max_path_id)?;
        self.streams.set_peer_limits(&peer_limits(params))?;
        self.datagrams
            .set_peer_limit(params.max_datagram_frame_size.unwrap_or(0));
        self.peer = Peer::from(params);
        self.peer.grease_fixed_bit &= self.config.grease;
        self.idle.apply_peer_timeout(self.peer.max_idle_timeout);
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
            self.set_membership(params.bundle.map(|named| Membership {
                id: MembershipId(named.id),
                connections: named.connections,
            }));
            // Without validation the address may be spoofed.
            if self.is_resumed() && self.paths.main().tuples.active.amplification.is_validated() {
                self.events.endpoint.push_back(EndpointEvent::Resumed);
            }
        }
        let event = ParametersSet {
            initiator: Initiator::Remote,
            tls_cipher: None,
            parameters: params,
        };
        self.emit(now, &observe::Event::ParametersSet(event));
        self.report_negotiated(now);
        Ok(())
    }

    /// Makes the content of 0-RTT packets due again, within the server's present limits.
    pub(super) fn on_zero_rtt_rejected(&mut self) {
        self.keys.zero_rtt = None;
        let path = &mut self.paths[Slot::FIRST];
        path.recovery.discard_packets(&mut path.space.sent);
        self.streams.on_zero_rtt_rejected();
        self.events.application.push_back(Event::ZeroRttRejected);
    }

    fn on_handshake_complete(&mut self, now: Instant) {
        self.remember_version();
        if let Some(client) = &mut self.client {
            client.restart = None;
        }
        self.begin_multipath();
        self.progress.on_complete(now);
        self.events.application.push_back(Event::Connected);
        self.events.endpoint.push_back(EndpointEvent::HandshakeDone);
        self.report_state(now, ConnectionState::HandshakeComplete);
        self.learn_initial_window(now);
        self.begin_careful_resume(now, false);
        self.join_bundle(now, false);
        self.request_ack_frequency(now);
        if self.side.is_server() {
            self.announcements.handshake_done.announce();
            self.issue_address_token(now);
            self.confirm(now);
        }
    }

    /// Called when the handshake is confirmed (RFC 9001, section 4.1.2).
    fn confirm(&mut self, now: Instant) {
        if !self.progress.on_confirmed() {
            return;
        }
        self.discard_keys(now, SpaceId::Initial);
        self.discard_keys(now, SpaceId::Handshake);
        // Reordered 0-RTT packets may still arrive (RFC 9001, section 4.9.3).
        let until = self.keys.zero_rtt.as_ref().map(|_| now + self.pto() * 3);
        self.progress.keep_zero_rtt_until(until);
        if let Some(keys) = &mut self.keys.one_rtt {
            keys.on_handshake_confirmed();
        }
        if let Some(client) = &self.client {
            let path = &self.paths[Slot::FIRST];
            let (rtt, remote) = (path.recovery.rtt(), path.tuples.active.addresses.remote);
            if rtt.has_sample() && self.config.remember_rtt {
                client
                    .tokens
                    .set_rtt(&client.server_name, remote.port(), rtt.smoothed(), now);
            }
        }
        self.events.application.push_back(Event::HandshakeConfirmed);
        self.report_state(now, ConnectionState::HandshakeConfirmed);
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

    /// Discards the keys of a space (RFC 9001, section 4.9).
    pub(super) fn discard_keys(&mut self, now: Instant, space: SpaceId) {
        let kind = match space {
            SpaceId::Initial if self.keys.initial.take().is_some() => KeyKind::Initial,
            SpaceId::Handshake if self.keys.handshake.take().is_some() => KeyKind::Handshake,
            _ => return,
        };
        if space == SpaceId::Initial {
            self.keys.other_initial = None;
            self.progress.set_initial_token(Vec::new());
        }
        self.discard_space(space);
        self.report_keys_discarded(now, kind);
    }

    /// Whether the source connection ID of a long header is the peer's; the first packet of the server sets it
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

    /// Handles a Retry packet (RFC 9000, section 17.2.5.2).
    pub(super) fn on_retry(&mut self, now: Instant, packet: &Retry<'_>) {
        let current = *self.paths[Slot::FIRST].remote_cids.active();
        let usable = self.progress.takes_retry(packet.scid, packet.dcid, current)
            && packet.version.number() == self.versions.original()
            && packet.token.len() <= MAX_ADDRESS_TOKEN;
        let pseudo = retry::pseudo_packet(self.progress.original_destination(), packet.without_tag);
        if !usable || !crypto::verify_retry_tag(packet.version, &pseudo, &packet.integrity_tag) {
            return;
        }
        self.progress.on_retry(packet.scid, packet.token);
        self.paths[Slot::FIRST]
            .remote_cids
            .replace_first(packet.scid);
        let keys = crypto::initial_keys(packet.version, &packet.scid, self.side);
        self.keys.initial = Some(Box::new(keys));
        self.keys.other_initial = None;
        self.keys.initial_source = packet.scid;
        self.handshake.on_retry();
        // Packets sent before are neither acknowledged nor lost: their content is sent again, including 0-RTT data.
        self.retransmit_all(Slot::FIRST, SpaceId::Initial);
        self.retransmit_all(Slot::FIRST, SpaceId::Data);
        self.paths[Slot::FIRST].recovery.reset_pto_count();
        self.expect_answer(now, Some(now - self.progress.began()));
    }

    pub(super) fn on_new_token(&mut self, frame: &NewToken<'_>) -> Result<(), TransportError> {
        let Some(client) = &self.client else {
            return Err(TransportError::new(
                ErrorCode::PROTOCOL_VIOLATION,
                "NEW_TOKEN from a client",
            ));
        };
        if frame.token.len() <= MAX_ADDRESS_TOKEN {
            let version = self.versions.format();
            client.tokens.put(&client.server_name, version, frame.token);
        }
        Ok(())
    }

    /// Whether `token` is a stateless reset token of the peer (RFC 9000, section 10.3.1).
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
