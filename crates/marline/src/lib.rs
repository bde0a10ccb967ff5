//! QUIC endpoints, connections and streams for async Rust.
//!
//! An [`Endpoint`] is one UDP socket that carries any number of [`Connection`]s, as a client, as a
//! server, or both. A connection carries streams: a [`SendStream`] to write, a [`RecvStream`] to read,
//! both zero-copy with [`bytes::Bytes`] and plain with tokio's `AsyncRead` and `AsyncWrite`; and
//! unreliable datagrams (RFC 9221).
//!
//! Everything the protocol decides is in [`marline_proto`], which has no clock and no sockets; this
//! crate gives it both through a [`Runtime`]. [`TokioRuntime`] is the one to use; a simulator
//! implements the same trait with virtual time.
//!
//! How it runs: one task an endpoint receives batches of datagrams, decrypts them where they lie, hands
//! each to its connection, wakes the tasks that wait on it, and sends what the connections have to say
//! in batches. Calls on connections and streams lock their connection for a moment and never wait for
//! another connection.
//!
//! Dropping the last handle closes what it names: the last [`Connection`] and stream of a connection
//! close it with code 0, the last [`Endpoint`] closes all of its connections.

mod connection;
mod endpoint;
mod error;
pub mod runtime;
mod stream;
pub mod tls;
mod wakers;

pub use bytes::Bytes;
pub use marline_proto::*;

pub use crate::connection::{Connecting, Connection, ConnectionEvent, Events};
pub use crate::endpoint::Endpoint;
pub use crate::error::{
    ClosedStream, ConnectError, ReadError, ReadToEndError, SendDatagramError, WriteError,
};
pub use crate::runtime::{Runtime, TokioRuntime};
pub use crate::stream::{RecvStream, SendStream};
