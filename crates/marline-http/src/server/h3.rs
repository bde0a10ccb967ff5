//! HTTP/3 over QUIC.

mod request_body;

use std::sync::Arc;

use bytes::Bytes;
use h3::error::Code;
use h3::quic::{self, OpenStreams};
use h3::server::{RequestResolver, RequestStream};
use http::header::CONTENT_LENGTH;
use http::{HeaderMap, Method, Response, Version};
use http_body_util::BodyExt;

use self::request_body::RequestBody;
use super::exchange::{respond, too_early};
use super::record::Recorder;
use super::{Context, priority};
use crate::body::Body;
use crate::tasks::TaskSet;
use crate::transport::{self, Carrier};

/// The error code with which a stopping server closes its connections.
pub(super) const NO_ERROR: u64 = Code::H3_NO_ERROR.value();

/// A QUIC endpoint that accepts connections.
pub(super) struct Listener(marline::Endpoint);

impl Listener {
    pub(super) fn new(endpoint: marline::Endpoint) -> Self {
        Self(endpoint)
    }

    pub(super) fn endpoint(&self) -> marline::Endpoint {
        self.0.clone()
    }

    /// Accepts connections until the server stops, then waits for them to finish.
    pub(super) async fn run(self, context: Arc<Context>) {
        let mut stopped = context.stop.stopped();
        let mut connections = TaskSet::new(&context.runtime);
        loop {
            let connecting = tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(_) = connections.join_next() => continue,
                connecting = self.0.accept() => connecting,
            };
            let Some(connecting) = connecting else { break };
            let Ok(slot) = Arc::clone(&context.slots).try_acquire_owned() else {
                context.metrics.connection_refused();
                continue;
            };
            let context = Arc::clone(&context);
            connections.spawn(async move {
                accept(context, connecting).await;
                drop(slot);
            });
        }
        self.0.set_server_config(None);
        while connections.join_next().await.is_some() {}
        self.0.close(NO_ERROR, b"");
        self.0.wait_idle().await;
    }
}

/// Handles one connection from its first packet.
async fn accept(context: Arc<Context>, connecting: marline::Connecting) {
    // Early data is answered before the handshake is complete.
    let quic = match connecting.into_0rtt() {
        Ok(quic) => quic,
        Err(connecting) => match connecting.await {
            Ok(quic) => quic,
            Err(_) => return context.metrics.handshake_failed(),
        },
    };
    let connection = ClientConnection {
        recorder: Arc::new(Recorder {
            runtime: context.runtime.clone(),
            metrics: Arc::clone(&context.metrics),
            log: context.log.clone(),
            client: quic.remote_address(),
            connection: quic.original_destination().to_string(),
            quic: Some(quic.clone()),
        }),
        context,
        quic,
    };
    tokio::join!(connection.watch(), connection.serve());
}

struct ClientConnection {
    context: Arc<Context>,
    recorder: Arc<Recorder>,
    quic: marline::Connection,
}

impl ClientConnection {
    /// Counts the connection and its paths until it is closed.
    async fn watch(&self) {
        let metrics = &self.context.metrics;
        if self.quic.connected().await.is_err() {
            return metrics.handshake_failed();
        }
        metrics.connection_opened(Version::HTTP_3);
        metrics.follow(&self.quic).await;
        metrics.connection_closed(Version::HTTP_3);
    }

    async fn serve(&self) {
        let connection = transport::Connection::new(self.quic.clone());
        let early = || self.quic.is_replayable();
        serve(&self.context, &self.recorder, connection, early).await;
    }
}

/// Serves requests until the client closes the connection, or until all requests have ended after a GOAWAY.
/// Requests that arrive while `early` is true may be replays.
pub(super) async fn serve<C: Carrier>(
    context: &Arc<Context>,
    recorder: &Arc<Recorder>,
    connection: C,
    early: impl Fn() -> bool,
) {
    let mut stopped = context.stop.stopped();
    let mut exchanges = TaskSet::new(&context.runtime);
    let mut opener = connection.opener();
    let http3 = h3::server::builder()
        .max_field_section_size(context.limits.max_header_bytes.into())
        .send_grease(false)
        .build(connection)
        .await;
    // The error is the connection's.
    let Ok(mut http3) = http3 else { return };
    let mut leaving = false;
    while !(leaving && exchanges.is_empty()) {
        tokio::select! {
            biased;
            () = &mut stopped, if !leaving => {
                leaving = true;
                if http3.shutdown(0).await.is_err() {
                    break;
                }
            }
            Some(_) = exchanges.join_next() => {}
            request = http3.accept() => match request {
                Ok(Some(request)) => {
                    let exchange = Exchange {
                        context: Arc::clone(context),
                        recorder: Arc::clone(recorder),
                        early: early(),
                    };
                    exchanges.spawn(exchange.run(request));
                }
                Ok(None) | Err(_) => break,
            },
        }
    }
    while exchanges.join_next().await.is_some() {}
    opener.close(Code::H3_NO_ERROR, b"");
}

/// One request and its response.
struct Exchange {
    context: Arc<Context>,
    recorder: Arc<Recorder>,
    early: bool,
}

impl Exchange {
    async fn run<C: Carrier>(self, request: RequestResolver<C, Bytes>) {
        let (runtime, limits) = (&self.context.runtime, &self.context.limits);
        let resolved = runtime.timeout(limits.header_timeout, request.resolve_request());
        // h3 has answered requests that are malformed or too large.
        let Ok(Ok((request, stream))) = resolved.await else {
            return;
        };
        let (mut send, recv) = stream.split();
        let is_head = request.method() == Method::HEAD;
        let priority = priority::of(request.headers());
        let request = request.map(|()| Body::new(RequestBody::new(recv)));
        let response = if self.early && !request.method().is_safe() {
            too_early(&self.context, &self.recorder, &request)
        } else {
            respond(&self.context, &self.recorder, request).await
        };
        let (parts, body) = response.into_parts();
        let expected = match is_head {
            true => None,
            false => content_length(&parts.headers),
        };
        let header = transport::send_response(&mut send, Response::from_parts(parts, ()), priority);
        if header.await.is_err() {
            return;
        }
        let sent = match is_head {
            true => Ok(()),
            false => send_content(&self.context, &mut send, body, expected).await,
        };
        match sent {
            // Completes when the client has received everything.
            Ok(()) => drop(runtime.timeout(limits.idle_timeout, send.finish()).await),
            Err(()) => send.stop_stream(Code::H3_INTERNAL_ERROR),
        }
    }
}

/// Sends `body`, which must have the announced length: a file may shrink while it is read.
async fn send_content<S: quic::SendStream<Bytes>>(
    context: &Context,
    send: &mut RequestStream<S, Bytes>,
    mut body: Body,
    expected: Option<u64>,
) -> Result<(), ()> {
    let mut sent = 0;
    while let Some(frame) = body.frame().await {
        let Ok(data) = frame.map_err(drop)?.into_data() else {
            continue;
        };
        sent += data.len() as u64;
        if expected.is_some_and(|expected| sent > expected) {
            return Err(());
        }
        context
            .runtime
            .timeout(
                context.limits.idle_timeout,
                transport::send_data(send, data),
            )
            .await
            .map_err(drop)?
            .map_err(drop)?;
    }
    match expected {
        Some(expected) if sent != expected => Err(()),
        _ => Ok(()),
    }
}

fn content_length(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}
