//! Errors: one type for each operation.

use std::io;
use std::net::{IpAddr, SocketAddr};

use marline_proto::{ConnectionError, ErrorCode, Unreachable};
use thiserror::Error;

/// Why no connection attempt was started.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum ConnectError {
    /// The endpoint was closed, or its socket failed.
    #[error("the endpoint is closed")]
    EndpointClosed,
    /// [`Endpoint::set_default_client_config`](crate::Endpoint::set_default_client_config) was not called.
    #[error("the endpoint has no client configuration")]
    NoClientConfig,
    /// The socket cannot reach addresses of this family.
    #[error("the endpoint's socket cannot reach {0}")]
    UnreachableFamily(SocketAddr),
    /// The socket cannot send from this address, or not from there to this family of addresses.
    #[error("the endpoint's socket cannot send from {from} to {remote}")]
    CannotSendFrom {
        /// The address to send from.
        from: IpAddr,
        /// The address to send to.
        remote: SocketAddr,
    },
    /// The name or the configuration is not valid.
    #[error(transparent)]
    Invalid(#[from] marline_proto::ConnectError),
}

/// Why [`Connection::open_path`](crate::Connection::open_path) opened no path.
#[derive(Debug, Error)]
#[non_exhaustive]
pub enum OpenPathError {
    /// The endpoint's socket has one address: bind it to an unspecified one for several.
    #[error(
        "the endpoint is bound to {bound} and cannot send from {local}; bind it to 0.0.0.0 or [::]"
    )]
    BoundElsewhere {
        /// The address that it is bound to.
        bound: IpAddr,
        /// The address that it should have sent from.
        local: IpAddr,
    },
    /// This host does not have the address now: try again when it has.
    #[error("cannot send from {local}: {cause}")]
    NoSuchAddress {
        /// The address to send from.
        local: IpAddr,
        /// The system's error.
        #[source]
        cause: io::Error,
    },
    /// One address is IPv4 and the other IPv6, or the socket supports only the other family.
    #[error("there is no path from {local} to {remote}: the address families differ")]
    FamiliesDiffer {
        /// The address to send from.
        local: IpAddr,
        /// The address to send to.
        remote: SocketAddr,
    },
    /// The connection cannot open another path, or not yet.
    #[error(transparent)]
    Refused(#[from] marline_proto::OpenPathError),
    /// The path was abandoned: with PATH_UNSTABLE_OR_POOR if validation received no response.
    #[error("the path was abandoned: {0}")]
    Failed(ErrorCode),
    /// The connection ended.
    #[error("the connection was lost: {0}")]
    ConnectionLost(#[source] ConnectionError),
}

/// Why reading from a stream ended early.
#[derive(Clone, Debug, Error)]
pub enum ReadError {
    /// The peer abandoned the stream with this code (RFC 9000, section 19.4).
    #[error("the peer reset the stream with code {0}")]
    Reset(u64),
    /// This side stopped the stream, or read it to its end before.
    #[error("the stream is closed")]
    Closed,
    /// The connection ended before the stream did.
    #[error("the connection was lost: {0}")]
    ConnectionLost(#[source] ConnectionError),
}

/// Why [`RecvStream::read_to_end`](crate::RecvStream::read_to_end) failed.
#[derive(Clone, Debug, Error)]
pub enum ReadToEndError {
    /// Reading failed.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The peer sent more than the caller's limit.
    #[error("the stream is longer than the limit")]
    TooLong,
}

/// Why writing to a stream failed.
#[derive(Clone, Debug, Error)]
pub enum WriteError {
    /// The peer sent STOP_SENDING with this code (RFC 9000, section 19.5).
    #[error("the peer stopped the stream with code {0}")]
    Stopped(u64),
    /// The stream was finished or reset before.
    #[error("the stream is closed")]
    Closed,
    /// The connection ended.
    #[error("the connection was lost: {0}")]
    ConnectionLost(#[source] ConnectionError),
}

/// The stream was finished, reset or stopped before.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
#[error("the stream is closed")]
pub struct ClosedStream;

/// Why a datagram was not sent.
#[derive(Clone, Debug, Error)]
pub enum SendDatagramError {
    /// The peer does not receive datagrams, or this side's configuration turns them off.
    #[error("datagrams are not supported on this connection")]
    Unsupported,
    /// Larger than [`Connection::max_datagram_len`](crate::Connection::max_datagram_len).
    #[error("the datagram is larger than the {max} bytes that can be sent")]
    TooLarge {
        /// The most that can be sent now, in bytes.
        max: usize,
    },
    /// The send buffer is full.
    #[error("the send buffer for datagrams is full")]
    Blocked,
    /// The path that was chosen does not exist or does not answer: choose another of
    /// [`Connection::datagram_paths`](crate::Connection::datagram_paths).
    #[error("the path cannot carry datagrams now")]
    NoPath,
    /// The connection ended.
    #[error("the connection was lost: {0}")]
    ConnectionLost(#[source] ConnectionError),
}

fn connection_kind(error: &ConnectionError) -> io::ErrorKind {
    match error {
        ConnectionError::IdleTimeout | ConnectionError::HandshakeTimeout => io::ErrorKind::TimedOut,
        ConnectionError::Reset => io::ErrorKind::ConnectionReset,
        ConnectionError::Unreachable(what) => match what {
            Unreachable::Port => io::ErrorKind::ConnectionRefused,
            Unreachable::Host => io::ErrorKind::HostUnreachable,
            Unreachable::Network => io::ErrorKind::NetworkUnreachable,
        },
        ConnectionError::NetworkLost(_) => io::ErrorKind::NetworkDown,
        ConnectionError::LocallyClosed
        | ConnectionError::Evicted
        | ConnectionError::EndpointFailed(_) => io::ErrorKind::NotConnected,
        ConnectionError::PeerApplication { .. } | ConnectionError::PeerTransport { .. } => {
            io::ErrorKind::ConnectionAborted
        }
        _ => io::ErrorKind::Other,
    }
}

impl From<ReadError> for io::Error {
    fn from(error: ReadError) -> Self {
        let kind = match &error {
            ReadError::Reset(_) => io::ErrorKind::ConnectionReset,
            ReadError::Closed => io::ErrorKind::NotConnected,
            ReadError::ConnectionLost(cause) => connection_kind(cause),
        };
        Self::new(kind, error)
    }
}

impl From<WriteError> for io::Error {
    fn from(error: WriteError) -> Self {
        let kind = match &error {
            WriteError::Stopped(_) => io::ErrorKind::ConnectionReset,
            WriteError::Closed => io::ErrorKind::NotConnected,
            WriteError::ConnectionLost(cause) => connection_kind(cause),
        };
        Self::new(kind, error)
    }
}

impl From<ClosedStream> for io::Error {
    fn from(error: ClosedStream) -> Self {
        Self::new(io::ErrorKind::NotConnected, error)
    }
}

impl From<ReadToEndError> for io::Error {
    fn from(error: ReadToEndError) -> Self {
        match error {
            ReadToEndError::Read(error) => error.into(),
            ReadToEndError::TooLong => Self::new(io::ErrorKind::InvalidData, error),
        }
    }
}

impl From<SendDatagramError> for io::Error {
    fn from(error: SendDatagramError) -> Self {
        let kind = match &error {
            SendDatagramError::Unsupported => io::ErrorKind::Unsupported,
            SendDatagramError::TooLarge { .. } => io::ErrorKind::InvalidInput,
            SendDatagramError::Blocked => io::ErrorKind::WouldBlock,
            SendDatagramError::NoPath => io::ErrorKind::NetworkUnreachable,
            SendDatagramError::ConnectionLost(cause) => connection_kind(cause),
        };
        Self::new(kind, error)
    }
}

impl From<ConnectError> for io::Error {
    fn from(error: ConnectError) -> Self {
        let kind = match &error {
            ConnectError::EndpointClosed => io::ErrorKind::NotConnected,
            _ => io::ErrorKind::InvalidInput,
        };
        Self::new(kind, error)
    }
}

impl From<OpenPathError> for io::Error {
    fn from(error: OpenPathError) -> Self {
        let kind = match &error {
            OpenPathError::BoundElsewhere { .. } | OpenPathError::FamiliesDiffer { .. } => {
                io::ErrorKind::InvalidInput
            }
            OpenPathError::NoSuchAddress { cause, .. } => cause.kind(),
            OpenPathError::Refused(_) => io::ErrorKind::Unsupported,
            OpenPathError::Failed(_) => io::ErrorKind::HostUnreachable,
            OpenPathError::ConnectionLost(cause) => connection_kind(cause),
        };
        Self::new(kind, error)
    }
}
