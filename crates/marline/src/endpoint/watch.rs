//! An endpoint as the task that migrates its connections sees it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use super::Endpoint;
use super::state::SharedEndpoint;
use crate::connection::SharedConnection;
use crate::runtime::{Runtime, UdpSocket};

/// Observes an endpoint without keeping it open.
pub(crate) struct EndpointWatch(Arc<SharedEndpoint>);

impl Endpoint {
    /// Observes the endpoint from now on, whose packets leave only from the source addresses of their paths: the observer
    /// migrates connections whose address is gone.
    pub(crate) fn watch(&self) -> EndpointWatch {
        self.shared.is_watched.store(true, Ordering::Release);
        EndpointWatch(Arc::clone(&self.shared))
    }
}

impl EndpointWatch {
    /// The endpoint's runtime.
    pub(crate) fn runtime(&self) -> &Arc<dyn Runtime> {
        &self.0.runtime
    }

    /// Waits until something is to be looked at: a new connection, one that gets no answers, a packet that could not be
    /// sent, or the end of the endpoint. Safe to cancel.
    pub(crate) async fn notified(&self) {
        self.0.trouble.notified().await;
    }

    /// Whether the endpoint's task has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.0.lock().driver_ended
    }

    /// Its connections as a client.
    pub(crate) fn clients(&self) -> Vec<Arc<SharedConnection>> {
        let state = self.0.lock();
        let connections = state.connections.iter().flatten();
        let clients = connections.filter(|connection| connection.side.is_client());
        clients.cloned().collect()
    }

    /// See [`Endpoint::rebind_to`].
    ///
    /// # Errors
    /// The socket has no address; nothing has changed.
    pub(crate) fn rebind(&self, socket: Arc<dyn UdpSocket>) -> io::Result<()> {
        self.0.rebind(socket)
    }
}
