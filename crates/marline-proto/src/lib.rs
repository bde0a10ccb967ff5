//! The QUIC protocol core without I/O: no sockets, no clock, no threads, no global randomness.
//!
//! Time comes in as an argument, datagrams come in and go out as bytes. The same core runs behind
//! tokio, in the simulator's virtual time, and under the fuzzer.

pub mod ack;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the connection calls these rooms")
)]
mod buffers;
pub mod congestion;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the connection calls these rooms")
)]
mod crypto;
#[cfg_attr(
    not(test),
    expect(dead_code, unused_imports, reason = "the connection calls these rooms")
)]
mod handshake;
mod level;
mod limits;
pub mod observe;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the connection calls these rooms")
)]
mod paths;
pub mod recovery;
pub mod samples;
pub mod scheduling;
#[cfg_attr(
    not(test),
    expect(dead_code, reason = "the connection calls these rooms")
)]
mod streams;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;

pub use crypto::{RESET_TOKEN_LEN, ResetKey, TokenKey};
pub use handshake::{
    Cipher, ConnectError, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider,
};
pub use streams::{ClosedStream, FinishError, ReadError, StreamEvent, WriteError};
pub use time::Instant;
