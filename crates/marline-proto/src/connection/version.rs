//! Steps of version negotiation: installs keys of another version, sends a new first flight.

use marline_wire::Version;
use marline_wire::packet::{ProtectedHeader, ProtectedKind, VersionNegotiation};
use marline_wire::params::TransportParameters;

use super::Connection;
use super::events::ConnectionError;
use crate::crypto;
use crate::handshake::{ClientStart, Handshake, Selection, TlsClientConfig, VersionState};
use crate::level::SpaceId;
use crate::paths::Slot;
use crate::time::Instant;

/// State from which a client restarts with another version.
pub(super) struct Restart {
    pub(super) tls: TlsClientConfig,
    pub(super) params: TransportParameters,
}

impl Connection {
    /// The QUIC version of the connection: the negotiated one, once the handshake is complete.
    pub fn version(&self) -> u32 {
        self.versions.current()
    }

    /// Whether a packet has a version that the connection accepts. The first packet of the other version makes it
    /// derive the Initial keys of that version.
    pub(super) fn accepts_version(&mut self, header: &ProtectedHeader) -> bool {
        if !self.versions.accepts(header) {
            return false;
        }
        let is_initial = matches!(header.kind, ProtectedKind::Initial { .. });
        if let Some(version) = header.version
            && is_initial
            && self.versions.is_other(header)
            && self.keys.initial.is_some()
            && self.keys.other_initial.is_none()
        {
            let keys = crypto::initial_keys(version, &self.keys.initial_source, self.side);
            self.keys.other_initial = Some(Box::new(keys));
        }
        true
    }

    /// Client: handles an authenticated packet of the server with another version, which is the negotiated one.
    pub(super) fn follow_version(&mut self, header: &ProtectedHeader) {
        let Some(version) = header.version else {
            return;
        };
        if self.side.is_server() || !self.versions.is_other(header) {
            return;
        }
        self.versions.settle_on(version);
        self.keys.initial = self.keys.other_initial.take();
        self.handshake.change_version(version);
    }

    /// Client: handles CRYPTO data of the server, all of which has the negotiated version.
    pub(super) fn settle_version(&mut self) {
        if self.side.is_client() && !self.versions.is_settled() {
            self.versions.settle();
            self.keys.other_initial = None;
        }
        self.handshake.settle_version();
    }

    /// Server: applies the decision on the version. The next packet informs the client; until the client is known
    /// to have it, its Initial packets may have either version.
    pub(super) fn on_version_decided(&mut self, now: Instant, version: Version) {
        let is_changed = version.number() != self.versions.current();
        self.versions.settle_on(version);
        if !is_changed {
            return;
        }
        let keys = crypto::initial_keys(version, &self.keys.initial_source, self.side);
        self.keys.other_initial = self.keys.initial.replace(Box::new(keys));
        self.report_versions(now);
    }

    /// Stores the version for the next connection to the server.
    pub(super) fn remember_version(&self) {
        if let Some(client) = &self.client
            && self.versions.supported().iter().count() > 1
            && let Some(version) = Version::from_number(self.versions.current())
        {
            client.tokens.set_version(&client.server_name, version);
        }
    }

    /// Handles a Version Negotiation packet (RFC 9368, section 2.1).
    pub(super) fn on_version_negotiation(&mut self, now: Instant, packet: &VersionNegotiation<'_>) {
        let is_for_us = packet.dcid == &*self.progress.local_cid()
            && packet.scid == &*self.progress.original_destination();
        if !is_for_us || !self.progress.is_untouched_client() {
            return;
        }
        let offered: Vec<u32> = packet.versions().collect();
        let selection = self.versions.select(&offered);
        if selection == Selection::Ignored {
            return;
        }
        self.report_offered_versions(now, &offered);
        let begun = match selection {
            Selection::Version(version) => self.restart(now, version),
            Selection::NothingInCommon | Selection::Ignored => None,
        };
        if begun.is_none() {
            self.end_silently(now, ConnectionError::VersionMismatch);
        }
    }

    /// Sends a new first flight with another version. Apart from the connection IDs, no state of the previous
    /// one is kept; it contains no 0-RTT data. `None` if it is impossible.
    fn restart(&mut self, now: Instant, version: Version) -> Option<()> {
        let client = self.client.as_mut()?;
        let mut restart = client.restart.take()?;
        let supported = self.versions.supported();
        let number = version.number();
        restart.params.version_information =
            VersionState::information(self.side, supported, number);
        let handshake = Handshake::client(&ClientStart {
            config: &restart.tls,
            server_name: &client.server_name,
            params: &restart.params,
            version,
            may_change: VersionState::may_change(supported, number),
            resume: false,
        });
        self.handshake = handshake.ok()?;
        let token = client.tokens.take(&client.server_name, version);
        self.progress.set_initial_token(token.unwrap_or_default());
        if self.keys.zero_rtt.is_some() {
            self.on_zero_rtt_rejected();
        }
        self.versions.restart(version);
        let keys = crypto::initial_keys(version, &self.keys.initial_source, self.side);
        self.keys.initial = Some(Box::new(keys));
        self.keys.other_initial = None;
        if let Some(mut space) = self.handshake_spaces.restart_initial() {
            let recovery = &mut self.paths[Slot::FIRST].recovery;
            recovery.on_space_discarded(SpaceId::Initial, &mut space.sent);
        }
        self.report_versions(now);
        self.expect_answer(now, Some(now - self.progress.began()));
        Some(())
    }
}
