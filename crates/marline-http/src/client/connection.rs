//! One connection to a server, of any version of HTTP.

mod authority;
mod bounded;
mod bundles;
mod end;
mod http3;
mod paths;
mod quic;
mod tcp;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::header::HOST;
use http::uri::Authority;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri, Version};
use http_body::Body as _;
use http_body_util::BodyExt;
use hyper::client::conn::{http1, http2};
use marline_h3::{ErrorCode, Protocol};
use rustls::pki_types::CertificateDer;
use socket2::Socket;
use tokio::sync::Mutex;

use self::end::End;
pub(super) use self::http3::Http3Content;
use self::paths::PathLog;
pub(super) use self::quic::QuicClient;
pub(super) use self::tcp::TcpClient;
use super::report::{ConnectionReport, PathReport, ServerCertificates};
use super::response::{Content, Download};
use super::stall::Activity;
use super::target::Origin;
use super::{ClientError, HttpProxy, HttpVersion};
use crate::body::{Body, BoxError};
use crate::header;
use crate::http3::{RequestStream, Session};
use crate::interim;

/// An open connection. Shared by the requests on it.
pub struct Connection {
    pub(crate) id: u64,
    version: HttpVersion,
    pub(super) handshake: Duration,
    /// The time for the name of the server.
    pub(super) resolving: Duration,
    /// The time for the connection of TCP, before TLS.
    transport: Duration,
    activity: Arc<Activity>,
    local: SocketAddr,
    remote: SocketAddr,
    sender: Sender,
    /// The certificates of the server, its own first, of a connection over TLS and TCP.
    certificates: Vec<CertificateDer<'static>>,
    /// The socket, if it is one of Multipath TCP.
    multipath: Option<Socket>,
    /// The proxy that reads its requests.
    proxy: Option<HttpProxy>,
    /// Fields of the header of a response.
    max_header_fields: usize,
}

/// The stream of a request over HTTP/3 that is not sent yet.
pub(crate) struct OpenStream(RequestStream<marline::Connection>);

enum Sender {
    Http1 {
        sender: Mutex<http1::SendRequest<Body>>,
        end: End,
    },
    Http2 {
        sender: http2::SendRequest<Body>,
        end: End,
    },
    Http3 {
        session: Session<marline::Connection>,
        quic: marline::Connection,
        paths: PathLog,
    },
}

/// A connection that was opened, before it has an ID.
struct Opened {
    /// The time for the connection of TCP.
    transport: Duration,
    sender: Sender,
    activity: Arc<Activity>,
    local: SocketAddr,
    remote: SocketAddr,
    /// The certificates of the server, its own first, of a connection over TLS and TCP.
    certificates: Vec<CertificateDer<'static>>,
    /// The socket, if it is one of Multipath TCP.
    multipath: Option<Socket>,
    /// The proxy that reads its requests.
    proxy: Option<HttpProxy>,
    max_header_fields: usize,
}

impl Connection {
    /// A connection whose handshake time is not known yet.
    fn new(id: u64, version: HttpVersion, opened: Opened) -> Self {
        Self {
            id,
            version,
            handshake: Duration::ZERO,
            resolving: Duration::ZERO,
            transport: opened.transport,
            activity: opened.activity,
            local: opened.local,
            remote: opened.remote,
            sender: opened.sender,
            certificates: opened.certificates,
            multipath: opened.multipath,
            proxy: opened.proxy,
            max_header_fields: opened.max_header_fields,
        }
    }

    /// The version of HTTP that it uses.
    pub fn version(&self) -> HttpVersion {
        self.version
    }

    /// Requests `uri` with the given header fields.
    ///
    /// # Errors
    /// [`ClientError::NoResponse`]: the connection failed, or made no progress for
    /// [too long](super::ClientConfig::stall_timeout), before the header of the response was complete.
    pub async fn get(
        &self,
        origin: &Origin,
        uri: &Uri,
        headers: &HeaderMap,
    ) -> Result<Response<Download>, ClientError> {
        let mut request = Request::new(());
        *request.method_mut() = Method::GET;
        *request.uri_mut() = uri.clone();
        *request.headers_mut() = headers.clone();
        self.send(origin, request).await
    }

    /// Sends a request without content, as [`request`](Self::request).
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub async fn send(
        &self,
        origin: &Origin,
        request: Request<()>,
    ) -> Result<Response<Download>, ClientError> {
        self.request(origin, request.map(|()| Body::empty())).await
    }

    /// Sends a request of any method, and its content as the server takes it: while the response arrives, if that begins
    /// before. Dropping the response ends both. With a [`Protocol`] among the extensions of a CONNECT
    /// request, it is extended CONNECT (RFC 9220), of HTTP/3 only: content of request and response are the two directions of a
    /// tunnel. An [`Interim`](crate::Interim) among them takes interim responses. A field `Host` replaces the host of the URI in the request, not the server
    /// that it is sent to.
    ///
    /// # Errors
    /// As [`get`](Self::get); [`ClientError::Header`]: a header field that cannot be sent.
    pub async fn request(
        &self,
        origin: &Origin,
        request: Request<Body>,
    ) -> Result<Response<Download>, ClientError> {
        self.request_on(None, origin, request).await
    }

    /// Opens the stream of a request now, if the connection is HTTP/3 and the server allows one more.
    pub(crate) fn try_open(&self) -> Option<OpenStream> {
        match &self.sender {
            Sender::Http3 { session, .. } => RequestStream::try_open(session).map(OpenStream),
            Sender::Http1 { .. } | Sender::Http2 { .. } => None,
        }
    }

    /// Sends a request as [`request`](Self::request), on `stream` if there is one.
    ///
    /// # Errors
    /// As [`request`](Self::request).
    pub(crate) async fn request_on(
        &self,
        stream: Option<OpenStream>,
        origin: &Origin,
        mut request: Request<Body>,
    ) -> Result<Response<Download>, ClientError> {
        let method = request.method().clone();
        let host = authority::take(&mut request)?;
        let request = request.map(|body| match body.is_end_stream() {
            true => body,
            false => self.followed(body),
        });
        let response = self.response(stream, origin, request, host);
        let response = self.activity.watch(response);
        let response = response
            .await
            .map_err(|cause| ClientError::NoResponse { cause })?;
        if let Some(fault) = header::fault(&response, self.max_header_fields) {
            let cause = fault.into();
            return Err(ClientError::NoResponse { cause });
        }
        self.activity.on_response();
        let (parts, content) = response.into_parts();
        let download = Download::new(content, &method, &parts, &self.activity);
        Ok(Response::from_parts(parts, download))
    }

    /// The same content; its chunks count as progress of the connection.
    fn followed(&self, body: Body) -> Body {
        let activity = Arc::clone(&self.activity);
        Body::new(body.map_frame(move |frame| {
            activity.on_upload();
            frame
        }))
    }

    /// Sends a request, and waits for the header of its response.
    async fn response(
        &self,
        stream: Option<OpenStream>,
        origin: &Origin,
        mut request: Request<Body>,
        host: Option<Authority>,
    ) -> Result<Response<Content>, BoxError> {
        let is_extended = request.extensions().get::<Protocol>().is_some();
        if is_extended && !matches!(self.sender, Sender::Http3 { .. }) {
            // It would be a CONNECT without a protocol.
            return Err("extended CONNECT needs HTTP/3".into());
        }
        let is_safe = request.method().is_safe();
        match &self.sender {
            Sender::Http1 { sender, end } => {
                // HTTP/1.1 has the host in a header field, and for a server only the path in the request line.
                match &self.proxy {
                    Some(proxy) => proxy.authorize(&mut request),
                    None => {
                        let path = request.uri().path_and_query().cloned();
                        *request.uri_mut() = path.map(Uri::from).unwrap_or_default();
                    }
                }
                let host = host.as_ref().unwrap_or(&origin.authority);
                if let Ok(host) = HeaderValue::from_str(host.as_str()) {
                    request.headers_mut().insert(HOST, host);
                }
                interim::report_over_http1(&mut request);
                let mut sender = sender.lock().await;
                let explain = |error| end.explain(error);
                sender.ready().await.map_err(explain)?;
                let response = sender.send_request(request);
                Ok(response.await.map_err(explain)?.map(Content::Hyper))
            }
            Sender::Http2 { sender, end } => {
                authority::put(&mut request, host);
                *request.version_mut() = Version::HTTP_2;
                let mut sender = sender.clone();
                let explain = |error| end.explain(error);
                sender.ready().await.map_err(explain)?;
                let response = sender.send_request(request);
                Ok(response.await.map_err(explain)?.map(Content::Hyper))
            }
            Sender::Http3 { session, quic, .. } => {
                // Early data can be replayed by an attacker (RFC 8470 section 2).
                if !is_safe {
                    quic.connected().await?;
                }
                authority::put(&mut request, host);
                *request.version_mut() = Version::HTTP_3;
                let runtime = self.activity.runtime();
                let stream = stream.map(|stream| stream.0);
                let response = http3::exchange(session, runtime, request, stream).await?;
                Ok(response.map(Content::Http3))
            }
        }
    }

    /// Whether no more requests can be sent.
    pub fn is_closed(&self) -> bool {
        match &self.sender {
            Sender::Http1 { sender, .. } => {
                sender.try_lock().is_ok_and(|sender| sender.is_closed())
            }
            Sender::Http2 { sender, .. } => sender.is_closed(),
            Sender::Http3 { session, quic, .. } => {
                session.is_ending() || quic.close_reason().is_some()
            }
        }
    }

    /// Whether its handshake is not complete: requests are sent in 0-RTT.
    pub(super) fn is_early(&self) -> bool {
        self.quic()
            .is_some_and(|quic| quic.stats().handshake.is_none())
    }

    /// Whether the header of a response has arrived.
    fn has_responded(&self) -> bool {
        self.activity.has_progress()
    }

    /// Closes it if it is HTTP/3: requests on it fail.
    pub(crate) fn close(&self) {
        if let Some(quic) = self.quic() {
            quic.close(ErrorCode::NO_ERROR.value(), b"");
        }
    }

    /// The QUIC connection, if this is HTTP/3.
    pub fn quic(&self) -> Option<&marline::Connection> {
        match &self.sender {
            Sender::Http3 { quic, .. } => Some(quic),
            _ => None,
        }
    }

    /// Whether the server announced that it coordinates the connections of a bundle.
    pub(crate) fn peer_coordinates_bundles(&self) -> bool {
        self.quic()
            .is_some_and(marline::Connection::peer_coordinates_bundles)
    }

    /// Whether it may have several paths: both ends negotiated multipath.
    pub(crate) fn is_multipath(&self) -> bool {
        self.quic().is_some_and(marline::Connection::is_multipath)
    }

    /// The subflows that it has now, if it is one of Multipath TCP.
    fn subflows(&self) -> Option<u32> {
        let socket = self.multipath.as_ref()?;
        crate::tcp::subflows(socket).ok()
    }

    /// The report of the connection so far.
    pub fn report(&self) -> ConnectionReport {
        let received = self.activity.received();
        let stats = self.quic().map(marline::Connection::stats);
        let paths = match (&self.sender, &stats) {
            (Sender::Http3 { paths, .. }, Some(stats)) => paths.reports(&stats.paths, self.local),
            _ => vec![PathReport {
                id: 0,
                local: self.local,
                remote: self.remote,
                rtt_s: None,
                bytes_received: received,
                bytes_sent: None,
                packets_lost: None,
                closed: None,
            }],
        };
        let handshake = stats.as_ref().and_then(|stats| stats.handshake);
        let peer_loss_estimate = stats
            .as_ref()
            .and_then(marline::ConnectionStats::peer_loss_estimate);
        ConnectionReport {
            id: self.id,
            http_version: self.version.label(),
            quic_version: stats.as_ref().and_then(|stats| quic_version(stats.version)),
            resolve_s: self.resolving.as_secs_f64(),
            transport_s: self.transport.as_secs_f64(),
            handshake_s: handshake.unwrap_or(self.handshake).as_secs_f64(),
            bytes_received: received,
            peer_loss_estimate,
            peer_packets_sent: stats.as_ref().map(|stats| stats.peer_packets_sent()),
            peer_packets_missing: stats.as_ref().map(|stats| stats.peer_packets_missing()),
            multipath: self.is_multipath(),
            mptcp_subflows: self.subflows(),
            certificates: ServerCertificates::new(match self.quic() {
                Some(quic) => quic.peer_certificates().unwrap_or_default(),
                None => self.certificates.clone(),
            }),
            packets_lost_observed: stats.map(|stats| stats.packets_lost()),
            paths,
        }
    }
}

impl std::fmt::Debug for Connection {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connection")
            .field("id", &self.id)
            .field("version", &self.version)
            .field("remote", &self.remote)
            .finish_non_exhaustive()
    }
}

/// The name of a version of QUIC in reports.
fn quic_version(number: u32) -> Option<&'static str> {
    marline::Version::from_number(number).map(|version| match version {
        marline::Version::V2 => "v2",
        _ => "v1",
    })
}
