//! Settings of QUIC, and what endpoints and observers are made of.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use marline::{
    EndpointConfig, MakeObserver, RetryPolicy, TransportConfig, Version, Versions, both_observers,
};

use super::key_log::KeyLogFile;
use super::qlog::{self, Budget, QlogLimits};
use crate::runtime::RuntimeHandle;

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

/// The observers of `watching`, and qlog files in the directory `qlog` that share `budget`.
pub(crate) fn observer(
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
