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
//! Each endpoint has one task. It receives batches of datagrams, decrypts them in place,
//! passes each to its connection, wakes the tasks that wait for that connection, and sends the
//! connections' packets in batches. Calls on connections and streams lock only their own connection, for
//! a short time.
//!
//! ```
//! use marline::{Endpoint, tls};
//! # use rustls::RootCertStore;
//! # use rustls::pki_types::PrivatePkcs8KeyDer;
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let identity = rcgen::generate_simple_self_signed(vec!["localhost".into()])?;
//! # let mut roots = RootCertStore::empty();
//! # roots.add(identity.cert.der().clone())?;
//! # let chain = vec![identity.cert.into()];
//! # let key = PrivatePkcs8KeyDer::from(identity.signing_key.serialize_der()).into();
//! let config = tls::server_config(chain, key, &[b"greet"])?;
//! let server = Endpoint::server(config, "127.0.0.1:0".parse()?)?;
//! let addr = server.local_addr();
//! tokio::spawn(async move {
//!     while let Some(connecting) = server.accept().await {
//!         let connection = connecting.await?;
//!         let mut greeting = connection.open_uni().await?;
//!         greeting.write_all(b"hello").await?;
//!         greeting.finish()?;
//!         greeting.stopped().await?;
//!     }
//!     Ok::<_, Box<dyn std::error::Error + Send + Sync>>(())
//! });
//!
//! let client = Endpoint::client("0.0.0.0:0".parse()?)?;
//! client.set_default_client_config(tls::client_config(roots, &[b"greet"])?);
//! let connection = client.connect(addr, "localhost")?.await?;
//! let mut greeting = connection.accept_uni().await?;
//! assert_eq!(greeting.read_to_end(100).await?, &b"hello"[..]);
//! # Ok(())
//! # }
//! ```
//!
//! Dropping the last handle closes the object: a connection closes with code 0 when its last
//! [`Connection`] and its last stream are dropped, and dropping the last [`Endpoint`] closes all of its
//! connections.

#[cfg(doctest)]
mod pages {
    //! The code of the documentation's pages.

    #[doc = include_str!("../../../docs/embedding.md")]
    struct Embedding;

    #[doc = include_str!("../../../docs/policies.md")]
    struct Policies;

    #[doc = include_str!("../../../README.md")]
    struct Readme;
}

mod connection;
mod endpoint;
mod error;
mod manager;
mod observers;
mod profile;
pub mod runtime;
mod signal;
mod stream;
pub mod tls;
#[cfg(feature = "tracing")]
pub mod trace;
mod wakers;

pub use bytes::Bytes;
pub use marline_proto as proto;
pub use marline_proto::observe::{ConnectionStats, PathStats};
pub use marline_proto::scheduling::path::PathStatus;
pub use marline_proto::{
    AbandonPathError, AckFrequencyConfig, AddressTokens, Cipher, ClientConfig, ClientLimits,
    ConnectionError, ConnectionId, ConnectionInfo, DatagramPath, Dir, EcnCodepoint, EcnMode,
    EndpointConfig, EndpointFailure, EndpointStats, ErrorCode, Instant, MakeObserver, MigrateError,
    MtuConfig, MultipathConfig, PathId, Prefix, Priority, QUIC_LB_KEY_LEN, QuicLb, QuicLbConfig,
    QuicLbError, QuicLbFormat, Refusals, ResetKey, RetryPolicy, ServerConfig, ServerId,
    SessionKind, Sha256, Side, StreamId, TicketKey, TlsClientConfig, TlsConfigError,
    TlsServerConfig, TokenKey, Transmit, TransportConfig, TransportError, Unreachable, Version,
    Versions, WorkerKey, ack, congestion, coordination, crypto_provider, default_crypto_provider,
    hmac_sha256, observe, quic_lb_key, recovery, samples, scheduling, settings,
};

pub use crate::connection::{Connecting, Connection, ConnectionEvent, Events, WeakConnection};
pub use crate::endpoint::{Endpoint, PassOn, PassedDatagram, Worker};
pub use crate::error::{
    ClosedStream, ConnectError, OpenPathError, ReadError, ReadToEndError, SendDatagramError,
    WriteError,
};
pub use crate::manager::{
    AssignedInterface, InvalidPathRule, ManagedConnectError, PathManager, PathPolicy, PathRule,
    PathSource, SpentBytes,
};
pub use crate::observers::both_observers;
pub use crate::profile::{Profile, UnknownProfile};
pub use crate::runtime::Runtime;
#[cfg(not(target_family = "wasm"))]
pub use crate::runtime::TokioRuntime;
pub use crate::stream::{RecvStream, SendStream};
