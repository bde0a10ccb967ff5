//! A connection, which calls the modules in order. It implements the rules that concern several modules: the order of
//! frames (`fill`), padding (`packet`, `transmit`), the idle
//! timeout (`idle`), closing and draining (`close`, `lifecycle`), what is reset when an address changes
//! (`migrate`).
//!
//! | part | file |
//! | --- | --- |
//! | receive path: datagram, packets, frames, modules | `receive`, `dispatch` |
//! | send path: datagrams, packets, frames | `transmit`, `fill`, `packet` |
//! | acknowledgments and losses, back to the modules that wrote the frames | `recover` |
//! | requests about acknowledgments | `ack_frequency` |
//! | time | `timers`, `idle` |
//! | steps of the handshake | `handshake` |
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
mod client_migration;
mod close;
#[cfg(any(test, feature = "testing"))]
mod craft;
mod dispatch;
mod events;
mod fill;
mod handshake;
mod history;
mod idle;
mod lifecycle;
mod migrate;
mod mtu_probes;
mod packet;
mod paths;
mod receive;
mod recover;
mod resume;
mod telemetry;
mod timers;
mod transmit;
mod unreachable;

#[cfg(test)]
mod tests;

use std::sync::Arc;
use std::time::Duration;

use marline_wire::params::TransportParameters;
use marline_wire::{ConnectionId, Side};

pub use client_migration::MigrationStart;
#[cfg(any(test, feature = "testing"))]
pub(crate) use craft::Held;
pub use events::{
    ConnectionError, EndpointEvent, EndpointFailure, Event, MigrateError, Unreachable,
};

use crate::ack::{OwnRequest, PeerRequest};
use crate::announce::Announcements;
use crate::config::{
    ClientConfig, ConnectionInfo, EndpointConfig, MakeObserver, ServerConfig, TransportConfig,
};
use crate::congestion::ConnectionKind;
use crate::datagrams::Datagrams;
use crate::establish::{Establishment, Incoming, Start};
use crate::handshake::ConnectError;
use crate::level::SpaceId;
use crate::limits::MIN_DATAGRAM_SIZE;
use crate::observe;
use crate::observe::events::{ConnectionStarted, ConnectionState, Initiator, ParametersSet};
use crate::paths::{FirstPath, PathSet, Slot};
use crate::recovery::{InitialWindowChoice, Resolved};
use crate::rng::{ConnectionRng, SecureRng};
use crate::sending::Sending;
use crate::spaces::Space;
use crate::streams::{Streams, StreamsConfig};
use crate::time::Instant;
use crate::token::Token;
use crate::tuple::FourTuple;

use bundle::Coordination;
use capacity_tokens::CapacityTokens;
use events::PendingEvents;
use idle::Idle;
use lifecycle::Lifecycle;
use mtu_probes::FirstMtuProbe;
use telemetry::Telemetry;

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
    config: Arc<TransportConfig>,
    endpoint: Arc<EndpointConfig>,
    server: Option<Box<ServerSide>>,

    lifecycle: Lifecycle,
    establishment: Establishment,
    paths: PathSet,
    /// Results of recovery; empty between calls.
    resolved: Resolved<Token>,
    streams: Streams,
    sending: Sending,
    datagrams: Datagrams,
    announcements: Announcements,
    events: PendingEvents,
    rng: ConnectionRng,
    idle: Idle,
    coordination: Coordination,
    telemetry: Telemetry,
    ack_request: PeerRequest,
    own_ack_request: OwnRequest,
    first_mtu_probe: FirstMtuProbe,
}

/// State of a server.
struct ServerSide {
    config: Arc<ServerConfig>,
    /// Start of the connection, in seconds since the Unix epoch.
    unix_time_s: u64,
    capacity_tokens: CapacityTokens,
}

impl Connection {
    pub(crate) fn connect(
        now: Instant,
        endpoint: Arc<EndpointConfig>,
        config: &ClientConfig,
        addresses: FourTuple,
        server_name: &str,
        rng: SecureRng,
    ) -> Result<Self, ConnectError> {
        let start = Start::client(now, &endpoint, config, addresses, server_name, rng)?;
        let transport = Arc::clone(&config.transport);
        let mut connection = Self::new(now, transport, endpoint, config.observer.as_ref(), start);
        connection
            .telemetry
            .report_offered_protocols(now, config.tls.alpn_protocols());
        connection.set_membership(config.bundle);
        // Only remembered parameters of the server could be refused here, and those were checked.
        let _ = connection.drive_handshake(now);
        connection.after_input(now);
        Ok(connection)
    }

    pub(crate) fn accept_from(
        now: Instant,
        endpoint: Arc<EndpointConfig>,
        config: &Arc<ServerConfig>,
        incoming: Incoming,
    ) -> Result<Self, rustls::Error> {
        let (capacity, unix_time_s) = (incoming.capacity, incoming.unix_time_s);
        let start = Start::server(now, &endpoint, config, incoming)?;
        let preferred = start.params.preferred_address;
        let transport = Arc::clone(&config.transport);
        let mut connection = Self::new(now, transport, endpoint, config.observer.as_ref(), start);
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
            unix_time_s,
            capacity_tokens: CapacityTokens::new(careful, capacity, unix_time_s),
        }));
        Ok(connection)
    }

    fn new(
        now: Instant,
        config: Arc<TransportConfig>,
        endpoint: Arc<EndpointConfig>,
        observer: Option<&MakeObserver>,
        start: Start,
    ) -> Self {
        let Start {
            side,
            establishment,
            mut rng,
            ..
        } = start;
        let info = ConnectionInfo {
            side,
            original_destination: establishment.progress().original_destination(),
            remote: start.addresses.remote,
        };
        let kind = ConnectionKind {
            now,
            peer: start.addresses.remote,
            server_name: None,
            resumed: false,
            max_datagram_size: MIN_DATAGRAM_SIZE.into(),
        };
        let default = config.initial_window.window_before_handshake(&kind);
        let path = FirstPath {
            addresses: start.addresses,
            is_validated: start.is_validated,
            local_cid: establishment.progress().local_cid(),
            remote_cid: start.remote_cid,
            initial_window: InitialWindowChoice {
                bytes: default,
                default,
            },
            initial_rtt: start.initial_rtt,
        };
        let paths = PathSet::new(&config, path, &mut rng);
        let windows = config.receive_windows(side);
        let mut connection = Self {
            side,
            endpoint,
            server: None,
            lifecycle: Lifecycle::new(),
            establishment,
            paths,
            resolved: Resolved::default(),
            streams: Streams::new(StreamsConfig {
                side,
                receive_window: windows.all,
                stream_receive_window: windows.stream,
                max_receive_window: config.max_receive_window,
                max_stream_receive_window: config.max_stream_receive_window,
                max_remote_bidi: config.max_concurrent_bidi_streams,
                max_remote_uni: config.max_concurrent_uni_streams,
                send_buffer_limit: config.send_buffer,
            }),
            sending: Sending::new((config.stream_scheduler)()),
            datagrams: Datagrams::new(config.datagram_receive_buffer, config.datagram_send_buffer),
            announcements: Announcements::default(),
            events: PendingEvents::default(),
            rng,
            idle: Idle::new(
                config.max_idle_timeout,
                config.keep_alive,
                config.response_ping.filter(|_| side.is_client()),
            ),
            coordination: Coordination::default(),
            telemetry: Telemetry::new(side, observer.and_then(|make| make(&info))),
            ack_request: PeerRequest::default(),
            own_ack_request: OwnRequest::default(),
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
        self.telemetry.emit(
            now,
            &observe::Event::ConnectionStarted(ConnectionStarted {
                local: Some(addresses.local),
                remote: addresses.remote,
                local_cid: self.establishment.progress().local_cid(),
                remote_cid,
            }),
        );
        let initiator = Initiator::Local;
        let event = ParametersSet {
            initiator,
            tls_cipher: None,
            parameters: params,
        };
        self.telemetry
            .emit(now, &observe::Event::ParametersSet(event));
        self.telemetry
            .report_first_ids(self.paths.main(), self.establishment.progress().local_cid());
        self.telemetry
            .report_versions(now, self.establishment.versions());
        self.telemetry.report_path(now, &self.paths[Slot::FIRST]);
        self.telemetry
            .report_recovery_parameters(now, &self.paths[Slot::FIRST]);
        self.telemetry.report_state(now, ConnectionState::Attempted);
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
        self.sending.refresh(&mut self.streams);
        self.set_loss_timers(now);
        self.telemetry
            .report_changes(now, &mut self.streams, &self.paths);
    }

    fn is_confirmed(&self) -> bool {
        self.establishment.progress().is_confirmed()
    }

    /// The longest probe timeout of all paths, without backoff.
    fn pto(&self) -> Duration {
        self.paths
            .longest_pto(self.establishment.peer().max_ack_delay)
    }

    /// The packet number spaces of a path.
    fn spaces(&self, at: Slot) -> impl Iterator<Item = (SpaceId, &Space<Token>)> {
        let data = (SpaceId::Data, &self.paths[at].space);
        self.handshake_spaces_of(at).chain(std::iter::once(data))
    }

    /// The packet number spaces of the handshake, which belong to the first path.
    fn handshake_spaces_of(&self, at: Slot) -> impl Iterator<Item = (SpaceId, &Space<Token>)> {
        let establishment = (at == Slot::FIRST).then_some(&self.establishment);
        establishment.into_iter().flat_map(Establishment::spaces)
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("side", &self.side)
            .field("id", &self.establishment.progress().original_destination())
            .field("lifecycle", &self.lifecycle)
            .field("confirmed", &self.establishment.progress().is_confirmed())
            .finish_non_exhaustive()
    }
}
