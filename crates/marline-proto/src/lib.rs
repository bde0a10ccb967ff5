//! The QUIC protocol core without I/O: no sockets, no clock, no threads, no global randomness.
//!
//! Time is an argument; datagrams are passed in and out as bytes. The same core runs under tokio,
//! in the simulator's virtual time, and in the fuzzer.
//!
//! # Features
//!
//! | feature | |
//! | --- | --- |
//! | `aws-lc-rs` (default) | cryptography by AWS-LC; takes precedence over `ring` |
//! | `ring` | cryptography by ring, for targets that AWS-LC does not support; without post-quantum key exchange |
//! | `testing` | endpoints and networks in virtual time, and certificates, for the tests of other crates |
//!
//! One of `aws-lc-rs` and `ring` must be enabled; `cargo build --no-default-features` alone fails with a message.

#[cfg(not(any(feature = "aws-lc-rs", feature = "ring")))]
compile_error!(
    "no cryptographic library is selected: enable the cargo feature `aws-lc-rs` (the default) or `ring`"
);

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
mod establish;
mod handshake;
mod level;
mod limits;
pub mod observe;
mod paths;
mod prefix;
mod priority;
pub mod recovery;
mod rng;
pub mod samples;
pub mod scheduling;
mod sending;
mod spaces;
mod streams;
#[cfg(any(test, feature = "testing"))]
pub mod testing;
mod time;
mod token;
mod tuple;

pub use ack::AckFrequencyConfig;
pub use address_tokens::AddressTokens;
pub use config::{
    ClientConfig, ClientLimits, ConnectionInfo, EcnMode, EndpointConfig, MakeObserver, MtuConfig,
    MultipathConfig, RetryPolicy, ServerConfig, TransportConfig,
};
pub use connection::{
    Connection, ConnectionError, EndpointEvent, EndpointFailure, Event, MigrateError,
    MigrationStart, Unreachable,
};
pub use crypto::{
    QUIC_LB_KEY_LEN, QuicLb, QuicLbConfig, QuicLbError, QuicLbFormat, RESET_TOKEN_LEN, ResetKey,
    ServerId, Sha256, TicketKey, TokenKey, WORKER_ID_LEN, WorkerField, WorkerKey, hmac_sha256,
    quic_lb_key,
};
/// Opens packets and records of connections between other hosts, for capture analysis.
pub mod inspect {
    pub use crate::crypto::inspect::{OpenedPacket, OpenedRecord, PacketKeys, RecordKey};
}
pub use datagrams::{DatagramError, DatagramPath};
pub use endpoint::{
    ConnectionHandle, Endpoint, EndpointStats, NewConnection, Refusals, Route, WorkerGroup,
};
pub use handshake::{
    Cipher, ConnectError, SessionKind, TlsClientConfig, TlsConfigError, TlsServerConfig, Versions,
    crypto_provider, default_crypto_provider,
};
/// The vocabulary of settings: how a policy or a setting is named, written, checked and shown.
pub use marline_settings as settings;
pub use marline_wire::{
    ConnectionId, Dir, ErrorCode, PathId, Side, StreamId, TransportError, Version,
};
pub use paths::{AbandonPathError, OpenPathError};
pub use prefix::Prefix;
pub use priority::{Dependency, InvalidPriority, Priority};
pub use streams::{ClosedStream, FinishError, ReadError, StreamEvent, WriteError};
pub use time::Instant;
pub use tuple::{EcnCodepoint, FourTuple, Transmit};
