//! Errors of operations on streams.

use thiserror::Error;

/// Why nothing was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// No room now; [`StreamEvent::Writable`](super::StreamEvent::Writable) follows when there is.
    #[error("no room to write now")]
    Blocked,
    /// The peer reads no more, for the reason its application gave (RFC 9000, section 3.5).
    #[error("the peer stopped reading: error {0}")]
    Stopped(u64),
    /// The stream was never opened, is finished or reset, or only receives.
    #[error("the stream is closed for sending")]
    Closed,
}

/// Why a read returned nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ReadError {
    /// Nothing to read now; [`StreamEvent::Readable`](super::StreamEvent::Readable) follows when there
    /// is.
    #[error("nothing to read now")]
    Blocked,
    /// The peer reset the stream, for the reason its application gave (RFC 9000, section 3.2).
    #[error("the peer reset the stream: error {0}")]
    Reset(u64),
    /// The stream was never opened, is read to its end or stopped, or only sends.
    #[error("the stream is closed for receiving")]
    Closed,
}

/// Why a stream could not be finished.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FinishError {
    /// The peer reads no more, for the reason its application gave (RFC 9000, section 3.5).
    #[error("the peer stopped reading: error {0}")]
    Stopped(u64),
    /// The stream was never opened, is finished or reset, or only receives.
    #[error("the stream is closed for sending")]
    Closed,
}

/// The stream, or the direction of it that the operation needs, is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the stream is closed")]
pub struct ClosedStream;
