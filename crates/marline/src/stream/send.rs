//! The sending direction of a stream.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use marline_proto::{ConnectionError, Priority, StreamId};
use tokio::io::AsyncWrite;

use crate::connection::{ConnectionRef, ConnectionState, SendEnd};
use crate::error::{ClosedStream, WriteError};
use crate::wakers::register_one;

/// Sends bytes in order.
///
/// Writing waits while the send buffer is full of unacknowledged data, or the peer's flow control allows
/// no more. Dropping an unfinished stream resets it with code 0, so that the peer does not take a part
/// for the whole.
pub struct SendStream {
    connection: ConnectionRef,
    id: StreamId,
    /// Finished or reset by this side.
    done: bool,
}

impl SendStream {
    pub(crate) fn new(connection: ConnectionRef, id: StreamId) -> Self {
        Self {
            connection,
            id,
            done: false,
        }
    }

    /// The stream's ID on the wire.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// Writes some of `data`, at least a byte unless it is empty; returns the number of bytes. Safe to
    /// cancel.
    ///
    /// # Errors
    /// The stream or the connection ended.
    pub async fn write(&mut self, data: &[u8]) -> Result<usize, WriteError> {
        poll_fn(|cx| self.poll_write_slice(cx, data)).await
    }

    /// Writes all of `data`. When cancelled, a part may have been written.
    ///
    /// # Errors
    /// The stream or the connection ended.
    pub async fn write_all(&mut self, mut data: &[u8]) -> Result<(), WriteError> {
        while !data.is_empty() {
            let written = self.write(data).await?;
            data = &data[written..];
        }
        Ok(())
    }

    /// Writes all of `chunk` without copying it. When cancelled, a part may have been written.
    ///
    /// # Errors
    /// The stream or the connection ended.
    pub async fn write_chunk(&mut self, mut chunk: Bytes) -> Result<(), WriteError> {
        poll_fn(|cx| self.poll_write_chunk(cx, &mut chunk)).await
    }

    /// Takes from `chunk` what may be sent, without copying; ready when `chunk` is empty.
    pub fn poll_write_chunk(
        &mut self,
        cx: &mut Context<'_>,
        chunk: &mut Bytes,
    ) -> Poll<Result<(), WriteError>> {
        while !chunk.is_empty() {
            std::task::ready!(
                self.poll_write_with(cx, |state, id| state.proto.write_chunk(id, chunk))
            )?;
        }
        Poll::Ready(Ok(()))
    }

    /// Ready with the number of bytes that may be written, so that content need not be read from
    /// its source before.
    ///
    /// # Errors
    /// The stream or the connection ended.
    pub fn poll_writable(&mut self, cx: &mut Context<'_>) -> Poll<Result<usize, WriteError>> {
        self.poll_write_with(cx, |state, id| {
            let room = state.proto.writable(id)?;
            Ok(usize::try_from(room).unwrap_or(usize::MAX))
        })
    }

    /// Bytes that were written, and that the peer has not acknowledged.
    pub fn unacknowledged(&self) -> u64 {
        self.connection.lock().proto.unacknowledged(self.id)
    }

    /// Writes `chunks` without copying them, and ends the stream, in one step if all of it may be sent now. Otherwise it writes
    /// nothing, and returns false.
    ///
    /// # Errors
    /// The stream or the connection ended.
    pub fn try_finish_with(&mut self, mut chunks: impl AsMut<[Bytes]>) -> Result<bool, WriteError> {
        if self.done {
            return Err(WriteError::Closed);
        }
        let mut state = self.connection.lock();
        if let Some(error) = &state.error {
            return Err(WriteError::ConnectionLost(error.clone()));
        }
        let chunks = chunks.as_mut();
        let wanted: usize = chunks.iter().map(Bytes::len).sum();
        let room = match state.proto.writable(self.id) {
            Err(marline_proto::WriteError::Blocked) => 0,
            room => room.map_err(|error| self.explain(&state, error))?,
        };
        if room < wanted as u64 {
            return Ok(false);
        }
        for chunk in chunks {
            let written = state.proto.write_chunk(self.id, chunk);
            written.map_err(|error| self.explain(&state, error))?;
        }
        // Fails as writing does, which has not failed.
        state.proto.finish(self.id).ok();
        self.done = true;
        self.connection.touch(&mut state);
        Ok(true)
    }

    fn poll_write_slice(
        &mut self,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<Result<usize, WriteError>> {
        if data.is_empty() {
            return Poll::Ready(Ok(0));
        }
        self.poll_write_with(cx, |state, id| state.proto.write(id, data))
    }

    fn poll_write_with(
        &mut self,
        cx: &mut Context<'_>,
        write: impl FnOnce(&mut ConnectionState, StreamId) -> Result<usize, marline_proto::WriteError>,
    ) -> Poll<Result<usize, WriteError>> {
        if self.done {
            return Poll::Ready(Err(WriteError::Closed));
        }
        let mut state = self.connection.lock();
        if let Some(error) = &state.error {
            return Poll::Ready(Err(WriteError::ConnectionLost(error.clone())));
        }
        match write(&mut state, self.id) {
            Ok(written) => {
                self.connection.touch(&mut state);
                Poll::Ready(Ok(written))
            }
            Err(marline_proto::WriteError::Blocked) => {
                let sender = state.senders.entry(self.id).or_default();
                register_one(&mut sender.writable, cx.waker());
                // A DATA_BLOCKED or STREAM_DATA_BLOCKED frame may be due.
                self.connection.touch(&mut state);
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(self.explain(&state, error))),
        }
    }

    /// The error of a write that does not wait.
    fn explain(&self, state: &ConnectionState, error: marline_proto::WriteError) -> WriteError {
        match (error, self.end(state)) {
            (marline_proto::WriteError::Stopped(code), _) | (_, Some(SendEnd::Stopped(code))) => {
                WriteError::Stopped(code)
            }
            _ => WriteError::Closed,
        }
    }

    fn end(&self, state: &ConnectionState) -> Option<SendEnd> {
        state.senders.get(&self.id)?.end
    }

    /// Ends the stream (FIN). What was written is sent and, if lost, retransmitted in the background;
    /// [`stopped`](Self::stopped) waits until the peer has it.
    ///
    /// # Errors
    /// The stream was finished or reset before.
    pub fn finish(&mut self) -> Result<(), ClosedStream> {
        if self.done {
            return Err(ClosedStream);
        }
        let mut state = self.connection.lock();
        self.done = true;
        match state.proto.finish(self.id) {
            Ok(()) => {
                self.connection.touch(&mut state);
                Ok(())
            }
            // The peer has sent STOP_SENDING, so there is nothing to finish.
            Err(marline_proto::FinishError::Stopped(_)) => Ok(()),
            // The reset that answered STOP_SENDING may be acknowledged already.
            Err(marline_proto::FinishError::Closed) => match self.end(&state) {
                Some(SendEnd::Stopped(_)) => Ok(()),
                _ => Err(ClosedStream),
            },
        }
    }

    /// Resets the stream: the peer gets `code`, and what it has not read is lost.
    ///
    /// Has an effect after [`finish`](Self::finish) too, as long as the peer has not received everything.
    pub fn reset(&mut self, code: u64) {
        self.done = true;
        let mut state = self.connection.lock();
        if state.error.is_none() {
            // Fails if the peer has everything already.
            state.proto.reset(self.id, code).ok();
            self.connection.touch(&mut state);
        }
    }

    /// Waits until the peer needs no more data: `None` when it has received everything up to the end,
    /// `Some(code)` when it stopped the stream. Safe to cancel.
    ///
    /// # Errors
    /// The connection ended before.
    pub async fn stopped(&self) -> Result<Option<u64>, ConnectionError> {
        poll_fn(|cx| self.poll_stopped(cx)).await
    }

    /// [`stopped`](Self::stopped) for hand-written futures.
    pub fn poll_stopped(&self, cx: &mut Context<'_>) -> Poll<Result<Option<u64>, ConnectionError>> {
        let mut state = self.connection.lock();
        match self.end(&state) {
            Some(SendEnd::Received) => return Poll::Ready(Ok(None)),
            Some(SendEnd::Stopped(code)) => return Poll::Ready(Ok(Some(code))),
            None => {}
        }
        if let Some(error) = &state.error {
            return Poll::Ready(Err(error.clone()));
        }
        let sender = state.senders.entry(self.id).or_default();
        register_one(&mut sender.ended, cx.waker());
        Poll::Pending
    }

    /// Sets the priority of the stream among those of its connection (RFC 9218).
    pub fn set_priority(&self, priority: Priority) {
        self.connection.lock().proto.set_priority(self.id, priority);
    }
}

impl Drop for SendStream {
    fn drop(&mut self) {
        let mut state = self.connection.lock();
        let sender = state.senders.remove(&self.id);
        if !self.done && state.error.is_none() {
            state.proto.reset(self.id, 0).ok();
            self.connection.touch(&mut state);
        }
        drop(state);
        // A waker may own a task, and the task a stream of this connection, whose drop takes the lock.
        drop(sender);
    }
}

impl AsyncWrite for SendStream {
    fn poll_write(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        data: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.get_mut()
            .poll_write_slice(cx, data)
            .map_err(io::Error::from)
    }

    /// Ready at once: the endpoint sends by itself.
    fn poll_flush(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    /// [`finish`](SendStream::finish); does nothing if the stream is finished already.
    fn poll_shutdown(self: Pin<&mut Self>, _cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let stream = self.get_mut();
        if !stream.done {
            stream.finish()?;
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for SendStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SendStream")
            .field("id", &self.id)
            .field("done", &self.done)
            .finish_non_exhaustive()
    }
}
