//! The effects that the steps of the handshake have in the rest of the connection. The steps are in [`crate::establish`].

use marline_wire::packet::{ProtectedHeader, Retry, VersionNegotiation};
use marline_wire::params::TransportParameters;
use marline_wire::{ErrorCode, TransportError, Version};

use super::Connection;
use super::events::{ConnectionError, EndpointEvent, Event};
use crate::coordination::bundle::{Membership, MembershipId};
use crate::crypto;
use crate::establish::{Repeat, Selection, Source, Step};
use crate::level::SpaceId;
use crate::limits::{REQUEST_COPY, REQUEST_PACKETS};
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
        while let Some(step) = self.establishment.poll() {
            match step {
                Step::VersionChanged => self
                    .telemetry
                    .report_versions(now, self.establishment.versions()),
                Step::KeysInstalled(kind) => self.telemetry.report_keys_installed(
                    now,
                    &self.establishment,
                    kind,
                    KeyTrigger::Tls,
                ),
                Step::Restored(params) => {
                    self.streams.set_peer_limits(&peer_limits(&params))?;
                    self.datagrams
                        .set_peer_limit(params.max_datagram_frame_size.unwrap_or(0));
                    self.telemetry
                        .emit(now, &observe::Event::ParametersRestored(&params));
                    self.telemetry.report_keys_installed(
                        now,
                        &self.establishment,
                        KeyKind::ZeroRtt,
                        KeyTrigger::Tls,
                    );
                }
                Step::PeerParameters(params) => self.on_parameters(now, &params)?,
                Step::ZeroRttRejected => self.on_zero_rtt_rejected(),
                Step::Complete => self.on_handshake_complete(now),
            }
        }
        Ok(())
    }

    fn on_parameters(
        &mut self,
        now: Instant,
        params: &TransportParameters,
    ) -> Result<(), TransportError> {
        self.establishment.check(params)?;
        self.check_multipath(params.initial_max_path_id)?;
        self.streams.set_peer_limits(&peer_limits(params))?;
        self.datagrams
            .set_peer_limit(params.max_datagram_frame_size.unwrap_or(0));
        self.establishment.set_peer(params);
        let timeout = self.establishment.peer().max_idle_timeout;
        self.idle.apply_peer_timeout(timeout);
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
        self.telemetry
            .emit(now, &observe::Event::ParametersSet(event));
        self.report_negotiated(now);
        Ok(())
    }

    /// Makes the content of 0-RTT packets due again, within the server's present limits.
    fn on_zero_rtt_rejected(&mut self) {
        let path = &mut self.paths[Slot::FIRST];
        path.recovery.discard_packets(&mut path.space.sent);
        self.streams.on_zero_rtt_rejected();
        self.events.application.push_back(Event::ZeroRttRejected);
    }

    fn on_handshake_complete(&mut self, now: Instant) {
        self.establishment.on_complete(now);
        self.begin_multipath();
        self.events.application.push_back(Event::Connected);
        self.events.endpoint.push_back(EndpointEvent::HandshakeDone);
        self.telemetry
            .report_state(now, ConnectionState::HandshakeComplete);
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
        if !self.establishment.on_confirmed() {
            return;
        }
        self.discard_keys(now, SpaceId::Initial);
        self.discard_keys(now, SpaceId::Handshake);
        let until = now + self.pto() * 3;
        self.establishment.keep_zero_rtt_until(until);
        let path = &self.paths[Slot::FIRST];
        let (rtt, remote) = (path.recovery.rtt(), path.tuples.active.addresses.remote);
        if rtt.has_sample() {
            self.establishment
                .remember_rtt(now, remote.port(), rtt.smoothed());
        }
        self.events.application.push_back(Event::HandshakeConfirmed);
        self.telemetry
            .report_state(now, ConnectionState::HandshakeConfirmed);
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

    /// Discards the keys of a space (RFC 9001, section 4.9), and its state in recovery (RFC 9002, section 6.4).
    pub(super) fn discard_keys(&mut self, now: Instant, id: SpaceId) {
        let Some(kind) = self.establishment.discard_keys(id) else {
            return;
        };
        if let Some(mut space) = self.establishment.discard_space(id) {
            let recovery = &mut self.paths[Slot::FIRST].recovery;
            recovery.on_space_discarded(id, &mut space.sent);
        }
        self.telemetry.report_keys_discarded(now, kind);
    }

    /// Whether the source connection ID of a header is the peer's, or becomes it.
    pub(super) fn accept_source(&mut self, header: &ProtectedHeader) -> bool {
        let source = self.establishment.on_source(header);
        if source == Source::New {
            let path = &mut self.paths[Slot::FIRST];
            path.remote_cids.replace_first(header.scid);
        }
        source != Source::Wrong
    }

    /// Handles a Retry packet (RFC 9000, section 17.2.5.2).
    pub(super) fn on_retry(&mut self, now: Instant, packet: &Retry<'_>) {
        let current = *self.paths[Slot::FIRST].remote_cids.active();
        if !self.establishment.on_retry(packet, current) {
            return;
        }
        self.paths[Slot::FIRST]
            .remote_cids
            .replace_first(packet.scid);
        // Packets sent before are neither acknowledged nor lost: their content is sent again, including 0-RTT data.
        self.retransmit_all(Slot::FIRST, SpaceId::Initial);
        self.retransmit_all(Slot::FIRST, SpaceId::Data);
        self.paths[Slot::FIRST].recovery.reset_pto_count();
        self.establishment.expect_answer_anew(now);
    }

    /// Handles a Version Negotiation packet (RFC 9368, section 2.1).
    pub(super) fn on_version_negotiation(&mut self, now: Instant, packet: &VersionNegotiation<'_>) {
        let offered: Vec<u32> = packet.versions().collect();
        let selection = self.establishment.select_version(packet, &offered);
        if selection == Selection::Ignored {
            return;
        }
        self.telemetry
            .report_offered_versions(now, self.establishment.versions(), &offered);
        let begun = match selection {
            Selection::Version(version) => self.restart(now, version),
            Selection::NothingInCommon | Selection::Ignored => None,
        };
        if begun.is_none() {
            self.end_silently(now, ConnectionError::VersionMismatch);
        }
    }

    /// Sends a new first flight with another version. `None` if it is impossible.
    fn restart(&mut self, now: Instant, version: Version) -> Option<()> {
        let mut former = self.establishment.restart(version)?;
        if self.establishment.discard_zero_rtt() {
            self.on_zero_rtt_rejected();
        }
        let recovery = &mut self.paths[Slot::FIRST].recovery;
        recovery.on_space_discarded(SpaceId::Initial, &mut former.sent);
        self.telemetry
            .report_versions(now, self.establishment.versions());
        self.establishment.expect_answer_anew(now);
        Some(())
    }

    /// Makes content due again for which the handshake does not wait until a probe timeout.
    pub(super) fn repeat_early(&mut self, now: Instant) {
        const FIRST: Slot = Slot::FIRST;
        while let Some(repeat) = self.establishment.poll_repeat(now) {
            match repeat {
                Repeat::Flight => {
                    self.retransmit_flight(FIRST, SpaceId::Initial);
                    self.retransmit_flight(FIRST, SpaceId::Handshake);
                    if self.has_zero_rtt() {
                        self.retransmit_oldest(FIRST, SpaceId::Data, 1);
                    }
                }
                Repeat::FlightSentBy(time) => {
                    let initial = self.retransmit_sent_by(FIRST, SpaceId::Initial, time);
                    if self.retransmit_sent_by(FIRST, SpaceId::Handshake, time) || initial {
                        self.establishment.on_flight_repeated();
                    }
                }
                Repeat::RequestIfShort if !self.is_request_short() => {}
                Repeat::Request | Repeat::RequestIfShort => {
                    self.retransmit_oldest(FIRST, SpaceId::Data, REQUEST_PACKETS.into());
                }
            }
        }
    }

    /// Whether all application data in flight is a short request.
    fn is_request_short(&self) -> bool {
        let sent = &self.paths[Slot::FIRST].space.sent;
        if sent.ack_eliciting_in_flight() > REQUEST_PACKETS.into() {
            return false;
        }
        let mut bytes = 0;
        sent.oldest_outstanding(REQUEST_PACKETS.into(), |token| {
            bytes += token.segment().map_or(0, |segment| segment.len);
        });
        (1..=REQUEST_COPY).contains(&bytes)
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
