//! Steps of version negotiation: installs keys of another version, sends a new first flight.

use marline_wire::Version;
use marline_wire::packet::{ProtectedHeader, ProtectedKind, VersionNegotiation};

use super::{Establishment, Selection, VersionState};
use crate::crypto;
use crate::handshake::{ClientStart, Handshake};
use crate::spaces::Space;
use crate::token::Token;

impl Establishment {
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
        self.tls.change_version(version);
    }

    /// Client: handles CRYPTO data of the server, all of which has the negotiated version.
    pub(super) fn settle_version(&mut self) {
        if self.side.is_client() && !self.versions.is_settled() {
            self.versions.settle();
            self.keys.other_initial = None;
        }
        self.tls.settle_version();
    }

    /// Server: applies the decision on the version; returns whether it changes. The next packet informs the client; until
    /// the client is known to have it, its Initial packets may have either version.
    pub(super) fn decide_version(&mut self, version: Version) -> bool {
        let is_changed = version.number() != self.versions.current();
        self.versions.settle_on(version);
        if is_changed {
            let keys = crypto::initial_keys(version, &self.keys.initial_source, self.side);
            self.keys.other_initial = self.keys.initial.replace(Box::new(keys));
        }
        is_changed
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

    /// The reaction to a Version Negotiation packet with the versions `offered` (RFC 9368, section 2.1).
    pub(crate) fn select_version(
        &self,
        packet: &VersionNegotiation<'_>,
        offered: &[u32],
    ) -> Selection {
        let is_for_us = packet.dcid == &*self.progress.local_cid()
            && packet.scid == &*self.progress.original_destination();
        match is_for_us && self.progress.is_untouched_client() {
            true => self.versions.select(offered),
            false => Selection::Ignored,
        }
    }

    /// Prepares a new first flight with another version, and returns the packet number space of the previous one. Apart
    /// from the connection IDs, no state of that is kept; the new one contains no 0-RTT data. `None` if it is
    /// impossible.
    pub(crate) fn restart(&mut self, version: Version) -> Option<Box<Space<Token>>> {
        let client = self.client.as_mut()?;
        let mut restart = client.restart.take()?;
        let supported = self.versions.supported();
        let number = version.number();
        restart.params.version_information =
            VersionState::information(self.side, supported, number);
        let tls = Handshake::client(&ClientStart {
            config: &restart.tls,
            server_name: &client.server_name,
            params: &restart.params,
            version,
            may_change: VersionState::may_change(supported, number),
            resume: false,
        });
        self.tls = tls.ok()?;
        let token = client.tokens.take(&client.server_name, version);
        self.progress.set_initial_token(token.unwrap_or_default());
        self.versions.restart(version);
        let keys = crypto::initial_keys(version, &self.keys.initial_source, self.side);
        self.keys.initial = Some(Box::new(keys));
        self.keys.other_initial = None;
        self.spaces.restart_initial()
    }
}
