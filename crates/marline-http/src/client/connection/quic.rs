//! Connections over QUIC: HTTP/3.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use marline::{
    ManagedConnectError, PathManager, PathPolicy, PathRule, PathSource, TlsClientConfig,
};
use marline_h3::{ErrorCode, Side};
use rustls::client::danger::ServerCertVerifier;

use super::bundles::Bundles;
use super::paths::PathLog;
use super::{Connection, Opened, Sender};
use crate::body::BoxError;
use crate::client::refusals::{Recording, Refusals};
use crate::client::stall::Activity;
use crate::client::target::Origin;
use crate::client::{CertificateProblem, ClientConfig, ClientError, HttpVersion, Local};
use crate::http3::{self, Begun};
use crate::runtime::RuntimeHandle;
use crate::transport::{self, QlogBudget, QlogLimits};

/// The time to wait for a socket that does not accept CONNECTION_CLOSE.
const CLOSE_TIMEOUT: Duration = Duration::from_millis(500);

const NO_ERROR: u64 = ErrorCode::NO_ERROR.value();

/// Opens QUIC connections. Those of one address family share a socket, unless each has its own.
pub(in crate::client) struct QuicClient {
    config: marline::ClientConfig,
    /// The settings of TLS inside `config`, which other protocols share.
    tls: Box<rustls::ClientConfig>,
    runtime: RuntimeHandle,
    stall_timeout: Option<Duration>,
    /// Identifies bundles, if connections belong to one.
    bundles: Option<Bundles>,
    /// Manages paths, if the configuration has path rules.
    manager: Option<PathManager>,
    /// Migrates connections with one path, if the configuration says so.
    follower: Option<PathManager>,
    own_sockets: bool,
    max_header_bytes: u32,
    max_header_fields: usize,
    datagrams: bool,
    local: Option<Local>,
    endpoints: Mutex<Endpoints>,
    refusals: Arc<Refusals>,
}

/// The sockets.
#[derive(Default)]
struct Endpoints {
    /// The endpoints that connections share: of IPv4, and of IPv6.
    shared: [Option<marline::Endpoint>; 2],
    /// The endpoints of one connection each.
    own: Vec<marline::Endpoint>,
}

impl QuicClient {
    pub(in crate::client) fn new(
        config: &ClientConfig,
        verifier: Arc<dyn ServerCertVerifier>,
        runtime: RuntimeHandle,
    ) -> Result<Self, ClientError> {
        let refusals = Arc::<Refusals>::default();
        let verifier = Arc::new(Recording {
            verifier,
            refusals: Arc::clone(&refusals),
        });
        let mut tls = config.tls(&[&rustls::version::TLS13], verifier)?;
        tls.enable_early_data = config.quic.zero_rtt;
        let manager = config.paths.clone().map(|paths| {
            PathManager::new(PathPolicy {
                close_code: NO_ERROR,
                ..paths
            })
        });
        Ok(Self {
            config: quic_config(config, tls.clone(), &runtime).map_err(ClientError::Quic)?,
            tls: Box::new(tls),
            runtime,
            stall_timeout: config.stall_timeout,
            bundles: config.bundle.then(Bundles::default),
            follower: follower(config, manager.as_ref()),
            manager,
            own_sockets: config.own_sockets,
            max_header_bytes: config.max_header_bytes,
            max_header_fields: config.max_header_fields,
            datagrams: config.datagrams,
            local: config.network.local.clone(),
            endpoints: Mutex::default(),
            refusals,
        })
    }

    /// Opens a connection to `remote` for another protocol than HTTP/3.
    pub(in crate::client) async fn connect_for(
        &self,
        protocol: &[u8],
        origin: &Origin,
        remote: SocketAddr,
    ) -> Result<marline::Connection, ClientError> {
        let mut tls = rustls::ClientConfig::clone(&self.tls);
        tls.alpn_protocols = vec![protocol.to_vec()];
        let tls = TlsClientConfig::new(Arc::new(tls))
            .map_err(|error| ClientError::Quic(error.to_string()))?;
        let config = marline::ClientConfig {
            tls,
            ..self.config.clone()
        };
        let endpoint = self.endpoint(remote)?;
        match &self.manager {
            None => endpoint
                .connect_with(config, remote, &origin.host)
                .map_err(|error| unreachable(origin, remote, error))?
                .await
                .map_err(|error| self.explain(origin, remote, error)),
            Some(manager) => manager
                .connect(&endpoint, &config, remote, &origin.host)
                .await
                .map_err(|error| self.explain_managed(origin, remote, error)),
        }
    }

    /// The configuration of its connections.
    pub(in crate::client) fn config(&self) -> marline::ClientConfig {
        self.config.clone()
    }

    /// The path manager, if there is one.
    pub(in crate::client) fn path_manager(&self) -> Option<&PathManager> {
        self.manager.as_ref()
    }

    /// The endpoint that connections to `remote` share.
    pub(in crate::client) fn endpoint(
        &self,
        remote: SocketAddr,
    ) -> Result<marline::Endpoint, ClientError> {
        let shared = &mut self.endpoints().shared[usize::from(remote.is_ipv6())];
        if let Some(endpoint) = shared {
            return Ok(endpoint.clone());
        }
        Ok(shared.insert(self.new_endpoint(remote)?).clone())
    }

    /// Keeps the endpoint of one connection, which would end with the endpoint; those of connections that have ended are closed.
    fn keep(&self, endpoint: marline::Endpoint) {
        let own = &mut self.endpoints().own;
        own.retain(|endpoint| endpoint.open_connections() > 0);
        own.push(endpoint);
    }

    fn new_endpoint(&self, remote: SocketAddr) -> Result<marline::Endpoint, ClientError> {
        let unspecified = match remote {
            SocketAddr::V4(_) => IpAddr::from(Ipv4Addr::UNSPECIFIED),
            SocketAddr::V6(_) => IpAddr::from(Ipv6Addr::UNSPECIFIED),
        };
        let address = match &self.local {
            None => Ok(unspecified),
            Some(local) => local.address(remote, &self.runtime),
        };
        let endpoint = address.and_then(|address| {
            transport::endpoint(None, None, SocketAddr::new(address, 0), &self.runtime)
        });
        if let (Ok(endpoint), Some(follower)) = (&endpoint, &self.follower) {
            follower.follow(endpoint);
        }
        endpoint.map_err(|cause| match &self.local {
            None => ClientError::Quic(cause.to_string()),
            Some(local) => ClientError::Local {
                local: local.to_string(),
                cause,
            },
        })
    }

    fn endpoints(&self) -> MutexGuard<'_, Endpoints> {
        self.endpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
    }

    pub(in crate::client) async fn connect(
        &self,
        id: u64,
        origin: &Origin,
        remote: SocketAddr,
        connections: usize,
    ) -> Result<Connection, ClientError> {
        let endpoint = match self.own_sockets {
            true => self.new_endpoint(remote)?,
            false => self.endpoint(remote)?,
        };
        let mut config = self.config.clone();
        if let Some(bundles) = &self.bundles {
            config.bundle = Some(bundles.membership(origin, connections, &self.runtime)?);
        }
        let quic = match &self.manager {
            None => self.open(&endpoint, config, origin, remote).await?,
            Some(manager) => manager
                .connect(&endpoint, &config, remote, &origin.host)
                .await
                .map_err(|error| self.explain_managed(origin, remote, error))?,
        };
        Ok(self.begin(id, endpoint, quic))
    }

    /// How long a request waits for the handshake of `connection` to be confirmed before another connection from
    /// another of the client's addresses may take its place; `None` if none may: responses arrive even if the confirmation is
    /// lost.
    pub(in crate::client) fn confirmation_wait(&self, connection: &Connection) -> Option<Duration> {
        let manager = self
            .manager
            .as_ref()
            .filter(|_| !connection.has_responded())?;
        manager.confirmation_wait(connection.quic()?)
    }

    /// Connects from another address instead of `unconfirmed`, unless its handshake is confirmed before.
    pub(in crate::client) async fn connect_instead_of(
        &self,
        id: u64,
        unconfirmed: &Connection,
        origin: &Origin,
    ) -> Result<Option<Connection>, ClientError> {
        let (Some(manager), Some(quic)) = (&self.manager, unconfirmed.quic()) else {
            return Ok(None);
        };
        let remote = unconfirmed.remote;
        let endpoint = match self.own_sockets {
            true => self.new_endpoint(remote)?,
            false => self.endpoint(remote)?,
        };
        let other = manager
            .connect_instead_of(quic, &endpoint, &self.config, &origin.host)
            .await
            .map_err(|error| self.explain_managed(origin, remote, error))?;
        let other = other.filter(|_| !unconfirmed.has_responded());
        Ok(other.map(|other| {
            unconfirmed.close();
            self.begin(id, endpoint, other)
        }))
    }

    /// HTTP/3 over `quic`, a connection of `endpoint`.
    fn begin(&self, id: u64, endpoint: marline::Endpoint, quic: marline::Connection) -> Connection {
        if self.own_sockets {
            self.keep(endpoint);
        }
        let remote = quic.remote_address();
        let extensions = http3::Extensions {
            connect_protocol: false,
            datagrams: self.datagrams,
        };
        let transport = &self.config.transport;
        let http3 = http3::config(self.max_header_bytes, extensions, &quic, transport);
        let Begun { session, driver } = Begun::on(quic.clone(), Side::Client, &http3);
        self.runtime.spawn(driver.run());
        let paths = match self.config.transport.multipath {
            Some(_) => PathLog::of(&quic, &self.runtime),
            None => PathLog::default(),
        };
        let opened = Opened {
            activity: Activity::new(self.runtime.clone(), self.stall_timeout),
            transport: Duration::ZERO,
            local: quic.local_address(),
            sender: Sender::Http3 {
                session,
                quic,
                paths,
            },
            remote,
            certificates: Vec::new(),
            multipath: None,
            proxy: None,
            max_header_fields: self.max_header_fields,
        };
        Connection::new(id, HttpVersion::Http3, opened)
    }

    /// Closes the connections, and waits until CONNECTION_CLOSE is sent on each.
    pub(in crate::client) async fn close(&self) {
        let Endpoints { shared, own } = std::mem::take(&mut *self.endpoints());
        let endpoints: Vec<_> = shared.into_iter().flatten().chain(own).collect();
        for endpoint in &endpoints {
            endpoint.close(NO_ERROR, b"");
        }
        let sent = join_all(endpoints.iter().map(marline::Endpoint::wait_close_sent));
        // A peer that misses the CONNECTION_CLOSE ends by its idle timeout.
        let _ = self.runtime.timeout(CLOSE_TIMEOUT, sent).await;
    }

    /// Opens a connection from the address that the system chooses. Requests may be sent before the handshake
    /// ends.
    async fn open(
        &self,
        endpoint: &marline::Endpoint,
        config: marline::ClientConfig,
        origin: &Origin,
        remote: SocketAddr,
    ) -> Result<marline::Connection, ClientError> {
        let connecting = endpoint
            .connect_with(config, remote, &origin.host)
            .map_err(|error| unreachable(origin, remote, error))?;
        match connecting.into_0rtt() {
            Ok(quic) => Ok(quic),
            Err(connecting) => connecting
                .await
                .map_err(|error| self.explain(origin, remote, error)),
        }
    }

    fn explain_managed(
        &self,
        origin: &Origin,
        address: SocketAddr,
        error: ManagedConnectError,
    ) -> ClientError {
        match error {
            ManagedConnectError::Lost(error) => self.explain(origin, address, error),
            ManagedConnectError::NoAddress(_) => ClientError::NoPath {
                host: origin.host.clone(),
                address,
            },
            error => unreachable(origin, address, error),
        }
    }

    fn explain(
        &self,
        origin: &Origin,
        address: SocketAddr,
        error: marline::ConnectionError,
    ) -> ClientError {
        let host = origin.host.clone();
        match transport::classify(&error) {
            transport::HandshakeFailure::Certificate => ClientError::Certificate {
                problem: self
                    .refusals
                    .latest(&host)
                    .unwrap_or(CertificateProblem::Invalid),
                host,
                cause: error.into(),
            },
            transport::HandshakeFailure::Protocol => ClientError::WrongProtocol {
                host,
                wanted: HttpVersion::Http3.name(),
                cause: error.into(),
            },
            transport::HandshakeFailure::Network => unreachable(origin, address, error),
        }
    }
}

fn unreachable(origin: &Origin, address: SocketAddr, cause: impl Into<BoxError>) -> ClientError {
    ClientError::Connect {
        host: origin.host.clone(),
        address,
        cause: cause.into(),
    }
}

/// The manager that migrates the connections of a client whose paths are managed by `manager`.
fn follower(config: &ClientConfig, manager: Option<&PathManager>) -> Option<PathManager> {
    if !config.migrate {
        return None;
    }
    let rules = match (&config.network.local, manager) {
        (None, Some(manager)) => return Some(manager.clone()),
        (None, None) => Vec::new(),
        (Some(Local::Interface(name)), _) => {
            vec![PathRule::new(PathSource::Interface(name.clone()))]
        }
        (Some(Local::Address(_)), _) => return None,
    };
    Some(PathManager::new(PathPolicy {
        rules,
        ..PathPolicy::default()
    }))
}

/// The configuration of a client's connections.
fn quic_config(
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
    client.observer = transport::observer(
        config.qlog.as_ref(),
        &QlogBudget::new(QlogLimits::default()),
        config.quic.observers.as_ref(),
        runtime,
    );
    Ok(client)
}
