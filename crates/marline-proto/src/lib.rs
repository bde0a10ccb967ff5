//! The QUIC protocol core without I/O: no sockets, no clock, no threads, no global randomness.
//!
//! Time comes in as an argument, datagrams come in and go out as bytes. The same core runs behind
//! tokio, in the simulator's virtual time, and under the fuzzer.

#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the connection calls these rooms")
)]
mod buffers;
mod limits;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the connection calls these rooms")
)]
mod paths;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the connection calls these rooms")
)]
mod streams;
mod time;

pub use streams::{ClosedStream, FinishError, ReadError, StreamEvent, WriteError};
pub use time::Instant;
