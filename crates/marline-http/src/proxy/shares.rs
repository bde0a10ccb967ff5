//! Shares of clients in the places for requests.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use marline::Prefix;
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore, TryAcquireError};

type Clients = Arc<Mutex<HashMap<Prefix, Arc<Semaphore>>>>;

/// Places of each network of clients that has requests.
pub(super) struct Shares {
    each: usize,
    clients: Clients,
}

/// The places of one network. Its permits are dropped before it is.
pub(super) struct Share {
    places: Arc<Semaphore>,
    network: Prefix,
    clients: Clients,
}

fn lock(clients: &Clients) -> MutexGuard<'_, HashMap<Prefix, Arc<Semaphore>>> {
    clients.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Shares {
    /// `each` network has this many places.
    pub(super) fn new(each: usize) -> Self {
        Self {
            each,
            clients: Arc::default(),
        }
    }

    /// The share of the network of `client`.
    pub(super) fn of(&self, client: IpAddr) -> Share {
        let network = Prefix::of_network(client);
        let mut clients = lock(&self.clients);
        let places = clients.entry(network);
        let places = places.or_insert_with(|| Arc::new(Semaphore::new(self.each)));
        Share {
            places: Arc::clone(places),
            network,
            clients: Arc::clone(&self.clients),
        }
    }
}

impl Share {
    pub(super) fn try_take(&self) -> Result<OwnedSemaphorePermit, TryAcquireError> {
        Arc::clone(&self.places).try_acquire_owned()
    }

    pub(super) async fn take(&self) -> Result<OwnedSemaphorePermit, AcquireError> {
        Arc::clone(&self.places).acquire_owned().await
    }
}

impl Drop for Share {
    fn drop(&mut self) {
        let mut clients = lock(&self.clients);
        // Of the map, and this one.
        if Arc::strong_count(&self.places) == 2 {
            clients.remove(&self.network);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_has_its_share_and_is_forgotten_without_requests() {
        let shares = Shares::new(1);
        let first = shares.of([192, 0, 2, 1].into());
        let permit = first.try_take().unwrap();
        let neighbour = shares.of([192, 0, 2, 99].into());
        assert!(neighbour.try_take().is_err());
        assert!(shares.of([198, 51, 100, 1].into()).try_take().is_ok());
        drop(permit);
        assert!(neighbour.try_take().is_ok());
        drop((first, neighbour));
        assert!(lock(&shares.clients).is_empty());
    }
}
