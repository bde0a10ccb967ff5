//! Errors of operations on streams.

use thiserror::Error;

/// The reason why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// No room now; [`StreamEvent::Writable`](super::StreamEvent::Writable) is emitted later.
    #[error("the send buffer or flow control permits no data now")]
    Blocked,
    /// The peer sent STOP_SENDING with this error code (RFC 9000, section 3.5).
    #[error("the peer stopped reading: error {0}")]
    Stopped(u64),
    /// The stream was never opened, is finished or reset, or only receives.
    #[error("the stream is closed for sending")]
    Closed,
}

/// The reason why a read returned nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Nothing to read now; [`StreamEvent::Readable`](super::StreamEvent::Readable) is emitted later.
    #[error("nothing to read now")]
    Blocked,
    /// The peer sent RESET_STREAM with this error code (RFC 9000, section 3.2).
    #[error("the peer reset the stream: error {0}")]
    Reset(u64),
    /// The stream was never opened, is read to its end or stopped, or only sends.
    #[error("the stream is closed for receiving")]
    Closed,
}

/// The reason why a stream could not be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FinishError {
    /// The peer sent STOP_SENDING with this error code (RFC 9000, section 3.5).
    #[error("the peer stopped reading: error {0}")]
    Stopped(u64),
    /// The stream was never opened, is finished or reset, or only receives.
    #[error("the stream is closed for sending")]
    Closed,
}

/// The stream, or the direction that the operation needs, is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the stream is closed")]
pub struct ClosedStream;
