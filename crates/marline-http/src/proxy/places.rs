//! Places of requests, which the networks of clients share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use marline::Prefix;

use super::content::Guard;
use crate::limits;
use crate::runtime::RuntimeHandle;
use crate::server::{Account, Budget, Grant, Stopped};

/// Places of requests at one server behind a proxy.
///
/// A network of clients may have as many as are left free, and of n networks each is entitled to one part in n + 1: if
/// it waits for that, requests of the network that has the most are ended, the oldest first.
pub(super) struct Places {
    free: Budget,
    /// The requests that wait for a place.
    waiting: Budget,
    requests: AtomicU64,
    /// The account for requests without a network.
    all: Prefix,
}

/// The holders of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Tenants {
    /// The networks of clients.
    Networks,
    /// Trusted proxies, which share all places.
    Anyone,
}

/// The place of one request.
pub(super) struct Place {
    _grant: Grant,
    account: Account,
}

impl Place {
    /// Completes when the request has to end for others.
    pub(super) fn evicted(&self) -> Stopped {
        self.account.evicted()
    }
}

impl Guard for Place {
    fn evicted(&self) -> Option<Stopped> {
        Some(self.evicted())
    }
}

/// No place became free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoPlace;

impl Places {
    /// `places` for `tenants`.
    pub(super) fn new(places: usize, tenants: Tenants) -> Self {
        // A single network gets half of the places.
        let units = match tenants {
            Tenants::Networks => places as u64,
            Tenants::Anyone => 2 * places as u64,
        };
        Self {
            free: Budget::new(units),
            waiting: Budget::new(limits::MAX_WAITING_REQUESTS),
            requests: AtomicU64::new(0),
            all: Prefix::new(Ipv4Addr::UNSPECIFIED.into(), 0),
        }
    }

    /// An account for one more request of `client`.
    fn account(&self, client: Option<IpAddr>) -> Account {
        let network = client.map_or(self.all, Prefix::of_network);
        let number = self.requests.fetch_add(1, Relaxed);
        // Of accounts that hold the same, the one with the largest number is ended first.
        Account::new(network, u64::MAX - number)
    }

    /// Requests that have a place.
    #[cfg(test)]
    pub(super) fn taken(&self) -> u64 {
        self.free.used()
    }

    /// Requests that wait for one.
    pub(super) fn waited_for(&self) -> u64 {
        self.waiting.used()
    }

    /// A place for one more request of `client`, if one is free and no other request of its network waits for it.
    pub(super) fn try_take(&self, client: Option<IpAddr>) -> Option<Place> {
        let account = self.account(client);
        let grant = self.free.try_take_in_turn(&account, 1)?;
        Some(Place {
            _grant: grant,
            account,
        })
    }

    /// The same, waiting for it up to `limit`.
    ///
    /// # Errors
    /// None became free in time, or too many requests wait already.
    pub(super) async fn take(
        &self,
        client: Option<IpAddr>,
        limit: Duration,
    ) -> Result<Place, NoPlace> {
        if let Some(place) = self.try_take(client) {
            return Ok(place);
        }
        let account = self.account(client);
        let _waiting = self.waiting.try_take(&account, 1).ok_or(NoPlace)?;
        let runtime = RuntimeHandle::new(None).map_err(|_| NoPlace)?;
        let taking = self.free.clone().take(account.clone(), 1, runtime, limit);
        let grant = taking.await.map_err(|_| NoPlace)?;
        Ok(Place {
            _grant: grant,
            account,
        })
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;

    use super::*;

    const LIMIT: Duration = Duration::from_secs(30);

    fn client(network: u8) -> Option<IpAddr> {
        Some([10, 0, network, 1].into())
    }

    fn take_all(places: &Places, client: Option<IpAddr>) -> Vec<Place> {
        std::iter::from_fn(|| places.try_take(client)).collect()
    }

    #[test]
    fn every_network_that_comes_gets_some_of_what_is_left() {
        let places = Places::new(512, Tenants::Networks);
        let taken: Vec<_> = (1..=5)
            .map(|network| take_all(&places, client(network)))
            .collect();
        let counts: Vec<_> = taken.iter().map(Vec::len).collect();
        assert_eq!(counts, [256, 128, 64, 32, 16]);
    }

    #[test]
    fn trusted_proxies_share_all() {
        let places = Places::new(100, Tenants::Anyone);
        assert_eq!(take_all(&places, None).len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_that_waits_gets_the_place_of_the_oldest_request_of_the_one_that_has_the_most()
     {
        let places = Places::new(8, Tenants::Networks);
        let mut taken = Vec::new();
        for network in 1..=4 {
            taken.push(take_all(&places, client(network)));
        }
        assert_eq!(places.taken(), 8);
        let ended = |place: &Place| place.account.evicted().now_or_never().is_some();
        let (place, first) = tokio::join!(places.take(client(9), LIMIT), async {
            taken[0][0].account.evicted().await;
            drop(taken[0].remove(0));
        });
        let () = first;
        assert!(place.is_ok());
        let all = taken.iter().flatten();
        assert_eq!(all.filter(|place| ended(place)).count(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn requests_of_one_network_wait_in_turn() {
        let places = Places::new(4, Tenants::Networks);
        let mut taken = take_all(&places, client(1));
        let mut first = Box::pin(places.take(client(1), LIMIT));
        assert!(first.as_mut().now_or_never().is_none());
        assert_eq!(places.waited_for(), 1);
        drop(taken.pop());
        let first = first.await;
        assert!(first.is_ok());
        assert!(places.try_take(client(1)).is_none());
        assert_eq!(places.waited_for(), 0);
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_waits_for_ever() {
        let places = Places::new(2, Tenants::Networks);
        let _taken = take_all(&places, client(1));
        let waited = places.take(client(1), LIMIT).await;
        assert_eq!(waited.err(), Some(NoPlace));
    }
}
