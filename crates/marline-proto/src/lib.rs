//! The QUIC protocol core without I/O: no sockets, no clock, no threads, no global randomness.
//!
//! Time comes in as an argument, datagrams come in and go out as bytes. The same core runs behind
//! tokio, in the simulator's virtual time, and under the fuzzer.

pub mod ack;
mod address_tokens;
mod announce;
mod buffers;
mod config;
pub mod congestion;
mod connection;
pub mod coordination;
mod crypto;
mod datagrams;
mod endpoint;
mod handshake;
mod level;
mod limits;
pub mod observe;
mod paths;
mod priority;
pub mod recovery;
mod rng;
pub mod samples;
pub mod scheduling;
mod spaces;
mod streams;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;
mod token;
mod tuple;

pub use address_tokens::AddressTokens;
pub use config::{
    AckFrequencyConfig, ClientConfig, ConnectionInfo, EndpointConfig, MakeObserver, MtuConfig,
    MultipathConfig, RetryPolicy, ServerConfig, TransportConfig,
};
pub use connection::{Connection, ConnectionError, EndpointEvent, Event};
pub use crypto::{RESET_TOKEN_LEN, ResetKey, TokenKey};
pub use datagrams::DatagramError;
pub use endpoint::{ConnectionHandle, Endpoint, NewConnection, Route};
pub use handshake::{
    Cipher, ConnectError, TlsClientConfig, TlsConfigError, TlsServerConfig, crypto_provider,
};
pub use marline_wire::{ConnectionId, Dir, ErrorCode, PathId, Side, StreamId, TransportError};
pub use paths::{AbandonPathError, OpenPathError};
pub use priority::{Dependency, InvalidPriority, Priority};
pub use streams::{ClosedStream, FinishError, ReadError, StreamEvent, WriteError};
pub use time::Instant;
pub use tuple::{EcnCodepoint, FourTuple, Transmit};
