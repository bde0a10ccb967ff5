//! HTTP datagrams of requests over HTTP/3 (RFC 9297, section 2).

use std::collections::VecDeque;
use std::fmt;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use marline::{DatagramPath, PathId, PathStats, SendDatagramError, StreamId};
use marline_h3::datagram::Datagram;

use super::session::Session;
use super::transport::QuicTransport;
use crate::limits;

/// The HTTP datagrams of one request of extended CONNECT over HTTP/3, in both directions (RFC 9297).
///
/// A server has it among the extensions of the request, a client among those of the response, if the connection accepts
/// datagrams. Clones are the same request; each datagram that arrives is returned once. When
/// [`limits::MAX_QUEUED_DATAGRAM_BYTES`] wait to be received, the oldest are dropped, as the network might.
#[derive(Clone)]
pub struct Datagrams {
    received: Arc<Received>,
    port: Arc<dyn Port>,
}

impl Datagrams {
    pub(super) fn new<C: QuicTransport>(session: &Session<C>, stream: StreamId) -> Self {
        let received = Arc::<Received>::default();
        let port = StreamPort {
            session: session.passive(),
            stream,
        };
        session.with(|state| state.receive_datagrams(stream, &received));
        Self {
            received,
            port: Arc::new(port),
        }
    }

    /// The next datagram of the peer; `None` once the request or its connection has ended.
    pub async fn recv(&self) -> Option<Bytes> {
        poll_fn(|cx| self.received.poll_recv(cx)).await
    }

    /// A datagram of the peer that has arrived, if there is one.
    pub fn try_recv(&self) -> Option<Bytes> {
        self.received.lock().pop()
    }

    /// Sends a datagram as soon as the send buffer of the connection has space for it.
    ///
    /// # Errors
    /// The peer accepts none, or none as long; or the connection has ended.
    pub async fn send(&self, payload: &[u8]) -> Result<(), SendDatagramError> {
        let datagram = self.port.encode(payload);
        poll_fn(|cx| self.port.poll_send(cx, &datagram)).await
    }

    /// A datagram with this payload, for [`poll_send_on`](Self::poll_send_on).
    pub fn encode(&self, payload: &[u8]) -> EncodedDatagram {
        EncodedDatagram(self.port.encode(payload))
    }

    /// Sends a datagram on a path as soon as its queue has space for it, as
    /// [`marline::Connection::poll_send_datagram_on`] does.
    ///
    /// # Errors
    /// As [`send`](Self::send), or the path does not answer.
    pub fn poll_send_on(
        &self,
        cx: &mut Context<'_>,
        path: PathId,
        datagram: &EncodedDatagram,
    ) -> Poll<Result<(), SendDatagramError>> {
        self.port.poll_send_on(cx, path, &datagram.0)
    }

    /// Replaces the content of `paths` by the paths that can carry datagrams now.
    pub fn paths(&self, paths: &mut Vec<DatagramPath>) {
        self.port.paths(paths);
    }

    /// The statistics of each path of the connection.
    pub fn path_stats(&self) -> Vec<PathStats> {
        self.port.path_stats()
    }

    /// The most bytes that a datagram may have now; `None` if the peer accepts none, or has not announced yet that it
    /// does. Changes with the MTU of the path.
    pub fn max_len(&self) -> Option<usize> {
        self.port.max_len()
    }
}

/// A datagram of a request, as it is sent.
#[derive(Clone, Debug)]
pub struct EncodedDatagram(Bytes);

impl fmt::Debug for Datagrams {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Datagrams").finish_non_exhaustive()
    }
}

/// The sending direction, over any transport.
trait Port: Send + Sync {
    fn encode(&self, payload: &[u8]) -> Bytes;
    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>>;
    fn poll_send_on(
        &self,
        cx: &mut Context<'_>,
        path: PathId,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>>;
    fn paths(&self, paths: &mut Vec<DatagramPath>);
    fn path_stats(&self) -> Vec<PathStats>;
    fn max_len(&self) -> Option<usize>;
}

struct StreamPort<C: QuicTransport> {
    session: Session<C>,
    stream: StreamId,
}

impl<C: QuicTransport> Port for StreamPort<C> {
    fn encode(&self, payload: &[u8]) -> Bytes {
        Datagram::encode_parts(self.stream, payload)
    }

    fn poll_send(
        &self,
        cx: &mut Context<'_>,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        match self.session.accepts_datagrams() {
            true => self.session.transport().poll_send_datagram(cx, datagram),
            false => Poll::Ready(Err(SendDatagramError::Unsupported)),
        }
    }

    fn poll_send_on(
        &self,
        cx: &mut Context<'_>,
        path: PathId,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        let transport = self.session.transport();
        match self.session.accepts_datagrams() {
            true => transport.poll_send_datagram_on(cx, path, datagram),
            false => Poll::Ready(Err(SendDatagramError::Unsupported)),
        }
    }

    fn paths(&self, paths: &mut Vec<DatagramPath>) {
        self.session.transport().datagram_paths(paths);
    }

    fn path_stats(&self) -> Vec<PathStats> {
        self.session.transport().path_stats()
    }

    fn max_len(&self) -> Option<usize> {
        let frame = self.session.transport().max_datagram_len()?;
        let len = frame.checked_sub(Datagram::overhead(self.stream))?;
        self.session.accepts_datagrams().then_some(len)
    }
}

/// Datagrams that have arrived and wait for the task of their request.
#[derive(Default)]
pub(super) struct Received(Mutex<Queue>);

#[derive(Default)]
struct Queue {
    datagrams: VecDeque<Bytes>,
    bytes: usize,
    has_ended: bool,
    reader: Option<Waker>,
}

impl Received {
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn poll_recv(&self, cx: &mut Context<'_>) -> Poll<Option<Bytes>> {
        let mut queue = self.lock();
        if let Some(datagram) = queue.pop() {
            return Poll::Ready(Some(datagram));
        }
        if queue.has_ended {
            return Poll::Ready(None);
        }
        let known = queue.reader.replace(cx.waker().clone());
        // A waker may own the task that owns this.
        drop(queue);
        drop(known);
        Poll::Pending
    }

    /// A datagram has arrived.
    pub(super) fn push(&self, datagram: Bytes) {
        let mut queue = self.lock();
        let cost = cost(&datagram);
        while queue.bytes + cost > limits::MAX_QUEUED_DATAGRAM_BYTES && queue.pop().is_some() {}
        queue.bytes += cost;
        queue.datagrams.push_back(datagram);
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
    }

    /// No more will arrive.
    pub(super) fn end(&self) {
        let mut queue = self.lock();
        queue.has_ended = true;
        let reader = queue.reader.take();
        drop(queue);
        reader.into_iter().for_each(Waker::wake);
    }
}

impl Queue {
    fn pop(&mut self) -> Option<Bytes> {
        let datagram = self.datagrams.pop_front()?;
        self.bytes -= cost(&datagram);
        Some(datagram)
    }
}

/// The memory of a queued datagram in bytes, approximately.
fn cost(datagram: &Bytes) -> usize {
    datagram.len() + size_of::<Bytes>()
}

/// The queue of a request, as long as somebody receives its datagrams.
pub(super) type Receiving = Weak<Received>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_full_queue_drops_the_oldest_datagrams() {
        let received = Received::default();
        let length = limits::MAX_QUEUED_DATAGRAM_BYTES / 4;
        for number in 0..6 {
            received.push(vec![number; length].into());
        }
        assert!(received.lock().bytes <= limits::MAX_QUEUED_DATAGRAM_BYTES);
        let mut cx = Context::from_waker(Waker::noop());
        let mut next = || match received.poll_recv(&mut cx) {
            Poll::Ready(datagram) => datagram.map(|datagram| datagram[0]),
            Poll::Pending => None,
        };
        assert_eq!(
            [next(), next(), next(), next()],
            [Some(3), Some(4), Some(5), None]
        );
        received.end();
        assert!(received.poll_recv(&mut cx).is_ready());
    }
}
