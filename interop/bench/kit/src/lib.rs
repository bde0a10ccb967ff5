//! Shared code of the benchmark programs: command line, measurements, application protocol.
//!
//! The protocol, on every stack: the client opens a bidirectional stream, sends eight bytes, a big-endian number, and
//! finishes; the server answers with that many bytes and finishes.

#[cfg(feature = "batches")]
pub mod batches;
pub mod cli;
#[cfg(feature = "async")]
pub mod client;
pub mod control;
pub mod meter;
pub mod socket;
#[cfg(feature = "rustls")]
pub mod tls;

use std::time::Duration;

pub use cli::{ClientArgs, Command, ServerArgs, Task};
pub use meter::{Meter, Report};

/// Name of the application protocol (ALPN).
pub const ALPN: &[u8] = b"bench";
/// The name certificates are made out to.
pub const SERVER_NAME: &str = "localhost";
/// Flow-control window of a connection and of a stream, and the send buffer, in bytes.
pub const WINDOW: u32 = 16 << 20;
/// Bidirectional streams a client may have open.
pub const STREAMS: u32 = 256;
/// Idle timeout: longer than any task.
pub const IDLE: Duration = Duration::from_secs(300);
/// Time between downloads of the task `fetch`, in which the end of a connection is sent.
pub const PAUSE: Duration = Duration::from_millis(50);
/// Bytes that a server writes to its stack per call.
pub const CHUNK: usize = 1 << 20;
/// Length of a request, bytes.
pub const REQUEST: usize = 8;
