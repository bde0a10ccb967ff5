//! HTTP/2 and HTTP/1.1 over TLS over TCP, and cleartext HTTP/1.1 for laboratories.

mod calm;
mod handshake;
mod socket;
mod tunnels;
mod unread;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http::header::HOST;
use http::uri::Authority;
use http::{Request, StatusCode, Version};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use self::calm::Calm;
use self::handshake::Protocol;
pub(super) use self::handshake::Tls;
pub(super) use self::socket::Reset;
use self::socket::Socket;
pub(super) use self::tunnels::Tunnels;
use self::unread::DiscardUnread;
use super::accept::{self, Accepted};
use super::exchange::{refuse, respond, unreadable};
use super::idle::IdleTimeout;
use super::progress::Progress;
use super::record::Recorder;
use super::resources::{Chunk, Origin};
use super::{Context, ServerLimits};
use crate::body::Body;
use crate::limits;

/// The response to cleartext HTTP where TLS is expected.
const NOT_TLS: &[u8] = b"HTTP/1.1 400 Bad Request\r\nContent-Type: text/plain\r\n\
    Content-Length: 42\r\nConnection: close\r\n\r\nThis port serves HTTPS: use an https URL.\n";

/// The bytes of its content.
const NOT_TLS_CONTENT: u64 = 42;

/// What a connection of HTTP/2 begins with (RFC 9113, section 3.4).
const PREFACE: &[u8; limits::HTTP2_PREFACE_BYTES] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// How much is read of a request that is refused unread, in bytes.
const REFUSED_REQUEST: u64 = 64 * 1024;

/// Sends `refusal`, calls `sent`, and reads until the client has closed: closing before would reset the connection, and the
/// refusal might be lost (RFC 9112, section 9.6).
async fn refuse_unread<S>(mut stream: S, refusal: &[u8], sent: impl FnOnce()) -> io::Result<()>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    stream.write_all(refusal).await?;
    stream.shutdown().await?;
    sent();
    let mut request = stream.take(REFUSED_REQUEST);
    tokio::io::copy(&mut request, &mut tokio::io::sink()).await?;
    Ok(())
}

/// A TCP listener.
pub(super) struct Listener(TcpListener);

impl Listener {
    pub(super) fn new(socket: TcpListener) -> Self {
        Self(socket)
    }

    /// Accepts connections until the server stops, then waits for them to finish.
    pub(super) async fn run(self, context: Arc<Context>) {
        let graceful = GracefulShutdown::new();
        let mut connections = JoinSet::new();
        let mut stopped = context.stop.stopped();
        // Each tunnel holds a sender.
        let (tunnel, mut tunnels) = mpsc::channel::<()>(1);
        loop {
            let Accepted { stream, client } = tokio::select! {
                () = &mut stopped => break,
                Some(_) = connections.join_next() => continue,
                accepted = accept::next(&self.0) => accepted,
            };
            let progress = Arc::new(Progress::new(&context.runtime));
            let Some(admitted) = context.admission.admit(client.ip(), &progress) else {
                context.metrics.connection_refused();
                continue;
            };
            let tls = context.current.get().tls.clone();
            let chunk = Chunk::of(limits::TCP_CHUNK_BYTES);
            let origin = Origin::new(&context, client.ip(), chunk);
            let account = origin.account();
            let reset = Reset::default();
            let connection = ClientConnection {
                context: Arc::clone(&context),
                client,
                origin,
                id: context.tcp_connections.fetch_add(1, Ordering::Relaxed) + 1,
                progress,
                watcher: graceful.watcher(),
                tunnels: Tunnels::new(tunnel.downgrade(), reset.clone()),
                reset,
            };
            let context = Arc::clone(&context);
            connections.spawn(async move {
                let Some(slot) = context.slot_for(client.ip()).await else {
                    return context.metrics.connection_refused();
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
                    () = connection.serve(stream, tls) => {}
                    () = evicted => {}
                }
                drop(slot);
            });
        }
        drop(self.0);
        graceful.shutdown().await;
        drop(tunnel);
        tunnels.recv().await;
    }
}

/// One connection of a client.
pub(super) struct ClientConnection {
    pub(super) context: Arc<Context>,
    pub(super) client: SocketAddr,
    pub(super) origin: Origin,
    pub(super) id: u64,
    pub(super) progress: Arc<Progress>,
    pub(super) watcher: hyper_util::server::graceful::Watcher,
    pub(super) tunnels: Tunnels,
    pub(super) reset: Reset,
}

impl ClientConnection {
    async fn serve(self, stream: TcpStream, tls: Option<Tls>) {
        // Disables Nagle's algorithm, which would delay small responses.
        let _ = stream.set_nodelay(true);
        let wait = self.context.current.get().limits.handshake_timeout;
        let Ok(Ok(protocol)) = timeout(wait, Protocol::of(&stream)).await else {
            return;
        };
        let Some(tls) = tls else {
            return self.serve_cleartext(stream).await;
        };
        let stream = Socket::new(stream, Bytes::new(), self.reset.clone());
        if let Protocol::OldTls(alert) = protocol {
            self.context.metrics.handshake_failed();
            // Best effort: an error is ignored.
            let _ = timeout(wait, refuse_unread(stream, &alert, || {})).await;
        } else if matches!(protocol, Protocol::Tls) {
            let handshake = timeout(wait, tls.accept(stream)).await;
            let Ok(Ok(stream)) = handshake else {
                self.context.metrics.handshake_failed();
                return;
            };
            let session = stream.get_ref().1;
            self.context.metrics.tls_opened(session.protocol_version());
            let version = match session.alpn_protocol() {
                Some(b"h2") => Version::HTTP_2,
                _ => Version::HTTP_11,
            };
            self.serve_http(stream, version).await;
        } else if self.context.protocols.cleartext {
            self.serve_http(stream, Version::HTTP_11).await;
        } else {
            let recorder = self.recorder();
            let record = unreadable(&self.context, &recorder, Version::HTTP_11);
            let sent = || record.answered(StatusCode::BAD_REQUEST, NOT_TLS_CONTENT);
            // Best effort: an error is ignored.
            let _ = timeout(wait, refuse_unread(stream, NOT_TLS, sent)).await;
        }
    }

    /// Serves HTTP/2 if the client knows that it may, else HTTP/1.1.
    async fn serve_cleartext(self, mut stream: TcpStream) {
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
            return;
        }
        let version = match begin == *PREFACE {
            true => Version::HTTP_2,
            false => Version::HTTP_11,
        };
        let begin = Bytes::copy_from_slice(&begin[..read]);
        let stream = Socket::new(stream, begin, self.reset.clone());
        self.serve_http(stream, version).await;
    }

    /// The recorder of its requests.
    fn recorder(&self) -> Arc<Recorder> {
        Arc::new(Recorder {
            runtime: self.context.runtime.clone(),
            metrics: Arc::clone(&self.context.metrics),
            client: self.client,
            connection: format!("tcp-{}", self.id),
            progress: Some(Arc::clone(&self.progress)),
            quic: None,
        })
    }

    /// Serves `version` over a stream whose handshake, if it needs one, is complete.
    pub(super) async fn serve_http<S>(self, stream: S, version: Version)
    where
        S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    {
        let recorder = self.recorder();
        let Self {
            context,
            origin,
            watcher,
            progress,
            tunnels,
            ..
        } = self;
        let metrics = Arc::clone(&context.metrics);
        let limits = context.current.get().limits.clone();
        let evicted = origin.evicted();
        let idle = limits.idle_timeout;
        let of_requests = (Arc::clone(&context), Arc::clone(&recorder), tunnels.clone());
        let service = service_fn(move |request: Request<Incoming>| {
            let (context, recorder, tunnels) = of_requests.clone();
            let origin = origin.clone();
            async move {
                let asked = match context.protocols.tunnels && has_valid_host(&request) {
                    true => tunnels::asked(request, version),
                    false => Err(request),
                };
                let request = match asked {
                    Ok(asking) => {
                        let request = asking.request.map(|content| {
                            let recorder = Arc::clone(&recorder);
                            Body::new(content.map_frame(move |frame| {
                                recorder.on_content(frame.data_ref().map_or(0, Bytes::len));
                                frame
                            }))
                        });
                        let response = respond(&context, &recorder, request, origin).await;
                        return Ok(tunnels.answer(asking.asked, response, idle));
                    }
                    Err(request) => request,
                };
                let request = request.map(|content| match version {
                    Version::HTTP_2 => Body::new(counted(DiscardUnread::new(content), &recorder)),
                    _ => Body::new(counted(content, &recorder)),
                });
                Ok::<_, Infallible>(match has_valid_host(&request) {
                    true => respond(&context, &recorder, request, origin).await,
                    false => refuse(&context, &recorder, &request, StatusCode::BAD_REQUEST),
                })
            }
        });
        let stream = IdleTimeout::new(stream, limits.idle_timeout);
        let mut builder = builder(version, &limits);
        if context.protocols.tunnels {
            builder.http2().enable_connect_protocol();
        }
        let _open = metrics.connection_opened(version);
        // Errors are caused by the client: it has disconnected, or violates HTTP.
        if version == Version::HTTP_2 {
            let calm = Calm::new(stream, progress, limits.idle_timeout, evicted);
            let stream = TokioIo::new(calm);
            let serving = builder.serve_connection(stream, service).into_owned();
            let _ = watcher.watch(serving).await;
        } else {
            let stream = TokioIo::new(stream);
            let serving = builder.serve_connection_with_upgrades(stream, service);
            let serving = async {
                let served = watcher.watch(serving.into_owned()).await;
                tunnels.ended().await;
                served
            };
            let served = tokio::select! {
                served = serving => served,
                () = evicted => return,
            };
            if let Some(status) = served.err().and_then(|error| refusal(&*error)) {
                unreadable(&context, &recorder, version).answered(status, 0);
            }
        }
    }
}

/// How hyper has answered a request of HTTP/1.1 that ended its connection with `error`, if it could not read it.
fn refusal(error: &(dyn std::error::Error + 'static)) -> Option<StatusCode> {
    let error = error.downcast_ref::<hyper::Error>()?;
    match (error.is_parse_too_large(), error.is_parse()) {
        (true, _) => Some(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE),
        (false, true) => Some(StatusCode::BAD_REQUEST),
        (false, false) => None,
    }
}

fn builder(version: Version, limits: &ServerLimits) -> auto::Builder<TokioExecutor> {
    let mut builder = auto::Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.max_header_bytes as usize);
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_header_list_size(limits.max_header_bytes)
        .max_concurrent_streams(limits.max_concurrent_requests)
        .max_send_buf_size(limits::HTTP2_SEND_BUFFER)
        .max_pending_accept_reset_streams(limits::MAX_RESET_STREAMS)
        .max_local_error_reset_streams(limits::MAX_RESET_STREAMS)
        .initial_stream_window_size(limits::HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(limits::HTTP2_CONNECTION_WINDOW);
    if version == Version::HTTP_2 {
        builder.http2_only()
    } else {
        builder.http1_only()
    }
}

/// The content of a request, which counts as progress.
fn counted<B>(
    content: B,
    recorder: &Arc<Recorder>,
) -> impl http_body::Body<Data = Bytes, Error = hyper::Error> + use<B>
where
    B: http_body::Body<Data = Bytes, Error = hyper::Error>,
{
    let recorder = Arc::clone(recorder);
    content.map_frame(move |frame| {
        let bytes = frame.data_ref().map_or(0, Bytes::len);
        recorder.on_content(bytes);
        frame
    })
}

/// Whether a request has the `Host` fields that it should: one in HTTP/1.1, at most one in HTTP/1.0, and a valid one
/// (RFC 9112 section 3.2). Neither that nor the target has user information (RFC 9110, sections 4.2.4 and 7.2).
fn has_valid_host<B>(request: &Request<B>) -> bool {
    let authority = request.uri().authority();
    if authority.is_some_and(|authority| authority.as_str().contains('@')) {
        return false;
    }
    let mut hosts = request.headers().get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        // A target without an authority has an empty one.
        (Some(host), None) => {
            let is_valid = Authority::try_from(host.as_bytes()).is_ok();
            host.is_empty() || (is_valid && !host.as_bytes().contains(&b'@'))
        }
        (None, _) => request.version() != Version::HTTP_11,
        _ => false,
    }
}
