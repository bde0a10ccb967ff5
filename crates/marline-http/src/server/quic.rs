//! The configuration of QUIC and the UDP sockets of a server.

use std::net::SocketAddr;
use std::sync::Arc;

use marline::{EndpointConfig, MakeObserver, TlsServerConfig, hmac_sha256};

use super::tls::settings;
use super::{ServeError, ServerConfig, Sessions};
use crate::runtime::RuntimeHandle;
use crate::tls::crypto_provider;
use crate::transport::{QlogBudget, both, endpoint, observer};

/// The configuration of a server's connections; `counting` observes them in addition to the observers of `config`, and
/// `sessions` are those that clients may resume; without it, they are in memory. Its logs share `budget`.
pub(super) fn server_config(
    config: &ServerConfig,
    runtime: &RuntimeHandle,
    counting: Option<MakeObserver>,
    sessions: Option<Arc<Sessions>>,
    budget: &Arc<QlogBudget>,
) -> Result<marline::ServerConfig, ServeError> {
    let quic = &config.quic;
    let provider = crypto_provider(quic.chacha20_only);
    let mut tls = settings(config, provider, &[b"h3"], &[&rustls::version::TLS13])?;
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
pub(super) fn server_endpoint(
    config: &ServerConfig,
    server: marline::ServerConfig,
    address: SocketAddr,
    runtime: &RuntimeHandle,
) -> Result<marline::Endpoint, ServeError> {
    let mut settings = config.endpoint.clone();
    if let Some(settings) = &mut settings {
        // Endpoints of one server must not choose the same connection IDs.
        if address != config.listen {
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
