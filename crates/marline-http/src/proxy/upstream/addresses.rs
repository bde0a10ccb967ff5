//! The addresses of an application: one, or all of its name, which is resolved again and again.

use std::io;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::net::lookup_host;
use tokio::sync::Mutex as Turns;
use tokio::time::Instant;

use super::dial::{Address, Dialer};
use super::endpoint::Endpoint;
use crate::limits;
use crate::proxy::config::ProxyConfig;
use crate::proxy::url::UpstreamUrl;

/// The addresses of one application, which take turns.
pub(super) struct Addresses {
    /// Host and port, if the host is a name.
    name: Option<String>,
    dialer: Arc<Dialer>,
    keep_alive: Duration,
    max_idle: usize,
    interval: Duration,
    state: Mutex<State>,
    /// Held while the name is resolved.
    resolving: Turns<()>,
    turn: AtomicUsize,
}

#[derive(Default)]
struct State {
    endpoints: Vec<Arc<Endpoint>>,
    /// The time when the name has to be resolved again; none before the first.
    due: Option<Instant>,
}

impl Addresses {
    pub(super) fn new(url: &UpstreamUrl, config: &ProxyConfig, dialer: Dialer) -> Self {
        let host = url.host();
        let address = match (url.socket(), host.map(|host| host.as_str().parse())) {
            (Some(path), _) => Some(Address::Unix(path.to_owned())),
            (_, Some(Ok(address))) => Some(Address::Ip(address)),
            _ => None,
        };
        let mut addresses = Self {
            name: host.map(ToString::to_string).filter(|_| address.is_none()),
            dialer: Arc::new(dialer),
            keep_alive: config.keep_alive,
            max_idle: config.max_idle_connections,
            interval: config.resolve_interval,
            state: Mutex::default(),
            resolving: Turns::default(),
            turn: AtomicUsize::new(0),
        };
        let endpoint = address.map(|address| addresses.endpoint(address));
        addresses
            .state
            .get_mut()
            .unwrap_or_else(PoisonError::into_inner)
            .endpoints
            .extend(endpoint);
        addresses
    }

    fn endpoint(&self, address: Address) -> Arc<Endpoint> {
        let dialer = Arc::clone(&self.dialer);
        Arc::new(Endpoint::new(
            address,
            dialer,
            self.keep_alive,
            self.max_idle,
        ))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The addresses in the order in which they are tried: each is the first in turn, and those that could not be reached are the last.
    ///
    /// # Errors
    /// The name does not resolve, and never did.
    pub(super) async fn in_turn(self: &Arc<Self>) -> io::Result<Vec<Arc<Endpoint>>> {
        if let Some(name) = &self.name {
            self.refresh(name).await?;
        }
        let mut endpoints = self.state().endpoints.clone();
        if endpoints.len() > 1 {
            let turn = self.turn.fetch_add(1, Relaxed) % endpoints.len();
            endpoints.rotate_left(turn);
            endpoints.sort_by_key(|endpoint| endpoint.has_failed());
        }
        Ok(endpoints)
    }

    /// Whether none could be reached a short time ago.
    pub(super) fn have_failed(&self) -> bool {
        let state = self.state();
        state.endpoints.iter().all(|endpoint| endpoint.has_failed())
    }

    /// None could be reached: they may be outdated.
    pub(super) fn on_failure(&self) {
        let mut state = self.state();
        let soon = Instant::now() + limits::LEAST_RESOLVE_INTERVAL;
        state.due = state.due.map(|due| due.min(soon));
    }

    /// Resolves the name if it has to be: before its result is used for the first time, and later while the last result is used.
    async fn refresh(self: &Arc<Self>, name: &str) -> io::Result<()> {
        let is_first = {
            let mut state = self.state();
            match state.due {
                None => true,
                Some(due) if due > Instant::now() => return Ok(()),
                Some(_) => {
                    // One request has it resolved.
                    state.due = Some(Instant::now() + self.interval);
                    false
                }
            }
        };
        if is_first {
            let _resolving = self.resolving.lock().await;
            if self.state().due.is_none() {
                self.resolve(name).await?;
            }
            return Ok(());
        }
        let (addresses, name) = (Arc::clone(self), name.to_owned());
        tokio::spawn(async move {
            // The last result is used on if there is no other.
            let _ = addresses.resolve(&name).await;
        });
        Ok(())
    }

    async fn resolve(&self, name: &str) -> io::Result<()> {
        let mut found: Vec<_> = lookup_host(name).await?.collect();
        // `localhost` and many hosts have addresses of both families; applications listen at IPv4 more often.
        found.sort_by_key(std::net::SocketAddr::is_ipv6);
        found.dedup();
        found.truncate(limits::MAX_UPSTREAM_ADDRESSES);
        if found.is_empty() {
            return Err(io::Error::new(
                io::ErrorKind::NotFound,
                "the name has no address",
            ));
        }
        let mut state = self.state();
        let found = found.into_iter().map(Address::Ip);
        // Connections to addresses that it still has are kept.
        state.endpoints = found
            .map(|address| {
                let mut known = state.endpoints.iter();
                match known.find(|one| *one.address() == address) {
                    Some(known) => Arc::clone(known),
                    None => self.endpoint(address),
                }
            })
            .collect();
        state.due = Some(Instant::now() + self.interval);
        Ok(())
    }
}
