//! The configuration of QUIC and the UDP sockets of a server.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use marline::proto::WORKER_ID_LEN;
use marline::runtime::reuse_port;
use marline::{
    EndpointConfig, MakeObserver, QuicLb, TicketKey, TlsServerConfig, Worker, hmac_sha256,
};

use super::tls::settings;
use super::workers::Workers;
use super::{ClientCertificates, ServeError, ServerConfig, Sessions};
use crate::log::Level;
use crate::log::messages::{self, Subject};
use crate::runtime::RuntimeHandle;
use crate::tls::crypto_provider;
use crate::transport::{QlogBudget, both, observer};

/// How clients resume their sessions.
pub(super) enum Resumption {
    /// The sessions are in memory.
    InMemory,
    /// They are in a file as well.
    Kept(Arc<Sessions>),
    /// They are in tickets, which any server with the key accepts, and thus more than once: without 0-RTT, which an attacker
    /// could replay to each of the servers.
    Tickets(Arc<TicketKey>),
}

/// An address to listen on.
pub(super) struct Listener {
    /// Its number in the configuration.
    pub(super) number: usize,
    pub(super) address: SocketAddr,
    /// Whether its sockets are read from the beginning.
    pub(super) receives: bool,
}

/// The configuration of a server's connections; `counting` observes them in addition to the observers of `config`. Its logs
/// share `budget`.
pub(super) fn server_config(
    config: &ServerConfig,
    runtime: &RuntimeHandle,
    counting: Option<MakeObserver>,
    resumption: &Resumption,
    budget: &Arc<QlogBudget>,
) -> Result<marline::ServerConfig, ServeError> {
    let quic = &config.quic;
    let tls = |rules| tls_config(config, resumption, rules);
    let rules = config.client_rules.clone();
    let mut plain = tls(None)?;
    let asking = rules.all().into_iter();
    let asking = asking.map(|rules| Ok((rules.clone(), tls(Some(rules))?)));
    let asking = asking.collect::<Result<Vec<_>, ServeError>>()?;
    if !asking.is_empty() {
        plain = plain.choose_by_name(move |name| {
            let wanted = rules.of(name)?;
            let found = asking.iter().find(|(rules, _)| rules == wanted);
            found.map(|(_, tls)| tls.clone())
        });
    }
    let mut server = marline::ServerConfig::new(plain);
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

/// TLS of QUIC, which asks for certificates of clients by `rules`.
fn tls_config(
    config: &ServerConfig,
    resumption: &Resumption,
    rules: Option<&ClientCertificates>,
) -> Result<TlsServerConfig, ServeError> {
    let quic = &config.quic;
    let provider = crypto_provider(quic.chacha20_only);
    let versions = [&rustls::version::TLS13];
    let mut tls = settings(config, provider, &[b"h3"], &versions, rules)?;
    // QUIC allows all early data or none (RFC 9001 section 4.6.1).
    tls.max_early_data_size = if quic.zero_rtt { u32::MAX } else { 0 };
    if let Some(log) = &quic.key_log {
        tls.key_log = log.log();
    }
    match resumption {
        Resumption::InMemory => {}
        Resumption::Kept(sessions) => tls.session_storage = Arc::clone(sessions) as _,
        Resumption::Tickets(key) => {
            tls.ticketer = Arc::clone(key) as _;
            tls.max_early_data_size = 0;
        }
    }
    if let Some(rules) = rules {
        rules.bind_sessions(&mut tls);
    }
    TlsServerConfig::new(Arc::new(tls)).map_err(|e| ServeError::Quic(e.to_string()))
}

/// Opens the UDP sockets of a server, one for each worker, unless they are `given`.
pub(super) fn server_endpoints(
    config: &ServerConfig,
    server: &marline::ServerConfig,
    listener: &Listener,
    given: Vec<UdpSocket>,
    workers: &Workers,
    quic_lb: Option<&Arc<QuicLb>>,
) -> Result<Vec<marline::Endpoint>, ServeError> {
    let &Listener {
        number,
        address,
        receives,
    } = listener;
    let runtime = workers.all()[0].runtime().shared();
    let mut settings = match config.endpoint.clone() {
        Some(settings) => settings,
        None => EndpointConfig::from_seed(runtime.seed().map_err(ServeError::Runtime)?),
    };
    // Endpoints of one server must not choose the same connection IDs.
    if config.endpoint.is_some() && address != config.listen {
        let purpose = address.to_string();
        settings.rng_seed = hmac_sha256(&settings.rng_seed, purpose.as_bytes());
    }
    settings.quic_lb = quic_lb.cloned();
    if let Some(state) = &config.state {
        state.set_keys(&mut settings, address);
    } else if let Some(secret) = &config.secret {
        // As with a directory, another key of resets for each address.
        let secret = hmac_sha256(secret, address.to_string().as_bytes());
        let keys = EndpointConfig::from_seed(secret);
        settings = EndpointConfig {
            reset_key: keys.reset_key,
            token_key: keys.token_key,
            worker_key: keys.worker_key,
            ..settings
        };
    }
    if let Some(shared) = &config.shared {
        shared.set_keys(&mut settings, number);
    }
    let len = settings.id_len();
    if workers.count() > 1 && len < WORKER_ID_LEN {
        return Err(ServeError::Quic(format!(
            "connection IDs of {len} bytes cannot carry the number of a worker; set endpoint.connection_id_len to {WORKER_ID_LEN} or more, or workers to 1"
        )));
    }
    let failed = |cause| ServeError::Listen {
        protocol: "UDP",
        address,
        cause,
    };
    if given.is_empty() && receives && workers.count() == 1 {
        let socket = runtime.bind(address).map_err(failed)?;
        let runtime = Arc::clone(runtime);
        let endpoint = marline::Endpoint::new(settings, Some(server.clone()), socket, runtime);
        return Ok(vec![endpoint.map_err(failed)?]);
    }
    let sockets = match given.is_empty() {
        true => reuse_port::bind(address, workers.count()).map_err(failed)?,
        false => share_given(given, address, workers.count()),
    };
    if config.steering {
        steer(&sockets, &settings);
    }
    let members = workers.all().iter().zip(sockets).map(|(worker, socket)| {
        let runtime = Arc::clone(worker.runtime().shared());
        let socket = runtime.wrap(socket)?;
        Ok(Worker {
            socket,
            runtime,
            receives,
        })
    });
    let members = members.collect::<io::Result<_>>();
    members
        .and_then(|members| marline::Endpoint::workers(&settings, server, members))
        .map_err(failed)
}

/// Binds sockets beside the given ones, so that each worker has one, if the system allows it.
fn share_given(mut given: Vec<UdpSocket>, address: SocketAddr, workers: usize) -> Vec<UdpSocket> {
    let count = given.len();
    if count < workers
        && let Err(error) = reuse_port::share(&mut given, workers)
    {
        given.truncate(count);
        let text = format!(
            "HTTP/3 at {address} has {count} of {workers} workers: no other socket can be bound beside the one that was given ({error})"
        );
        messages::emit(Level::Warning, Subject::Server, &text);
    }
    given
}

/// Has the kernel select the worker of a datagram.
fn steer(sockets: &[UdpSocket], settings: &EndpointConfig) {
    let count = u8::try_from(sockets.len()).unwrap_or(u8::MAX);
    let (key, field) = (&settings.worker_key, settings.worker_field());
    if count > 1
        && let Err(error) = reuse_port::steer(&sockets[0], key, field, count)
    {
        let text = format!(
            "the kernel does not select the worker of a datagram ({error}): workers pass on those of clients whose port changes"
        );
        messages::emit(Level::Warning, Subject::Server, &text);
    }
}
