//! A connection whose handshake is in progress.

use std::fmt;
use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use marline_proto::ConnectionError;

use super::Connection;

/// A connection during its handshake: await it for a [`Connection`] whose handshake is complete.
///
/// Dropping it abandons the attempt.
#[must_use = "dropping it abandons the connection"]
pub struct Connecting(Option<Connection>);

impl Connecting {
    pub(crate) fn new(connection: Connection) -> Self {
        Self(Some(connection))
    }

    /// Uses the connection before its handshake is complete.
    ///
    /// A client may do so when it has a session of this server (0-RTT): what it sends then can
    /// be replayed by an attacker, so only send what is safe to be processed twice. A rejection of early data
    /// is not visible here: what was written is sent again after the handshake; see
    /// [`Connection::early_data_accepted`]. A server always may (0.5-RTT): what it sends reaches a peer
    /// that is not authenticated yet.
    ///
    /// # Errors
    /// Returns the attempt when there are no keys for early data.
    pub fn into_0rtt(mut self) -> Result<Connection, Self> {
        let Some(connection) = self.0.take() else {
            return Err(self);
        };
        if connection.can_send_early() {
            Ok(connection)
        } else {
            Err(Self(Some(connection)))
        }
    }

    /// The peer's address.
    pub fn remote_address(&self) -> Option<SocketAddr> {
        Some(self.0.as_ref()?.remote_address())
    }
}

impl Future for Connecting {
    type Output = Result<Connection, ConnectionError>;

    /// # Panics
    /// Polled again after it was ready.
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let slot = &mut self.0;
        let connection = slot.take().expect("polled after completion");
        match connection.poll_connected(cx) {
            Poll::Ready(Ok(())) => Poll::Ready(Ok(connection)),
            Poll::Ready(Err(error)) => Poll::Ready(Err(error)),
            Poll::Pending => {
                *slot = Some(connection);
                Poll::Pending
            }
        }
    }
}

impl fmt::Debug for Connecting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Connecting").field(&self.0).finish()
    }
}
