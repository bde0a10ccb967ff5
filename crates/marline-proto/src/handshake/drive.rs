//! The TLS handshake of one connection, from received CRYPTO data to CRYPTO data to send and keys.

use std::collections::VecDeque;
use std::sync::Arc;

use bytes::Bytes;
use marline_wire::frame::Crypto;
use marline_wire::packet::VERSION_1;
use marline_wire::params::TransportParameters;
use marline_wire::{ErrorCode, Side, TransportError, Version};
use rustls::client::Resumption;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::quic::{
    ClientConnection, Connection, DirectionalKeys, KeyChange, Keys, ServerConnection,
};
use rustls::{AlertDescription, HandshakeKind};

use super::client_hello::{self, Peeked};
use super::config::{TlsClientConfig, TlsServerConfig};
use super::outcome::{self, Outcome};
use super::recorder::{Epoch, SecretRecorder};
use super::stream::{CryptoStream, CryptoToken};
use crate::crypto::{TrafficSecrets, UpdateSecrets, rustls_version};
use crate::level::SpaceId;

/// The reason why a client could not start a connection.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum ConnectError {
    /// The server name is neither a DNS name nor an IP address.
    #[error("`{0}` is neither a DNS name nor an IP address")]
    ServerName(String),
    /// TLS rejects its configuration.
    #[error("TLS cannot start: {0}")]
    Tls(#[from] rustls::Error),
}

/// A result of the handshake. The connection handles them in order.
pub(crate) enum HandshakeStep {
    /// Server: the client's first flight is complete, and the connection has this version.
    Version(Version),
    /// The peer's transport parameters. The client receives them when the handshake is complete, the
    /// server when it has read the client's first flight.
    PeerParameters(Box<TransportParameters>),
    /// 0-RTT packets may be sent (client) or opened (server).
    ZeroRttKeys {
        /// Protects 0-RTT packets.
        keys: DirectionalKeys,
        /// Client: the server's parameters of the earlier session, without those that must not be
        /// reused (RFC 9000, section 7.4.1).
        remembered: Option<Box<TransportParameters>>,
    },
    /// The server accepted 0-RTT.
    ZeroRttAccepted,
    /// The server rejected 0-RTT: the data of 0-RTT packets must be sent again.
    ZeroRttRejected,
    /// Keys of the Handshake space.
    HandshakeKeys(Box<Keys>),
    /// Keys of 1-RTT packets.
    OneRttKeys {
        /// Protects packets until the first key update.
        keys: Box<Keys>,
        /// Source of later keys.
        secrets: Box<UpdateSecrets>,
    },
    /// The handshake is complete (RFC 9001, section 4.1.1).
    Complete,
}

/// Parameters of a client's handshake.
#[derive(Clone, Copy)]
pub(crate) struct ClientStart<'a> {
    pub(crate) config: &'a TlsClientConfig,
    pub(crate) server_name: &'a str,
    pub(crate) params: &'a TransportParameters,
    /// The version of the first packet.
    pub(crate) version: Version,
    /// Whether the server may change to another version.
    pub(crate) may_change: bool,
    /// Whether a session may be resumed.
    pub(crate) resume: bool,
}

/// Parameters of a server's handshake.
pub(crate) struct ServerStart<'a> {
    pub(crate) config: &'a TlsServerConfig,
    pub(crate) params: TransportParameters,
    /// The version of the client's first packet.
    pub(crate) version: Version,
    /// Version to change to if the client offers it; `None` keeps the client's.
    pub(crate) preferred: Option<Version>,
}

/// State of a server before version and configuration of the connection are decided.
struct Undecided {
    config: TlsServerConfig,
    params: TransportParameters,
    preferred: Option<Version>,
    /// Start of the client's first flight, at most a ClientHello.
    received: Vec<u8>,
}

/// The TLS state of one connection, and the CRYPTO data of all packet number spaces.
pub(crate) struct Handshake {
    side: Side,
    /// The version with which TLS was created.
    tls_version: Version,
    /// The version of the connection, as far as it is known.
    version: Version,
    /// Server: parameters of TLS until version and configuration are decided.
    undecided: Option<Box<Undecided>>,
    /// Client: the secrets, while the server may change the version.
    recorder: Option<Arc<SecretRecorder>>,
    /// `None` after the handshake of a server that does not keep its exporter, and while its version or configuration is not decided.
    tls: Option<Box<Connection>>,
    /// `Some` once the handshake is complete.
    outcome: Option<Outcome>,
    /// By packet number space; `None` once discarded.
    streams: [Option<Box<CryptoStream>>; 3],
    /// Space from which TLS reads next.
    reads: SpaceId,
    /// Space to which TLS writes next.
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
    /// Creates a client; its first flight is ready to be sent.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the server name is invalid, or TLS rejects the configuration.
    pub(crate) fn client(start: &ClientStart<'_>) -> Result<Self, ConnectError> {
        let server_name = start.server_name;
        let name = ServerName::try_from(server_name.to_owned())
            .map_err(|_| ConnectError::ServerName(server_name.to_owned()))?;
        let mut config = start.config.rustls();
        let mut recorder = None;
        if start.may_change || !start.resume {
            let own = Arc::make_mut(&mut config);
            if start.may_change {
                let secrets = Arc::new(SecretRecorder::new(Arc::clone(&own.key_log)));
                own.key_log = Arc::clone(&secrets) as _;
                recorder = Some(secrets);
            }
            if !start.resume {
                own.resumption = Resumption::disabled();
            }
        }
        let version = rustls_version(start.version);
        let tls = ClientConnection::new(config, version, name, encode(start.params))?;
        let remembered = remembered_parameters(&tls);
        // A ticket is valid only in the version in which it was issued (RFC 9369, section 5).
        let resumed = session_version(&tls);
        if resumed.is_some_and(|resumed| resumed != start.version.number()) {
            return Self::client(&ClientStart {
                resume: false,
                ..*start
            });
        }
        let zero_rtt = tls.zero_rtt_keys().zip(remembered);
        let mut handshake = Self::new(Side::Client, start.version, true);
        handshake.tls = Some(Box::new(tls.into()));
        handshake.recorder = recorder;
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

    /// Creates a server, which awaits a client's first flight.
    ///
    /// # Errors
    ///
    /// If TLS rejects the configuration.
    pub(crate) fn server(start: ServerStart<'_>) -> Result<Self, rustls::Error> {
        let mut handshake = Self::new(Side::Server, start.version, start.config.keeps_exporter());
        let preferred = start.preferred.filter(|other| *other != start.version);
        match preferred.is_some() || start.config.depends_on_name() {
            false => handshake.begin_server(start.config, start.params)?,
            true => {
                handshake.undecided = Some(Box::new(Undecided {
                    config: start.config.clone(),
                    params: start.params,
                    preferred,
                    received: Vec::new(),
                }));
            }
        }
        Ok(handshake)
    }

    /// Creates the TLS state of a server once version and configuration are decided.
    fn begin_server(
        &mut self,
        config: &TlsServerConfig,
        mut params: TransportParameters,
    ) -> Result<(), rustls::Error> {
        if let Some(information) = &mut params.version_information {
            information.chosen = self.version.number();
        }
        self.tls_version = self.version;
        let rustls = config.rustls(self.version);
        let tls = ServerConnection::new(rustls, rustls_version(self.version), encode(&params))?;
        self.tls = Some(Box::new(tls.into()));
        Ok(())
    }

    fn new(side: Side, version: Version, keep_tls: bool) -> Self {
        Self {
            side,
            tls_version: version,
            version,
            undecided: None,
            recorder: None,
            tls: None,
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

    /// Client: records that the server has changed to `version`. Must be called before the CRYPTO data of its
    /// packets is passed on.
    pub(crate) fn change_version(&mut self, version: Version) {
        self.version = version;
    }

    /// Client: records that the server can no longer change the version.
    pub(crate) fn settle_version(&mut self) {
        if self.version == self.tls_version
            && let Some(recorder) = self.recorder.take()
        {
            recorder.stop();
        }
    }

    /// Processes CRYPTO data of `space`; [`poll`](Self::poll) then returns the results.
    ///
    /// # Errors
    ///
    /// CRYPTO_ERROR with TLS's alert, CRYPTO_BUFFER_EXCEEDED if too much data is buffered out of
    /// order, PROTOCOL_VIOLATION for data after the end of a space, TRANSPORT_PARAMETER_ERROR.
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

    /// Whether all bytes of a frame in an Initial or Handshake packet were received before.
    pub(crate) fn is_repeated(&self, space: SpaceId, frame: &Crypto<'_>) -> bool {
        let stream = self.streams[space as usize].as_ref();
        space != SpaceId::Data && stream.is_some_and(|stream| stream.has_received(frame))
    }

    /// The next result.
    pub(crate) fn poll(&mut self) -> Option<HandshakeStep> {
        let step = self.steps.pop_front()?;
        if self.steps.is_empty() {
            self.steps = VecDeque::new();
        }
        Some(step)
    }

    /// Whether CRYPTO data of `space` is to be sent.
    pub(crate) fn has_crypto(&self, space: SpaceId) -> bool {
        self.streams[space as usize]
            .as_ref()
            .is_some_and(|stream| stream.has_outgoing())
    }

    /// Appends frames with CRYPTO data of `space` that is to be sent, up to `limit` bytes in `buf`.
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

    /// Handles the acknowledgment of the packet with the data of `token`.
    pub(crate) fn on_acked(&mut self, token: &CryptoToken) {
        let stream = &mut self.streams[token.space as usize];
        let Some(open) = stream else {
            return;
        };
        open.outgoing.on_acked(token.range.clone());
        // After its session tickets, a server neither sends nor expects CRYPTO data.
        if token.space == SpaceId::Data && self.tls.is_none() && open.outgoing.is_fully_acked() {
            *stream = None;
        }
    }

    /// Handles the loss of the packet with the data of `token`: the data is sent again, unless another
    /// packet carried it.
    pub(crate) fn on_lost(&mut self, token: &CryptoToken) {
        if let Some(stream) = &mut self.streams[token.space as usize] {
            stream.outgoing.on_lost(token.range.clone());
        }
    }

    /// Handles a Retry: the first flight is sent again from its start.
    pub(crate) fn on_retry(&mut self) {
        if let Some(stream) = &mut self.streams[SpaceId::Initial as usize] {
            stream.outgoing.retransmit_all();
        }
    }

    /// Discards the data of `space`, whose keys are discarded (RFC 9001, section 4.9).
    pub(crate) fn discard(&mut self, space: SpaceId) {
        self.streams[space as usize] = None;
    }

    /// Whether the handshake is incomplete.
    pub(crate) fn is_handshaking(&self) -> bool {
        self.outcome.is_none()
    }

    /// The negotiated application protocol; known to a server once it has read the client's first flight.
    pub(crate) fn alpn(&self) -> Option<&[u8]> {
        match (&self.outcome, &self.tls) {
            (Some(outcome), _) => outcome.alpn.as_deref(),
            (None, tls) => tls.as_ref()?.alpn_protocol(),
        }
    }

    /// Server: the server name that the client requested.
    pub(crate) fn server_name(&self) -> Option<&str> {
        match (&self.outcome, &self.tls) {
            (Some(outcome), _) => outcome.server_name.as_deref(),
            (None, tls) => outcome::server_name(tls.as_ref()?),
        }
    }

    /// The peer's certificates, its own first; once the handshake is complete, or a server has resumed a session: whoever has its
    /// secret has presented them before.
    pub(crate) fn peer_certificates(&self) -> Option<&[CertificateDer<'static>]> {
        match (&self.outcome, &self.tls) {
            (Some(outcome), _) => outcome.certificates.as_deref(),
            (None, Some(tls))
                if self.side.is_server()
                    && tls.handshake_kind() == Some(HandshakeKind::Resumed) =>
            {
                tls.peer_certificates()
            }
            _ => None,
        }
    }

    /// Whether the handshake is full or resumes a session, once negotiated; known to a server once it has
    /// read the client's first flight.
    pub(crate) fn kind(&self) -> Option<HandshakeKind> {
        match (&self.outcome, &self.tls) {
            (Some(outcome), _) => outcome.kind,
            (None, tls) => tls.as_ref()?.handshake_kind(),
        }
    }

    /// Whether the server accepted 0-RTT.
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

    /// Passes in-order CRYPTO data to TLS, space by space.
    fn read_streams(&mut self) -> Result<(), TransportError> {
        while let Some(data) = self.read_stream() {
            let Some(data) = self.decide(data)? else {
                continue;
            };
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

    /// Returns the data for TLS: `data`, or the whole first flight once a server has decided on version and configuration.
    fn decide(&mut self, data: Bytes) -> Result<Option<Bytes>, TransportError> {
        let Some(mut undecided) = self.undecided.take() else {
            return Ok(Some(data));
        };
        undecided.received.extend_from_slice(&data);
        match client_hello::peek(&undecided.received) {
            Peeked::Incomplete => {
                self.undecided = Some(undecided);
                return Ok(None);
            }
            Peeked::Complete(hello) => {
                if let Some(preferred) = undecided.preferred
                    && !hello.early_data
                    && hello.versions.is_some_and(|offered| {
                        offered.chosen == self.version.number()
                            && offered.available.contains(&preferred.number())
                    })
                {
                    self.version = preferred;
                }
                if let Some(config) = undecided.config.of_name(hello.server_name.as_deref()) {
                    undecided.config = config;
                }
            }
            Peeked::Malformed => {}
        }
        let Undecided {
            config,
            params,
            preferred,
            received,
        } = *undecided;
        self.begin_server(&config, params)
            .map_err(|error| TransportError::new(ErrorCode::INTERNAL_ERROR, error.to_string()))?;
        if preferred.is_some() {
            self.steps.push_back(HandshakeStep::Version(self.version));
        }
        Ok(Some(received.into()))
    }

    fn read_stream(&mut self) -> Option<Bytes> {
        self.streams[self.reads as usize].as_mut()?.read()
    }

    /// Queues the results of the data that TLS has read, and collects its output and keys.
    fn advance(&mut self) -> Result<(), TransportError> {
        let Some(tls) = &self.tls else {
            return Ok(());
        };
        let completes = self.outcome.is_none() && !tls.is_handshaking();
        // Before that, a client's TLS returns the parameters of the earlier session.
        let may_report = self.side.is_server() || completes;
        if may_report
            && !self.parameters_known
            && let Some(bytes) = tls.quic_transport_parameters()
        {
            let params = TransportParameters::decode(self.side.peer(), bytes)?;
            self.parameters_known = true;
            // After a rejection, the remembered limits are dropped before the new ones apply.
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

    /// Queues the decision about 0-RTT, which arrives with the server's parameters.
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

    /// Moves TLS's output into the streams, and its keys into the steps.
    fn write_tls(&mut self) {
        loop {
            let Some(tls) = &mut self.tls else {
                return;
            };
            let mut data = Vec::new();
            let change = tls.write_hs(&mut data);
            let is_idle = data.is_empty() && change.is_none();
            if let Some(stream) = &mut self.streams[self.writes as usize] {
                stream.outgoing.write(data.into());
            }
            match change {
                Some(KeyChange::Handshake { keys }) => {
                    self.writes = SpaceId::Handshake;
                    let derived = self.derive(Epoch::Handshake);
                    let keys = derived.map_or(keys, |secrets| secrets.keys());
                    let step = HandshakeStep::HandshakeKeys(Box::new(keys));
                    self.steps.push_back(step);
                }
                Some(KeyChange::OneRtt { keys, next }) => {
                    self.writes = SpaceId::Data;
                    let step = match self.derive(Epoch::OneRtt) {
                        None => HandshakeStep::OneRttKeys {
                            keys: Box::new(keys),
                            secrets: Box::new(next.into()),
                        },
                        Some(mut secrets) => {
                            let keys = Box::new(secrets.keys());
                            secrets.update();
                            HandshakeStep::OneRttKeys {
                                keys,
                                secrets: Box::new(UpdateSecrets::Derived(secrets)),
                            }
                        }
                    };
                    self.recorder = None;
                    self.steps.push_back(step);
                }
                None if is_idle => return,
                None => {}
            }
        }
    }

    /// The secrets of an epoch for the version of the connection; `None` if TLS was created with that version,
    /// and derives the keys itself.
    fn derive(&self, epoch: Epoch) -> Option<TrafficSecrets> {
        if self.version == self.tls_version {
            return None;
        }
        let secrets = self.recorder.as_ref()?.take(epoch)?;
        let cipher = self.tls.as_ref()?.negotiated_cipher_suite()?.suite();
        TrafficSecrets::new(cipher, self.version, self.side, secrets)
    }

    /// Makes TLS read its next data from `space`.
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
            Self::Version(_) => "Version",
            Self::PeerParameters(_) => "PeerParameters",
            Self::ZeroRttKeys { .. } => "ZeroRttKeys",
            Self::ZeroRttAccepted => "ZeroRttAccepted",
            Self::ZeroRttRejected => "ZeroRttRejected",
            Self::HandshakeKeys(_) => "HandshakeKeys",
            Self::OneRttKeys { .. } => "OneRttKeys",
            Self::Complete => "Complete",
        })
    }
}

/// The error for an unexpected message: a client sends no TLS messages after the handshake, and keys
/// are not updated by TLS (RFC 9001, section 6).
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

/// The version of the session that a client resumes, by the server's parameters in it; version 1 if the server
/// did not send it (RFC 9369, section 4). `None` if no session is resumed.
fn session_version(tls: &ClientConnection) -> Option<u32> {
    let params = TransportParameters::decode(Side::Server, tls.quic_transport_parameters()?);
    let information = params.ok().and_then(|params| params.version_information);
    Some(information.map_or(VERSION_1, |information| information.chosen))
}

/// The server's parameters of the session that a client resumes, without those that it must not
/// reuse: connection IDs and addresses, acknowledgment delays, and those for a single connection (RFC
/// 9000, section 7.4.1; draft-ietf-quic-multipath-21, section 2.1).
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
        version_information: None,
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
