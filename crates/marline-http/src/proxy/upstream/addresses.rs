//! The addresses of an application: one, or all of its name, which is resolved again and again.

use std::io;
use std::net::SocketAddr;
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
        self.replace(lookup_host(name).await?.collect())
    }

    /// The name has these addresses now.
    ///
    /// # Errors
    /// There is none.
    fn replace(&self, mut found: Vec<SocketAddr>) -> io::Result<()> {
        // `localhost` and many hosts have addresses of both families; applications listen at IPv4 more often.
        found.sort_by_key(SocketAddr::is_ipv6);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proxy::tls::Secured;

    #[tokio::test]
    async fn addresses_of_a_name_take_turns_and_one_that_failed_is_the_last() {
        let (ipv4, ipv6) = ("127.0.0.1:80".parse().unwrap(), "[::1]:80".parse().unwrap());
        let addresses = of_name(vec![ipv6, ipv4]);
        for first in [ipv4, ipv6, ipv4, ipv6] {
            assert_eq!(
                *addresses.in_turn().await.unwrap()[0].address(),
                Address::Ip(first)
            );
        }
        let failed = addresses.in_turn().await.unwrap().swap_remove(0);
        assert_eq!(*failed.address(), Address::Ip(ipv4));
        failed.on_failure(Duration::from_secs(60));
        for _ in 0..4 {
            let in_turn = addresses.in_turn().await.unwrap();
            assert_eq!(*in_turn[0].address(), Address::Ip(ipv6));
            assert_eq!(*in_turn[1].address(), Address::Ip(ipv4));
        }
    }

    #[tokio::test]
    async fn addresses_that_a_name_keeps_keep_what_is_known_of_them() {
        let addresses = of_name(vec!["127.0.0.1:80".parse().unwrap()]);
        addresses.in_turn().await.unwrap()[0].on_failure(Duration::from_secs(60));
        assert!(addresses.have_failed());
        let found = ["127.0.0.2:80", "127.0.0.1:80"].map(|address| address.parse().unwrap());
        addresses.replace(found.to_vec()).unwrap();
        assert!(!addresses.have_failed());
        let failed = addresses.in_turn().await.unwrap().into_iter();
        assert_eq!(failed.filter(|endpoint| endpoint.has_failed()).count(), 1);
        assert!(addresses.replace(Vec::new()).is_err());
    }

    /// The application of a name that has these addresses.
    fn of_name(found: Vec<SocketAddr>) -> Arc<Addresses> {
        let (url, config) = (
            "http://application.test".parse().unwrap(),
            ProxyConfig::default(),
        );
        let secured = Secured {
            tcp: None,
            http3: None,
        };
        let dialer = Dialer::new(&url, &config, &secured).unwrap();
        let addresses = Addresses::new(&url, &config, dialer);
        addresses.replace(found).unwrap();
        Arc::new(addresses)
    }
}
