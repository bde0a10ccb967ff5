//! Connections over TCP: HTTP/2 and HTTP/1.1 over TLS, HTTP/1.1 without encryption.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::client::danger::ServerCertVerifier;
use rustls::pki_types::{CertificateDer, ServerName};
use tokio::sync::Mutex;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::bounded::Bounded;
use super::end::End;
use super::{Connection, Opened, Sender};
use crate::body::BoxError;
use crate::client::stall::Activity;
use crate::client::target::Origin;
use crate::client::{
    CertificateProblem, ClientConfig, ClientError, HttpProxy, HttpVersion, Local, ProxyError,
};
use crate::limits;
use crate::runtime::RuntimeHandle;
use crate::stream::AnyStream;
use crate::tcp::{self, SystemSockets, TcpProtocol, TcpSockets};

const NO_MULTIPATH_HERE: &str = "this kernel does not have it";
const NO_MULTIPATH_THERE: &str = "the server does not have it, or the network removes its options";

/// Opens TCP connections.
pub(in crate::client) struct TcpClient {
    tls: Option<TlsConnector>,
    version: HttpVersion,
    /// Whether HTTP/1.1 is used where a server does not select HTTP/2.
    or_http11: bool,
    protocol: TcpProtocol,
    sockets: Arc<dyn TcpSockets>,
    runtime: RuntimeHandle,
    stall_timeout: Option<Duration>,
    max_header_bytes: u32,
    max_header_fields: usize,
    local: Option<Local>,
    unix_socket: Option<PathBuf>,
    /// Opens streams that stand in for those of TLS.
    #[cfg(feature = "testing")]
    dial: Option<Dial>,
}

/// HTTP on a new connection.
struct Begun {
    version: HttpVersion,
    sender: Sender,
    certificates: Vec<CertificateDer<'static>>,
}

#[cfg(unix)]
async fn unix_stream(path: &Path) -> std::io::Result<tokio::net::UnixStream> {
    tokio::net::UnixStream::connect(path).await
}

#[cfg(not(unix))]
async fn unix_stream(_: &Path) -> std::io::Result<tokio::net::TcpStream> {
    Err(std::io::ErrorKind::Unsupported.into())
}

/// Opens a stream to a server.
#[cfg(feature = "testing")]
pub(in crate::client) type Dial = Box<dyn Fn() -> tokio::io::DuplexStream + Send + Sync>;

impl TcpClient {
    /// Without a verifier, connections are in the clear.
    pub(in crate::client) fn new(
        config: &ClientConfig,
        verifier: Option<Arc<dyn ServerCertVerifier>>,
        runtime: RuntimeHandle,
    ) -> Result<Self, ClientError> {
        let tls = verifier.map(|verifier| config.tls(&config.tls.supported(), verifier));
        Ok(Self {
            tls: tls
                .transpose()?
                .map(|tls| TlsConnector::from(Arc::new(tls))),
            version: config.version,
            or_http11: config.or_http11,
            protocol: config.tcp_protocol,
            sockets: match &config.tcp_sockets {
                Some(sockets) => Arc::clone(sockets),
                None => Arc::new(SystemSockets),
            },
            runtime,
            stall_timeout: config.stall_timeout,
            max_header_bytes: config.max_header_bytes,
            max_header_fields: config.max_header_fields,
            local: config.network.local.clone(),
            unix_socket: config.network.unix_socket.clone(),
            #[cfg(feature = "testing")]
            dial: None,
        })
    }

    /// A client whose connections are those that `dial` opens.
    #[cfg(feature = "testing")]
    pub(in crate::client) fn over(self, dial: Dial) -> Self {
        Self {
            tls: None,
            dial: Some(dial),
            ..self
        }
    }

    pub(in crate::client) async fn connect(
        &self,
        id: u64,
        origin: &Origin,
        remote: SocketAddr,
        proxy: Option<&HttpProxy>,
    ) -> Result<Connection, ClientError> {
        let activity = Activity::new(self.runtime.clone(), self.stall_timeout);
        #[cfg(feature = "testing")]
        if let Some(dial) = &self.dial {
            let opened = Opened {
                sender: self
                    .speak(self.version, origin, Box::new(dial()), &activity)
                    .await?,
                transport: Duration::ZERO,
                certificates: Vec::new(),
                activity,
                local: remote,
                remote,
                multipath: None,
                proxy: None,
                max_header_fields: self.max_header_fields,
            };
            return Ok(Connection::new(id, self.version, opened));
        }
        let unreachable = |cause: BoxError| match proxy {
            None => ClientError::Connect {
                host: origin.host.clone(),
                address: remote,
                cause,
            },
            Some(proxy) => ClientError::Proxy {
                proxy: proxy.to_string(),
                cause: ProxyError::Connect {
                    address: remote,
                    cause,
                },
            },
        };
        let no_multipath = |reason| ClientError::NoMultipathTcp {
            host: origin.host.clone(),
            address: remote,
            reason,
        };
        let start = self.runtime.now();
        if let Some(path) = &self.unix_socket {
            let stream = unix_stream(path).await;
            let stream = stream.map_err(|error| unreachable(error.into()))?;
            let begun = self
                .begin(origin, remote, Box::new(stream), &activity)
                .await?;
            let opened = Opened {
                transport: self.runtime.now().saturating_since(start),
                sender: begun.sender,
                certificates: begun.certificates,
                activity,
                local: remote,
                remote,
                multipath: None,
                proxy: None,
                max_header_fields: self.max_header_fields,
            };
            return Ok(Connection::new(id, begun.version, opened));
        }
        let local = self.local_address(remote)?;
        let stream = tcp::connect(&*self.sockets, local, remote, self.protocol)
            .await
            .map_err(|error| match self.protocol {
                TcpProtocol::Multipath if tcp::has_no_multipath(&error) => {
                    no_multipath(NO_MULTIPATH_HERE)
                }
                _ => unreachable(error.into()),
            })?;
        let transport = self.runtime.now().saturating_since(start);
        let multipath = match self.protocol {
            TcpProtocol::Tcp => None,
            TcpProtocol::Multipath => {
                let socket = tcp::handle(&stream).map_err(|error| unreachable(error.into()))?;
                tcp::subflows(&socket).map_err(|_| no_multipath(NO_MULTIPATH_THERE))?;
                Some(socket)
            }
        };
        let _ = stream.set_nodelay(true);
        let local = stream
            .local_addr()
            .map_err(|error| unreachable(error.into()))?;
        let is_read = proxy.is_some_and(HttpProxy::reads_requests) && self.tls.is_none();
        let refused = |proxy: &HttpProxy, cause| ClientError::Proxy {
            proxy: proxy.to_string(),
            cause,
        };
        let stream: AnyStream = match proxy.filter(|_| !is_read) {
            None => Box::new(stream),
            Some(proxy) if proxy.reads_requests() => {
                let tunnel = proxy.tunnel(stream, origin).await;
                Box::new(tunnel.map_err(|cause| refused(proxy, cause))?)
            }
            Some(proxy) => {
                let tunnel = proxy.socks(stream, origin).await;
                Box::new(tunnel.map_err(|cause| refused(proxy, cause))?)
            }
        };
        let begun = self.begin(origin, remote, stream, &activity).await?;
        let opened = Opened {
            transport,
            sender: begun.sender,
            certificates: begun.certificates,
            activity,
            local,
            remote,
            multipath,
            proxy: proxy.filter(|_| is_read).cloned(),
            max_header_fields: self.max_header_fields,
        };
        Ok(Connection::new(id, begun.version, opened))
    }

    /// The address of this machine to connect from, if it is given.
    fn local_address(&self, remote: SocketAddr) -> Result<Option<IpAddr>, ClientError> {
        let Some(local) = &self.local else {
            return Ok(None);
        };
        let address = local.address(remote, &self.runtime);
        address.map(Some).map_err(|cause| ClientError::Local {
            local: local.to_string(),
            cause,
        })
    }

    /// Begins TLS, if there is to be any, and HTTP on a connection, or on a tunnel.
    async fn begin(
        &self,
        origin: &Origin,
        remote: SocketAddr,
        stream: AnyStream,
        activity: &Arc<Activity>,
    ) -> Result<Begun, ClientError> {
        let Some(tls) = &self.tls else {
            let sender = self.speak(self.version, origin, stream, activity).await?;
            let version = self.version;
            return Ok(Begun {
                version,
                sender,
                certificates: Vec::new(),
            });
        };
        let stream = self.encrypt(tls, origin, remote, stream).await?;
        let version = self.negotiated(origin, &stream)?;
        let certificates = stream.get_ref().1.peer_certificates();
        let certificates = certificates.unwrap_or_default().to_vec();
        let stream = Box::new(stream);
        let sender = self.speak(version, origin, stream, activity).await?;
        Ok(Begun {
            version,
            sender,
            certificates,
        })
    }

    /// Begins TLS on a connection, or on a tunnel.
    async fn encrypt(
        &self,
        tls: &TlsConnector,
        origin: &Origin,
        remote: SocketAddr,
        stream: AnyStream,
    ) -> Result<TlsStream<AnyStream>, ClientError> {
        let name = ServerName::try_from(origin.host.clone()).map_err(|_| ClientError::Url {
            url: origin.host.clone(),
            reason: "not a name that a certificate can have",
        })?;
        tls.connect(name, stream)
            .await
            .map_err(|error| self.explain(origin, remote, error))
    }

    /// The version of HTTP that the server has chosen.
    fn negotiated(
        &self,
        origin: &Origin,
        stream: &TlsStream<AnyStream>,
    ) -> Result<HttpVersion, ClientError> {
        let chosen = stream.get_ref().1.alpn_protocol();
        match chosen == Some(HttpVersion::Http2.alpn()) || self.version != HttpVersion::Http2 {
            true => Ok(self.version),
            // Servers without ALPN use HTTP/1.1.
            false if self.or_http11 => Ok(HttpVersion::Http11),
            false => Err(self.wrong_protocol(origin, "ALPN did not select it".into())),
        }
    }

    async fn speak(
        &self,
        version: HttpVersion,
        origin: &Origin,
        stream: AnyStream,
        activity: &Arc<Activity>,
    ) -> Result<Sender, ClientError> {
        let idle_bytes = match version {
            HttpVersion::Http2 => limits::MAX_IDLE_BYTES + limits::HTTP2_MAX_WINDOW,
            _ => limits::MAX_IDLE_BYTES,
        };
        let stream = TokioIo::new(Bounded::new(stream, Arc::clone(activity), idle_bytes));
        if version == HttpVersion::Http2 {
            let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                .timer(TokioTimer::new())
                .adaptive_window(true)
                .max_header_list_size(self.max_header_bytes)
                .handshake(stream)
                .await
                .map_err(|error| self.wrong_protocol(origin, error.into()))?;
            let end = End::default();
            tokio::spawn(end.clone().keep(connection));
            Ok(Sender::Http2 { sender, end })
        } else {
            let (sender, connection) = http1::Builder::new()
                .max_buf_size(self.max_header_bytes as usize)
                .max_headers(self.max_header_fields)
                .handshake(stream)
                .await
                .map_err(|error| self.wrong_protocol(origin, error.into()))?;
            let end = End::default();
            tokio::spawn(end.clone().keep(connection));
            let sender = Mutex::new(sender);
            Ok(Sender::Http1 { sender, end })
        }
    }

    fn explain(&self, origin: &Origin, address: SocketAddr, error: std::io::Error) -> ClientError {
        use rustls::{AlertDescription, Error};

        let host = origin.host.clone();
        let inner = error.get_ref().and_then(|inner| inner.downcast_ref());
        match inner {
            Some(Error::InvalidCertificate(refused)) => ClientError::Certificate {
                host,
                problem: CertificateProblem::of(refused),
                cause: error.into(),
            },
            Some(
                Error::AlertReceived(AlertDescription::NoApplicationProtocol)
                | Error::InvalidMessage(_),
            ) => self.wrong_protocol(origin, error.into()),
            _ => match inner.and_then(old_tls) {
                Some(reason) => ClientError::Tls {
                    host,
                    address,
                    reason,
                    cause: error.into(),
                },
                None => ClientError::Connect {
                    host,
                    address,
                    cause: error.into(),
                },
            },
        }
    }

    fn wrong_protocol(&self, origin: &Origin, cause: BoxError) -> ClientError {
        ClientError::WrongProtocol {
            host: origin.host.clone(),
            wanted: self.version.name(),
            cause,
        }
    }
}

/// The feature that the TLS of a server lacks, if that caused `error`.
fn old_tls(error: &rustls::Error) -> Option<&'static str> {
    use rustls::{AlertDescription, Error, PeerIncompatible};

    match error {
        Error::AlertReceived(AlertDescription::ProtocolVersion)
        | Error::PeerIncompatible(
            PeerIncompatible::ServerDoesNotSupportTls12Or13
            | PeerIncompatible::ServerTlsVersionIsDisabledByOurConfig,
        ) => Some("it offers no version of TLS that may be used"),
        Error::AlertReceived(AlertDescription::HandshakeFailure) => Some(
            "it accepts no cipher suite or group that is offered; those of TLS 1.2 have ECDHE and AEAD",
        ),
        Error::PeerIncompatible(PeerIncompatible::ExtendedMasterSecretExtensionRequired) => {
            Some("its TLS 1.2 has no extended master secret (RFC 7627)")
        }
        _ => None,
    }
}
