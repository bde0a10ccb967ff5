//! Steps of the handshake: keys that are installed and discarded, Retry, tokens, confirmation.

use std::time::Duration;

use marline_wire::frame::{Crypto, NewToken};
use marline_wire::packet::{ProtectedHeader, ProtectedKind, Retry, retry};
use marline_wire::params::TransportParameters;
use marline_wire::{ConnectionId, ErrorCode, TransportError};

use super::{Establishment, Source};
use crate::crypto::{self, OneRttKeys};
use crate::handshake::HandshakeStep;
use crate::level::SpaceId;
use crate::limits::MAX_ADDRESS_TOKEN;
use crate::observe::events::KeyKind;
use crate::recovery::Recovery;
use crate::spaces::Space;
use crate::time::Instant;
use crate::token::Token;

/// A step of the handshake that concerns other modules. A connection handles them in order.
pub(crate) enum Step {
    /// Server: the connection changes to another version.
    VersionChanged,
    /// Keys are installed.
    KeysInstalled(KeyKind),
    /// Client: 0-RTT keys are available, and these are the server's parameters of the earlier session.
    Restored(Box<TransportParameters>),
    /// The peer's transport parameters arrived, neither checked nor applied yet.
    PeerParameters(Box<TransportParameters>),
    /// The server rejected 0-RTT.
    ZeroRttRejected,
    /// The handshake is complete.
    Complete,
}

impl Establishment {
    /// The next step that follows from what TLS has read.
    pub(crate) fn poll(&mut self) -> Option<Step> {
        loop {
            return Some(match self.tls.poll()? {
                HandshakeStep::Version(version) if self.decide_version(version) => {
                    Step::VersionChanged
                }
                HandshakeStep::Version(_) | HandshakeStep::ZeroRttAccepted => continue,
                HandshakeStep::HandshakeKeys(keys) => {
                    self.keys.handshake = Some(keys);
                    self.retransmission.on_hello_complete();
                    Step::KeysInstalled(KeyKind::Handshake)
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
                    Step::KeysInstalled(KeyKind::OneRtt)
                }
                HandshakeStep::ZeroRttKeys { keys, remembered } => {
                    self.keys.zero_rtt = Some(Box::new(keys));
                    match remembered {
                        Some(params) => Step::Restored(params),
                        None => Step::KeysInstalled(KeyKind::ZeroRtt),
                    }
                }
                HandshakeStep::PeerParameters(params) => Step::PeerParameters(params),
                HandshakeStep::ZeroRttRejected => {
                    self.keys.zero_rtt = None;
                    Step::ZeroRttRejected
                }
                HandshakeStep::Complete => Step::Complete,
            });
        }
    }

    /// Handles CRYPTO data in a packet of `space`; [`poll`](Self::poll) then returns the steps. `recovery` is that of the
    /// first path.
    ///
    /// # Errors
    ///
    /// Those of TLS, and violations of the order of CRYPTO data.
    pub(crate) fn on_crypto(
        &mut self,
        now: Instant,
        space: SpaceId,
        frame: &Crypto<'_>,
        recovery: &Recovery,
    ) -> Result<(), TransportError> {
        self.settle_version();
        if self.tls.is_repeated(space, frame) {
            self.on_repeated_crypto(now, recovery);
        }
        self.tls.on_crypto(space, frame)
    }

    /// The handshake is complete.
    pub(crate) fn on_complete(&mut self, now: Instant) {
        self.remember_version();
        if let Some(client) = &mut self.client {
            client.restart = None;
        }
        self.progress.on_complete(now);
    }

    /// Records that the handshake is confirmed (RFC 9001, section 4.1.2); returns whether it was not before. The keys of
    /// the handshake are to be discarded then.
    pub(crate) fn on_confirmed(&mut self) -> bool {
        let is_new = self.progress.on_confirmed();
        if is_new && let Some(keys) = self.one_rtt_mut() {
            keys.on_handshake_confirmed();
        }
        is_new
    }

    /// Server: keeps the keys of 0-RTT packets until then, if there are any: reordered packets may still arrive (RFC 9001,
    /// section 4.9.3).
    pub(crate) fn keep_zero_rtt_until(&mut self, until: Instant) {
        let until = self.keys.zero_rtt.as_ref().map(|_| until);
        self.progress.keep_zero_rtt_until(until);
    }

    /// Client: stores the round-trip time to the server at `port` for the next connection to it.
    pub(crate) fn remember_rtt(&self, now: Instant, port: u16, rtt: Duration) {
        if let Some(client) = &self.client
            && self.config.remember_rtt
        {
            client.tokens.set_rtt(&client.server_name, port, rtt, now);
        }
    }

    /// Discards the keys of 0-RTT packets; returns whether there were any.
    pub(crate) fn discard_zero_rtt(&mut self) -> bool {
        self.keys.zero_rtt.take().is_some()
    }

    /// Discards the keys of a space (RFC 9001, section 4.9); `None` if there are none.
    pub(crate) fn discard_keys(&mut self, space: SpaceId) -> Option<KeyKind> {
        let kind = match space {
            SpaceId::Initial if self.keys.initial.take().is_some() => KeyKind::Initial,
            SpaceId::Handshake if self.keys.handshake.take().is_some() => KeyKind::Handshake,
            _ => return None,
        };
        if space == SpaceId::Initial {
            self.keys.other_initial = None;
            self.progress.set_initial_token(Vec::new());
        }
        Some(kind)
    }

    /// Discards a space, whose keys are discarded, and returns it (RFC 9002, section 6.4).
    pub(crate) fn discard_space(&mut self, id: SpaceId) -> Option<Box<Space<Token>>> {
        let space = self.spaces.take(id)?;
        self.tls.discard(id);
        Some(space)
    }

    /// Whose source connection ID a header has; the first packet of the server sets it (RFC 9000, section 7.2).
    pub(crate) fn on_source(&mut self, header: &ProtectedHeader) -> Source {
        match header.kind {
            ProtectedKind::Short => Source::Known,
            _ => self.progress.on_source(header.scid),
        }
    }

    /// Handles a Retry packet in answer to packets to `current`; returns whether it is accepted (RFC 9000, section
    /// 17.2.5.2).
    pub(crate) fn on_retry(&mut self, packet: &Retry<'_>, current: ConnectionId) -> bool {
        let usable = self.progress.takes_retry(packet.scid, packet.dcid, current)
            && packet.version.number() == self.versions.original()
            && packet.token.len() <= MAX_ADDRESS_TOKEN;
        let pseudo = retry::pseudo_packet(self.progress.original_destination(), packet.without_tag);
        if !usable || !crypto::verify_retry_tag(packet.version, &pseudo, &packet.integrity_tag) {
            return false;
        }
        self.progress.on_retry(packet.scid, packet.token);
        let keys = crypto::initial_keys(packet.version, &packet.scid, self.side);
        self.keys.initial = Some(Box::new(keys));
        self.keys.other_initial = None;
        self.keys.initial_source = packet.scid;
        self.tls.on_retry();
        true
    }

    /// Handles a NEW_TOKEN frame.
    ///
    /// # Errors
    ///
    /// PROTOCOL_VIOLATION at a server.
    pub(crate) fn on_new_token(&self, frame: &NewToken<'_>) -> Result<(), TransportError> {
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
}
