//! HTTP/2 and HTTP/1.1 over TLS over TCP, and cleartext HTTP/1.1 for laboratories.

mod closing;
mod deliveries;
mod draining;
mod flood_guard;
mod handshake;
mod http2;
mod outbox;
mod proxy_protocol;
mod socket;
mod tunnels;
mod unread;

use std::convert::Infallible;
use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::header::CONNECTION;
use http::{HeaderValue, Method, Request, Response, Version};
use http_body_util::BodyExt;
use hyper::body::{Body as _, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

pub(super) use self::closing::Closing;
use self::deliveries::Content;
pub(super) use self::deliveries::Deliveries;
use self::draining::Drain;
use self::flood_guard::Http2FloodGuard;
use self::handshake::Protocol;
pub(super) use self::handshake::Tls;
pub(super) use self::outbox::Outbox;
use self::proxy_protocol::Announced;
pub(super) use self::socket::Reset;
use self::socket::Socket;
pub(super) use self::tunnels::Tunnels;
use self::unread::Unread;
use super::accept::{self, Accepted};
use super::admission::Peer;
use super::alt_svc::AltSvc;
use super::challenges::ACME_TLS;
use super::exchange::{refuse, respond, unreadable};
use super::monitor::Activity;
use super::progress::Progress;
use super::received::{OpenContents, Received};
use super::record::{Answer, Recorder};
use super::refusal::Refusal;
use super::resources::{Chunk, Origin};
use super::{Context, ServerLimits, TlsClient};
use crate::body::Body;
use crate::log::Level;
use crate::log::messages::{self, Frequent};
use crate::stream::AnyStream;
use crate::{header, limits};

/// The response to cleartext HTTP where TLS is expected.
const NOT_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Content-Length: 42\r\nConnection: close\r\n\r\nThis port serves HTTPS: use an https URL.\n";

/// The length of its content, in bytes.
const NOT_TLS_CONTENT: usize = 42;

/// The client's connection preface of HTTP/2 (RFC 9113, section 3.4).
const PREFACE: &[u8; limits::HTTP2_PREFACE_BYTES] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Sends `refusal` to a client that does not speak TLS.
async fn refuse_unread<S: AsyncWrite + Unpin>(mut stream: S, refusal: &[u8]) -> io::Result<()> {
    stream.write_all(refusal).await?;
    stream.shutdown().await
}

/// A TCP listener.
pub(super) struct Listener {
    socket: TcpListener,
    alt_svc: Option<AltSvc>,
}

impl Listener {
    /// A listener whose responses announce `alt_svc`, if that is some.
    pub(super) fn new(socket: TcpListener, alt_svc: Option<AltSvc>) -> Self {
        Self { socket, alt_svc }
    }

    pub(super) fn socket(&self) -> &TcpListener {
        &self.socket
    }

    /// Accepts connections until the server stops, then waits for them to finish.
    pub(super) async fn run(self, context: Arc<Context>) {
        let Self { socket, alt_svc } = self;
        let mut connections = JoinSet::new();
        let mut announced = Announced::default();
        let mut stopped = context.stop.stopped();
        // Each tunnel holds a sender.
        let (tunnel, mut tunnels) = mpsc::channel::<()>(1);
        let begin = |accepted, connections: &mut JoinSet<()>| {
            Self::begin(&context, connections, &tunnel, alt_svc.as_ref(), accepted);
        };
        loop {
            let accepted = tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(_) = connections.join_next() => continue,
                Some(accepted) = announced.next() => accepted,
                accepted = accept::next(&socket) => match announced.take(&context, accepted) {
                    Some(accepted) => accepted,
                    None => continue,
                },
            };
            begin(accepted, &mut connections);
        }
        if context.is_handed_over() {
            // Another process has it as well, and accepts those that wait.
            drop(socket);
        } else {
            accept::last(socket, |accepted| {
                if let Some(accepted) = announced.take(&context, accepted) {
                    begin(accepted, &mut connections);
                }
            })
            .await;
        }
        while let Some(accepted) = announced.next().await {
            begin(accepted, &mut connections);
        }
        drop(tunnel);
        let finished = async {
            while connections.join_next().await.is_some() {}
            tunnels.recv().await;
        };
        tokio::select! {
            biased;
            () = finished => {}
            () = context.cut.stopped() => {}
        }
        connections.shutdown().await;
    }

    /// Serves a connection in a task of its own, if the client may have another.
    fn begin(
        context: &Arc<Context>,
        connections: &mut JoinSet<()>,
        tunnel: &mpsc::Sender<()>,
        alt_svc: Option<&AltSvc>,
        accepted: Accepted<TcpStream>,
    ) {
        let Accepted { stream, client } = accepted;
        let min_bytes = context.current.get().limits.min_progress_bytes;
        let progress = Arc::new(Progress::new(&context.runtime, min_bytes));
        let peer = match context.current.get().trusted.has(client.ip()) {
            true => Peer::Proxy(client.ip()),
            false => Peer::Client(client.ip()),
        };
        let Some(admitted) = context.admission.admit(peer, &progress) else {
            return context.refused(client);
        };
        let tls = context.current.get().tls.clone();
        let chunk = Chunk::of(limits::TCP_CHUNK_BYTES);
        let origin = Origin::new(context, client.ip(), chunk, None);
        let account = origin.account();
        let reset = Reset::default();
        let deliveries = Deliveries::new(Arc::clone(&progress));
        let connection = ClientConnection {
            context: Arc::clone(context),
            client,
            origin,
            id: context.tcp_connections.fetch_add(1, Ordering::Relaxed) + 1,
            alt_svc: alt_svc.cloned(),
            outbox: Outbox::new(deliveries.clone()),
            deliveries,
            progress,
            tunnels: Tunnels::new(tunnel.downgrade(), reset.clone()),
            reset,
            tls: None,
        };
        let context = Arc::clone(context);
        connections.spawn(async move {
            let Some(slot) = context.slot_for(client.ip()).await else {
                return context.refused(client);
            };
            let evicted = async {
                tokio::select! {
                    () = admitted.evicted() => account.evict(),
                    () = account.evicted() => {}
                }
                // GOAWAY takes a moment.
                let leaving = context.leaving.try_acquire();
                if leaving.is_ok() {
                    sleep(limits::EVICTION_TIME).await;
                }
            };
            tokio::select! {
                biased;
                () = connection.run(stream, tls) => {}
                () = evicted => {}
            }
            drop(slot);
        });
    }
}

/// One connection of a client.
pub(super) struct ClientConnection {
    pub(super) context: Arc<Context>,
    pub(super) client: SocketAddr,
    pub(super) origin: Origin,
    pub(super) id: u64,
    pub(super) alt_svc: Option<AltSvc>,
    pub(super) progress: Arc<Progress>,
    pub(super) deliveries: Deliveries,
    pub(super) outbox: Outbox,
    pub(super) tunnels: Tunnels,
    pub(super) reset: Reset,
    /// Once a handshake is complete.
    pub(super) tls: Option<TlsClient>,
}

impl ClientConnection {
    /// Serves `stream`, and closes it.
    async fn run(self, stream: TcpStream, tls: Option<Tls>) {
        let idle = self.context.current.get().limits.idle_timeout;
        let (close, closing) = oneshot::channel();
        let quiet = self.serve(stream, tls, close).await;
        // The site may still read from a tunnel.
        if let Ok(closing) = closing.await {
            closing.linger(idle, quiet).await;
        }
    }

    /// Serves `stream`, which is passed to `close` in the end. Returns the time for which a client that has everything may send
    /// nothing before it is closed.
    async fn serve(
        mut self,
        stream: TcpStream,
        tls: Option<Tls>,
        close: oneshot::Sender<Closing>,
    ) -> Duration {
        // Disables Nagle's algorithm, which would delay small responses.
        let _ = stream.set_nodelay(true);
        let wait = self.context.current.get().limits.handshake_timeout;
        let Ok(Ok(protocol)) = timeout(wait, Protocol::of(&stream)).await else {
            return limits::LINGER;
        };
        let Some(tls) = tls else {
            return self.serve_cleartext(stream, close).await;
        };
        let stream = self.socket(stream, Bytes::new(), close);
        if let Protocol::OldTls(alert) = protocol {
            self.handshake_failed("it offers no version of TLS from 1.2 on");
            // Best effort: an error is ignored.
            let _ = timeout(wait, refuse_unread(stream, &alert)).await;
            limits::LINGER
        } else if matches!(protocol, Protocol::Tls) {
            let mut stream = match timeout(wait, tls.accept(stream, &self.context.challenges)).await
            {
                Ok(Ok(stream)) => stream,
                Ok(Err(error)) => {
                    self.handshake_failed(&error);
                    return limits::LINGER;
                }
                Err(_) => {
                    self.handshake_failed("it takes too long");
                    return limits::LINGER;
                }
            };
            let session = stream.get_ref().1;
            if session.alpn_protocol() == Some(ACME_TLS) {
                // The handshake was all that the client wants (RFC 8737, section 3).
                let _ = timeout(wait, stream.shutdown()).await;
                return limits::LINGER;
            }
            self.context.metrics.tls_opened(session.protocol_version());
            self.tls = Some(tls.client(session, self.context.runtime.unix_time()));
            let version = match session.alpn_protocol() {
                Some(b"h2") => Version::HTTP_2,
                _ => Version::HTTP_11,
            };
            self.serve_http(Box::new(stream), version).await
        } else if self.context.protocols.cleartext {
            self.serve_http(Box::new(stream), Version::HTTP_11).await
        } else {
            let recorder = self.recorder();
            let record = unreadable(&self.context, &recorder, Version::HTTP_11);
            if matches!(
                timeout(wait, refuse_unread(stream, NOT_TLS)).await,
                Ok(Ok(()))
            ) {
                let refusal = Refusal::NotTls;
                self.deliveries.answered(record, refusal, NOT_TLS_CONTENT);
            }
            limits::LINGER
        }
    }

    /// Counts and logs a failed handshake.
    fn handshake_failed(&self, reason: impl fmt::Display) {
        self.context.metrics.handshake_failed();
        messages::emit_frequent(Level::Information, Frequent::TlsHandshake, || {
            format!("the handshake of {} failed: {reason}", self.client)
        });
    }

    /// The socket of this connection, from which `read` was already read.
    fn socket(&self, stream: TcpStream, read: Bytes, close: oneshot::Sender<Closing>) -> Socket {
        let (reset, deliveries) = (self.reset.clone(), self.deliveries.clone());
        let outbox = self.outbox.clone();
        Socket::new(stream, read, reset, deliveries, outbox, close)
    }

    /// Serves HTTP/2 to clients with prior knowledge, else HTTP/1.1.
    async fn serve_cleartext(
        self,
        mut stream: TcpStream,
        close: oneshot::Sender<Closing>,
    ) -> Duration {
        let mut begin = [0; limits::HTTP2_PREFACE_BYTES];
        let mut read = 0;
        let reading = async {
            // As far as it is that of HTTP/2.
            while read < begin.len() && begin[..read] == PREFACE[..read] {
                match stream.read(&mut begin[read..]).await {
                    Ok(0) | Err(_) => break,
                    Ok(more) => read += more,
                }
            }
        };
        if timeout(limits::PREFACE_TIMEOUT, reading).await.is_err() {
            return limits::LINGER;
        }
        let version = match begin == *PREFACE {
            true => Version::HTTP_2,
            false => Version::HTTP_11,
        };
        let begin = Bytes::copy_from_slice(&begin[..read]);
        let stream = self.socket(stream, begin, close);
        self.serve_http(Box::new(stream), version).await
    }

    /// The recorder of its requests.
    fn recorder(&self) -> Arc<Recorder> {
        Arc::new(Recorder {
            runtime: self.context.runtime.clone(),
            metrics: Arc::clone(&self.context.metrics),
            client: self.client,
            connection: format!("tcp-{}", self.id),
            alt_svc: self.alt_svc.clone(),
            tls: self.tls.clone().map_or_else(OnceLock::new, OnceLock::from),
            progress: Some(Arc::clone(&self.progress)),
            activity: Activity::default(),
            quic: None,
        })
    }

    /// Serves `version` over a stream whose handshake, if any, is complete. Returns the time for which a client that has everything
    /// may send nothing before the connection is closed.
    pub(super) async fn serve_http(self, stream: AnyStream, version: Version) -> Duration {
        let recorder = self.recorder();
        let Self {
            context,
            origin,
            progress,
            deliveries,
            outbox,
            tunnels,
            reset,
            ..
        } = self;
        let metrics = Arc::clone(&context.metrics);
        let limits = context.current.get().limits.clone();
        let (evicted, make_room) = (origin.evicted(), origin.evicted());
        let contents = OpenContents::charged_to(Received::new(origin.clone()));
        let idle = limits.idle_timeout;
        let of_requests = Arc::new(OfRequests {
            context: Arc::clone(&context),
            recorder: Arc::clone(&recorder),
            deliveries: deliveries.clone(),
            tunnels: tunnels.clone(),
            reset,
            contents: contents.clone(),
            idle,
            max_fields: limits.max_header_fields,
        });
        let guarded = Http2FloodGuard::new(
            stream,
            Arc::clone(&progress),
            deliveries.clone(),
            version,
            idle,
            evicted,
            contents,
        );
        let _open = metrics.connection_opened(&recorder, version);
        // Errors are caused by the client: it has disconnected, or violates HTTP.
        if version == Version::HTTP_2 {
            let stopped = context.stop.stopped();
            let _ = http2::serve(guarded, of_requests, outbox, origin, stopped).await;
            return limits::QUIET_HTTP2;
        }
        let service = service_fn(move |request: Request<Incoming>| {
            let (of_requests, origin) = (Arc::clone(&of_requests), origin.clone());
            async move { Ok::<_, Infallible>(of_requests.answer(request, origin).await) }
        });
        let serving = builder(&limits)
            .serve_connection(TokioIo::new(guarded), service)
            .with_upgrades();
        let drain = Drain::new(&context, progress);
        let serving = async {
            let served = drain.watch(serving).await;
            tunnels.ended().await;
            served
        };
        let served = tokio::select! {
            served = serving => served,
            () = make_room => return limits::LINGER,
        };
        if let Some(refusal) = served.err().and_then(|error| refusal(&error)) {
            let record = unreadable(&context, &recorder, version);
            deliveries.answered(record, refusal, 0);
        }
        limits::LINGER
    }
}

/// The state shared by the requests of a connection.
struct OfRequests {
    context: Arc<Context>,
    recorder: Arc<Recorder>,
    deliveries: Deliveries,
    tunnels: Tunnels,
    reset: Reset,
    /// The contents of its requests, which HTTP/2 receives before they are read.
    contents: OpenContents,
    idle: Duration,
    max_fields: usize,
}

impl OfRequests {
    /// Answers a request of HTTP/1.1.
    async fn answer(&self, request: Request<Incoming>, origin: Origin) -> Response<Content> {
        let Self {
            context,
            recorder,
            deliveries,
            ..
        } = self;
        let has_content = !request.body().is_end_stream();
        let version = request.version();
        let mut request = match self.refused(request, has_content) {
            Ok(request) => request,
            Err(mut answer) => {
                // The start of the next request is uncertain.
                close_after(&mut answer);
                return deliveries.follow(*answer);
            }
        };
        header::join_cookies(request.headers_mut());
        let asked = match context.protocols.tunnels {
            true => tunnels::asked(request),
            false => Err(request),
        };
        let counting = Arc::clone(recorder);
        let request = match asked {
            Ok(asking) => {
                let counted = |content| Body::new(counted(content, counting, Recorder::on_tunnel));
                let request = asking.request.map(counted);
                let answer = respond(context, recorder, request, origin).await;
                return self
                    .tunnels
                    .answer(asking.asked, answer, deliveries, self.idle);
            }
            Err(request) => request,
        };
        let unread = Unread::default();
        let request = request.map(|content| match has_content {
            true => {
                let counted = counted(content, counting, Recorder::on_content);
                Body::new(unread.watch(counted))
            }
            false => Body::empty(),
        });
        let mut answer = respond(context, recorder, request, origin).await;
        // hyper reads no more of content than has arrived, and ends the connection then.
        if context.stop.is_stopping() || unread.is_set() {
            close_after(&mut answer);
        }
        if version == Version::HTTP_10 {
            answer.response = self.reset_if_cut(answer.response);
        }
        deliveries.follow(answer)
    }

    /// Ends the connection with a reset if the content of `response` fails: to a client of HTTP/1.0 the end of the connection is
    /// that of content of unknown length.
    fn reset_if_cut(&self, response: Response<Body>) -> Response<Body> {
        let reset = self.reset.clone();
        response.map(|content| {
            Body::new(content.map_err(move |error| {
                reset.when_closed();
                error
            }))
        })
    }

    /// Refuses `request` if its header is malformed, which may depend on whether it has content, or has too many fields.
    fn refused<B>(
        &self,
        mut request: Request<B>,
        has_content: bool,
    ) -> Result<Request<B>, Box<Answer>> {
        let Some(reason) = fault(&request, has_content, self.max_fields) else {
            header::remove_empty_port(&mut request);
            return Ok(request);
        };
        let request = request.map(|_| Body::empty());
        let answer = refuse(&self.context, &self.recorder, &request, reason);
        Err(Box::new(answer))
    }
}

/// Tells the client to send no further request on its connection of HTTP/1.1 (RFC 9112, section 9.6).
fn close_after(answer: &mut Answer) {
    let headers = answer.response.headers_mut();
    headers.insert(CONNECTION, HeaderValue::from_static("close"));
}

/// The reason of hyper's answer to an unreadable request of HTTP/1.1 that ended its connection with `error`.
fn refusal(error: &hyper::Error) -> Option<Refusal> {
    match (error.is_parse_too_large(), error.is_parse()) {
        (true, _) => Some(Refusal::HeaderTooLarge),
        (false, true) => Some(Refusal::Malformed),
        (false, false) => None,
    }
}

/// The reason for which a request is refused if its header is malformed, or has more than `max_fields` fields.
fn fault<B>(request: &Request<B>, has_content: bool, max_fields: usize) -> Option<Refusal> {
    let headers = request.headers();
    // It has none, and what follows is of the tunnel (RFC 9110, section 9.3.6).
    let is_tunnel_with_content = request.method() == Method::CONNECT && has_content;
    let is_malformed = !header::has_valid_host(request)
        || !header::has_valid_target(request)
        || header::has_blanks(request.version(), headers)
        || is_tunnel_with_content;
    match (header::request_fields(request) > max_fields, is_malformed) {
        (true, _) => Some(Refusal::HeaderTooLarge),
        (false, true) => Some(Refusal::Malformed),
        (false, false) => None,
    }
}

fn builder(limits: &ServerLimits) -> http1::Builder {
    let mut builder = http1::Builder::new();
    builder
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.max_header_bytes as usize)
        .max_headers(limits.max_header_fields);
    builder
}

/// The content of a request, which `count` counts as progress.
fn counted<B>(
    content: B,
    recorder: Arc<Recorder>,
    count: impl Fn(&Recorder, u64) + Send + 'static,
) -> impl http_body::Body<Data = Bytes, Error = B::Error>
where
    B: http_body::Body<Data = Bytes>,
{
    content.map_frame(move |frame| {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        count(&recorder, bytes as u64);
        frame
    })
}
