//! A weak reference to a connection.

use std::fmt;
use std::sync::Arc;

use super::{Connection, ConnectionRef, SharedConnection};

/// Refers to a [`Connection`] without keeping it open, for tasks that observe connections in the background.
#[derive(Clone)]
pub struct WeakConnection(Arc<SharedConnection>);

impl Connection {
    /// A reference to the connection that does not keep it open.
    pub fn downgrade(&self) -> WeakConnection {
        WeakConnection(Arc::clone(&self.0))
    }
}

impl WeakConnection {
    /// The connection, if the application has not dropped it.
    pub fn upgrade(&self) -> Option<Connection> {
        ConnectionRef::another(&self.0).map(Connection)
    }
}

impl fmt::Debug for WeakConnection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WeakConnection")
            .field("handle", &self.0.handle)
            .finish_non_exhaustive()
    }
}
