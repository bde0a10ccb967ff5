//! Streams.

use std::sync::{Mutex, MutexGuard, PoisonError};

use marline_ffi::stream;

use crate::buffer::filled;
use crate::failure::MarlineError;

/// A stream of a QUIC connection. One thread may read while another writes. A stream that is destroyed before it is finished is
/// reset.
#[derive(uniffi::Object)]
pub struct Stream {
    sending: Mutex<stream::Stream>,
    receiving: Mutex<stream::Stream>,
}

fn lock(direction: &Mutex<stream::Stream>) -> MutexGuard<'_, stream::Stream> {
    direction.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Stream {
    pub(crate) fn new(stream: stream::Stream) -> Self {
        let directions = stream.into_directions();
        Self {
            sending: Mutex::new(directions.sending),
            receiving: Mutex::new(directions.receiving),
        }
    }
}

#[uniffi::export]
impl Stream {
    /// Sends bytes; waits until all are taken, for transmission and retransmission.
    ///
    /// # Errors
    /// If it only receives, the peer refuses more, or the connection has ended.
    pub fn write(&self, data: &[u8]) -> Result<(), MarlineError> {
        Ok(lock(&self.sending).write(data)?)
    }

    /// Sends that no more bytes follow.
    ///
    /// # Errors
    /// If it only receives, or has ended.
    pub fn finish(&self) -> Result<(), MarlineError> {
        Ok(lock(&self.sending).finish()?)
    }

    /// Reads up to `length` bytes, and not over a mebibyte, as soon as there are some. Empty at the end of the stream.
    ///
    /// # Errors
    /// If it only sends, the peer has reset it, or the connection has ended.
    pub fn read(&self, length: u32) -> Result<Vec<u8>, MarlineError> {
        filled(length, |into| lock(&self.receiving).read(into))
    }

    /// Ends it in both directions with an error code of the application's protocol, each as soon as no call uses it.
    pub fn reset(&self, code: u64) {
        lock(&self.sending).reset(code);
        lock(&self.receiving).reset(code);
    }
}
