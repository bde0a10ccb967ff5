//! New connections to applications.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;

use super::stream::Stream;
use crate::body::Body;
use crate::client::HttpVersion;
use crate::limits;
use crate::proxy::config::ProxyConfig;
use crate::proxy::failure::{Failure, cause};
use crate::proxy::tls::{InvalidTlsName, TlsConnectors};
use crate::proxy::url::{UpstreamProtocol, UpstreamUrl};

/// The place where an application listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Address {
    Tcp(SocketAddr),
    Unix(PathBuf),
}

/// An open connection, on which requests are sent.
#[derive(Debug)]
pub(super) enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(http2::SendRequest<Body>),
}

/// Opens connections to one application.
pub(super) struct Dialer {
    protocol: UpstreamProtocol,
    tls: Option<Tls>,
    write_timeout: Duration,
    max_header_bytes: usize,
    max_header_fields: usize,
    connection_window: u32,
}

struct Tls {
    connectors: TlsConnectors,
    name: ServerName<'static>,
}

/// The reason why there is no connection.
#[derive(Debug, thiserror::Error)]
pub(in crate::proxy) enum DialError {
    /// Its name has no address, it is unreachable, or TLS fails.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It speaks another protocol.
    #[error(transparent)]
    Http(#[from] hyper::Error),
}

impl DialError {
    /// The failure of a request that needs the connection, for which there was `limit`.
    pub(in crate::proxy) fn into_failure(self, limit: Duration) -> Failure {
        match &self {
            Self::Io(error) if error.kind() == io::ErrorKind::TimedOut => {
                return Failure::ConnectTimeout(limit);
            }
            Self::Io(error) => {
                let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
                let detail = |error: &rustls::Error| error.to_string();
                match inner {
                    Some(error @ rustls::Error::InvalidCertificate(_)) => {
                        return Failure::Certificate(detail(error));
                    }
                    Some(error) => return Failure::Tls(detail(error)),
                    None => {}
                }
            }
            Self::Http(_) => {}
        }
        Failure::Connect(cause(&self))
    }
}

impl fmt::Debug for Dialer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dialer")
            .field("protocol", &self.protocol)
            .finish_non_exhaustive()
    }
}

impl Dialer {
    /// Opens connections to the application at `url`, by `tls` if its protocol has TLS.
    ///
    /// # Errors
    /// Its host is not a name that a certificate can have.
    pub(super) fn new(
        url: &UpstreamUrl,
        config: &ProxyConfig,
        tls: Option<&TlsConnectors>,
    ) -> Result<Self, InvalidTlsName> {
        let tls = match tls.filter(|_| url.protocol().is_encrypted()) {
            None => None,
            Some(connectors) => Some(Tls {
                connectors: connectors.clone(),
                name: config.tls.name_of(url.authority().host())?,
            }),
        };
        // As much as all streams together, so that unread ones do not block the others.
        let streams = u32::try_from(config.max_requests).unwrap_or(u32::MAX);
        let connection_window = limits::UPSTREAM_STREAM_WINDOW
            .saturating_mul(streams)
            .min(limits::LARGEST_HTTP2_WINDOW);
        Ok(Self {
            protocol: url.protocol(),
            tls,
            // By then, the wait for the response has ended.
            write_timeout: config.response_timeout.max(config.idle_timeout),
            max_header_bytes: config.max_header_bytes,
            max_header_fields: config.max_header_fields,
            connection_window,
        })
    }

    /// Opens a connection to `address`, which is one of HTTP/1.1 if `http1` is set.
    ///
    /// # Errors
    /// Nothing listens there, TLS does not accept it, or it speaks another protocol.
    pub(super) async fn dial(&self, address: &Address, http1: bool) -> Result<Sender, DialError> {
        match address {
            Address::Tcp(address) => {
                let stream = TcpStream::connect(address).await?;
                // It fails if the connection has ended.
                let _ = stream.set_nodelay(true);
                self.secure(stream, http1).await
            }
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path).await?;
                self.secure(stream, http1).await
            }
            #[cfg(not(unix))]
            Address::Unix(_) => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        }
    }

    async fn secure<S>(&self, stream: S, http1: bool) -> Result<Sender, DialError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let stream = Stream::new(stream, self.write_timeout);
        let Some(tls) = &self.tls else {
            return match self.protocol {
                UpstreamProtocol::H2c => self.speak_http2(stream).await,
                UpstreamProtocol::Http | UpstreamProtocol::Https => self.speak_http1(stream).await,
            };
        };
        let connector = match http1 {
            true => &tls.connectors.http1,
            false => &tls.connectors.any,
        };
        let stream = connector.connect(tls.name.clone(), stream).await?;
        let chosen = stream.get_ref().1.alpn_protocol();
        match chosen == Some(HttpVersion::Http2.alpn()) {
            true => self.speak_http2(stream).await,
            false => self.speak_http1(stream).await,
        }
    }

    async fn speak_http1<S>(&self, stream: S) -> Result<Sender, DialError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.max_header_bytes)
            .max_headers(self.max_header_fields)
            .handshake(TokioIo::new(stream))
            .await?;
        // Errors of the connection are returned by its requests.
        tokio::spawn(connection.with_upgrades());
        Ok(Sender::Http1(sender))
    }

    async fn speak_http2<S>(&self, stream: S) -> Result<Sender, DialError>
    where
        S: AsyncRead + AsyncWrite + Send + Unpin + 'static,
    {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(limits::UPSTREAM_STREAM_WINDOW)
            .initial_connection_window_size(self.connection_window)
            .max_header_list_size(u32::try_from(self.max_header_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(limits::HTTP2_SEND_BUFFER)
            .handshake(TokioIo::new(stream))
            .await?;
        tokio::spawn(connection);
        Ok(Sender::Http2(sender))
    }
}
