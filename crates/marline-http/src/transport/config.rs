//! Settings of QUIC, and marline's configurations made from them.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use marline::{
    EndpointConfig, MakeObserver, RetryPolicy, TlsClientConfig, TlsServerConfig, TransportConfig,
    Version, Versions, both_observers, hmac_sha256,
};

use super::key_log::KeyLogFile;
use super::qlog::{self, Budget, QlogLimits};
use crate::client::ClientConfig;
use crate::runtime::RuntimeHandle;
use crate::server::{IdentityError, ServeError, ServerConfig, Sessions, crypto_provider};

/// Settings of QUIC.
#[derive(Clone, Debug)]
pub struct QuicOptions {
    /// The configuration of connections.
    pub transport: Arc<TransportConfig>,
    /// The policy for validating client addresses with Retry.
    pub retry: RetryPolicy,
    /// Whether safe requests may be sent and answered before the handshake is complete.
    pub zero_rtt: bool,
    /// Whether ChaCha20-Poly1305 is the only cipher.
    pub chacha20_only: bool,
    /// The versions of QUIC that connections may have.
    pub versions: Versions,
    /// The preferred version if the other end supports it: a client begins with it, a server changes to it. `None` is
    /// version 1 for a client, and the version of each client for a server.
    pub preferred_version: Option<Version>,
    /// Observers of the connections, in addition to logs.
    pub observers: Option<Observers>,
    /// The key log for the secrets of connections, including those over TCP: for debugging only, because its readers
    /// can decrypt them.
    pub key_log: Option<KeyLogFile>,
}

/// Makes an observer for each connection.
#[derive(Clone)]
pub struct Observers(pub MakeObserver);

impl fmt::Debug for Observers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Observers")
    }
}

impl Default for QuicOptions {
    fn default() -> Self {
        Self {
            transport: Arc::default(),
            retry: RetryPolicy::default(),
            zero_rtt: true,
            chacha20_only: false,
            versions: Versions::default(),
            preferred_version: None,
            observers: None,
            key_log: None,
        }
    }
}

/// The configuration of a server's connections; `counting` observes them in addition to the observers of `config`, and
/// `sessions` are those that clients may resume; without it, they are in memory. Its logs share `budget`.
pub(crate) fn server_config(
    config: &ServerConfig,
    runtime: &RuntimeHandle,
    counting: Option<MakeObserver>,
    sessions: Option<Arc<Sessions>>,
    budget: &Arc<Budget>,
) -> Result<marline::ServerConfig, ServeError> {
    let quic = &config.quic;
    let provider = crypto_provider(quic.chacha20_only);
    let identity = config.identity.as_ref().ok_or(IdentityError::Missing)?;
    let mut tls = identity.config(provider, &[b"h3"], &[&rustls::version::TLS13])?;
    // QUIC allows all early data or none (RFC 9001 section 4.6.1).
    tls.max_early_data_size = if quic.zero_rtt { u32::MAX } else { 0 };
    if let Some(log) = &quic.key_log {
        tls.key_log = log.log();
    }
    if let Some(sessions) = sessions {
        tls.session_storage = sessions;
    }
    let tls = TlsServerConfig::new(Arc::new(tls)).map_err(|e| ServeError::Quic(e.to_string()))?;
    let mut server = marline::ServerConfig::new(tls);
    server.transport = Arc::clone(&quic.transport);
    server.retry = quic.retry;
    server.versions = quic.versions;
    server.preferred_version = quic.preferred_version;
    server.max_connections = config.limits.max_connections;
    server.observer = both(
        observer(
            config.qlog.as_ref(),
            budget,
            quic.observers.as_ref(),
            runtime,
        ),
        counting,
    );
    Ok(server)
}

/// Opens the UDP socket of a server.
pub(crate) fn server_endpoint(
    config: &ServerConfig,
    server: marline::ServerConfig,
    address: SocketAddr,
    runtime: &RuntimeHandle,
) -> Result<marline::Endpoint, ServeError> {
    let mut settings = config.endpoint.clone();
    if let Some(settings) = &mut settings {
        // Endpoints of one server must not choose the same connection IDs.
        if address.ip() != config.listen.ip() {
            let purpose = address.to_string();
            settings.rng_seed = hmac_sha256(&settings.rng_seed, purpose.as_bytes());
        }
    }
    if let Some(state) = &config.state {
        let seed = || runtime.shared().seed().map_err(ServeError::Runtime);
        let settings = match &mut settings {
            Some(settings) => settings,
            None => settings.insert(EndpointConfig::from_seed(seed()?)),
        };
        state.set_keys(settings, address);
    }
    endpoint(settings, Some(server), address, runtime).map_err(|cause| ServeError::Listen {
        protocol: "UDP",
        address,
        cause,
    })
}

/// The configuration of a client's connections.
pub(crate) fn client_config(
    config: &ClientConfig,
    tls: rustls::ClientConfig,
    runtime: &RuntimeHandle,
) -> Result<marline::ClientConfig, String> {
    let tls = TlsClientConfig::new(Arc::new(tls)).map_err(|error| error.to_string())?;
    let mut client = marline::ClientConfig::new(tls);
    client.transport = Arc::clone(&config.quic.transport);
    client.versions = config.quic.versions;
    if let Some(version) = config.quic.preferred_version {
        client.version = version.number();
        client.versions = client.versions.with_first(version);
    }
    client.observer = observer(
        config.qlog.as_ref(),
        &Budget::new(QlogLimits::default()),
        config.quic.observers.as_ref(),
        runtime,
    );
    Ok(client)
}

/// An endpoint with a socket at `address`; without `settings`, its keys are random.
pub(crate) fn endpoint(
    settings: Option<EndpointConfig>,
    server: Option<marline::ServerConfig>,
    address: SocketAddr,
    runtime: &RuntimeHandle,
) -> io::Result<marline::Endpoint> {
    let runtime = Arc::clone(runtime.shared());
    let socket = runtime.bind(address)?;
    let config = match settings {
        Some(settings) => settings,
        None => EndpointConfig::from_seed(runtime.seed()?),
    };
    marline::Endpoint::new(config, server, socket, runtime)
}

fn observer(
    qlog: Option<&PathBuf>,
    budget: &Arc<Budget>,
    watching: Option<&Observers>,
    runtime: &RuntimeHandle,
) -> Option<MakeObserver> {
    let watching = watching.map(|observers| Arc::clone(&observers.0));
    both(logging(qlog, budget, runtime.shared()), watching)
}

/// The given observers, and qlog files in a directory with the clock of `runtime`, if one is given.
pub fn observed(
    watching: Option<MakeObserver>,
    qlog: Option<&PathBuf>,
    runtime: &Arc<dyn marline::Runtime>,
) -> Option<MakeObserver> {
    let budget = Budget::new(QlogLimits::default());
    both(logging(qlog, &budget, runtime), watching)
}

fn logging(
    qlog: Option<&PathBuf>,
    budget: &Arc<Budget>,
    runtime: &Arc<dyn marline::Runtime>,
) -> Option<MakeObserver> {
    qlog.map(|directory| {
        qlog::observer_on(Arc::clone(runtime), directory.clone(), Arc::clone(budget))
    })
}

/// Observers that pass events to both `one` and `other`.
pub(crate) fn both(one: Option<MakeObserver>, other: Option<MakeObserver>) -> Option<MakeObserver> {
    match (one, other) {
        (Some(one), Some(other)) => Some(both_observers(one, other)),
        (one, other) => one.or(other),
    }
}
