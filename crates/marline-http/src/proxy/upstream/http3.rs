//! Connections to applications over HTTP/3.

use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body::{Frame, SizeHint};

use crate::body::{Body, BoxError};
use crate::client::{Client, ClientError, Connection, Download, OpenStream, Origin};

/// Opens connections of HTTP/3 to one application.
#[derive(Clone)]
pub(super) struct Http3Dialer {
    client: Arc<Client>,
    /// The application, with the name that its certificate must have.
    origin: Arc<Origin>,
}

/// A connection of HTTP/3, which requests share.
#[derive(Clone)]
pub(super) struct Http3Connection {
    dialer: Http3Dialer,
    connection: Arc<Connection>,
}

/// A connection of HTTP/3 for one request.
pub(super) struct Http3Sender {
    connection: Http3Connection,
    /// The stream of the request; without one, the request waits until the application allows one more.
    stream: Option<OpenStream>,
}

impl Http3Dialer {
    pub(super) fn new(client: Arc<Client>, origin: Origin) -> Self {
        Self {
            client,
            origin: Arc::new(origin),
        }
    }

    /// Opens a connection to `address`.
    ///
    /// # Errors
    /// Nothing answers there, its certificate is not accepted, or it speaks another protocol.
    pub(super) async fn dial(&self, address: SocketAddr) -> Result<Http3Connection, ClientError> {
        let connection = self.client.connect_at(&self.origin, address).await?;
        Ok(Http3Connection {
            dialer: self.clone(),
            connection: Arc::new(connection),
        })
    }
}

impl Http3Connection {
    /// The connection for a request, if the application allows one more on it now.
    pub(super) fn try_sender(&self) -> Option<Http3Sender> {
        let stream = self.connection.try_open()?;
        Some(Http3Sender {
            connection: self.clone(),
            stream: Some(stream),
        })
    }

    /// The connection for a request, which may have to wait until the application allows one more.
    pub(super) fn sender(&self) -> Http3Sender {
        Http3Sender {
            stream: self.connection.try_open(),
            connection: self.clone(),
        }
    }

    pub(super) fn rtt(&self) -> Option<Duration> {
        self.connection.quic().map(marline::Connection::rtt)
    }

    pub(super) fn is_closed(&self) -> bool {
        self.connection.is_closed()
    }
}

impl Http3Sender {
    /// Sends a request, and waits for the header of its response.
    ///
    /// # Errors
    /// There is no response.
    pub(super) async fn send(self, request: Request<Body>) -> Result<Response<Body>, ClientError> {
        let Http3Connection { dialer, connection } = self.connection;
        let sending = connection.request_on(self.stream, &dialer.origin, request);
        let response = sending.await?;
        Ok(response.map(|download| {
            Body::new(Held {
                download,
                _client: dialer.client,
            })
        }))
    }
}

/// The content of a response, whose connection would end with the client.
struct Held {
    download: Download,
    _client: Arc<Client>,
}

impl http_body::Body for Held {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let download = Pin::new(&mut self.get_mut().download);
        download.poll_frame(cx).map_err(Into::into)
    }

    fn is_end_stream(&self) -> bool {
        self.download.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.download.size_hint()
    }
}
