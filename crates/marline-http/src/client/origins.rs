//! Connections to many origins.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::pooled::PooledConnection;
use super::{Client, Connection, Origin};
use crate::limits::MAX_POOLS;

/// One pooled connection to each origin.
#[derive(Default)]
pub(super) struct Origins(Mutex<HashMap<Origin, Arc<PooledConnection>>>);

impl Origins {
    /// The connection to `origin`.
    pub(super) fn to(&self, client: &Client, origin: &Origin) -> Arc<PooledConnection> {
        let mut known = self.known();
        if let Some(pooled) = known.get(origin) {
            return Arc::clone(pooled);
        }
        let mut some = client.pooled_connections(origin, 1);
        let pooled = some.swap_remove(0);
        if known.len() < MAX_POOLS {
            known.insert(origin.clone(), Arc::clone(&pooled));
        }
        pooled
    }

    /// The connections that were opened.
    pub(super) fn connections(&self) -> Vec<Arc<Connection>> {
        let known = self.known();
        known.values().flat_map(|one| one.connections()).collect()
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Origin, Arc<PooledConnection>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
