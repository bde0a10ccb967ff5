//! What can go wrong for a client.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use crate::body::BoxError;

/// Why an object did not arrive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// Not a URL this client can fetch.
    #[error("{url}: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The name has no address.
    #[error("cannot find the host {host}: {cause}")]
    Resolve {
        /// The name.
        host: String,
        /// The error of the resolver.
        cause: io::Error,
    },
    /// Nobody answers there.
    #[error("cannot reach {host} at {address}: {cause}")]
    Connect {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
        /// The error of the system or the peer.
        cause: BoxError,
    },
    /// None of the [paths](super::ClientConfig::paths) that may be used has an address now to reach this one
    /// from, or all that they may carry is spent.
    #[error("no path leads to {host} at {address}")]
    NoPath {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
    },
    /// No connection in time.
    #[error("no answer from {host} at {address} within {} s", limit.as_secs_f32())]
    ConnectTimeout {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
        /// How long was waited.
        limit: Duration,
    },
    /// The server's certificate is not trusted, has expired, or is another host's.
    #[error("the certificate of {host} is not valid: {cause}")]
    Certificate {
        /// The host as the URL has it.
        host: String,
        /// The error of TLS.
        cause: BoxError,
    },
    /// The server does not speak the version of HTTP that was asked for.
    #[error("{host} does not speak {wanted}: {cause}")]
    WrongProtocol {
        /// The host as the URL has it.
        host: String,
        /// Such as `HTTP/3`.
        wanted: &'static str,
        /// What happened.
        cause: BoxError,
    },
    /// The server broke the rules of HTTP, or the connection broke before the response began.
    #[error("no response: {cause}")]
    NoResponse {
        /// What happened.
        cause: BoxError,
    },
    /// The response began but did not arrive whole.
    #[error("the response broke off after {received} bytes{}: {cause}", of(*expected))]
    Truncated {
        /// Bytes of content that arrived in this response.
        received: u64,
        /// Bytes that were promised, if any were.
        expected: Option<u64>,
        /// What happened.
        cause: BoxError,
    },
    /// The answer does not continue what is already here.
    #[error("the server answered with other bytes than were asked for: {0}")]
    WrongRange(String),
    /// A file could not be written.
    #[error("cannot write {}: {cause}", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// What the system said; [`io::ErrorKind::StorageFull`] among others.
        cause: io::Error,
    },
    /// The trust anchors could not be read.
    #[error("cannot read trusted certificates{}: {reason}", path.as_ref().map(|p| format!(" from {}", p.display())).unwrap_or_default())]
    Trust {
        /// Which file, if not this machine's store.
        path: Option<PathBuf>,
        /// What is wrong with it.
        reason: String,
    },
    /// QUIC could not be set up on this machine.
    #[error("cannot set up QUIC: {0}")]
    Quic(String),
    /// There is nothing to run on: no runtime was given, and the caller runs in none of tokio's.
    #[error("cannot run: {0}")]
    Runtime(io::Error),
}

fn of(expected: Option<u64>) -> String {
    expected.map_or_else(String::new, |expected| format!(" of {expected}"))
}

impl ClientError {
    /// Whether the same request may succeed on a fresh connection: the server may have closed an
    /// idle one just when it was used.
    pub(super) fn is_worth_another_connection(&self) -> bool {
        matches!(self, Self::NoResponse { .. })
    }
}
