//! The handshake: bytes in, bytes and keys out.

use std::collections::VecDeque;

use bytes::Bytes;
use marline_wire::frame::Crypto;
use marline_wire::params::TransportParameters;
use marline_wire::{ErrorCode, Side, TransportError};
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{
    ClientConnection, Connection, DirectionalKeys, KeyChange, Keys, Secrets, ServerConnection,
    Version,
};
use rustls::{AlertDescription, HandshakeKind};

use super::config::{TlsClientConfig, TlsServerConfig};
use super::outcome::{self, Outcome};
use super::stream::{CryptoStream, CryptoToken};
use crate::level::SpaceId;

/// Why a client could not even begin.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConnectError {
    /// Neither a DNS name nor an IP address.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    ServerName(String),
    /// The TLS configuration does not work.
    #[error("TLS cannot start: {0}")]
    Tls(#[from] rustls::Error),
}

/// What the handshake yields, in the order in which the connection is to act on it.
pub(crate) enum HandshakeStep {
    /// What the peer said of itself. The client gets it once it is authenticated, the server as
    /// soon as the client's first flight is read.
    PeerParameters(Box<TransportParameters>),
    /// 0-RTT may be sent (client) or read (server).
    ZeroRttKeys {
        /// Protects 0-RTT packets.
        keys: DirectionalKeys,
        /// The client's memory of the server's parameters, as far as it may use them (RFC 9000,
        /// section 7.4.1).
        remembered: Option<Box<TransportParameters>>,
    },
    /// The server reads what was sent in 0-RTT packets.
    ZeroRttAccepted,
    /// The server drops what was sent in 0-RTT packets: it is due again.
    ZeroRttRejected,
    /// Keys of the Handshake space.
    HandshakeKeys(Box<Keys>),
    /// Keys of 1-RTT packets, and the secrets from which later ones come.
    OneRttKeys(Box<(Keys, Secrets)>),
    /// The handshake is complete (RFC 9001, section 4.1.1).
    Complete,
}

/// TLS of one connection, with the CRYPTO data of all spaces.
pub(crate) struct Handshake {
    side: Side,
    /// `None` once a server needs it no longer.
    tls: Option<Box<Connection>>,
    /// Some once complete.
    outcome: Option<Outcome>,
    /// `None` once discarded.
    streams: [Option<Box<CryptoStream>>; 3],
    /// Whose data TLS expects next.
    reads: SpaceId,
    /// Where TLS puts its next data.
    writes: SpaceId,
    steps: VecDeque<HandshakeStep>,
    parameters_known: bool,
    early_data: EarlyData,
    keep_tls: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum EarlyData {
    None,
    Offered,
    Accepted,
    Rejected,
}

impl Handshake {
    /// A client that will send its first flight to `server_name`, telling `params`.
    ///
    /// # Errors
    ///
    /// [`ConnectError`].
    pub(crate) fn client(
        config: &TlsClientConfig,
        server_name: &str,
        params: &TransportParameters,
    ) -> Result<Self, ConnectError> {
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectError::ServerName(server_name.to_owned()))?;
        let tls = ClientConnection::new(config.rustls(), Version::V1, name, encode(params))?;
        let remembered = remembered_parameters(&tls);
        let zero_rtt = tls.zero_rtt_keys().zip(remembered);
        let mut handshake = Self::new(Side::Client, tls.into(), true);
        if let Some((keys, remembered)) = zero_rtt {
            handshake.early_data = EarlyData::Offered;
            handshake.steps.push_back(HandshakeStep::ZeroRttKeys {
                keys,
                remembered: Some(Box::new(remembered)),
            });
        }
        handshake.write_tls();
        Ok(handshake)
    }

    /// A server that awaits a client's first flight and will tell `params`.
    ///
    /// # Errors
    ///
    /// The TLS configuration does not work.
    pub(crate) fn server(
        config: &TlsServerConfig,
        params: &TransportParameters,
    ) -> Result<Self, rustls::Error> {
        let tls = ServerConnection::new(config.rustls(), Version::V1, encode(params))?;
        Ok(Self::new(Side::Server, tls.into(), config.keeps_exporter()))
    }

    fn new(side: Side, tls: Connection, keep_tls: bool) -> Self {
        Self {
            side,
            tls: Some(Box::new(tls)),
            outcome: None,
            streams: SpaceId::ALL.map(|_| Some(Box::new(CryptoStream::new()))),
            reads: SpaceId::Initial,
            writes: SpaceId::Initial,
            steps: VecDeque::new(),
            parameters_known: false,
            early_data: EarlyData::None,
            keep_tls,
        }
    }

    /// Takes in CRYPTO data of `space`; [`poll`](Self::poll) then tells what came of it.
    ///
    /// # Errors
    ///
    /// CRYPTO_ERROR with TLS's alert, CRYPTO_BUFFER_EXCEEDED for data too far ahead,
    /// PROTOCOL_VIOLATION for data after the end of a space, TRANSPORT_PARAMETER_ERROR.
    pub(crate) fn on_crypto(
        &mut self,
        space: SpaceId,
        frame: &Crypto<'_>,
    ) -> Result<(), TransportError> {
        let is_over = space < self.reads;
        match &mut self.streams[space as usize] {
            Some(stream) => stream
                .on_crypto(frame, is_over)
                .and_then(|()| self.read_streams()),
            None if space == SpaceId::Data => Err(unexpected_message()),
            None => Ok(()),
        }
        .map_err(|error| error.in_frame(Crypto::TYPE))
    }

    /// What came of the data so far; `None` if all is told.
    pub(crate) fn poll(&mut self) -> Option<HandshakeStep> {
        let step = self.steps.pop_front()?;
        if self.steps.is_empty() {
            self.steps = VecDeque::new();
        }
        Some(step)
    }

    /// Whether CRYPTO data of `space` is due.
    pub(crate) fn has_crypto(&self, space: SpaceId) -> bool {
        self.streams[space as usize]
            .as_ref()
            .is_some_and(|stream| stream.has_outgoing())
    }

    /// Appends what CRYPTO data of `space` is due, as long as `buf` stays within `limit` bytes.
    pub(crate) fn write_frames(
        &mut self,
        space: SpaceId,
        buf: &mut Vec<u8>,
        limit: usize,
        tokens: &mut impl FnMut(CryptoToken),
    ) {
        if let Some(stream) = &mut self.streams[space as usize] {
            stream.write_frames(space, buf, limit, tokens);
        }
    }

    /// The peer has the data of `token`.
    pub(crate) fn on_acked(&mut self, token: &CryptoToken) {
        let stream = &mut self.streams[token.space as usize];
        let Some(open) = stream else {
            return;
        };
        open.outgoing.on_acked(token.range.clone());
        // A server whose tickets arrived has nothing more to say or hear.
        if token.space == SpaceId::Data && self.tls.is_none() && open.outgoing.is_fully_acked() {
            *stream = None;
        }
    }

    /// The data of `token` is due again, unless it arrived otherwise.
    pub(crate) fn on_lost(&mut self, token: &CryptoToken) {
        if let Some(stream) = &mut self.streams[token.space as usize] {
            stream.outgoing.on_lost(token.range.clone());
        }
    }

    /// The server answered with Retry: the first flight is due again from its beginning.
    pub(crate) fn on_retry(&mut self) {
        if let Some(stream) = &mut self.streams[SpaceId::Initial as usize] {
            stream.outgoing.retransmit_all();
        }
    }

    /// The keys of `space` are discarded, so its data is settled (RFC 9001, section 4.9).
    pub(crate) fn discard(&mut self, space: SpaceId) {
        self.streams[space as usize] = None;
    }

    /// Whether the handshake is not complete yet.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.outcome.is_none()
    }

    /// The application protocol agreed on; a server knows it as soon as it read the client's first
    /// flight.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match (&self.outcome, &self.tls) {
            (Some(outcome), _) => outcome.alpn.as_deref(),
            (None, tls) => tls.as_ref()?.alpn_protocol(),
        }
    }

    /// Server: the name that the client asked for.
    pub(crate) fn server_name(&self) -> Option<&str> {
        match (&self.outcome, &self.tls) {
            (Some(outcome), _) => outcome.server_name.as_deref(),
            (None, tls) => outcome::server_name(tls.as_ref()?),
        }
    }

    /// The peer's certificates, its own first; once the handshake is complete.
    pub(crate) fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        self.outcome.as_ref()?.certificates.as_deref()
    }

    /// Whether the handshake is full or resumes a session, once the peers have agreed on it; a server knows
    /// it as soon as it read the client's first flight.
    pub(crate) fn kind(&self) -> Option<HandshakeKind> {
        match (&self.outcome, &self.tls) {
            (Some(outcome), _) => outcome.kind,
            (None, tls) => tls.as_ref()?.handshake_kind(),
        }
    }

    /// Whether the server reads 0-RTT data.
    pub(crate) fn is_early_data_accepted(&self) -> bool {
        self.early_data == EarlyData::Accepted
    }

    /// Fills `output` with key material for `label` and `context` (RFC 8446, section 7.5).
    ///
    /// # Errors
    ///
    /// If the handshake is not complete, or this server
    /// [does not keep](TlsServerConfig::keep_exporter) its exporter.
    pub(crate) fn export_keying_material(
        &self,
        output: &mut [u8],
        label: &[u8],
        context: Option<&[u8]>,
    ) -> Result<(), rustls::Error> {
        let Some(tls) = &self.tls else {
            return Err(rustls::Error::General(
                "the server was not configured to keep its exporter".into(),
            ));
        };
        tls.export_keying_material(output, label, context).map(drop)
    }

    /// Gives TLS what is in order, space after space.
    fn read_streams(&mut self) -> Result<(), TransportError> {
        while let Some(data) = self.read_stream() {
            let Some(tls) = &mut self.tls else {
                return Err(unexpected_message());
            };
            if let Err(error) = tls.read_hs(&data) {
                let alert = tls.alert().or(match &error {
                    rustls::Error::InvalidMessage(invalid) => Some((*invalid).into()),
                    _ => None,
                });
                let code = alert.map_or(ErrorCode::PROTOCOL_VIOLATION, |alert| {
                    ErrorCode::crypto(alert.into())
                });
                return Err(TransportError::new(code, error.to_string()));
            }
            self.advance()?;
        }
        Ok(())
    }

    fn read_stream(&mut self) -> Option<Bytes> {
        self.streams[self.reads as usize].as_mut()?.read()
    }

    /// Tells what TLS learned and takes what it has to say.
    fn advance(&mut self) -> Result<(), TransportError> {
        let Some(tls) = &self.tls else {
            return Ok(());
        };
        let completes = self.outcome.is_none() && !tls.is_handshaking();
        // Before, what a client sees are the parameters it remembered.
        let may_report = self.side.is_server() || completes;
        if may_report
            && !self.parameters_known
            && let Some(bytes) = tls.quic_transport_parameters()
        {
            let params = TransportParameters::decode(self.side.peer(), bytes)?;
            self.parameters_known = true;
            // Limits remembered for rejected 0-RTT must be gone before the real ones come.
            self.settle_early_data();
            self.steps
                .push_back(HandshakeStep::PeerParameters(Box::new(params)));
        }
        self.write_tls();
        if self.writes >= SpaceId::Handshake {
            self.read_from(SpaceId::Handshake)?;
        }
        if completes {
            self.read_from(SpaceId::Data)?;
            self.steps.push_back(HandshakeStep::Complete);
            self.outcome = self.tls.as_deref().map(Outcome::of);
            if !self.keep_tls {
                self.tls = None;
            }
        }
        Ok(())
    }

    /// The server decided about 0-RTT when it told its parameters.
    fn settle_early_data(&mut self) {
        match self.tls.as_deref() {
            Some(Connection::Client(tls)) if self.early_data == EarlyData::Offered => {
                let (early_data, step) = if tls.is_early_data_accepted() {
                    (EarlyData::Accepted, HandshakeStep::ZeroRttAccepted)
                } else {
                    (EarlyData::Rejected, HandshakeStep::ZeroRttRejected)
                };
                self.early_data = early_data;
                self.steps.push_back(step);
            }
            Some(Connection::Server(tls)) => {
                if let Some(keys) = tls.zero_rtt_keys() {
                    self.early_data = EarlyData::Accepted;
                    self.steps.push_back(HandshakeStep::ZeroRttKeys {
                        keys,
                        remembered: None,
                    });
                }
            }
            _ => {}
        }
    }

    /// Moves what TLS has to send into the streams, and its keys into the steps.
    fn write_tls(&mut self) {
        let Some(tls) = &mut self.tls else {
            return;
        };
        loop {
            let mut data = Vec::new();
            let change = tls.write_hs(&mut data);
            let is_idle = data.is_empty() && change.is_none();
            if let Some(stream) = &mut self.streams[self.writes as usize] {
                stream.outgoing.write(data.into());
            }
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.writes = SpaceId::Handshake;
                    let step = HandshakeStep::HandshakeKeys(Box::new(keys));
                    self.steps.push_back(step);
                }
                Some(KeyChange::OneRtt { keys, next }) => {
                    self.writes = SpaceId::Data;
                    let step = HandshakeStep::OneRttKeys(Box::new((keys, next)));
                    self.steps.push_back(step);
                }
                None if is_idle => return,
                None => {}
            }
        }
    }

    /// TLS expects its next data in `space`.
    fn read_from(&mut self, space: SpaceId) -> Result<(), TransportError> {
        if space > self.reads {
            if let Some(stream) = &self.streams[self.reads as usize] {
                stream.check_all_read()?;
            }
            self.reads = space;
        }
        Ok(())
    }
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handshake")
            .field("side", &self.side)
            .field("reads", &self.reads)
            .field("writes", &self.writes)
            .field("outcome", &self.outcome)
            .finish_non_exhaustive()
    }
}

impl std::fmt::Debug for HandshakeStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::PeerParameters(_) => "PeerParameters",
            Self::ZeroRttKeys { .. } => "ZeroRttKeys",
            Self::ZeroRttAccepted => "ZeroRttAccepted",
            Self::ZeroRttRejected => "ZeroRttRejected",
            Self::HandshakeKeys(_) => "HandshakeKeys",
            Self::OneRttKeys(_) => "OneRttKeys",
            Self::Complete => "Complete",
        })
    }
}

/// The client has nothing to tell a server's TLS after the handshake, not even new keys (RFC 9001,
/// section 6).
fn unexpected_message() -> TransportError {
    TransportError::new(
        ErrorCode::crypto(AlertDescription::UnexpectedMessage.into()),
        "a TLS message after the handshake",
    )
}

fn encode(params: &TransportParameters) -> Vec<u8> {
    let mut bytes = Vec::new();
    params.encode(&mut bytes);
    bytes
}

/// What a client may use of the parameters that came with the session it resumes: not what names
/// the old connection, says how its server acknowledged, or was meant for that connection alone
/// (RFC 9000, section 7.4.1; draft-ietf-quic-multipath-21, section 2.1).
fn remembered_parameters(tls: &ClientConnection) -> Option<TransportParameters> {
    let params =
        TransportParameters::decode(Side::Server, tls.quic_transport_parameters()?).ok()?;
    let default = TransportParameters::default();
    Some(TransportParameters {
        original_destination_connection_id: None,
        stateless_reset_token: None,
        preferred_address: None,
        initial_source_connection_id: None,
        retry_source_connection_id: None,
        ack_delay_exponent: default.ack_delay_exponent,
        max_ack_delay: default.max_ack_delay,
        min_ack_delay: None,
        initial_max_path_id: None,
        grease_quic_bit: false,
        ..params
    })
}

#[cfg(test)]
mod tests;
