//! The configuration of a server.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use marline::settings::{Domain, Field, Settings};
use marline::{EndpointConfig, QuicLbConfig, Runtime};

use super::{
    AccessLog, Challenges, ClientRules, Identity, MetricsSource, NamedIdentity, SharedKeys, Site,
    SiteName, StateDirectory, TrustedProxies,
};
use crate::tcp::TcpSockets;
use crate::{TlsVersion, limits, transport};

/// A server's settings. Start from [`ServerConfig::new`].
#[derive(Debug)]
pub struct ServerConfig {
    /// The address to listen on, for both TCP and UDP. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// Further addresses to listen on.
    pub also_listen: Vec<AlsoListen>,
    /// The certificate for clients that ask for no name, or for one that none of
    /// [`named_identities`](Self::named_identities) has; by default the first of these. Not needed
    /// [without encryption](Self::cleartext).
    pub identity: Option<Identity>,
    /// The certificates of the names of its sites.
    pub named_identities: Vec<NamedIdentity>,
    /// The certificates that clients are asked for; by default none.
    pub client_rules: ClientRules,
    /// The challenges of certificate authorities that are answered over TLS.
    pub challenges: Challenges,
    /// The service that answers requests.
    pub site: Site,
    /// The names by which its responses say of which site they are, each with metrics of its own.
    pub site_names: Vec<SiteName>,
    /// The enabled versions of HTTP.
    pub protocols: Protocols,
    /// The minimum version of TLS over TCP. QUIC has TLS 1.3 in any case.
    pub tls_min: TlsVersion,
    /// Limits on the resources that clients can use.
    pub limits: ServerLimits,
    /// The proxies that are trusted about the addresses of clients; by default none.
    pub trusted: TrustedProxies,
    /// Whether connections over TCP may use Multipath TCP (RFC 8684), if the kernel supports it.
    pub multipath_tcp: bool,
    /// The factory of TCP listening sockets; by default [`SystemSockets`](crate::tcp::SystemSockets).
    pub tcp_sockets: Option<Arc<dyn TcpSockets>>,
    /// The settings of QUIC.
    pub quic: transport::QuicOptions,
    /// Settings of the QUIC endpoint; `None` for the defaults, with random keys.
    pub endpoint: Option<EndpointConfig>,
    /// The connection IDs of a server behind a load balancer that reads the server from them; the length of the IDs is theirs.
    pub quic_lb: Option<QuicLbConfig>,
    /// The directory of keys and sessions that survive restarts. Its keys replace those of `endpoint`.
    pub state: Option<Arc<StateDirectory>>,
    /// The keys that it has in common with other servers behind its address. They replace those of `state`, and there is no
    /// 0-RTT with them.
    pub shared: Option<Arc<SharedKeys>>,
    /// The secret of which these keys are made without a directory; random by default.
    pub secret: Option<[u8; 32]>,
    /// The log of requests.
    pub access_log: Option<AccessLog>,
    /// The address on which metrics are served as `/metrics`, over cleartext HTTP, and pages about health and connections.
    pub metrics: Option<SocketAddr>,
    /// Further addresses for metrics, with the same port. Those that this host does not have are skipped.
    pub also_metrics: Vec<IpAddr>,
    /// Metrics in addition to those of the server.
    pub more_metrics: Vec<Arc<dyn MetricsSource>>,
    /// A directory for qlog files, one per QUIC connection.
    pub qlog: Option<PathBuf>,
    /// The threads that serve connections, 1 to 255, each with its sockets and its own runtime of tokio. With one, the caller's
    /// runtime serves them. The kernel distributes connections over several; on systems other than Linux there is one.
    pub workers: usize,
    /// Whether the kernel is asked to deliver datagrams at the worker that has their connection, with several workers. If it
    /// is not, or refuses, workers pass them on to each other.
    pub steering: bool,
    /// The runtime; by default, the tokio runtime in which the server is bound. TCP and metrics need tokio in
    /// any case.
    pub runtime: Option<Arc<dyn Runtime>>,
}

/// A further address to listen on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AlsoListen {
    /// An address with the port of the first; skipped if this host does not have it.
    IfPresent(IpAddr),
    /// An address with a port of its own.
    At(SocketAddr),
    /// The same, skipped if this host does not have it.
    AtIfPresent(SocketAddr),
}

/// The versions of HTTP that a server supports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocols {
    /// HTTP/1.1 over TLS.
    pub http1: bool,
    /// HTTP/2 over TLS.
    pub http2: bool,
    /// HTTP/3.
    pub http3: bool,
    /// HTTP/1.1 without TLS on the same TCP port, for laboratories; with no version over TLS, also HTTP/2, for clients of this
    /// machine.
    pub cleartext: bool,
    /// Whether the site is asked for tunnels: CONNECT, extended CONNECT (RFC 8441, RFC 9220), and the Upgrade of HTTP/1.1 to
    /// WebSocket as such. It accepts with a response that has the extension [`Tunnel`](super::Tunnel).
    /// Requests of extended CONNECT over HTTP/3 have the extension [`Datagrams`](crate::http3::Datagrams).
    pub tunnels: bool,
    /// Whether the site is asked for tunnels over HTTP/3, also without [`tunnels`](Self::tunnels).
    pub http3_tunnels: bool,
}

impl Protocols {
    /// Whether the site is asked for tunnels over HTTP/3.
    pub(super) fn has_tunnels_over_http3(self) -> bool {
        self.tunnels || self.http3_tunnels
    }
}

impl Default for Protocols {
    /// All encrypted versions.
    fn default() -> Self {
        Self {
            http1: true,
            http2: true,
            http3: true,
            cleartext: false,
            tunnels: false,
            http3_tunnels: false,
        }
    }
}

/// Limits on the resources that clients can use. [`limits`] has the reasons of the defaults.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServerLimits {
    /// Connections open at once, over all versions.
    pub max_connections: usize,
    /// Connections over TCP from one address, or of one IPv6 /64. Beyond that, the longest idle one is closed, or the new one
    /// refused.
    pub max_tcp_connections_per_address: usize,
    /// Connections over TCP from one network: /24 of IPv4, /48 of IPv6.
    pub max_tcp_connections_per_prefix: usize,
    /// Files that responses hold open at once, each counted once; fewer if the system allows fewer. Requests for more are answered
    /// with 503, first those of clients that hold the most. One of n networks is entitled to one part in n + 1: for that, responses
    /// of those that hold more have to end.
    pub max_open_files: usize,
    /// Bytes held between two sides: of files that were read and not yet received by clients, and of content on its way through a
    /// proxy. When they are used up, responses wait, first those of clients that use the most. One of n networks is entitled to one
    /// part in n + 1, as of the files.
    pub max_buffered_bytes: u64,
    /// Time that a response may wait for these. Then it is answered with 503, or reset if it has begun.
    pub buffer_timeout: Duration,
    /// Requests under way on one connection of HTTP/2. Those of HTTP/3 are streams, which
    /// [`TransportConfig`](marline::TransportConfig) limits.
    pub max_concurrent_requests: u32,
    /// Bytes of one request's header section: 8 KiB to [`limits::LARGEST_HEADER_BYTES`].
    pub max_header_bytes: u32,
    /// Fields of one request's header section.
    pub max_header_fields: usize,
    /// Time for a TLS handshake over TCP. That of QUIC is [`TransportConfig`](marline::TransportConfig)'s.
    pub handshake_timeout: Duration,
    /// Time for the header section of a request to arrive once it began.
    pub header_timeout: Duration,
    /// Time in which a connection over TCP, a response, and the content of a request may move less than
    /// [`min_progress_bytes`](Self::min_progress_bytes).
    pub idle_timeout: Duration,
    /// Bytes that these have to move within [`idle_timeout`](Self::idle_timeout), so that single bytes keep nothing alive. 0 and 1
    /// allow single bytes.
    pub min_progress_bytes: u64,
    /// Time for requests in progress to finish after a shutdown began.
    pub shutdown_grace: Duration,
    /// Time for requests in progress to finish after another process has taken over (on Linux, [`upgrade`](super::upgrade())).
    pub upgrade_grace: Duration,
    /// Limits of qlog files.
    pub qlog: transport::QlogLimits,
}

impl Default for ServerLimits {
    fn default() -> Self {
        Self {
            max_connections: limits::MAX_CONNECTIONS,
            max_tcp_connections_per_address: limits::MAX_TCP_CONNECTIONS_PER_ADDRESS,
            max_tcp_connections_per_prefix: limits::MAX_TCP_CONNECTIONS_PER_PREFIX,
            max_open_files: limits::MAX_OPEN_FILES,
            max_buffered_bytes: limits::MAX_BUFFERED_BYTES,
            buffer_timeout: limits::BUFFER_TIMEOUT,
            max_concurrent_requests: limits::MAX_CONCURRENT_REQUESTS,
            max_header_bytes: limits::MAX_HEADER_BYTES,
            max_header_fields: limits::MAX_HEADER_FIELDS,
            handshake_timeout: limits::HANDSHAKE_TIMEOUT,
            header_timeout: limits::HEADER_TIMEOUT,
            idle_timeout: limits::IDLE_TIMEOUT,
            min_progress_bytes: limits::MIN_PROGRESS_BYTES,
            shutdown_grace: limits::SHUTDOWN_GRACE,
            upgrade_grace: limits::UPGRADE_GRACE,
            qlog: transport::QlogLimits::default(),
        }
    }
}

/// Times for which a server waits for a client: at most a day.
const WAIT: Domain = Domain::time(Duration::from_millis(1), Duration::from_secs(24 * 3600));

impl ServerLimits {
    /// Its keys in settings.
    pub const SETTINGS: Settings<Self> = &[
        &Field::new(
            "max_connections",
            Domain::integer(1, 1_000_000),
            "Connections open at once, over all versions; more are refused",
            |c: &mut Self| &mut c.max_connections,
        ),
        &Field::new(
            "max_tcp_connections_per_address",
            Domain::integer(1, 1_000_000),
            "Connections over TCP from one address, or of one IPv6 /64; more replace idle ones, or are refused",
            |c: &mut Self| &mut c.max_tcp_connections_per_address,
        ),
        &Field::new(
            "max_tcp_connections_per_prefix",
            Domain::integer(1, 1_000_000),
            "Connections over TCP from one network, /24 of IPv4 or /48 of IPv6; more replace idle ones, or are refused",
            |c: &mut Self| &mut c.max_tcp_connections_per_prefix,
        ),
        &Field::new(
            "max_open_files",
            Domain::integer(1, 1_000_000),
            "Files that responses hold open at once, each counted once; a client may hold as many as are left",
            |c: &mut Self| &mut c.max_open_files,
        ),
        &Field::new(
            "max_buffered_bytes",
            Domain::bytes(1 << 20, 1 << 40),
            "Bytes of files that were read and that clients have not received, and of content on its way through a proxy; a client may hold as many as are left",
            |c: &mut Self| &mut c.max_buffered_bytes,
        ),
        &Field::new(
            "buffer_timeout",
            WAIT,
            "How long a response may wait for max_buffered_bytes; then it is answered with 503, or reset if it has begun",
            |c: &mut Self| &mut c.buffer_timeout,
        ),
        &Field::new(
            "max_concurrent_requests",
            Domain::integer(1, 100_000),
            "Requests under way on one connection of HTTP/2; of HTTP/3: max_concurrent_bidi_streams",
            |c: &mut Self| &mut c.max_concurrent_requests,
        ),
        &Field::new(
            "max_header_bytes",
            // HTTP/1.1 requires this size for its buffer.
            Domain::bytes(8192, limits::LARGEST_HEADER_BYTES),
            "Size of a request's header section; one that is larger is 431",
            |c: &mut Self| &mut c.max_header_bytes,
        ),
        &Field::new(
            "max_header_fields",
            Domain::integer(32, 4096),
            "Fields of a request's header section; one that has more is 431",
            |c: &mut Self| &mut c.max_header_fields,
        ),
        &Field::new(
            "handshake_timeout",
            WAIT,
            "How long a TLS handshake over TCP may take",
            |c: &mut Self| &mut c.handshake_timeout,
        ),
        &Field::new(
            "header_timeout",
            WAIT,
            "How long the header section of a request may take once it began",
            |c: &mut Self| &mut c.header_timeout,
        ),
        &Field::new(
            "idle_timeout",
            WAIT,
            "How long a connection over TCP, a response, and the content of a request may move less than min_progress_bytes",
            |c: &mut Self| &mut c.idle_timeout,
        ),
        &Field::new(
            "min_progress_bytes",
            Domain::bytes(0, 1 << 30),
            "Bytes that a connection over TCP, a response, and the content of a request move in each idle_timeout at least; the content that is slower is answered with 408",
            |c: &mut Self| &mut c.min_progress_bytes,
        ),
        &Field::new(
            "shutdown_grace",
            WAIT,
            "How long requests under way have to finish after a shutdown began",
            |c: &mut Self| &mut c.shutdown_grace,
        ),
        &Field::new(
            "upgrade_grace",
            WAIT,
            "How long requests under way have to finish after another process has taken over (SIGUSR2)",
            |c: &mut Self| &mut c.upgrade_grace,
        ),
        &Field::new(
            "qlog_open_files",
            Domain::integer(1, 100_000),
            "qlog files open at once; further connections have none",
            |c: &mut Self| &mut c.qlog.open_files,
        ),
        &Field::new(
            "qlog_files",
            Domain::integer(1, 1_000_000_000),
            "qlog files that are created; further connections have none",
            |c: &mut Self| &mut c.qlog.files,
        ),
        &Field::new(
            "qlog_bytes",
            Domain::bytes(1 << 20, 1 << 40),
            "Size of all qlog files; the rest is not logged",
            |c: &mut Self| &mut c.qlog.bytes,
        ),
    ];
}

impl ServerConfig {
    /// Serves `site` at `listen`, with the default settings. Without an identity, it needs
    /// [named ones](Self::named_identities).
    pub fn new(listen: SocketAddr, identity: impl Into<Option<Identity>>, site: Site) -> Self {
        Self {
            listen,
            also_listen: Vec::new(),
            identity: identity.into(),
            named_identities: Vec::new(),
            client_rules: ClientRules::default(),
            challenges: Challenges::default(),
            site,
            site_names: Vec::new(),
            protocols: Protocols::default(),
            tls_min: TlsVersion::default(),
            limits: ServerLimits::default(),
            trusted: TrustedProxies::default(),
            multipath_tcp: true,
            tcp_sockets: None,
            quic: transport::QuicOptions::default(),
            endpoint: None,
            quic_lb: None,
            state: None,
            shared: None,
            secret: None,
            access_log: None,
            metrics: None,
            also_metrics: Vec::new(),
            more_metrics: Vec::new(),
            qlog: None,
            workers: 1,
            steering: true,
            runtime: None,
        }
    }

    /// Serves `site` at `listen` without encryption, over HTTP/1.1 and HTTP/2 with prior knowledge: for clients of this machine.
    pub fn cleartext(listen: SocketAddr, site: Site) -> Self {
        Self {
            protocols: Protocols {
                http1: false,
                http2: false,
                http3: false,
                cleartext: true,
                tunnels: true,
                http3_tunnels: false,
            },
            multipath_tcp: false,
            ..Self::new(listen, None, site)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_key() {
        let ServerLimits {
            max_connections: _,
            max_tcp_connections_per_address: _,
            max_tcp_connections_per_prefix: _,
            max_open_files: _,
            max_buffered_bytes: _,
            buffer_timeout: _,
            max_concurrent_requests: _,
            max_header_bytes: _,
            max_header_fields: _,
            handshake_timeout: _,
            header_timeout: _,
            idle_timeout: _,
            min_progress_bytes: _,
            shutdown_grace: _,
            upgrade_grace: _,
            qlog: _,
        } = ServerLimits::default();
        for setting in ServerLimits::SETTINGS {
            for sample in setting.samples() {
                let mut limits = ServerLimits::default();
                assert_eq!(setting.set(&mut limits, &sample), Ok(()));
                assert!(setting.show(&limits).is_some());
            }
        }
        assert_eq!(ServerLimits::SETTINGS.len(), 18);
    }
}
