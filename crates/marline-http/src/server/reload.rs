//! Replacing the configuration of a running server.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use marline::settings::rows;
use marline::{QuicLbError, Sha256, TransportConfig};
use tokio::sync::oneshot;

use super::current::Current;
use super::quic::Resumption;
use super::stop::Stop;
use super::{
    Context, ServeError, ServerConfig, ServerLimits, Sessions, SharedKeys, StateDirectory, quic,
    tcp, tickets,
};

/// Stops a running server, or replaces its configuration. Cheap to clone.
#[derive(Clone)]
pub struct Handle {
    pub(super) stop: Stop,
    pub(super) hurry: Stop,
    pub(super) context: Weak<Context>,
}

impl std::fmt::Debug for Handle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Handle").finish_non_exhaustive()
    }
}

/// The connections that are open at a time, and their requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OpenConnections {
    connections: usize,
    requests: usize,
}

impl fmt::Display for OpenConnections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            connections,
            requests,
        } = self;
        write!(f, "open connections: {connections}, requests: {requests}")
    }
}

impl Context {
    pub(super) fn open(&self) -> OpenConnections {
        OpenConnections {
            connections: self.metrics.connections.count(),
            requests: self.metrics.open_records(),
        }
    }
}

impl Handle {
    /// Accepts no new connections, and lets requests in progress finish within [`ServerLimits::shutdown_grace`].
    pub fn shut_down(&self) {
        self.stop.stop();
    }

    /// Shuts down and closes connections at once, also after [`shut_down`](Self::shut_down).
    pub fn hurry(&self) {
        self.hurry.stop();
        self.stop.stop();
    }

    /// The connections that are open, and their requests.
    pub fn open(&self) -> OpenConnections {
        let context = self.context.upgrade();
        context.map_or_else(OpenConnections::default, |context| context.open())
    }

    /// The time that requests have to finish after [`shut_down`](Self::shut_down).
    pub fn shutdown_grace(&self) -> Duration {
        let context = self.context.upgrade();
        let grace = context.map(|context| context.current.get().limits.shutdown_grace);
        grace.unwrap_or_default()
    }

    /// Completes once the runtime of every worker has run a task. One that is blocked keeps it waiting.
    pub async fn workers_run(&self) {
        let Some(runtimes) = self
            .context
            .upgrade()
            .map(|context| context.runtimes.clone())
        else {
            return;
        };
        let tasks = runtimes.iter().map(|runtime| {
            let (sender, ran) = oneshot::channel();
            runtime.shared().spawn(Box::pin(async move {
                // Nobody waits any more.
                let _ = sender.send(());
            }));
            ran
        });
        // All are under way before the first is awaited.
        for ran in tasks.collect::<Vec<_>>() {
            // A runtime that has ended has no tasks.
            let _ = ran.await;
        }
    }

    /// Replaces certificate, rules about certificates of clients, site, access log, trusted proxies, limits except `max_connections`, and settings of QUIC. Open connections
    /// stay: their next requests go to the new site and the new log; certificate, limits and settings of QUIC are those of
    /// new connections. By a new [`quic_lb`](ServerConfig::quic_lb), all connections get new connection IDs. Sockets, workers, the
    /// settings of the endpoint and the state directory, shared keys, `metrics`, `more_metrics` and `runtime` stay as they are.
    ///
    /// # Errors
    /// The configuration cannot be used; nothing has changed.
    pub fn reload(&self, config: ServerConfig) -> Result<(), ServeError> {
        let Some(context) = self.context.upgrade() else {
            return Ok(());
        };
        let tls = match context.current.get().tls {
            Some(_) => Some(tcp::Tls::new(
                &config,
                context.protocols,
                tickets(context.state.as_ref(), context.shared.as_ref()).as_ref(),
            )?),
            None => None,
        };
        let counting = context.metrics.observers(&config.quic.transport);
        let mut settings = Vec::new();
        for kept in &context.endpoints {
            let resumption = kept.resumption(&context, &config)?;
            let runtime = &context.runtime;
            settings.push(quic::server_config(
                &config,
                runtime,
                counting.clone(),
                &resumption,
                &context.logs.budget,
            )?);
        }
        let is_moved = match (&context.quic_lb, &config.quic_lb) {
            (None, None) => false,
            (Some(present), Some(next)) => present.check(next).map_err(not_replaced)?,
            _ => {
                let text = "[quic_lb]: only a restart switches it on or off";
                return Err(ServeError::Quic(text.to_owned()));
            }
        };
        // A server that stops refuses new connections.
        if self.stop.is_stopping() {
            return Ok(());
        }
        for (kept, settings) in context.endpoints.iter().zip(settings) {
            for endpoint in &kept.endpoints {
                endpoint.set_server_config(Some(settings.clone()));
            }
        }
        if let (true, Some(present), Some(next)) = (is_moved, &context.quic_lb, config.quic_lb) {
            present.replace(next).map_err(not_replaced)?;
            for endpoint in context.quic_endpoints() {
                endpoint.renew_connection_ids();
            }
        }
        context.logs.set_limits(&config.limits);
        context.metrics.show_log(config.access_log.as_ref());
        context.metrics.show_sites(&config.site_names);
        context.current.replace(Current {
            site: config.site,
            log: config.access_log,
            limits: config.limits,
            trusted: config.trusted,
            transport: config.quic.transport,
            client_rules: config.client_rules,
            tls,
        });
        Ok(())
    }
}

fn not_replaced(error: QuicLbError) -> ServeError {
    ServeError::Quic(format!("[quic_lb]: {error}"))
}

/// The endpoints of an address, and the sessions that their clients may resume.
pub(super) struct QuicEndpoint {
    /// By worker. They stay open until all have ended: the kernel numbers the sockets that are open.
    pub(super) endpoints: Vec<marline::Endpoint>,
    sessions: KeptSessions,
}

/// The sessions of the endpoint at an address, if they are kept in a state directory.
pub(super) struct KeptSessions {
    address: SocketAddr,
    open: Mutex<Option<OpenSessions>>,
}

struct OpenSessions {
    settings: [u8; 32],
    sessions: Arc<Sessions>,
}

impl QuicEndpoint {
    pub(super) fn new(endpoints: Vec<marline::Endpoint>, sessions: KeptSessions) -> Self {
        Self {
            endpoints,
            sessions,
        }
    }

    fn resumption(
        &self,
        context: &Context,
        config: &ServerConfig,
    ) -> Result<Resumption, ServeError> {
        let (state, shared) = (context.state.as_deref(), context.shared.as_deref());
        self.sessions.of(state, shared, config, false)
    }

    /// One of its endpoints, if it is that of `address`.
    #[cfg(target_os = "linux")]
    pub(super) fn at(&self, address: SocketAddr) -> Option<&marline::Endpoint> {
        let first = self.endpoints.first();
        first.filter(|endpoint| endpoint.local_addr() == address)
    }

    /// The sessions that clients may resume now, if they are kept.
    #[cfg(target_os = "linux")]
    pub(super) fn open_sessions(&self) -> Option<Arc<Sessions>> {
        let open = self.sessions.open.lock();
        let open = open.unwrap_or_else(PoisonError::into_inner);
        open.as_ref().map(|open| Arc::clone(&open.sessions))
    }
}

impl KeptSessions {
    pub(super) fn new(address: SocketAddr) -> Self {
        Self {
            address,
            open: Mutex::new(None),
        }
    }

    /// How clients resume sessions under a configuration: the present ones, if the settings that they remember still apply. New
    /// ones may be in use by another process.
    pub(super) fn of(
        &self,
        state: Option<&StateDirectory>,
        shared: Option<&SharedKeys>,
        config: &ServerConfig,
        are_in_use: bool,
    ) -> Result<Resumption, ServeError> {
        if let Some(shared) = shared {
            return Ok(Resumption::Tickets(shared.tickets()));
        }
        let Some(state) = state else {
            return Ok(Resumption::InMemory);
        };
        let settings = remembered_settings(config);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = &*open
            && open.settings == settings
        {
            return Ok(Resumption::Kept(Arc::clone(&open.sessions)));
        }
        let sessions = state.sessions(self.address, &settings, are_in_use)?;
        *open = Some(OpenSessions {
            settings,
            sessions: Arc::clone(&sessions),
        });
        Ok(Resumption::Kept(sessions))
    }
}

/// A hash of everything that clients may remember for 0-RTT: transport parameters (RFC 9000, section 7.4.1) and settings
/// of HTTP/3 (RFC 9114, section 7.2.4.2). Both follow from the configuration and from the version.
fn remembered_settings(config: &ServerConfig) -> [u8; 32] {
    let mut hash = Sha256::new();
    hash.update(env!("CARGO_PKG_VERSION").as_bytes());
    let transport = rows(TransportConfig::SETTINGS, "", &config.quic.transport);
    let limits = rows(ServerLimits::SETTINGS, "", &config.limits);
    // Whether extended CONNECT is accepted.
    hash.update(&[u8::from(config.protocols.has_tunnels_over_http3())]);
    for row in transport.iter().chain(&limits) {
        hash.update(format!("\n{}={:?}", row.key, row.default).as_bytes());
    }
    hash.finish()
}
