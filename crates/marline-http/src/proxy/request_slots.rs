//! RequestSlots of requests, which the networks of clients share.

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use marline::Prefix;

use super::content::Guard;
use crate::limits;
use crate::runtime::RuntimeHandle;
use crate::server::{Account, Budget, Grant, Stopped};

/// RequestSlots of requests at one server behind a proxy.
///
/// A network of clients may have as many as are left free, and of n networks each is entitled to one part in n + 1: if
/// it waits for that, requests of the network that has the most are ended, the oldest first.
pub(super) struct RequestSlots {
    free: Budget,
    /// The requests that wait for a place.
    waiting: Budget,
    requests: AtomicU64,
    /// The account for requests without a network.
    all: Prefix,
}

/// The holders of places.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SlotHolders {
    /// The networks of clients.
    Networks,
    /// Trusted proxies, which share all places.
    Anyone,
}

/// The place of one request.
pub(super) struct RequestSlot {
    _grant: Grant,
    account: Account,
}

impl RequestSlot {
    /// Completes when the request has to end for others.
    pub(super) fn evicted(&self) -> Stopped {
        self.account.evicted()
    }
}

impl Guard for RequestSlot {
    fn evicted(&self) -> Option<Stopped> {
        Some(self.evicted())
    }
}

/// No place became free in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct NoSlot;

impl RequestSlots {
    /// `places` for `holders`.
    pub(super) fn new(places: usize, holders: SlotHolders) -> Self {
        // A single network gets half of the places.
        let units = match holders {
            SlotHolders::Networks => places as u64,
            SlotHolders::Anyone => 2 * places as u64,
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
    pub(super) fn try_take(&self, client: Option<IpAddr>) -> Option<RequestSlot> {
        let account = self.account(client);
        let grant = self.free.try_take_in_turn(&account, 1)?;
        Some(RequestSlot {
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
    ) -> Result<RequestSlot, NoSlot> {
        if let Some(place) = self.try_take(client) {
            return Ok(place);
        }
        let account = self.account(client);
        let _waiting = self.waiting.try_take(&account, 1).ok_or(NoSlot)?;
        let runtime = RuntimeHandle::new(None).map_err(|_| NoSlot)?;
        let taking = self.free.clone().take(account.clone(), 1, runtime, limit);
        let grant = taking.await.map_err(|_| NoSlot)?;
        Ok(RequestSlot {
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

    fn take_all(places: &RequestSlots, client: Option<IpAddr>) -> Vec<RequestSlot> {
        std::iter::from_fn(|| places.try_take(client)).collect()
    }

    #[test]
    fn every_network_that_comes_gets_some_of_what_is_left() {
        let places = RequestSlots::new(512, SlotHolders::Networks);
        let taken: Vec<_> = (1..=5)
            .map(|network| take_all(&places, client(network)))
            .collect();
        let counts: Vec<_> = taken.iter().map(Vec::len).collect();
        assert_eq!(counts, [256, 128, 64, 32, 16]);
    }

    #[test]
    fn trusted_proxies_share_all() {
        let places = RequestSlots::new(100, SlotHolders::Anyone);
        assert_eq!(take_all(&places, None).len(), 100);
    }

    #[tokio::test(start_paused = true)]
    async fn a_network_that_waits_gets_the_place_of_the_oldest_request_of_the_one_that_has_the_most()
     {
        let places = RequestSlots::new(8, SlotHolders::Networks);
        let mut taken = Vec::new();
        for network in 1..=4 {
            taken.push(take_all(&places, client(network)));
        }
        assert_eq!(places.taken(), 8);
        let ended = |place: &RequestSlot| place.account.evicted().now_or_never().is_some();
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
        let places = RequestSlots::new(4, SlotHolders::Networks);
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
        let places = RequestSlots::new(2, SlotHolders::Networks);
        let _taken = take_all(&places, client(1));
        let waited = places.take(client(1), LIMIT).await;
        assert_eq!(waited.err(), Some(NoSlot));
    }
}
