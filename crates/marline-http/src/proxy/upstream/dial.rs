//! New connections to applications.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::sync::{mpsc, oneshot};
use tokio::time::sleep;

use super::http3::{Http3Connection, Http3Dialer, Http3Sender};
use super::stream::Stream;
use crate::body::Body;
use crate::client::{ClientError, HttpVersion, Origin};
use crate::limits;
use crate::proxy::config::ProxyConfig;
use crate::proxy::failure::{Failure, cause, unreachable};
use crate::proxy::tls::{InvalidTlsName, Secured, TlsConnectors};
use crate::proxy::url::{UpstreamProtocol, UpstreamUrl};
use crate::stream::AnyStream;

/// The place where an application listens.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Address {
    Ip(SocketAddr),
    Unix(PathBuf),
}

/// An open connection for one request.
pub(super) enum Sender {
    Http1(http1::SendRequest<Body>),
    Http2(Http2Sender),
    Http3(Http3Sender),
}

/// An open connection that requests share.
pub(super) enum Shared {
    Http2(Http2Sender),
    Http3(Http3Connection),
}

/// A connection of HTTP/2.
#[derive(Clone)]
pub(super) struct Http2Sender {
    pub(super) requests: http2::SendRequest<Body>,
    /// Asks the task of the connection whether the application has announced that it accepts extended CONNECT.
    questions: mpsc::Sender<oneshot::Sender<bool>>,
}

impl Http2Sender {
    /// Whether the application accepts extended CONNECT, which it announces at the beginning of a connection (RFC 8441, section 3).
    pub(super) async fn accepts_connect(&self) -> bool {
        for _ in 0..limits::SETTINGS_POLLS {
            let (answer, answered) = oneshot::channel();
            if self.questions.send(answer).await.is_err() {
                // The connection has ended, which sending the request shows.
                return true;
            }
            if matches!(answered.await, Ok(true)) {
                return true;
            }
            sleep(limits::SETTINGS_POLL).await;
        }
        false
    }
}

/// A connection that has opened.
pub(super) enum Dialed {
    Http1(http1::SendRequest<Body>),
    Shared(Shared),
}

/// Opens connections to one application.
pub(super) struct Dialer {
    protocol: UpstreamProtocol,
    tls: Option<Tls>,
    http3: Option<Http3Dialer>,
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
    /// There is no connection of HTTP/3.
    #[error(transparent)]
    Http3(#[from] ClientError),
    /// Nothing arrives from its address.
    #[error("no answer within {} s", .0.as_secs_f64())]
    Silent(Duration),
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
            Self::Silent(limit) => return Failure::ConnectTimeout(*limit),
            Self::Http3(error) if error.is_timeout() => return Failure::ConnectTimeout(limit),
            Self::Http3(error @ ClientError::Certificate { .. }) => {
                return Failure::Certificate(error.to_string());
            }
            Self::Http3(error @ ClientError::WrongProtocol { .. }) => {
                return Failure::Tls(error.to_string());
            }
            Self::Http3(ClientError::Connect { cause, .. }) => {
                return Failure::Connect(unreachable(cause));
            }
            Self::Http3(_) => {}
        }
        Failure::Connect(cause(&self))
    }
}

impl Shared {
    /// The connection for one more request; `None` if the application allows none now.
    pub(super) fn try_sender(&self) -> Option<Sender> {
        match self {
            Self::Http2(sender) => Some(Sender::Http2(sender.clone())),
            Self::Http3(connection) => connection.try_sender().map(Sender::Http3),
        }
    }

    /// The connection for one more request, which may have to wait for those before it.
    pub(super) fn sender(&self) -> Sender {
        match self {
            Self::Http2(sender) => Sender::Http2(sender.clone()),
            Self::Http3(connection) => Sender::Http3(connection.sender()),
        }
    }

    /// Connections of its kind that one address may have.
    pub(super) fn most(&self) -> usize {
        match self {
            Self::Http2(_) => 1,
            Self::Http3(_) => limits::MAX_UPSTREAM_HTTP3_CONNECTIONS,
        }
    }

    /// Its round-trip time, if it is known.
    pub(super) fn rtt(&self) -> Option<Duration> {
        match self {
            Self::Http2(_) => None,
            Self::Http3(connection) => connection.rtt(),
        }
    }

    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::Http2(sender) => sender.requests.is_closed(),
            Self::Http3(connection) => connection.is_closed(),
        }
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
    /// Opens connections to the application at `url`, as `secured` says if its protocol has TLS.
    ///
    /// # Errors
    /// Its host is not a name that a certificate can have.
    pub(super) fn new(
        url: &UpstreamUrl,
        config: &ProxyConfig,
        secured: &Secured,
    ) -> Result<Self, InvalidTlsName> {
        let (mut tls, mut http3) = (None, None);
        if url.protocol().is_encrypted() {
            let authority = url.authority();
            let name = config.tls.name_of(authority.host())?;
            let client = secured.http3.as_ref();
            match client.filter(|_| url.protocol() == UpstreamProtocol::H3) {
                Some(client) => {
                    let origin = Origin::named(&name, authority);
                    http3 = Some(Http3Dialer::new(Arc::clone(client), origin));
                }
                None => {
                    let connectors = secured.tcp.clone();
                    tls = connectors.map(|connectors| Tls { connectors, name });
                }
            }
        }
        Ok(Self {
            protocol: url.protocol(),
            tls,
            http3,
            // By then, the wait for the response has ended.
            write_timeout: config.response_timeout.max(config.idle_timeout),
            max_header_bytes: config.max_header_bytes,
            max_header_fields: config.max_header_fields,
            connection_window: config.connection_window(),
        })
    }

    /// Whether its connections are of HTTP/3.
    pub(super) fn is_http3(&self) -> bool {
        self.http3.is_some()
    }

    /// Opens a connection to `address`, which is one of HTTP/1.1 if `http1` is set.
    ///
    /// # Errors
    /// Nothing listens there, TLS does not accept it, or it speaks another protocol.
    pub(super) async fn dial(&self, address: &Address, http1: bool) -> Result<Dialed, DialError> {
        match address {
            Address::Ip(address) => {
                if let Some(http3) = &self.http3 {
                    let connection = http3.dial(*address).await?;
                    return Ok(Dialed::Shared(Shared::Http3(connection)));
                }
                let stream = TcpStream::connect(address).await?;
                // It fails if the connection has ended.
                let _ = stream.set_nodelay(true);
                self.secure(Box::new(stream), http1).await
            }
            #[cfg(unix)]
            Address::Unix(path) => {
                let stream = tokio::net::UnixStream::connect(path).await?;
                self.secure(Box::new(stream), http1).await
            }
            #[cfg(not(unix))]
            Address::Unix(_) => Err(io::Error::from(io::ErrorKind::Unsupported).into()),
        }
    }

    async fn secure(&self, stream: AnyStream, http1: bool) -> Result<Dialed, DialError> {
        let stream = Box::new(Stream::new(stream, self.write_timeout));
        let Some(tls) = &self.tls else {
            return match self.protocol {
                UpstreamProtocol::H2c => self.speak_http2(stream).await,
                _ => self.speak_http1(stream).await,
            };
        };
        let connector = match http1 {
            true => &tls.connectors.http1,
            false => &tls.connectors.any,
        };
        let stream = connector.connect(tls.name.clone(), stream).await?;
        let is_http2 = stream.get_ref().1.alpn_protocol() == Some(HttpVersion::Http2.alpn());
        let stream = Box::new(stream);
        match is_http2 {
            true => self.speak_http2(stream).await,
            false => self.speak_http1(stream).await,
        }
    }

    async fn speak_http1(&self, stream: AnyStream) -> Result<Dialed, DialError> {
        let (sender, connection) = http1::Builder::new()
            .max_buf_size(self.max_header_bytes)
            .max_headers(self.max_header_fields)
            .handshake(TokioIo::new(stream))
            .await?;
        // Errors of the connection are returned by its requests.
        tokio::spawn(connection.with_upgrades());
        Ok(Dialed::Http1(sender))
    }

    async fn speak_http2(&self, stream: AnyStream) -> Result<Dialed, DialError> {
        let (sender, connection) = http2::Builder::new(TokioExecutor::new())
            .timer(TokioTimer::new())
            .initial_stream_window_size(limits::UPSTREAM_STREAM_WINDOW)
            .initial_connection_window_size(self.connection_window)
            .max_header_list_size(u32::try_from(self.max_header_bytes).unwrap_or(u32::MAX))
            .max_send_buf_size(limits::HTTP2_SEND_BUFFER)
            .handshake(TokioIo::new(stream))
            .await?;
        let (questions, mut asked) = mpsc::channel::<oneshot::Sender<bool>>(1);
        tokio::spawn(async move {
            let mut connection = pin!(connection);
            loop {
                tokio::select! {
                    // Its errors are those of its requests.
                    _ = connection.as_mut() => return,
                    Some(answer) = asked.recv() => {
                        // Fails if the request has ended.
                        let _ = answer.send(connection.is_extended_connect_protocol_enabled());
                    }
                }
            }
        });
        Ok(Dialed::Shared(Shared::Http2(Http2Sender {
            requests: sender,
            questions,
        })))
    }
}
