//! A connection of any version of HTTP.

use std::future::poll_fn;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, ensure};
use bytes::{Buf as _, Bytes};
use http::{Request, Response, Uri};
use http_body_util::{BodyExt as _, Empty};
use hyper::body::Incoming;
use hyper::client::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo};
use quinn::{Endpoint, TransportConfig, VarInt};
use rustls::pki_types::ServerName;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::args::{Args, Reuse, Version};
use crate::tls::{self, Trusting};

/// Flow-control window of a stream, bytes: larger than any file.
const STREAM_WINDOW: u32 = 4 << 20;
/// Flow-control window of a connection, bytes.
const CONNECTION_WINDOW: u32 = 16 << 20;
/// The longest time that a handshake or a response may take.
const PATIENCE: Duration = Duration::from_secs(10);
/// H3_NO_ERROR (RFC 9114, section 8.1).
const NO_ERROR: VarInt = VarInt::from_u32(0x100);

/// A client with sessions of its own.
pub(crate) struct Client {
    server: SocketAddr,
    name: String,
    uri: Uri,
    /// The path alone, which is the target of HTTP/1.1.
    path: Uri,
    bytes: u64,
    protocol: Protocol,
}

enum Protocol {
    One(TlsConnector),
    Two(TlsConnector),
    Three(quinn::ClientConfig),
}

impl Client {
    pub(crate) fn new(args: &Args, verifier: Arc<Trusting>) -> anyhow::Result<Self> {
        let config = tls::config(args.http, args.reuse, verifier)?;
        let protocol = match args.http {
            Version::One => Protocol::One(TlsConnector::from(Arc::new(config))),
            Version::Two => Protocol::Two(TlsConnector::from(Arc::new(config))),
            Version::Three => Protocol::Three(quic(config, args.reuse)?),
        };
        Ok(Self {
            server: args.server,
            uri: format!("https://{}:{}{}", args.name, args.server.port(), args.path).parse()?,
            path: args.path.parse()?,
            name: args.name.clone(),
            bytes: args.bytes,
            protocol,
        })
    }

    /// A new connection.
    pub(crate) async fn connect(&self) -> anyhow::Result<Connection> {
        timeout(PATIENCE, self.handshake())
            .await
            .context("the handshake takes too long")?
    }

    async fn handshake(&self) -> anyhow::Result<Connection> {
        match &self.protocol {
            Protocol::One(connector) => {
                let stream = TokioIo::new(self.tls(connector).await?);
                let (sender, connection) = http1::handshake(stream).await?;
                tokio::spawn(connection);
                Ok(Connection::One(sender))
            }
            Protocol::Two(connector) => {
                let stream = TokioIo::new(self.tls(connector).await?);
                let (sender, connection) = http2::Builder::new(TokioExecutor::new())
                    .initial_stream_window_size(STREAM_WINDOW)
                    .initial_connection_window_size(CONNECTION_WINDOW)
                    .handshake(stream)
                    .await?;
                tokio::spawn(connection);
                Ok(Connection::Two(sender))
            }
            Protocol::Three(config) => {
                let any = match self.server {
                    SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
                    SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
                };
                // A socket for each connection, so that the kernel distributes them over the server's workers.
                let endpoint = Endpoint::client(any)?;
                let connecting = endpoint.connect_with(config.clone(), self.server, &self.name)?;
                let connection = connecting.await?;
                let transport = h3_quinn::Connection::new(connection.clone());
                // A frame of a reserved type after a request is one that nginx's proxy refuses.
                let (mut driver, sender) = h3::client::builder()
                    .send_grease(false)
                    .build(transport)
                    .await?;
                tokio::spawn(async move { poll_fn(|context| driver.poll_close(context)).await });
                Ok(Connection::Three(Quic { connection, sender }))
            }
        }
    }

    async fn tls(&self, connector: &TlsConnector) -> anyhow::Result<TlsStream<TcpStream>> {
        let stream = TcpStream::connect(self.server).await?;
        stream.set_nodelay(true)?;
        let name = ServerName::try_from(self.name.clone())?;
        Ok(connector.connect(name, stream).await?)
    }

    /// Requests the file, and reads it to its end.
    pub(crate) async fn request(&self, connection: &mut Connection) -> anyhow::Result<()> {
        let received = timeout(PATIENCE, self.response(connection))
            .await
            .context("the response takes too long")??;
        ensure!(
            received == self.bytes,
            "a response of {received} bytes, not of {}",
            self.bytes
        );
        Ok(())
    }

    async fn response(&self, connection: &mut Connection) -> anyhow::Result<u64> {
        match connection {
            Connection::One(sender) => {
                let request = Request::get(self.path.clone())
                    .header(http::header::HOST, &self.name)
                    .body(Empty::<Bytes>::new())?;
                sender.ready().await?;
                content(sender.send_request(request).await?).await
            }
            Connection::Two(sender) => {
                let request = Request::get(self.uri.clone()).body(Empty::<Bytes>::new())?;
                sender.ready().await?;
                content(sender.send_request(request).await?).await
            }
            Connection::Three(quic) => {
                let request = Request::get(self.uri.clone()).body(())?;
                let mut stream = quic.sender.send_request(request).await?;
                stream.finish().await?;
                accepted(&stream.recv_response().await?)?;
                let mut received = 0;
                while let Some(data) = stream.recv_data().await? {
                    received += data.remaining() as u64;
                }
                Ok(received)
            }
        }
    }
}

fn accepted<T>(response: &Response<T>) -> anyhow::Result<()> {
    let status = response.status();
    ensure!(
        status == http::StatusCode::OK,
        "a response with status {status}"
    );
    Ok(())
}

async fn content(mut response: Response<Incoming>) -> anyhow::Result<u64> {
    accepted(&response)?;
    let mut received = 0;
    while let Some(frame) = response.body_mut().frame().await {
        received += frame?.data_ref().map_or(0, Bytes::len) as u64;
    }
    Ok(received)
}

fn quic(config: rustls::ClientConfig, reuse: Reuse) -> anyhow::Result<quinn::ClientConfig> {
    let mut transport = TransportConfig::default();
    transport
        .stream_receive_window(STREAM_WINDOW.into())
        .receive_window(CONNECTION_WINDOW.into());
    if reuse != Reuse::Keep {
        // Probes of a path that carries one response.
        transport.mtu_discovery_config(None);
    }
    let mut config = quinn::ClientConfig::new(Arc::new(tls::quic(config)?));
    config.transport_config(Arc::new(transport));
    Ok(config)
}

/// An open connection.
pub(crate) enum Connection {
    One(http1::SendRequest<Empty<Bytes>>),
    Two(http2::SendRequest<Empty<Bytes>>),
    Three(Quic),
}

/// A connection of HTTP/3.
pub(crate) struct Quic {
    connection: quinn::Connection,
    sender: h3::client::SendRequest<h3_quinn::OpenStreams, Bytes>,
}

impl Connection {
    /// Another handle, for requests at the same time; HTTP/1.1 has none.
    pub(crate) fn share(&self) -> Option<Self> {
        match self {
            Self::One(_) => None,
            Self::Two(sender) => Some(Self::Two(sender.clone())),
            Self::Three(Quic { connection, sender }) => Some(Self::Three(Quic {
                connection: connection.clone(),
                sender: sender.clone(),
            })),
        }
    }

    /// Closes the connection, which handles that are dropped do over TCP.
    pub(crate) fn close(self) {
        if let Self::Three(quic) = self {
            quic.connection.close(NO_ERROR, b"");
        }
    }
}
