//! Errors of a client.

use std::error::Error as StdError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use http::{HeaderName, StatusCode};
use marline::ConnectionError;
use rustls::AlertDescription;

use super::{CertificateProblem, LowSpeed, ProxyError, Stalled};
use crate::body::BoxError;
use crate::http3::RequestError;
use crate::limits::MAX_EXPANSION;
use crate::server::IdentityError;

/// Why an object was not fetched.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ClientError {
    /// The URL is not supported.
    #[error("{url}: {reason}")]
    Url {
        /// As it was given.
        url: String,
        /// The reason.
        reason: &'static str,
    },
    /// The scheme of the URL is not supported.
    #[error("{url}: only http:// and https:// are supported")]
    Scheme {
        /// As it was given.
        url: String,
    },
    /// The scheme of the URL is not [allowed](super::Schemes).
    #[error("{url}: URLs of this scheme are not allowed here")]
    SchemeNotAllowed {
        /// The URL.
        url: String,
    },
    /// A header field cannot be sent.
    #[error("the header field {name}: {reason}")]
    Header {
        /// The field.
        name: HeaderName,
        /// The reason.
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
    /// The server cannot be reached.
    #[error("cannot reach {host} at {address}: {cause}{}", about_identity(&**cause))]
    Connect {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
        /// The error of the system or the peer.
        cause: BoxError,
    },
    /// The server's TLS is too old, or the configuration of the client excludes its version.
    #[error("no TLS with {host} at {address}: {reason} ({cause})")]
    Tls {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
        /// The feature that the server lacks.
        reason: &'static str,
        /// The error of TLS.
        cause: BoxError,
    },
    /// The connection is not one of Multipath TCP, which [the configuration](super::ClientConfig::tcp_protocol) asks for.
    #[error("no Multipath TCP with {host} at {address}: {reason}")]
    NoMultipathTcp {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
        /// The side that lacks it.
        reason: &'static str,
    },
    /// There is no connection through a [proxy](super::ClientConfig::proxies).
    #[error("the proxy {proxy}: {cause}")]
    Proxy {
        /// The proxy.
        proxy: String,
        /// The cause.
        cause: ProxyError,
    },
    /// None of the [paths](super::ClientConfig::paths) that may be used has an address from which the server
    /// can be reached, or all of them have used up their data cap.
    #[error("no path to {host} at {address} can be used")]
    NoPath {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
    },
    /// No connection within the time limit.
    #[error("no response from {host} at {address} within {} s", limit.as_secs_f32())]
    ConnectTimeout {
        /// The host as the URL has it.
        host: String,
        /// Its last address that was tried.
        address: SocketAddr,
        /// The time limit.
        limit: Duration,
    },
    /// The server's certificate is not trusted, has expired, or is another host's.
    #[error("the certificate of {host} {}", problem.explain(host, &**cause))]
    Certificate {
        /// The host as the URL has it.
        host: String,
        /// The problem.
        problem: CertificateProblem,
        /// The error of TLS.
        cause: BoxError,
    },
    /// The [certificate of the client](super::ClientConfig::identity) cannot be used.
    #[error("cannot present a certificate: {0}")]
    Identity(#[from] IdentityError),
    /// The server does not support the version of HTTP.
    #[error("{host} does not support {wanted}: {cause}")]
    WrongProtocol {
        /// The host as the URL has it.
        host: String,
        /// The requested version, such as `HTTP/3`.
        wanted: &'static str,
        /// The cause.
        cause: BoxError,
    },
    /// The server violated HTTP, or the connection failed or made no progress before the response began.
    #[error("no response: {cause}{}", about_identity(&**cause))]
    NoResponse {
        /// The cause.
        cause: BoxError,
    },
    /// The response began, but is not complete.
    #[error("the response ended early, after {received} bytes{}: {cause}", of(*expected))]
    Truncated {
        /// Bytes of content that arrived in this response.
        received: u64,
        /// Bytes that the response announced, if it did.
        expected: Option<u64>,
        /// The cause.
        cause: BoxError,
    },
    /// The [time limit](super::FetchOptions::time_limit) of the fetch ended before the object was complete.
    #[error("it is incomplete after {} s, the time limit", limit.as_secs_f64())]
    TimeLimit {
        /// The time limit.
        limit: Duration,
    },
    /// The object, or the content of another response, is larger than [allowed](super::FetchOptions::max_size).
    #[error("it is larger than {limit} bytes, the limit{}", size.map_or_else(String::new, |size| format!(": {size}")))]
    TooLarge {
        /// The limit, in bytes.
        limit: u64,
        /// Its size, if the server announced it.
        size: Option<u64>,
    },
    /// The response is not the range that was requested.
    #[error("the response is not the requested range: {0}")]
    WrongRange(String),
    /// A file with the content of a request could not be read.
    #[error("cannot read {}: {cause}", path.display())]
    Upload {
        /// The path of the file; `-` for standard input.
        path: PathBuf,
        /// The error of the system.
        cause: io::Error,
    },
    /// A redirect asks for the content of the request again, which can be sent once.
    #[error("{status} asks for the content again, which cannot be read twice")]
    NotRepeatable {
        /// The status of the redirect.
        status: StatusCode,
    },
    /// There are more [redirects](super::ClientConfig::redirects) than allowed.
    #[error("more than {limit} redirects")]
    TooManyRedirects {
        /// The limit.
        limit: u32,
    },
    /// The content is slower than [allowed](super::FetchOptions::low_speed).
    #[error("less than {} bytes/s arrived for {} s", limit.bytes_per_second, limit.time.as_secs_f64())]
    TooSlow {
        /// The limit.
        limit: LowSpeed,
    },
    /// The content does not have the coding that the response names.
    #[error("the content cannot be decoded: {cause}")]
    Encoding {
        /// The error of the decoder.
        cause: BoxError,
    },
    /// Decoding makes the content so large that it seems to be an attack.
    #[error("{encoded} bytes decode to more than {MAX_EXPANSION} times as many")]
    Expansion {
        /// Bytes that have arrived.
        encoded: u64,
    },
    /// A file could not be written.
    #[error("cannot write {}: {cause}", path.display())]
    File {
        /// The path of the file.
        path: PathBuf,
        /// The error of the system; [`io::ErrorKind::StorageFull`] among others.
        cause: io::Error,
    },
    /// Standard output could not be written to.
    #[error("cannot write to standard output: {0}")]
    Output(io::Error),
    /// The trust anchors could not be read.
    #[error("cannot read trusted certificates{}: {reason}", path.as_ref().map(|p| format!(" from {}", p.display())).unwrap_or_default())]
    Trust {
        /// The file; `None` for this machine's store.
        path: Option<PathBuf>,
        /// The reason.
        reason: String,
    },
    /// The [address of this machine](super::Network::local) cannot be used.
    #[error("cannot connect from {local}: {cause}")]
    Local {
        /// The address, or the interface.
        local: String,
        /// The error of the system.
        cause: io::Error,
    },
    /// QUIC could not be set up on this machine.
    #[error("cannot set up QUIC: {0}")]
    Quic(String),
    /// No runtime was given, and the caller runs in no tokio runtime.
    #[error("cannot run: {0}")]
    Runtime(io::Error),
}

/// The server's verdict on the certificate of this client by the alert of TLS in `error`, if it does (RFC 8446, section 6.2): it
/// has no other to refuse.
fn about_identity(error: &(dyn StdError + 'static)) -> &'static str {
    match alert(error).map(AlertDescription::from) {
        Some(AlertDescription::CertificateRequired) => {
            "; the server asks for a certificate of the client, and has got none"
        }
        Some(AlertDescription::CertificateExpired) => {
            "; the server refuses the certificate of the client: it has expired"
        }
        Some(AlertDescription::CertificateRevoked) => {
            "; the server refuses the certificate of the client: it was revoked"
        }
        Some(AlertDescription::UnknownCA) => {
            "; the server refuses the certificate of the client: it does not know its authority"
        }
        Some(AlertDescription::AccessDenied) => {
            "; the server refuses the certificate of the client: access is denied"
        }
        Some(
            AlertDescription::BadCertificate
            | AlertDescription::UnsupportedCertificate
            | AlertDescription::CertificateUnknown,
        ) => "; the server refuses the certificate of the client; its log says why",
        _ => "",
    }
}

/// The alert of TLS by which the peer ended the connection.
fn alert(error: &(dyn StdError + 'static)) -> Option<u8> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(ConnectionError::PeerTransport { code, .. }) = error.downcast_ref() {
            return code.tls_alert();
        }
        if let Some(rustls::Error::AlertReceived(alert)) = error.downcast_ref() {
            return Some((*alert).into());
        }
        // The source of an error of the system is that of the error inside, not that error.
        let inner = error.downcast_ref::<io::Error>();
        let inner = inner.and_then(io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

fn of(expected: Option<u64>) -> String {
    expected.map_or_else(String::new, |expected| format!(" of {expected}"))
}

impl ClientError {
    /// Whether a time limit ended it: for the connection, for progress, or for the whole fetch.
    pub fn is_timeout(&self) -> bool {
        match self {
            Self::TimeLimit { .. } | Self::ConnectTimeout { .. } | Self::TooSlow { .. } => true,
            Self::Connect { cause, .. } => matches!(
                cause.downcast_ref(),
                Some(
                    ConnectionError::HandshakeTimeout
                        | ConnectionError::IdleTimeout
                        | ConnectionError::NetworkLost(_)
                )
            ),
            Self::NoResponse { cause } | Self::Truncated { cause, .. } => cause.is::<Stalled>(),
            _ => false,
        }
    }

    /// The alert of TLS by which the server refused the connection (RFC 8446, section 6). It may arrive before or after the
    /// handshake is complete for the client.
    pub fn tls_alert(&self) -> Option<u8> {
        match self {
            Self::Connect { cause, .. } | Self::NoResponse { cause } => alert(&**cause),
            _ => None,
        }
    }

    /// Whether its connection ended because its network was down and it could not migrate: a new one uses another.
    pub(super) fn is_network_lost(&self) -> bool {
        let (Self::NoResponse { cause } | Self::Truncated { cause, .. }) = self else {
            return false;
        };
        matches!(
            cause.downcast_ref(),
            Some(RequestError::Lost(ConnectionError::NetworkLost(_)))
        )
    }

    /// Whether to repeat the request on a new connection: the server may have closed an idle one at the
    /// same time.
    pub(super) fn is_retriable(&self) -> bool {
        matches!(self, Self::NoResponse { .. }) && self.tls_alert().is_none()
    }
}
