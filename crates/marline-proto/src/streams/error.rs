//! Why an operation of the application on a stream did not do what was asked.

use thiserror::Error;

/// Why a write took nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// No room now; [`StreamEvent::Writable`](super::StreamEvent::Writable) says when to try again.
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
    /// Nothing to read now; [`StreamEvent::Readable`](super::StreamEvent::Readable) says when to
    /// try again.
    #[error("nothing to read now")]
    Blocked,
    /// The peer gave up sending, for the reason its application gave (RFC 9000, section 3.2).
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

/// The part of the stream that was asked for is not open.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the stream is closed")]
pub struct ClosedStream;
