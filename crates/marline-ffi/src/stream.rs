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

    fn id(&self) -> Option<StreamId> {
        let send = self.send.as_ref().map(SendStream::id);
        send.or_else(|| self.receive.as_ref().map(RecvStream::id))
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
        let runtime = Arc::clone(&stream.runtime);
        Ok(runtime.block_on(stream.sender()?.write_all(data))?)
    });
    or(-1, written.map(|()| 0))
}

/// Says that no more bytes follow. A stream that is freed before is reset. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_finish(stream: *mut Stream) -> i32 {
    // SAFETY: as the header says.
    let finished =
        unsafe { at_mut(stream, "stream") }.and_then(|stream| Ok(stream.sender()?.finish()?));
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
        let runtime = Arc::clone(&stream.runtime);
        Ok(runtime.block_on(stream.receiver()?.read(into))?)
    });
    or(-1, read.map(|length| length as isize))
}

/// Ends a stream at once in both directions, with an error code of the application's protocol. Returns 0 or -1.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn marline_stream_reset(stream: *mut Stream, code: u64) -> i32 {
    // SAFETY: as the header says.
    let reset = unsafe { at_mut(stream, "stream") }.map(|stream| {
        if let Some(send) = &mut stream.send {
            send.reset(code);
        }
        if let Some(receive) = &mut stream.receive {
            // A stream that has ended cannot be stopped, and need not.
            let _ = receive.stop(code);
        }
    });
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
