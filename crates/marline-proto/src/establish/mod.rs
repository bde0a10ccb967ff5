//! Establishment of a connection: TLS, keys, version, transport parameters and connection IDs, from the first packet to the
//! confirmed handshake (RFC 9000, section 7; RFC 9001, section 4; RFC 9368).
//!
//! [`Establishment`] owns all of that. What a connection must do in its other modules it returns, as a [`Step`], a
//! [`Repeat`] or a packet number space that ends.
//!
//! | subject | file |
//! | --- | --- |
//! | first state of a client and of a server, transport parameters sent | `start` |
//! | steps of TLS, Retry, tokens, confirmation | `steps` |
//! | progress, connection IDs, deadlines | `progress` |
//! | the peer's transport parameters | `peer` |
//! | keys: which packets are opened and sealed, packets that wait for keys | `keys`, `packets` |
//! | packet number spaces | `spaces` |
//! | version of the connection | `version`, `negotiation` |
//! | retransmission before the probe timeout | `retransmission` |

mod keys;
mod negotiation;
mod packets;
mod peer;
mod progress;
mod retransmission;
mod spaces;
mod start;
mod steps;
mod version;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use marline_wire::params::{PreferredAddress, TransportParameters};
use marline_wire::{Side, TransportError};

use crate::address_tokens::AddressTokens;
use crate::config::TransportConfig;
use crate::crypto::OneRttKeys;
use crate::handshake::{CryptoToken, Handshake, TlsClientConfig};
use crate::level::{EncryptionLevel, SpaceId};
use crate::spaces::Space;
use crate::time::Instant;
use crate::token::Token;

use keys::KeyRing;
pub(crate) use packets::PacketContext;
use packets::Undecryptable;
pub(crate) use peer::Peer;
pub(crate) use progress::{Progress, Source};
pub(crate) use retransmission::Repeat;
use retransmission::Retransmission;
use spaces::HandshakeSpaces;
pub(crate) use start::{ACK_DELAY_EXPONENT, Incoming, Start};
pub(crate) use steps::Step;
pub(crate) use version::{Selection, VersionState};

/// The establishment of one connection.
pub(crate) struct Establishment {
    side: Side,
    config: Arc<TransportConfig>,
    versions: VersionState,
    tls: Handshake,
    progress: Progress,
    keys: KeyRing,
    spaces: HandshakeSpaces,
    client: Option<Box<Client>>,
    undecryptable: Vec<Undecryptable>,
    retransmission: Retransmission,
    peer: Peer,
}

/// State of a client.
struct Client {
    server_name: String,
    tokens: Arc<AddressTokens>,
    /// Restart state until the server answers.
    restart: Option<Box<Restart>>,
}

/// State from which a client restarts with another version.
struct Restart {
    tls: TlsClientConfig,
    params: TransportParameters,
}

impl Establishment {
    /// How far the handshake has come.
    pub(crate) fn progress(&self) -> &Progress {
        &self.progress
    }

    /// The state of TLS.
    pub(crate) fn tls(&self) -> &Handshake {
        &self.tls
    }

    /// The version of the connection.
    pub(crate) fn versions(&self) -> &VersionState {
        &self.versions
    }

    /// The peer's transport parameters.
    pub(crate) fn peer(&self) -> &Peer {
        &self.peer
    }

    /// We have requested ACK delays of up to `max_delay`, which are to be expected from now on.
    pub(crate) fn expect_ack_delay(&mut self, max_delay: Duration) {
        self.peer.max_ack_delay = self.peer.max_ack_delay.max(max_delay);
    }

    /// The server's preferred address; `None` from the second call on.
    pub(crate) fn take_preferred_address(&mut self) -> Option<PreferredAddress> {
        self.peer.preferred_address.take()
    }

    /// The server name of the handshake, if the client sent one.
    pub(crate) fn server_name(&self) -> Option<&str> {
        match &self.client {
            Some(client) => Some(&client.server_name),
            None => self.tls.server_name(),
        }
    }

    /// The keys of 1-RTT packets, once they are available.
    pub(crate) fn one_rtt(&self) -> Option<&OneRttKeys> {
        self.keys.one_rtt.as_deref()
    }

    /// As [`Self::one_rtt`].
    pub(crate) fn one_rtt_mut(&mut self) -> Option<&mut OneRttKeys> {
        self.keys.one_rtt.as_deref_mut()
    }

    /// Whether there are keys of `level`.
    pub(crate) fn has_keys(&self, level: EncryptionLevel) -> bool {
        self.keys.has(level)
    }

    /// The packet number spaces of the handshake that are not discarded.
    pub(crate) fn spaces(&self) -> impl Iterator<Item = (SpaceId, &Space<Token>)> {
        self.spaces.iter()
    }

    /// Whether both packet number spaces of the handshake are discarded.
    pub(crate) fn is_over(&self) -> bool {
        self.spaces.is_empty()
    }

    /// A packet number space of the handshake; `None` if it is discarded.
    pub(crate) fn space(&self, id: SpaceId) -> Option<&Space<Token>> {
        self.spaces.get(id)
    }

    /// As [`Self::space`].
    pub(crate) fn space_mut(&mut self, id: SpaceId) -> Option<&mut Space<Token>> {
        self.spaces.get_mut(id)
    }

    /// Whether CRYPTO data of a space is to be sent.
    pub(crate) fn has_crypto(&self, id: SpaceId) -> bool {
        self.tls.has_crypto(id)
    }

    /// Appends CRYPTO frames of a space, up to `limit` bytes in `buf`; returns whether there were any. Those of the
    /// handshake are recorded in their space, those of application data are passed to `tokens`.
    pub(crate) fn write_crypto(
        &mut self,
        id: SpaceId,
        buf: &mut Vec<u8>,
        limit: usize,
        mut tokens: impl FnMut(Token),
    ) {
        let mut space = self.spaces.get_mut(id);
        self.tls.write_frames(id, buf, limit, &mut |token| {
            let token = Token::Crypto(token);
            match &mut space {
                Some(space) => space.sent.push_token(token),
                None => tokens(token),
            }
        });
    }

    /// Handles the acknowledgment of a CRYPTO frame.
    pub(crate) fn on_crypto_acked(&mut self, token: &CryptoToken) {
        self.tls.on_acked(token);
    }

    /// Handles the loss of a CRYPTO frame.
    pub(crate) fn on_crypto_lost(&mut self, token: &CryptoToken) {
        self.tls.on_lost(token);
    }

    /// Whether the peer has validated our address, so that its amplification limit no longer applies (RFC 9002,
    /// appendix A.8).
    pub(crate) fn has_peer_validated_address(&self) -> bool {
        self.side.is_server()
            || self.progress.is_confirmed()
            || self
                .space(SpaceId::Handshake)
                .is_some_and(|space| space.sent.largest_acked().is_some())
    }

    /// Time at which keys or deadlines expire, or something is due again.
    pub(crate) fn next_timeout(&self) -> Option<Instant> {
        let keys = self.one_rtt().and_then(OneRttKeys::next_timeout);
        let times = [
            keys,
            self.progress.next_timeout(),
            self.retransmission.next_timeout(),
        ];
        times.into_iter().flatten().min()
    }

    /// Discards keys that have expired.
    pub(crate) fn on_timeout(&mut self, now: Instant) {
        if self.progress.take_zero_rtt_expiry(now) {
            self.keys.zero_rtt = None;
        }
        if let Some(keys) = self.one_rtt_mut() {
            keys.on_timeout(now);
        }
    }

    /// Checks the peer's transport parameters against the packets of the handshake.
    ///
    /// # Errors
    ///
    /// TRANSPORT_PARAMETER_ERROR or VERSION_NEGOTIATION_ERROR.
    pub(crate) fn check(&self, params: &TransportParameters) -> Result<(), TransportError> {
        self.progress.check_ids(params)?;
        self.versions.check(params)
    }

    /// Applies the peer's transport parameters.
    pub(crate) fn set_peer(&mut self, params: &TransportParameters) {
        self.peer = Peer::from(params);
        self.peer.grease_fixed_bit &= self.config.grease;
    }
}

#[cfg(any(test, feature = "testing"))]
impl Establishment {
    /// Number of packets that wait for keys.
    pub(crate) fn deferred(&self) -> usize {
        self.undecryptable.len()
    }
}

#[cfg(test)]
impl Establishment {
    pub(crate) fn progress_mut(&mut self) -> &mut Progress {
        &mut self.progress
    }

    pub(crate) fn peer_mut(&mut self) -> &mut Peer {
        &mut self.peer
    }
}
