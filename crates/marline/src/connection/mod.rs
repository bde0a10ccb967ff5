//! The application's handle of a connection.

mod connecting;
mod events;
mod info;
mod migration;
mod paths;
mod state;
mod weak;

use std::fmt;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use marline_proto::{
    ConnectionError, DatagramError, DatagramPath, Dir, PathId, Priority, StreamId,
};
use tokio::sync::broadcast;

pub use self::connecting::Connecting;
pub use self::events::{ConnectionEvent, Events};
pub(crate) use self::migration::MigrationView;
pub(crate) use self::state::{ConnectionRef, ConnectionState, SendEnd, Sender, SharedConnection};
pub use self::weak::WeakConnection;
use crate::error::SendDatagramError;
use crate::runtime::{Runtime, UdpSocket};
use crate::stream::{RecvStream, SendStream};

/// A QUIC connection. Clones are the same connection.
///
/// The connection closes with code 0 when its last clone and its last stream are dropped; call
/// [`close`](Self::close) for another code. When it ends, data that arrived before can still be read;
/// everything else fails with the [`ConnectionError`] that ended it.
///
/// All futures here may be dropped before they are ready without losing a stream or a datagram.
#[derive(Clone)]
pub struct Connection(ConnectionRef);

impl Connection {
    pub(crate) fn new(shared: ConnectionRef) -> Self {
        Self(shared)
    }

    /// Opens a bidirectional stream, waiting while the peer's limit allows no more.
    ///
    /// The peer sees the stream with the first byte (or the end) sent on it.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn open_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        poll_fn(|cx| self.poll_open_bi(cx)).await
    }

    /// Opens a unidirectional stream, waiting while the peer's limit allows no more.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn open_uni(&self) -> Result<SendStream, ConnectionError> {
        poll_fn(|cx| self.poll_open_uni(cx)).await
    }

    /// The next bidirectional stream that the peer opened.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept_bi(&self) -> Result<(SendStream, RecvStream), ConnectionError> {
        poll_fn(|cx| self.poll_accept_bi(cx)).await
    }

    /// The next unidirectional stream that the peer opened.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn accept_uni(&self) -> Result<RecvStream, ConnectionError> {
        poll_fn(|cx| self.poll_accept_uni(cx)).await
    }

    /// [`open_bi`](Self::open_bi) for hand-written futures.
    pub fn poll_open_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        self.poll_open(cx, Dir::Bi).map_ok(|id| self.both(id))
    }

    /// [`open_uni`](Self::open_uni) for hand-written futures.
    pub fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<SendStream, ConnectionError>> {
        self.poll_open(cx, Dir::Uni)
            .map_ok(|id| SendStream::new(self.0.clone(), id))
    }

    /// [`accept_bi`](Self::accept_bi) for hand-written futures.
    pub fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<(SendStream, RecvStream), ConnectionError>> {
        self.poll_accept(cx, Dir::Bi).map_ok(|id| self.both(id))
    }

    /// [`accept_uni`](Self::accept_uni) for hand-written futures.
    pub fn poll_accept_uni(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<RecvStream, ConnectionError>> {
        self.poll_accept(cx, Dir::Uni)
            .map_ok(|id| RecvStream::new(self.0.clone(), id))
    }

    fn both(&self, id: StreamId) -> (SendStream, RecvStream) {
        (
            SendStream::new(self.0.clone(), id),
            RecvStream::new(self.0.clone(), id),
        )
    }

    fn poll_open(&self, cx: &mut Context<'_>, dir: Dir) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.0.lock();
        if let Some(error) = &state.error {
            return Poll::Ready(Err(error.clone()));
        }
        if let Some(id) = state.proto.open(dir) {
            state.senders.insert(id, Sender::default());
            return Poll::Ready(Ok(id));
        }
        state.waiting.open[dir as usize].register(cx.waker());
        // A STREAMS_BLOCKED frame is to be sent.
        self.0.touch(&mut state);
        Poll::Pending
    }

    fn poll_accept(
        &self,
        cx: &mut Context<'_>,
        dir: Dir,
    ) -> Poll<Result<StreamId, ConnectionError>> {
        let mut state = self.0.lock();
        if let Some(id) = state.proto.accept(dir) {
            if dir == Dir::Bi {
                state.senders.insert(id, Sender::default());
            }
            return Poll::Ready(Ok(id));
        }
        if let Some(error) = &state.error {
            return Poll::Ready(Err(error.clone()));
        }
        state.waiting.accept[dir as usize].register(cx.waker());
        Poll::Pending
    }

    /// Sets the priority of a stream that this end sends, among those of the connection (RFC 9218), from a task
    /// that does not have the [`SendStream`]. Without effect once that is dropped.
    pub fn set_priority(&self, id: StreamId, priority: Priority) {
        let mut state = self.0.lock();
        if state.senders.contains_key(&id) {
            state.proto.set_priority(id, priority);
        }
    }

    /// Sends `datagram` unreliably and out of order, in one packet (RFC 9221).
    ///
    /// # Errors
    /// [`SendDatagramError::Blocked`] when the send buffer is full.
    pub fn send_datagram(&self, datagram: Bytes) -> Result<(), SendDatagramError> {
        let mut state = self.0.lock();
        self.try_send_datagram(&mut state, None, datagram)
    }

    /// Sends `datagram` as soon as the send buffer has space for it.
    ///
    /// # Errors
    /// As [`send_datagram`](Self::send_datagram), never [`SendDatagramError::Blocked`].
    pub async fn send_datagram_wait(&self, datagram: Bytes) -> Result<(), SendDatagramError> {
        poll_fn(|cx| self.poll_send_datagram(cx, &datagram)).await
    }

    /// [`send_datagram_wait`](Self::send_datagram_wait) for hand-written futures.
    pub fn poll_send_datagram(
        &self,
        cx: &mut Context<'_>,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        self.poll_send(cx, None, datagram)
    }

    /// Sends `datagram` on the path `path` as soon as its queue has space for it, which is small: what waits longer is best kept
    /// by the application. If the path fails before the datagram is sent, or up to 250 ms after, another path carries it, and it
    /// may arrive twice.
    ///
    /// # Errors
    /// As [`poll_send_datagram`](Self::poll_send_datagram), and [`SendDatagramError::NoPath`].
    pub fn poll_send_datagram_on(
        &self,
        cx: &mut Context<'_>,
        path: PathId,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        self.poll_send(cx, Some(path), datagram)
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        path: Option<PathId>,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        let mut state = self.0.lock();
        match self.try_send_datagram(&mut state, path, datagram.clone()) {
            Err(SendDatagramError::Blocked) => {
                state.waiting.datagram_writable.register(cx.waker());
                Poll::Pending
            }
            result => Poll::Ready(result),
        }
    }

    fn try_send_datagram(
        &self,
        state: &mut ConnectionState,
        path: Option<PathId>,
        datagram: Bytes,
    ) -> Result<(), SendDatagramError> {
        if let Some(error) = &state.error {
            return Err(SendDatagramError::ConnectionLost(error.clone()));
        }
        let sent = match path {
            None => state.proto.send_datagram(datagram),
            Some(path) => {
                let now = self.0.now();
                state.proto.send_datagram_on(now, path, datagram)
            }
        };
        match sent {
            Ok(()) => {
                self.0.touch(state);
                Ok(())
            }
            Err(DatagramError::Blocked) => Err(SendDatagramError::Blocked),
            Err(DatagramError::TooLarge { max }) => Err(SendDatagramError::TooLarge { max }),
            Err(DatagramError::Unsupported) => Err(SendDatagramError::Unsupported),
            Err(DatagramError::NoPath) => Err(SendDatagramError::NoPath),
        }
    }

    /// The paths that can carry datagrams now, and how much of each: those that answer, or all that are open if none does.
    /// Replaces the content of `paths`.
    pub fn datagram_paths(&self, paths: &mut Vec<DatagramPath>) {
        paths.clear();
        let now = self.0.now();
        paths.extend(self.0.lock().proto.datagram_paths(now));
    }

    /// The next datagram of the peer. When the receive buffer is full, unread datagrams are dropped.
    ///
    /// # Errors
    /// The connection ended.
    pub async fn recv_datagram(&self) -> Result<Bytes, ConnectionError> {
        poll_fn(|cx| self.poll_recv_datagram(cx)).await
    }

    /// [`recv_datagram`](Self::recv_datagram) for hand-written futures.
    pub fn poll_recv_datagram(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        let mut state = self.0.lock();
        if let Some(datagram) = state.proto.recv_datagram() {
            return Poll::Ready(Ok(datagram));
        }
        if let Some(error) = &state.error {
            return Poll::Ready(Err(error.clone()));
        }
        state.waiting.datagram_received.register(cx.waker());
        Poll::Pending
    }

    /// The most bytes that a datagram may have now; `None` if the peer accepts none. Changes with the MTU.
    pub fn max_datagram_len(&self) -> Option<usize> {
        self.0.lock().proto.max_datagram_len()
    }

    /// Closes the connection at once: unsent data is lost, and the peer gets `code` and `reason`.
    ///
    /// To be sure that the peer has everything, wait for [`SendStream::stopped`] first. The endpoint
    /// sends CONNECTION_CLOSE in the background; [`Endpoint::wait_idle`](crate::Endpoint::wait_idle) waits
    /// until the closing period is over.
    pub fn close(&self, code: u64, reason: &[u8]) {
        self.0.close(code, reason);
    }

    /// Waits until the connection has ended; returns why.
    pub async fn closed(&self) -> ConnectionError {
        poll_fn(|cx| self.poll_closed(cx)).await
    }

    /// [`closed`](Self::closed) for hand-written futures.
    pub fn poll_closed(&self, cx: &mut Context<'_>) -> Poll<ConnectionError> {
        let mut state = self.0.lock();
        if let Some(error) = &state.error {
            return Poll::Ready(error.clone());
        }
        state.waiting.closed.register(cx.waker());
        Poll::Pending
    }

    /// Why the connection ended, if it has.
    pub fn close_reason(&self) -> Option<ConnectionError> {
        self.0.lock().error.clone()
    }

    fn poll_connected(&self, cx: &mut Context<'_>) -> Poll<Result<(), ConnectionError>> {
        let mut state = self.0.lock();
        if let Some(error) = &state.error {
            return Poll::Ready(Err(error.clone()));
        }
        if state.connected {
            return Poll::Ready(Ok(()));
        }
        state.waiting.connected.register(cx.waker());
        Poll::Pending
    }

    /// Waits until the handshake is complete; useful after [`Connecting::into_0rtt`].
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn connected(&self) -> Result<(), ConnectionError> {
        poll_fn(|cx| self.poll_connected(cx)).await
    }

    /// Waits until the handshake is confirmed (RFC 9001, section 4.1.2).
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn confirmed(&self) -> Result<(), ConnectionError> {
        poll_fn(|cx| {
            let mut state = self.0.lock();
            if let Some(error) = &state.error {
                return Poll::Ready(Err(error.clone()));
            }
            if state.confirmed {
                return Poll::Ready(Ok(()));
            }
            state.waiting.confirmed.register(cx.waker());
            Poll::Pending
        })
        .await
    }

    /// Whether the handshake is [confirmed](Self::confirmed).
    pub(crate) fn is_confirmed(&self) -> bool {
        self.0.lock().confirmed
    }

    /// Its endpoint's socket now.
    pub(crate) fn socket(&self) -> Arc<dyn UdpSocket> {
        self.0.socket()
    }

    /// The runtime of its endpoint.
    pub(crate) fn runtime(&self) -> Arc<dyn Runtime> {
        Arc::clone(self.0.runtime())
    }

    /// The connection's events from now on.
    pub fn events(&self) -> Events {
        let mut state = self.0.lock();
        if state.error.is_some() {
            return Events(broadcast::channel(1).1);
        }
        let sender = state
            .events
            .get_or_insert_with(|| broadcast::channel(events::CAPACITY).0);
        Events(sender.subscribe())
    }

    /// Replaces the packet protection keys (RFC 9001, section 6); false if that is not allowed now,
    /// because the handshake is not confirmed or the peer has not answered the last update.
    pub fn update_keys(&self) -> bool {
        let now = self.0.now();
        let mut state = self.0.lock();
        let begun = state.error.is_none() && state.proto.initiate_key_update(now);
        if begun {
            self.0.touch(&mut state);
        }
        begun
    }

    /// Sends a PING: keeps the connection alive and measures the round-trip time.
    pub fn ping(&self) {
        let mut state = self.0.lock();
        if state.error.is_none() {
            state.proto.ping();
            self.0.touch(&mut state);
        }
    }
}

impl fmt::Debug for Connection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connection")
            .field("handle", &self.0.handle)
            .field("side", &self.0.side)
            .finish_non_exhaustive()
    }
}
