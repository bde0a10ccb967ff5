//! The first state of a client's and of a server's connection, and the transport parameters that they send.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use marline_wire::params::{BundleMembership, PreferredAddress, TransportParameters};
use marline_wire::{ConnectionId, Side, Version, varint};

use super::keys::KeyRing;
use super::progress::HandshakeIds;
use super::retransmission::Retransmission;
use super::spaces::HandshakeSpaces;
use super::{Client, Establishment, Peer, Progress, Restart, VersionState};
use crate::ack::MIN_ACK_DELAY;
use crate::config::{ClientConfig, EndpointConfig, MultipathConfig, ServerConfig, TransportConfig};
use crate::crypto::{self, TokenCapacity};
use crate::handshake::{ClientStart, ConnectError, Handshake, ServerStart, Versions};
use crate::limits::{INITIAL_DESTINATION_LEN, REMEMBERED_RTT, REMOTE_CIDS};
use crate::rng::{ConnectionRng, SecureRng};
use crate::time::Instant;
use crate::tuple::FourTuple;

/// Our `ack_delay_exponent`: ACK frames state delays in units of 8 microseconds.
pub(crate) const ACK_DELAY_EXPONENT: u8 = 3;

/// Data about a client for the creation of its connection.
pub(crate) struct Incoming {
    /// The version of its first packet.
    pub(crate) version: Version,
    pub(crate) tuple: FourTuple,
    /// Destination connection ID of the client's first Initial packet.
    pub(crate) original_destination: ConnectionId,
    /// Destination connection ID of this Initial packet, from which its keys derive.
    pub(crate) destination: ConnectionId,
    /// The client's source connection ID.
    pub(crate) source: ConnectionId,
    /// Our source connection ID in the Retry packet, if one was sent.
    pub(crate) retry_source: Option<ConnectionId>,
    /// Whether a token validated the client's address.
    pub(crate) validated: bool,
    /// The capacity of the path that the client's token carries.
    pub(crate) capacity: Option<TokenCapacity>,
    pub(crate) local_cid: ConnectionId,
    pub(crate) unix_time_s: u64,
    pub(crate) rng: SecureRng,
}

/// The first state of a connection, as far as the handshake determines it.
pub(crate) struct Start {
    pub(crate) side: Side,
    pub(crate) establishment: Establishment,
    pub(crate) addresses: FourTuple,
    /// Whether the peer's address is validated.
    pub(crate) is_validated: bool,
    /// The peer's connection ID in our first packet.
    pub(crate) remote_cid: ConnectionId,
    /// Round-trip time assumed until the first sample.
    pub(crate) initial_rtt: Duration,
    /// Our transport parameters.
    pub(crate) params: TransportParameters,
    pub(crate) rng: ConnectionRng,
}

/// Values that the handshakes of both sides begin with.
struct Basis {
    side: Side,
    config: Arc<TransportConfig>,
    versions: VersionState,
    tls: Handshake,
    ids: HandshakeIds,
    /// Connection ID from which the keys of Initial packets derive.
    key_source: ConnectionId,
    remote: SocketAddr,
    client: Option<Box<Client>>,
}

impl Start {
    /// A client's connection to the server named `server_name`, whose first flight is ready to be sent.
    ///
    /// # Errors
    ///
    /// [`ConnectError`] if the server name is invalid, or TLS rejects the configuration.
    pub(crate) fn client(
        now: Instant,
        endpoint: &EndpointConfig,
        config: &ClientConfig,
        addresses: FourTuple,
        server_name: &str,
        rng: SecureRng,
    ) -> Result<Self, ConnectError> {
        let mut rng = ConnectionRng::new(rng);
        let local_cid = endpoint.connection_id(rng.secure());
        let original_destination = rng.connection_id(INITIAL_DESTINATION_LEN);
        let mut params = local_parameters(&config.transport, Side::Client, endpoint, local_cid);
        params.bundle = config.bundle.map(|membership| BundleMembership {
            id: membership.id.0,
            connections: membership.connections.clamp(1, varint::MAX),
        });
        params.grease = config.transport.grease.then(|| rng.reserved_parameter());
        let version = first_version(config, server_name);
        let format = Version::from_number(version).unwrap_or_default();
        let supported = match config.tls.derives_keys() {
            true => config.versions,
            false => Versions::only(format),
        };
        params.version_information = VersionState::information(Side::Client, supported, version);
        let tls = Handshake::client(&ClientStart {
            config: &config.tls,
            server_name,
            params: &params,
            version: format,
            may_change: VersionState::may_change(supported, version),
            resume: true,
        })?;
        let restart = Restart {
            tls: config.tls.clone(),
            params: params.clone(),
        };
        let known_rtt = config.tokens.rtt(server_name, addresses.remote.port(), now);
        let known_rtt = known_rtt.filter(|_| config.transport.remember_rtt);
        let token = config.tokens.take(server_name, format).unwrap_or_default();
        let mut establishment = Establishment::new(
            now,
            Basis {
                side: Side::Client,
                config: Arc::clone(&config.transport),
                versions: VersionState::new(Side::Client, supported, version),
                tls,
                ids: HandshakeIds {
                    original_destination,
                    local: local_cid,
                    peer: None,
                    retry_source: None,
                },
                key_source: original_destination,
                remote: addresses.remote,
                client: Some(Box::new(Client {
                    server_name: server_name.to_owned(),
                    tokens: Arc::clone(&config.tokens),
                    restart: Some(Box::new(restart)),
                })),
            },
        );
        establishment.progress.set_initial_token(token);
        establishment.expect_answer(now, known_rtt);
        Ok(Self {
            side: Side::Client,
            establishment,
            addresses,
            is_validated: true,
            remote_cid: original_destination,
            initial_rtt: known_rtt.map_or(config.transport.initial_rtt, plausible_rtt),
            params,
            rng,
        })
    }

    /// A server's connection to the client of `incoming`, whose first packet it has not processed yet.
    ///
    /// # Errors
    ///
    /// If TLS rejects the configuration.
    pub(crate) fn server(
        now: Instant,
        endpoint: &EndpointConfig,
        config: &ServerConfig,
        incoming: Incoming,
    ) -> Result<Self, rustls::Error> {
        let mut rng = ConnectionRng::new(incoming.rng);
        let local_cid = incoming.local_cid;
        let preferred = config.preferred_address.map(|address| {
            let connection_id = endpoint.connection_id(rng.secure());
            let (ipv4, ipv6) = match address {
                SocketAddr::V4(address) => (Some(address), None),
                SocketAddr::V6(address) => (None, Some(address)),
            };
            PreferredAddress {
                ipv4,
                ipv6,
                connection_id,
                stateless_reset_token: endpoint.reset_key.token(&connection_id),
            }
        });
        let mut params = local_parameters(&config.transport, Side::Server, endpoint, local_cid);
        params.original_destination_connection_id = Some(incoming.original_destination);
        params.retry_source_connection_id = incoming.retry_source;
        params.stateless_reset_token = Some(endpoint.reset_key.token(&local_cid));
        params.disable_active_migration = !config.migration;
        params.coordinates_bundles = config.transport.bundle.is_some();
        params.grease = config.transport.grease.then(|| rng.reserved_parameter());
        params.preferred_address = preferred;
        let version = incoming.version.number();
        params.version_information =
            VersionState::information(Side::Server, config.versions, version);
        let tls = Handshake::server(ServerStart {
            config: &config.tls,
            params: params.clone(),
            version: incoming.version,
            preferred: config
                .preferred_version
                .filter(|version| config.versions.contains(*version)),
        })?;
        let known_rtt = incoming.capacity.map(|capacity| capacity.rtt);
        let known_rtt = known_rtt.filter(|_| config.transport.remember_rtt);
        let establishment = Establishment::new(
            now,
            Basis {
                side: Side::Server,
                config: Arc::clone(&config.transport),
                versions: VersionState::new(Side::Server, config.versions, version),
                tls,
                ids: HandshakeIds {
                    original_destination: incoming.original_destination,
                    local: local_cid,
                    peer: Some(incoming.source),
                    retry_source: incoming.retry_source,
                },
                key_source: incoming.destination,
                remote: incoming.tuple.remote,
                client: None,
            },
        );
        Ok(Self {
            side: Side::Server,
            establishment,
            addresses: incoming.tuple,
            is_validated: incoming.validated,
            remote_cid: incoming.source,
            initial_rtt: known_rtt.map_or(config.transport.initial_rtt, plausible_rtt),
            params,
            rng,
        })
    }
}

impl Establishment {
    fn new(now: Instant, basis: Basis) -> Self {
        let Basis {
            side,
            config,
            versions,
            ids,
            key_source,
            ..
        } = basis;
        let initial = crypto::initial_keys(versions.format(), &key_source, side);
        Self {
            side,
            versions,
            tls: basis.tls,
            progress: Progress::new(now, side, ids, basis.remote, config.handshake_timeout),
            keys: KeyRing {
                initial: Some(Box::new(initial)),
                initial_source: key_source,
                ..KeyRing::default()
            },
            spaces: HandshakeSpaces::new(),
            client: basis.client,
            undecryptable: Vec::new(),
            retransmission: Retransmission::default(),
            peer: Peer::default(),
            config,
        }
    }
}

/// Limits a remembered round-trip time: if it is wrong, one more probe is sent, or a probe timeout takes a few seconds.
pub(super) fn plausible_rtt(rtt: Duration) -> Duration {
    rtt.clamp(*REMEMBERED_RTT.start(), *REMEMBERED_RTT.end())
}

/// The version of a client's first packet: that of the last connection to the server, to which its session
/// and token belong, or else the configured one.
fn first_version(config: &ClientConfig, server_name: &str) -> u32 {
    let is_known = |version| config.versions.contains(version);
    let configured = Version::from_number(config.version);
    match config.tokens.version(server_name) {
        Some(last) if is_known(last) && configured.is_some_and(is_known) => last.number(),
        _ => config.version,
    }
}

/// The transport parameters that clients and servers have in common.
fn local_parameters(
    config: &TransportConfig,
    side: Side,
    endpoint: &EndpointConfig,
    source: ConnectionId,
) -> TransportParameters {
    let windows = config.receive_windows(side);
    TransportParameters {
        max_idle_timeout: config
            .max_idle_timeout
            .map_or(0, |timeout| timeout.as_millis() as u64),
        max_udp_payload_size: config.max_udp_payload_size.into(),
        initial_max_data: windows.all,
        initial_max_stream_data_bidi_local: windows.stream,
        initial_max_stream_data_bidi_remote: windows.stream,
        initial_max_stream_data_uni: windows.stream,
        initial_max_streams_bidi: config.max_concurrent_bidi_streams,
        initial_max_streams_uni: config.max_concurrent_uni_streams,
        ack_delay_exponent: ACK_DELAY_EXPONENT.into(),
        max_ack_delay: (config.ack_policy)().max_ack_delay().as_millis() as u64,
        active_connection_id_limit: REMOTE_CIDS as u64,
        initial_source_connection_id: Some(source),
        max_datagram_frame_size: config.datagram_receive_buffer.map(|_| u64::from(u16::MAX)),
        grease_quic_bit: endpoint.grease_fixed_bit,
        initial_max_path_id: config
            .multipath
            .as_ref()
            .filter(|_| !source.is_empty())
            .map(MultipathConfig::last_path),
        min_ack_delay: Some(MIN_ACK_DELAY.as_micros() as u64),
        ..TransportParameters::default()
    }
}
