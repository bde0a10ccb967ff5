//! The QUIC connection under HTTP/3: marline's own, or that of a test that acts as the peer.

use std::task::{Context, Poll};

use bytes::Bytes;
use marline::{
    ConnectionError, DatagramPath, PathId, PathStats, Priority, ReadError, SendDatagramError,
    StreamId, WriteError,
};

/// A QUIC connection. Clones are the same connection.
pub trait QuicTransport: Clone + Send + Sync + 'static {
    /// The sending direction of a stream.
    type Send: QuicSend;
    /// The receiving direction of a stream.
    type Recv: QuicRecv;

    /// The next bidirectional stream of the peer.
    ///
    /// # Errors
    /// The connection ended.
    fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<Self>, ConnectionError>>;

    /// The next unidirectional stream of the peer.
    ///
    /// # Errors
    /// The connection ended.
    fn poll_accept_uni(&self, cx: &mut Context<'_>) -> Poll<Result<Self::Recv, ConnectionError>>;

    /// Bytes that were written to all streams, and that the peer has not acknowledged.
    fn unacknowledged(&self) -> u64 {
        0
    }

    /// Bytes that the peer has sent on all streams, and that were not read.
    fn unread(&self) -> u64 {
        0
    }

    /// Opens a bidirectional stream, as soon as the peer allows one more.
    ///
    /// # Errors
    /// The connection ended.
    fn poll_open_bi(&self, cx: &mut Context<'_>)
    -> Poll<Result<BidiStream<Self>, ConnectionError>>;

    /// Opens a unidirectional stream, as soon as the peer allows one more.
    ///
    /// # Errors
    /// The connection ended.
    fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<Self::Send, ConnectionError>>;

    /// Sets the priority of a stream that this end sends, if it still does.
    fn set_priority(&self, id: StreamId, priority: Priority);

    /// Closes the connection with an application's error code.
    fn close(&self, code: u64, reason: &[u8]);

    /// The next datagram of the peer (RFC 9221).
    ///
    /// # Errors
    /// The connection ended.
    fn poll_recv_datagram(&self, _cx: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        Poll::Pending
    }

    /// Sends a datagram as soon as the send buffer has space for it.
    ///
    /// # Errors
    /// The peer accepts none, or none as long; or the connection ended.
    fn poll_send_datagram(
        &self,
        _cx: &mut Context<'_>,
        _datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        Poll::Ready(Err(SendDatagramError::Unsupported))
    }

    /// Sends a datagram on a path as soon as its queue has space for it.
    ///
    /// # Errors
    /// As [`poll_send_datagram`](Self::poll_send_datagram), or the path does not answer.
    fn poll_send_datagram_on(
        &self,
        cx: &mut Context<'_>,
        _path: PathId,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        self.poll_send_datagram(cx, datagram)
    }

    /// Replaces the content of `paths` by the paths that can carry datagrams now.
    fn datagram_paths(&self, paths: &mut Vec<DatagramPath>) {
        paths.clear();
    }

    /// The statistics of each path.
    fn path_stats(&self) -> Vec<PathStats> {
        Vec::new()
    }

    /// The most bytes that a datagram may have now; `None` if the peer accepts none.
    fn max_datagram_len(&self) -> Option<usize> {
        None
    }
}

/// Both directions of a bidirectional stream.
#[derive(Debug)]
pub struct BidiStream<C: QuicTransport> {
    /// The sending one.
    pub send: C::Send,
    /// The receiving one.
    pub recv: C::Recv,
}

/// The sending direction of a stream.
pub trait QuicSend: Send + Unpin + 'static {
    /// The stream.
    fn id(&self) -> StreamId;

    /// Takes all of `bytes`, as flow control allows.
    ///
    /// # Errors
    /// The stream or the connection ended.
    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<Result<(), WriteError>>;

    /// Ready with the number of bytes that can be written.
    ///
    /// # Errors
    /// The stream or the connection ended.
    fn poll_writable(&mut self, _cx: &mut Context<'_>) -> Poll<Result<usize, WriteError>> {
        Poll::Ready(Ok(usize::MAX))
    }

    /// Writes `chunks` and ends the stream if all of it can be sent now; returns whether it did.
    ///
    /// # Errors
    /// The stream or the connection ended.
    fn try_finish_with(&mut self, _chunks: [Bytes; 3]) -> Result<bool, WriteError> {
        Ok(false)
    }

    /// Bytes that were written, and that the peer has not acknowledged.
    fn unacknowledged(&self) -> u64 {
        0
    }

    /// Ends the stream after what was written.
    fn finish(&mut self);

    /// Abandons the stream.
    fn reset(&mut self, code: u64);

    /// Ready when the peer has received everything (`None`), or has stopped the stream with a code.
    ///
    /// # Errors
    /// The connection ended.
    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, ConnectionError>>;
}

/// The receiving direction of a stream.
pub trait QuicRecv: Send + Unpin + 'static {
    /// The stream.
    fn id(&self) -> StreamId;

    /// The next bytes; `None` at the end.
    ///
    /// # Errors
    /// The stream was reset, or the connection ended.
    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>>;

    /// Asks the peer to send no more. This has no effect on a stream that has ended.
    fn stop(&mut self, code: u64);
}

impl QuicTransport for marline::Connection {
    type Send = marline::SendStream;
    type Recv = marline::RecvStream;

    fn poll_accept_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<Self>, ConnectionError>> {
        let stream = Self::poll_accept_bi(self, cx);
        stream.map_ok(|(send, recv)| BidiStream { send, recv })
    }

    fn unacknowledged(&self) -> u64 {
        Self::unacknowledged(self)
    }

    fn unread(&self) -> u64 {
        Self::unread(self)
    }

    fn poll_accept_uni(&self, cx: &mut Context<'_>) -> Poll<Result<Self::Recv, ConnectionError>> {
        Self::poll_accept_uni(self, cx)
    }

    fn poll_open_bi(
        &self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<BidiStream<Self>, ConnectionError>> {
        let stream = Self::poll_open_bi(self, cx);
        stream.map_ok(|(send, recv)| BidiStream { send, recv })
    }

    fn poll_open_uni(&self, cx: &mut Context<'_>) -> Poll<Result<Self::Send, ConnectionError>> {
        Self::poll_open_uni(self, cx)
    }

    fn set_priority(&self, id: StreamId, priority: Priority) {
        Self::set_priority(self, id, priority);
    }

    fn close(&self, code: u64, reason: &[u8]) {
        Self::close(self, code, reason);
    }

    fn poll_recv_datagram(&self, cx: &mut Context<'_>) -> Poll<Result<Bytes, ConnectionError>> {
        Self::poll_recv_datagram(self, cx)
    }

    fn poll_send_datagram(
        &self,
        cx: &mut Context<'_>,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        Self::poll_send_datagram(self, cx, datagram)
    }

    fn poll_send_datagram_on(
        &self,
        cx: &mut Context<'_>,
        path: PathId,
        datagram: &Bytes,
    ) -> Poll<Result<(), SendDatagramError>> {
        Self::poll_send_datagram_on(self, cx, path, datagram)
    }

    fn datagram_paths(&self, paths: &mut Vec<DatagramPath>) {
        Self::datagram_paths(self, paths);
    }

    fn path_stats(&self) -> Vec<PathStats> {
        Self::paths(self)
    }

    fn max_datagram_len(&self) -> Option<usize> {
        Self::max_datagram_len(self)
    }
}

impl QuicSend for marline::SendStream {
    fn id(&self) -> StreamId {
        Self::id(self)
    }

    fn poll_write(
        &mut self,
        cx: &mut Context<'_>,
        bytes: &mut Bytes,
    ) -> Poll<Result<(), WriteError>> {
        self.poll_write_chunk(cx, bytes)
    }

    fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, WriteError>> {
        Self::poll_writable(self, cx)
    }

    fn try_finish_with(&mut self, chunks: [Bytes; 3]) -> Result<bool, WriteError> {
        Self::try_finish_with(self, chunks)
    }

    fn unacknowledged(&self) -> u64 {
        Self::unacknowledged(self)
    }

    fn finish(&mut self) {
        // Fails if it has ended already.
        let _ = Self::finish(self);
    }

    fn reset(&mut self, code: u64) {
        Self::reset(self, code);
    }

    fn poll_stopped(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, ConnectionError>> {
        Self::poll_stopped(self, cx)
    }
}

impl QuicRecv for marline::RecvStream {
    fn id(&self) -> StreamId {
        Self::id(self)
    }

    fn poll_read(&mut self, cx: &mut Context<'_>) -> Poll<Result<Option<Bytes>, ReadError>> {
        self.poll_read_chunk(cx, usize::MAX)
    }

    fn stop(&mut self, code: u64) {
        // Fails if it has ended already.
        let _ = Self::stop(self, code);
    }
}
