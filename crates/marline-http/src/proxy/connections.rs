//! The connections of a gateway to its origin.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

use super::content::Guard;
use crate::client::{Assigned, Client, ClientError, Connection, Origin, Pool, PooledConnection};
use crate::pipes::ObjectKind;

/// Connections to one origin, which are opened when they are needed, and again when they have ended.
pub(super) struct Connections {
    client: Arc<Client>,
    pooled_connections: Vec<Arc<PooledConnection>>,
    /// The pool that assigns requests to pooled connections, instead of turns.
    pool: Option<Arc<Pool>>,
    turn: AtomicUsize,
}

/// The place of one request.
pub(super) struct RequestSlot {
    client: Arc<Client>,
    pooled: Arc<PooledConnection>,
    pipe: Option<Assigned>,
}

/// The connection and the pipe of one response: the connection stays open, and the pipe counts as used, until this is
/// dropped.
pub(super) struct ResponseSlot {
    place: RequestSlot,
    _connection: Arc<Connection>,
}

impl Connections {
    /// The connections of `client`: the pipes of its pool if it has [pools](crate::client::ClientConfig::pipes), or
    /// else `connections`, which take turns.
    pub(super) fn new(client: Arc<Client>, origin: &Origin, connections: usize) -> Self {
        let pool = client.pool(origin);
        Self {
            pooled_connections: match &pool {
                Some(pool) => pool.pooled_connections().to_vec(),
                None => PooledConnection::some(origin, connections.max(1)).collect(),
            },
            client,
            pool,
            turn: AtomicUsize::new(0),
        }
    }

    /// Chooses a connection for an object of `kind`.
    ///
    /// # Errors
    /// The first pipe of a pool, for which the others wait, does not connect.
    pub(super) async fn place(&self, kind: ObjectKind) -> Result<RequestSlot, ClientError> {
        let (pooled, pipe) = match &self.pool {
            Some(pool) => {
                pool.continue_session();
                let assigned = pool.place(&self.client, kind).await?;
                (assigned.pipe(), Some(assigned))
            }
            None => {
                let turn = self.turn.fetch_add(1, Relaxed) % self.pooled_connections.len();
                self.pooled_connections[turn].forget_closed();
                (turn, None)
            }
        };
        Ok(RequestSlot {
            client: Arc::clone(&self.client),
            pooled: Arc::clone(&self.pooled_connections[pooled]),
            pipe,
        })
    }
}

impl RequestSlot {
    /// The connection to use, which is opened if there is none.
    ///
    /// # Errors
    /// It does not connect.
    pub(super) async fn connection(&self) -> Result<Arc<Connection>, ClientError> {
        self.pooled.open(&self.client).await
    }

    /// The request has a response with content of `bytes` bytes, if that is known, on `connection`.
    pub(super) fn carries(self, connection: Arc<Connection>, bytes: Option<u64>) -> ResponseSlot {
        if let (Some(pipe), Some(bytes)) = (&self.pipe, bytes) {
            pipe.on_size(bytes);
        }
        ResponseSlot {
            place: self,
            _connection: connection,
        }
    }
}

impl ResponseSlot {
    /// The number of the pipe, if it is one.
    pub(super) fn pipe(&self) -> Option<usize> {
        self.place.pipe.as_ref().map(Assigned::pipe)
    }
}

impl Guard for ResponseSlot {
    fn on_received(&self, bytes: u64) {
        if let Some(pipe) = &self.place.pipe {
            pipe.on_received(bytes);
        }
    }
}
