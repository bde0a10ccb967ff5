//! Streams.

use std::sync::Arc;

use marline::{RecvStream, SendStream, StreamId};
use tokio::runtime::Runtime;

use crate::failure::{Failure, at, at_mut, buffer, bytes, or};

/// A stream of a QUIC connection.
pub struct Stream {
    runtime: Arc<Runtime>,
    /// `None` for a stream of the peer in one direction.
    send: Option<SendStream>,
    /// `None` for an own stream in one direction.
    receive: Option<RecvStream>,
}

/// The directions of a stream.
pub struct Directions {
    /// From here to the peer.
    pub sending: Stream,
    /// From the peer.
    pub receiving: Stream,
}

impl Stream {
    pub(crate) fn new(
        runtime: Arc<Runtime>,
        send: Option<SendStream>,
        receive: Option<RecvStream>,
    ) -> Self {
        Self {
            runtime,
            send,
            receive,
        }
    }

    /// Its directions as streams of their own, of which one may be read while the other is written.
    pub fn into_directions(self) -> Directions {
        Directions {
            sending: Self::new(Arc::clone(&self.runtime), self.send, None),
            receiving: Self::new(self.runtime, None, self.receive),
        }
    }

    /// Its stream ID; `None` for a direction that it does not have.
    pub fn id(&self) -> Option<StreamId> {
        let send = self.send.as_ref().map(SendStream::id);
        send.or_else(|| self.receive.as_ref().map(RecvStream::id))
    }

    /// Sends bytes; waits until all are taken, for transmission and retransmission.
    ///
    /// # Errors
    /// If it only receives, the peer refuses more, or the connection has ended.
    pub fn write(&mut self, data: &[u8]) -> Result<(), Failure> {
        let runtime = Arc::clone(&self.runtime);
        Ok(runtime.block_on(self.sender()?.write_all(data))?)
    }

    /// Sends that no more bytes follow. A stream that is dropped before is reset.
    ///
    /// # Errors
    /// If it only receives, or has ended.
    pub fn finish(&mut self) -> Result<(), Failure> {
        Ok(self.sender()?.finish()?)
    }

    /// Reads bytes, as soon as there are some. Returns their number, which is 0 at the end of the stream.
    ///
    /// # Errors
    /// If it only sends, the peer has reset it, or the connection has ended.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Failure> {
        let runtime = Arc::clone(&self.runtime);
        Ok(runtime.block_on(self.receiver()?.read(into))?)
    }

    /// Ends it at once in both directions, with an error code of the application's protocol.
    pub fn reset(&mut self, code: u64) {
        if let Some(send) = &mut self.send {
            send.reset(code);
        }
        if let Some(receive) = &mut self.receive {
            // A stream that has ended cannot be stopped, and need not.
            let _ = receive.stop(code);
        }
    }

    fn sender(&mut self) -> Result<&mut SendStream, Failure> {
        let only_receives = || Failure::new("this stream only receives");
        self.send.as_mut().ok_or_else(only_receives)
    }

    fn receiver(&mut self) -> Result<&mut RecvStream, Failure> {
        let only_sends = || Failure::new("this stream only sends");
        self.receive.as_mut().ok_or_else(only_sends)
    }
}

/// Its stream ID; -1 for NULL.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_id(stream: *const Stream) -> i64 {
    // SAFETY: as the header says.
    let id = unsafe { at(stream, "stream") }.map(|stream| stream.id().map_or(0, u64::from));
    // Stream IDs have 62 bits.
    or(-1, id.map(|id| id as i64))
}

/// Sends bytes; waits until all are taken, for transmission and retransmission. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_write(
    stream: *mut Stream,
    data: *const u8,
    length: usize,
) -> i32 {
    // SAFETY: as the header says.
    let written = unsafe { at_mut(stream, "stream") }.and_then(|stream| {
        // SAFETY: as the header says.
        let data = unsafe { bytes(data, length, "data") }?;
        stream.write(data)
    });
    or(-1, written.map(|()| 0))
}

/// Says that no more bytes follow. A stream that is freed before is reset. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_finish(stream: *mut Stream) -> i32 {
    // SAFETY: as the header says.
    let finished = unsafe { at_mut(stream, "stream") }.and_then(Stream::finish);
    or(-1, finished.map(|()| 0))
}

/// Reads up to `length` bytes, as soon as there are some. Returns their number, 0 at the end of the stream, or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_read(
    stream: *mut Stream,
    into: *mut u8,
    length: usize,
) -> isize {
    // SAFETY: as the header says.
    let read = unsafe { at_mut(stream, "stream") }.and_then(|stream| {
        // SAFETY: as the header says.
        let into = unsafe { buffer(into, length, "into") }?;
        stream.read(into)
    });
    or(-1, read.map(|length| length as isize))
}

/// Ends a stream at once in both directions, with an error code of the application's protocol. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_reset(stream: *mut Stream, code: u64) -> i32 {
    // SAFETY: as the header says.
    let reset = unsafe { at_mut(stream, "stream") }.map(|stream| stream.reset(code));
    or(-1, reset.map(|()| 0))
}

/// Frees a stream.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_free(stream: *mut Stream) {
    if !stream.is_null() {
        // SAFETY: it is from a function of this library, and not used again.
        drop(unsafe { Box::from_raw(stream) });
    }
}
