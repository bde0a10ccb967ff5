//! A connection, which calls the modules in order. It implements the rules that concern several modules: the order of
//! frames (`fill`), padding (`packet`, `transmit`), what is processed at which stage of the handshake (`receive`), the
//! idle timeout (`idle`), closing and draining (`close`, `lifecycle`), what is reset when an address changes
//! (`migrate`).
//!
//! | part | file |
//! | --- | --- |
//! | receive path: datagram, packets, frames, modules | `receive`, `dispatch` |
//! | send path: streams, paths, frames, packets | `stream_planner`, `path_planner`, `reinject`, `transmit`, `fill`, `packet` |
//! | acknowledgments and losses, back to the modules that wrote the frames | `recover` |
//! | requests about acknowledgments | `ack_frequency` |
//! | time | `timers`, `idle` |
//! | handshake, version and keys | `handshake`, `version`, `handshake_spaces`, `keys`, `peer` |
//! | paths and their addresses | `paths`, `migrate` |
//! | concurrent connections to the same peer | `bundle` |
//! | earlier and later connections to the same peer | `history`, `resume`, `capacity_tokens` |
//! | closing | `close`, `lifecycle`, `unreachable` |
//! | the application and the endpoint | `api`, `events` |
//! | observers and statistics | `telemetry` |
//! | packets that no honest peer sends, for tests | `craft` |

mod ack_frequency;
mod api;
mod bundle;
mod capacity_tokens;
mod close;
#[cfg(any(test, feature = "testing"))]
mod craft;
mod dispatch;
mod events;
mod fill;
mod handshake;
mod handshake_retransmission;
mod handshake_spaces;
mod history;
mod idle;
mod keys;
mod lifecycle;
mod migrate;
mod mtu_probes;
mod packet;
mod path_planner;
mod paths;
mod peer;
mod receive;
mod recover;
mod reinject;
mod resume;
mod stream_planner;
mod tail_duplication;
mod telemetry;
mod timers;
mod transmit;
mod unreachable;
mod version;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use marline_wire::params::{BundleMembership, PreferredAddress, TransportParameters};
use marline_wire::{ConnectionId, Side, Version, varint};

#[cfg(any(test, feature = "testing"))]
pub(crate) use craft::Held;
pub use events::{ConnectionError, EndpointEvent, EndpointFailure, Event, Unreachable};

use crate::ack::{MIN_ACK_DELAY, OwnRequest, PeerRequest};
use crate::announce::Announcements;
use crate::config::{
    ClientConfig, ConnectionInfo, EndpointConfig, MultipathConfig, ServerConfig, TransportConfig,
};
use crate::congestion::ConnectionKind;
use crate::crypto;
use crate::datagrams::Datagrams;
use crate::handshake::{
    ClientStart, ConnectError, Handshake, HandshakeIds, Progress, ServerStart, VersionState,
    Versions,
};
use crate::level::SpaceId;
use crate::limits::{MIN_DATAGRAM_SIZE, REMEMBERED_RTT, REMOTE_CIDS};
use crate::observe::events::{ConnectionStarted, ConnectionState, Initiator, ParametersSet};
use crate::observe::{self, Observer};
use crate::paths::{FirstPath, PathSet, Slot};
use crate::recovery::{InitialWindowChoice, Resolved};
use crate::rng::{ConnectionRng, SecureRng};
use crate::spaces::Space;
use crate::streams::{Streams, StreamsConfig};
use crate::time::Instant;
use crate::token::Token;
use crate::tuple::FourTuple;

use bundle::Coordination;
use capacity_tokens::CapacityTokens;
use events::PendingEvents;
use handshake_retransmission::HandshakeRetransmission;
use handshake_spaces::HandshakeSpaces;
use idle::Idle;
use keys::KeyRing;
use lifecycle::Lifecycle;
use mtu_probes::FirstMtuProbe;
use path_planner::PathPlanner;
use peer::Peer;
use receive::UndecryptablePacket;
use stream_planner::StreamPlanner;
use tail_duplication::TailDuplication;
use telemetry::Telemetry;
use version::Restart;

/// Our `ack_delay_exponent`: ACK frames state delays in units of 8 microseconds.
const ACK_DELAY_EXPONENT: u8 = 3;

/// A QUIC connection without I/O.
///
/// Methods come in three kinds. *Getters* take `&self`. *Inputs* ([`handle_datagram`], [`handle_timeout`]
/// and the calls of the application) change state and never block. *Polls* return outputs one at a time
/// until `None`: after any input, call [`poll_transmit`], then [`poll_event`] and
/// [`poll_endpoint_event`] until each returns `None`, then [`poll_timeout`] for the time of the next
/// [`handle_timeout`]. Every `now` must be at least as late as the one before.
///
/// [`handle_datagram`]: Self::handle_datagram
/// [`handle_timeout`]: Self::handle_timeout
/// [`poll_transmit`]: Self::poll_transmit
/// [`poll_event`]: Self::poll_event
/// [`poll_endpoint_event`]: Self::poll_endpoint_event
/// [`poll_timeout`]: Self::poll_timeout
pub struct Connection {
    side: Side,
    versions: VersionState,
    config: Arc<TransportConfig>,
    endpoint: Arc<EndpointConfig>,
    client: Option<Box<ClientSide>>,
    server: Option<Box<ServerSide>>,

    lifecycle: Lifecycle,
    handshake: Handshake,
    keys: KeyRing,
    handshake_spaces: HandshakeSpaces,
    paths: PathSet,
    /// Results of recovery; empty between calls.
    resolved: Resolved<Token>,
    /// Assigns stream data to paths; `None` with one path.
    path_planner: Option<Box<PathPlanner>>,
    streams: Streams,
    stream_planner: StreamPlanner,
    datagrams: Datagrams,
    announcements: Announcements,
    events: PendingEvents,
    rng: ConnectionRng,
    idle: Idle,
    peer: Peer,
    coordination: Coordination,
    telemetry: Telemetry,
    progress: Progress,
    ack_request: PeerRequest,
    own_ack_request: OwnRequest,
    /// Packets whose keys are not available yet (RFC 9001, section 5.7).
    undecryptable: Vec<UndecryptablePacket>,
    handshake_retransmission: HandshakeRetransmission,
    tail_duplication: TailDuplication,
    first_mtu_probe: FirstMtuProbe,
}

/// State of a client.
struct ClientSide {
    server_name: String,
    tokens: Arc<crate::address_tokens::AddressTokens>,
    /// Restart state until the server answers.
    restart: Option<Box<Restart>>,
}

/// State of a server.
struct ServerSide {
    config: Arc<ServerConfig>,
    /// Start of the connection, in seconds since the Unix epoch.
    unix_time_s: u64,
    capacity_tokens: CapacityTokens,
}

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
    pub(crate) capacity: Option<crypto::TokenCapacity>,
    pub(crate) local_cid: ConnectionId,
    pub(crate) unix_time_s: u64,
    pub(crate) rng: SecureRng,
}

/// Parameters that the constructors of both sides share.
struct Start {
    side: Side,
    versions: VersionState,
    transport: Arc<TransportConfig>,
    endpoint: Arc<EndpointConfig>,
    tuple: FourTuple,
    validated: bool,
    original_destination: ConnectionId,
    key_source: ConnectionId,
    local_cid: ConnectionId,
    remote_cid: ConnectionId,
    peer_handshake_cid: Option<ConnectionId>,
    retry_source: Option<ConnectionId>,
    /// Round-trip time of an earlier connection.
    known_rtt: Option<Duration>,
    params: TransportParameters,
    handshake: Handshake,
    rng: ConnectionRng,
    observer: Option<Box<dyn Observer>>,
}

impl Connection {
    pub(crate) fn connect(
        now: Instant,
        endpoint: Arc<EndpointConfig>,
        config: &ClientConfig,
        tuple: FourTuple,
        server_name: &str,
        rng: SecureRng,
    ) -> Result<Self, ConnectError> {
        let mut rng = ConnectionRng::new(rng);
        let local_cid = rng.connection_id(endpoint.connection_id_len);
        let original_destination = rng.connection_id(crate::limits::INITIAL_DESTINATION_LEN);
        let mut params = local_parameters(&config.transport, Side::Client, &endpoint, local_cid);
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
        let handshake = Handshake::client(&ClientStart {
            config: &config.tls,
            server_name,
            params: &params,
            version: format,
            may_change: VersionState::may_change(supported, version),
            resume: true,
        })?;
        let restart = Box::new(Restart {
            tls: config.tls.clone(),
            params: params.clone(),
        });
        let known_rtt = config.tokens.rtt(server_name, tuple.remote.port(), now);
        let known_rtt = known_rtt.filter(|_| config.transport.remember_rtt);
        let info = ConnectionInfo {
            side: Side::Client,
            original_destination,
            remote: tuple.remote,
        };
        let mut connection = Self::new(
            now,
            Start {
                side: Side::Client,
                versions: VersionState::new(Side::Client, supported, version),
                transport: Arc::clone(&config.transport),
                endpoint,
                tuple,
                validated: true,
                original_destination,
                key_source: original_destination,
                local_cid,
                remote_cid: original_destination,
                peer_handshake_cid: None,
                retry_source: None,
                known_rtt,
                params,
                handshake,
                rng,
                observer: config.observer.as_ref().and_then(|make| make(&info)),
            },
        );
        connection.report_offered_protocols(now, config.tls.alpn_protocols());
        let token = config.tokens.take(server_name, format).unwrap_or_default();
        connection.progress.set_initial_token(token);
        connection.client = Some(Box::new(ClientSide {
            server_name: server_name.to_owned(),
            tokens: Arc::clone(&config.tokens),
            restart: Some(restart),
        }));
        connection.set_membership(config.bundle);
        // Only remembered parameters of the server could be refused here, and those were checked.
        let _ = connection.drive_handshake(now);
        connection.expect_answer(now, known_rtt);
        connection.after_input(now);
        Ok(connection)
    }

    pub(crate) fn accept_from(
        now: Instant,
        endpoint: Arc<EndpointConfig>,
        config: &Arc<ServerConfig>,
        incoming: Incoming,
    ) -> Result<Self, rustls::Error> {
        let mut rng = ConnectionRng::new(incoming.rng);
        let local_cid = incoming.local_cid;
        let preferred = config.preferred_address.map(|address| {
            let connection_id = rng.connection_id(local_cid.len());
            let (ipv4, ipv6) = match address {
                std::net::SocketAddr::V4(address) => (Some(address), None),
                std::net::SocketAddr::V6(address) => (None, Some(address)),
            };
            PreferredAddress {
                ipv4,
                ipv6,
                connection_id,
                stateless_reset_token: endpoint.reset_key.token(&connection_id),
            }
        });
        let mut params = local_parameters(&config.transport, Side::Server, &endpoint, local_cid);
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
        let handshake = Handshake::server(ServerStart {
            config: &config.tls,
            params: params.clone(),
            version: incoming.version,
            preferred: config
                .preferred_version
                .filter(|version| config.versions.contains(*version)),
        })?;
        let known_rtt = incoming.capacity.map(|capacity| capacity.rtt);
        let known_rtt = known_rtt.filter(|_| config.transport.remember_rtt);
        let info = ConnectionInfo {
            side: Side::Server,
            original_destination: incoming.original_destination,
            remote: incoming.tuple.remote,
        };
        let mut connection = Self::new(
            now,
            Start {
                side: Side::Server,
                versions: VersionState::new(Side::Server, config.versions, version),
                transport: Arc::clone(&config.transport),
                endpoint,
                tuple: incoming.tuple,
                validated: incoming.validated,
                original_destination: incoming.original_destination,
                key_source: incoming.destination,
                local_cid,
                remote_cid: incoming.source,
                peer_handshake_cid: Some(incoming.source),
                retry_source: incoming.retry_source,
                known_rtt,
                params,
                handshake,
                rng,
                observer: config.observer.as_ref().and_then(|make| make(&info)),
            },
        );
        if let Some(preferred) = preferred {
            let id = preferred.connection_id;
            connection.paths[Slot::FIRST]
                .local_cids
                .issue_preferred(id, preferred.stateless_reset_token);
            connection
                .events
                .endpoint
                .push_back(EndpointEvent::Issued(id));
        }
        let careful = &config.transport.careful_resume;
        connection.server = Some(Box::new(ServerSide {
            config: Arc::clone(config),
            unix_time_s: incoming.unix_time_s,
            capacity_tokens: CapacityTokens::new(careful, incoming.capacity, incoming.unix_time_s),
        }));
        Ok(connection)
    }

    fn new(now: Instant, start: Start) -> Self {
        let Start {
            transport: config,
            mut rng,
            ..
        } = start;
        let max_datagram_size = MIN_DATAGRAM_SIZE.into();
        let kind = ConnectionKind {
            now,
            peer: start.tuple.remote,
            server_name: None,
            resumed: false,
            max_datagram_size,
        };
        let default = config.initial_window.window_before_handshake(&kind);
        let path = FirstPath {
            addresses: start.tuple,
            is_validated: start.validated,
            local_cid: start.local_cid,
            remote_cid: start.remote_cid,
            initial_window: InitialWindowChoice {
                bytes: default,
                default,
            },
            initial_rtt: start.known_rtt.map_or(config.initial_rtt, plausible_rtt),
        };
        let paths = PathSet::new(&config, path, &mut rng);
        let windows = config.receive_windows(start.side);
        let mut connection = Self {
            side: start.side,
            versions: start.versions,
            endpoint: start.endpoint,
            client: None,
            server: None,
            lifecycle: Lifecycle::new(),
            handshake: start.handshake,
            keys: KeyRing {
                initial: Some(Box::new(crypto::initial_keys(
                    start.versions.format(),
                    &start.key_source,
                    start.side,
                ))),
                initial_source: start.key_source,
                ..KeyRing::default()
            },
            handshake_spaces: HandshakeSpaces::new(),
            paths,
            resolved: Resolved::default(),
            path_planner: None,
            streams: Streams::new(StreamsConfig {
                side: start.side,
                receive_window: windows.all,
                stream_receive_window: windows.stream,
                max_receive_window: config.max_receive_window,
                max_stream_receive_window: config.max_stream_receive_window,
                max_remote_bidi: config.max_concurrent_bidi_streams,
                max_remote_uni: config.max_concurrent_uni_streams,
                send_buffer_limit: config.send_buffer,
            }),
            stream_planner: StreamPlanner::new((config.stream_scheduler)()),
            datagrams: Datagrams::new(config.datagram_receive_buffer, config.datagram_send_buffer),
            announcements: Announcements::default(),
            events: PendingEvents::default(),
            rng,
            idle: Idle::new(
                config.max_idle_timeout,
                config.keep_alive,
                config.response_ping.filter(|_| start.side.is_client()),
            ),
            peer: Peer::default(),
            coordination: Coordination::default(),
            telemetry: Telemetry::new(start.observer),
            progress: Progress::new(
                now,
                start.side,
                HandshakeIds {
                    original_destination: start.original_destination,
                    local: start.local_cid,
                    peer: start.peer_handshake_cid,
                    retry_source: start.retry_source,
                },
                start.tuple.remote,
                config.handshake_timeout,
            ),
            ack_request: PeerRequest::default(),
            own_ack_request: OwnRequest::default(),
            undecryptable: Vec::new(),
            handshake_retransmission: HandshakeRetransmission::default(),
            tail_duplication: TailDuplication::default(),
            first_mtu_probe: FirstMtuProbe::default(),
            config,
        };
        if connection.telemetry.observer.is_some() {
            connection.streams.log_states();
        }
        connection.report_start(now, &start.params, start.remote_cid);
        connection
    }

    fn report_start(
        &mut self,
        now: Instant,
        params: &TransportParameters,
        remote_cid: ConnectionId,
    ) {
        let addresses = self.paths.main().tuples.active.addresses;
        self.emit(
            now,
            &observe::Event::ConnectionStarted(ConnectionStarted {
                local: Some(addresses.local),
                remote: addresses.remote,
                local_cid: self.progress.local_cid(),
                remote_cid,
            }),
        );
        let initiator = Initiator::Local;
        let event = ParametersSet {
            initiator,
            tls_cipher: None,
            parameters: params,
        };
        self.emit(now, &observe::Event::ParametersSet(event));
        self.report_first_ids();
        self.report_versions(now);
        self.report_path(now, Slot::FIRST);
        self.report_recovery_parameters(now, Slot::FIRST);
        self.report_state(now, ConnectionState::Attempted);
    }

    /// Updates state that depends on any input; called at the end of each.
    fn after_input(&mut self, now: Instant) {
        if !self.lifecycle.is_open() {
            return;
        }
        self.settle_abandoned(now);
        self.open_siblings(now);
        self.issue_connection_ids();
        self.report_paths_available();
        self.report_reset_tokens();
        self.streams.set_rtt(self.paths.longest_rtt());
        self.refresh_ready();
        self.set_loss_timers(now);
        self.report_changes(now);
    }

    fn is_confirmed(&self) -> bool {
        self.progress.is_confirmed()
    }

    /// Whether the peer has validated our address, so that its amplification limit no longer applies (RFC 9002,
    /// appendix A.8).
    fn peer_completed_address_validation(&self) -> bool {
        self.side.is_server()
            || self.progress.is_confirmed()
            || self
                .handshake_spaces
                .get(SpaceId::Handshake)
                .is_some_and(|space| space.sent.largest_acked().is_some())
    }

    /// The longest probe timeout of all paths, without backoff.
    fn pto(&self) -> Duration {
        self.paths.longest_pto(self.peer.max_ack_delay)
    }

    /// The packet number spaces of a path.
    fn spaces(&self, at: Slot) -> impl Iterator<Item = (SpaceId, &Space<Token>)> {
        let data = (SpaceId::Data, &self.paths[at].space);
        self.handshake_spaces_of(at).chain(std::iter::once(data))
    }

    /// The packet number spaces of the handshake, which belong to the first path.
    fn handshake_spaces_of(&self, at: Slot) -> impl Iterator<Item = (SpaceId, &Space<Token>)> {
        let spaces = (at == Slot::FIRST).then_some(&self.handshake_spaces);
        spaces.into_iter().flat_map(HandshakeSpaces::iter)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("id", &self.progress.original_destination())
            .field("lifecycle", &self.lifecycle)
            .field("confirmed", &self.progress.is_confirmed())
            .finish_non_exhaustive()
    }
}

/// Limits a remembered round-trip time: if it is wrong, one more probe is sent, or a probe timeout takes a few seconds.
fn plausible_rtt(rtt: Duration) -> Duration {
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
