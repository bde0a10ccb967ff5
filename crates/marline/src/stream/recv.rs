//! The receiving direction of a stream.

use std::fmt;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use bytes::{Bytes, BytesMut};
use marline_proto::StreamId;
use tokio::io::{AsyncRead, ReadBuf};

use crate::connection::ConnectionRef;
use crate::error::{ClosedStream, ReadError, ReadToEndError};

/// Receives bytes in order.
///
/// Dropping a stream before its end sends STOP_SENDING with code 0 (RFC 9000, section 3.5).
pub struct RecvStream {
    connection: ConnectionRef,
    id: StreamId,
    end: Option<ReceiveEnd>,
}

/// The end of the stream.
#[derive(Clone, Copy, Debug)]
enum ReceiveEnd {
    /// Read to the end.
    Finished,
    /// Reset by the peer with this code.
    Reset(u64),
    /// Stopped by this side.
    Stopped,
}

impl RecvStream {
    pub(crate) fn new(connection: ConnectionRef, id: StreamId) -> Self {
        Self {
            connection,
            id,
            end: None,
        }
    }

    /// The stream's ID on the wire.
    pub fn id(&self) -> StreamId {
        self.id
    }

    /// The next bytes, at most `max` of them, without copying; `None` at the end of the stream. Safe
    /// to cancel.
    ///
    /// # Errors
    /// The stream or the connection ended early.
    pub async fn read_chunk(&mut self, max: usize) -> Result<Option<Bytes>, ReadError> {
        poll_fn(|cx| self.poll_read_chunk(cx, max)).await
    }

    /// [`read_chunk`](Self::read_chunk) for hand-written futures.
    pub fn poll_read_chunk(
        &mut self,
        cx: &mut Context<'_>,
        max: usize,
    ) -> Poll<Result<Option<Bytes>, ReadError>> {
        match self.end {
            Some(ReceiveEnd::Finished) => return Poll::Ready(Ok(None)),
            Some(ReceiveEnd::Reset(code)) => return Poll::Ready(Err(ReadError::Reset(code))),
            Some(ReceiveEnd::Stopped) => return Poll::Ready(Err(ReadError::Closed)),
            None => {}
        }
        let mut state = self.connection.lock();
        let now = || self.connection.now();
        Poll::Ready(match state.proto.read(now, self.id, max) {
            Ok(Some(chunk)) => {
                // A MAX_DATA or MAX_STREAM_DATA frame may be due.
                if state.proto.wants_transmit() {
                    self.connection.touch(&mut state);
                }
                Ok(Some(chunk))
            }
            Ok(None) => {
                self.end = Some(ReceiveEnd::Finished);
                // A MAX_STREAMS frame may be due, now that this stream has ended.
                self.connection.touch(&mut state);
                Ok(None)
            }
            Err(marline_proto::ReadError::Reset(code)) => {
                self.end = Some(ReceiveEnd::Reset(code));
                self.connection.touch(&mut state);
                Err(ReadError::Reset(code))
            }
            Err(marline_proto::ReadError::Blocked) => match &state.error {
                Some(error) => Err(ReadError::ConnectionLost(error.clone())),
                None => {
                    state.readers.insert(self.id, cx.waker().clone());
                    return Poll::Pending;
                }
            },
            Err(marline_proto::ReadError::Closed) => Err(match &state.error {
                Some(error) => ReadError::ConnectionLost(error.clone()),
                None => ReadError::Closed,
            }),
        })
    }

    /// Reads into `buffer`; returns the number of bytes, 0 at the end of the stream. Safe to cancel.
    ///
    /// # Errors
    /// The stream or the connection ended early.
    pub async fn read(&mut self, buffer: &mut [u8]) -> Result<usize, ReadError> {
        Ok(match self.read_chunk(buffer.len()).await? {
            Some(chunk) => {
                buffer[..chunk.len()].copy_from_slice(&chunk);
                chunk.len()
            }
            None => 0,
        })
    }

    /// The rest of the stream, at most `limit` bytes. When cancelled, what was read is lost.
    ///
    /// # Errors
    /// The stream or the connection ended early, or the rest is longer than `limit`.
    pub async fn read_to_end(&mut self, limit: usize) -> Result<Bytes, ReadToEndError> {
        let Some(first) = self.read_chunk(usize::MAX).await? else {
            return Ok(Bytes::new());
        };
        let Some(second) = self.read_chunk(usize::MAX).await? else {
            return check_limit(first, limit);
        };
        let mut whole = BytesMut::from(check_limit(first, limit)?);
        let mut next = Some(second);
        while let Some(chunk) = next {
            if chunk.len() > limit - whole.len() {
                return Err(ReadToEndError::TooLong);
            }
            whole.extend_from_slice(&chunk);
            next = self.read_chunk(usize::MAX).await?;
        }
        Ok(whole.freeze())
    }

    /// Sends STOP_SENDING with `code`: the rest is not wanted. What arrived unread is dropped.
    ///
    /// # Errors
    /// The stream has ended before.
    pub fn stop(&mut self, code: u64) -> Result<(), ClosedStream> {
        if self.end.is_some() {
            return Err(ClosedStream);
        }
        self.end = Some(ReceiveEnd::Stopped);
        let mut state = self.connection.lock();
        let reader = state.readers.remove(&self.id);
        // Fails if all data has arrived: there is nothing to stop then.
        state.proto.stop(self.id, code).ok();
        if state.error.is_none() {
            self.connection.touch(&mut state);
        }
        drop(state);
        drop(reader);
        Ok(())
    }
}

fn check_limit(bytes: Bytes, limit: usize) -> Result<Bytes, ReadToEndError> {
    if bytes.len() > limit {
        return Err(ReadToEndError::TooLong);
    }
    Ok(bytes)
}

impl Drop for RecvStream {
    fn drop(&mut self) {
        // Fails if the stream has ended already.
        self.stop(0).ok();
    }
}

impl AsyncRead for RecvStream {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if buffer.remaining() == 0 {
            return Poll::Ready(Ok(()));
        }
        let stream = self.get_mut();
        if let Some(chunk) = ready!(stream.poll_read_chunk(cx, buffer.remaining()))? {
            buffer.put_slice(&chunk);
        }
        Poll::Ready(Ok(()))
    }
}

impl fmt::Debug for RecvStream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RecvStream")
            .field("id", &self.id)
            .field("end", &self.end)
            .finish_non_exhaustive()
    }
}
