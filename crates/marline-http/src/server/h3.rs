//! HTTP/3 over QUIC.

mod copied;
mod interims;
mod pace;
mod request_body;

use std::fmt;
use std::future::{Future, poll_fn};
use std::net::SocketAddr;
use std::pin::pin;
use std::sync::{Arc, OnceLock};
use std::task::Poll;

use bytes::Bytes;
use http::{Method, Request, Response, Version};
use http_body::Body as _;
use http_body_util::BodyExt;
use marline_h3::{Config, ErrorCode, Protocol, RequestHead, Side, StreamEvent};
use tokio::sync::watch;

use self::copied::Copied;
use self::interims::Interims;
use self::pace::{Incomplete, Pace, Responses};
use self::request_body::RequestBody;
use super::Context;
use super::exchange::{refuse, refuse_unreadable, respond, unreadable};
use super::monitor::Activity;
use super::received::{OpenContents, Received};
use super::record::{Answer, Record, Recorder};
use super::refusal::Refusal;
use super::resources::{AddressProof, Chunk, Origin};
use crate::body::Body;
use crate::content::{content_length, is_bodiless};
use crate::header;
use crate::http3::{self, Begun, QuicTransport, Receiver, RequestError, RequestStream, Sender};
use crate::limits;
use crate::log::Level;
use crate::log::messages::{self, Frequent};
use crate::tasks::TaskSet;

/// The error code with which a stopping server closes its connections.
pub(super) const NO_ERROR: u64 = ErrorCode::NO_ERROR.value();

/// A QUIC endpoint that accepts connections.
pub(super) struct Listener {
    endpoint: marline::Endpoint,
    /// The configuration of the endpoint once it stops.
    refusing: marline::ServerConfig,
}

/// An endpoint accepts no more connections although it was not closed.
#[derive(Debug)]
pub(super) struct EndpointEnded;

impl Listener {
    /// Accepts connections of `endpoint`, whose configuration is `config`.
    pub(super) fn new(endpoint: marline::Endpoint, config: marline::ServerConfig) -> Self {
        let refusing = marline::ServerConfig {
            max_connections: 0,
            ..config
        };
        Self { endpoint, refusing }
    }

    pub(super) fn local_addr(&self) -> SocketAddr {
        self.endpoint.local_addr()
    }

    /// Accepts connections until the server stops, then waits for them to finish.
    ///
    /// # Errors
    /// The endpoint's task has ended, and with it all connections.
    pub(super) async fn run(self, context: Arc<Context>) -> Result<(), EndpointEnded> {
        let mut stopped = context.stop.stopped();
        let mut connections = TaskSet::new(&context.runtime);
        let watched = context.metrics.watch(self.endpoint.clone());
        loop {
            let connecting = tokio::select! {
                biased;
                () = &mut stopped => break,
                Some(_) = connections.join_next() => continue,
                connecting = self.endpoint.accept() => connecting,
            };
            let Some(connecting) = connecting else {
                return Err(EndpointEnded);
            };
            let context = Arc::clone(&context);
            connections.spawn(accept(context, connecting));
        }
        // A client that connects now is refused rather than left without an answer, and can try another server.
        // Another process that has taken over accepts it.
        let refusing = (!context.is_handed_over()).then_some(self.refusing);
        self.endpoint.set_server_config(refusing);
        loop {
            tokio::select! {
                biased;
                ended = connections.join_next() => if ended.is_none() { break },
                // It arrived before.
                Some(connecting) = self.endpoint.accept() => {
                    connections.spawn(accept(Arc::clone(&context), connecting));
                }
            }
        }
        self.endpoint.close(NO_ERROR, b"");
        self.endpoint.wait_idle().await;
        drop(watched);
        Ok(())
    }
}

/// Handles one connection from its first packet.
async fn accept(context: Arc<Context>, connecting: marline::Connecting) {
    // Early data is answered before the handshake is complete.
    let quic = match connecting.into_0rtt() {
        Ok(quic) => quic,
        Err(connecting) => {
            let client = connecting.remote_address();
            match connecting.await {
                Ok(quic) => quic,
                Err(error) => return handshake_failed(&context, client, &error),
            }
        }
    };
    // The endpoint may have evicted a connection whose task has not ended yet.
    let mut slot = context.slot().await;
    if slot.is_none() {
        // No client loses a place to one whose address may be forged.
        if let Err(error) = quic.connected().await {
            return handshake_failed(&context, Some(quic.remote_address()), &error);
        }
        slot = context.slot_for(quic.remote_address().ip()).await;
    }
    let Some(_slot) = slot else {
        return context.refused(quic.remote_address());
    };
    let connection = ClientConnection {
        recorder: Arc::new(Recorder {
            runtime: context.runtime.clone(),
            metrics: Arc::clone(&context.metrics),
            client: quic.remote_address(),
            connection: quic.original_destination().to_string(),
            alt_svc: None,
            tls: OnceLock::new(),
            progress: None,
            activity: Activity::default(),
            quic: Some(quic.clone()),
        }),
        context,
        proven: watch::Sender::new(false),
        quic,
    };
    tokio::join!(connection.watch(), connection.serve());
}

/// Counts and logs a failed handshake.
fn handshake_failed(context: &Context, client: Option<SocketAddr>, reason: &dyn fmt::Display) {
    context.metrics.handshake_failed();
    messages::emit_frequent(Level::Information, Frequent::QuicHandshake, || {
        let client = client.map_or_else(|| "a client".to_owned(), |client| client.to_string());
        format!("the handshake of {client} failed: {reason}")
    });
}

struct ClientConnection {
    context: Arc<Context>,
    recorder: Arc<Recorder>,
    /// Whether the handshake has proven the address of the client.
    proven: watch::Sender<bool>,
    quic: marline::Connection,
}

impl ClientConnection {
    /// Counts the connection and its paths until it is closed.
    async fn watch(&self) {
        let metrics = &self.context.metrics;
        if let Err(error) = self.quic.connected().await {
            return handshake_failed(&self.context, Some(self.recorder.client), &error);
        }
        self.proven.send_replace(true);
        let _open = metrics.connection_opened(&self.recorder, Version::HTTP_3);
        metrics.follow(&self.quic).await;
    }

    async fn serve(&self) {
        let context = &self.context;
        let current = context.current.get();
        let config = http3::config(
            current.limits.max_header_bytes,
            http3::Extensions {
                connect_protocol: context.protocols.has_tunnels_over_http3(),
                datagrams: context.protocols.has_tunnels_over_http3(),
            },
            &self.quic,
            &current.transport,
        );
        let early = || {
            let is_early = self.quic.is_replayable();
            is_early.then(|| self.proven.subscribe())
        };
        serve(context, &self.recorder, self.quic.clone(), &config, early).await;
    }
}

/// Serves requests until the client closes the connection, or until all requests have ended after the server stopped. There are
/// two GOAWAYs: the first lets the client know, the second says which requests were accepted (RFC 9114, section 5.2).
/// Requests that arrive while there is an `early` proof to wait for may be replays, or from a forged address.
pub(super) async fn serve<C: QuicTransport>(
    context: &Arc<Context>,
    recorder: &Arc<Recorder>,
    connection: C,
    config: &Config,
    early: impl Fn() -> Option<AddressProof>,
) {
    let stopped = context.stop.stopped();
    let mut exchanges = TaskSet::new(&context.runtime);
    let responses = Arc::new(Responses::of(connection.clone()));
    let contents = OpenContents::default();
    let origin = Origin::new(context, recorder.client.ip(), Chunk::default(), early());
    let mut unread = pin!(watch_unread(context, connection.clone(), &contents, origin));
    let Begun {
        session,
        mut driver,
    } = Begun::on(connection, Side::Server, config);
    let leave = async {
        stopped.await;
        session.announce_going_away();
        context.runtime.sleep(limits::DRAIN).await;
        session.go_away();
    };
    let mut leave = pin!(leave);
    let mut leaving = false;
    while !(leaving && exchanges.is_empty()) {
        tokio::select! {
            biased;
            () = &mut unread => {
                session.close(ErrorCode::EXCESSIVE_LOAD, "too much content is not read");
                break;
            }
            () = &mut leave, if !leaving => leaving = true,
            // Before, the end of an exchange need not wake this task.
            Some(_) = exchanges.join_next(), if leaving => {}
            request = driver.accept() => match request {
                Ok(request) => {
                    exchanges.forget_ended();
                    let exchange = Exchange {
                        context: Arc::clone(context),
                        recorder: Arc::clone(recorder),
                        responses: Arc::clone(&responses),
                        contents: contents.clone(),
                        early: early(),
                    };
                    exchanges.spawn(exchange.run(request));
                }
                Err(_) => break,
            },
        }
    }
    while exchanges.join_next().await.is_some() {}
    session.close(ErrorCode::NO_ERROR, "");
}

/// Completes when a `connection` holds too much unread content of `contents`, or a part to which others are entitled.
async fn watch_unread<C: QuicTransport>(
    context: &Context,
    connection: C,
    contents: &OpenContents,
    origin: Origin,
) {
    let runtime = &context.runtime;
    let watching = async {
        let mut received = Received::new(origin.clone());
        let mut excess_since = None;
        loop {
            contents.opened().await;
            let unread = usize::try_from(connection.unread()).unwrap_or(usize::MAX);
            let now = runtime.now();
            if received.set(unread) {
                excess_since = None;
            } else if now.saturating_since(*excess_since.get_or_insert(now))
                >= limits::UNREAD_TIMEOUT
            {
                return;
            }
            runtime.sleep(limits::RECEIVED_CHECK).await;
            if contents.is_empty() {
                received.set(0);
            }
        }
    };
    tokio::select! {
        biased;
        () = origin.evicted() => {}
        () = watching => {}
    }
}

/// One request and its response.
struct Exchange {
    context: Arc<Context>,
    recorder: Arc<Recorder>,
    responses: Arc<Responses>,
    /// The contents of its connection.
    contents: OpenContents,
    /// Set if the request arrived in 0-RTT.
    early: Option<AddressProof>,
}

impl Exchange {
    async fn run<C: QuicTransport>(self, stream: RequestStream<C>) {
        let RequestStream {
            mut sender,
            mut receiver,
        } = stream;
        let limit = self.context.current.get().limits.header_timeout;
        let arrived = {
            let mut arrival = pin!(self.context.runtime.timeout(limit, receiver.next()));
            match poll_fn(|cx| Poll::Ready(arrival.as_mut().poll(cx))).await {
                Poll::Ready(arrived) => arrived,
                Poll::Pending => {
                    // What arrives behind a header that is missing is held as well.
                    let _open = self.contents.open();
                    arrival.await
                }
            }
        };
        match arrived {
            Ok(Ok(Some(StreamEvent::Request(head)))) => self.answer(*head, sender, receiver).await,
            Ok(Ok(Some(StreamEvent::TooLarge))) => {
                receiver.stop(ErrorCode::NO_ERROR);
                let reason = Refusal::HeaderTooLarge;
                let (context, recorder) = (&self.context, &self.recorder);
                let answer = refuse_unreadable(context, recorder, Version::HTTP_3, reason);
                // Its method is not known.
                self.send(&mut sender, answer, &Method::GET, &self.origin())
                    .await;
            }
            Ok(Err(RequestError::Message(error))) => {
                drop(unreadable(&self.context, &self.recorder, Version::HTTP_3));
                sender.reset(error.code());
            }
            // Slow, abandoned, or lost with the connection: dropping the stream cancels it.
            _ => {}
        }
    }

    async fn answer<C: QuicTransport>(
        &self,
        head: RequestHead,
        sender: Sender<C>,
        receiver: Receiver<C>,
    ) {
        sender.set_priority(head.priority);
        let origin = self.origin();
        let mut request = head.request;
        if request.extensions().get::<Protocol>().is_some()
            && let Some(datagrams) = receiver.datagrams()
        {
            request.extensions_mut().insert(datagrams);
        }
        let content = RequestBody::new(receiver, &self.contents);
        let request = request.map(|()| match content.is_end_stream() {
            true => Body::empty(),
            false => Body::new(content),
        });
        let mut answering = pin!(self.answer_for(&origin, request, sender));
        tokio::select! {
            biased;
            () = &mut answering => return,
            () = origin.charge_when_proven() => {}
        }
        answering.await;
    }

    async fn answer_for<C: QuicTransport>(
        &self,
        origin: &Origin,
        mut request: Request<Body>,
        mut sender: Sender<C>,
    ) {
        header::remove_empty_port(&mut request);
        let method = request.method().clone();
        let response = if self.early.is_some() && !request.method().is_safe() {
            // It may be a replay (RFC 8470).
            let reason = Refusal::TooEarly;
            refuse(&self.context, &self.recorder, &request, reason)
        } else if header::request_fields(&request) > self.max_fields() {
            let reason = Refusal::HeaderTooLarge;
            refuse(&self.context, &self.recorder, &request, reason)
        } else {
            let interims = Interims::new();
            request.extensions_mut().insert(interims.taker());
            let responding = respond(&self.context, &self.recorder, request, origin.clone());
            let mut responding = pin!(responding);
            let response = loop {
                // It may wait for a file or for memory while it holds others.
                let interim = tokio::select! {
                    biased;
                    interim = interims.next() => interim,
                    response = &mut responding => break response,
                    () = sender.abandoned() => return,
                    () = origin.evicted() => return sender.reset(ErrorCode::EXCESSIVE_LOAD),
                };
                if !self.send_interim(&mut sender, &interim, origin).await {
                    return;
                }
            };
            // Those sent at the last moment.
            while let Some(interim) = interims.take() {
                if !self.send_interim(&mut sender, &interim, origin).await {
                    return;
                }
            }
            response
        };
        self.send(&mut sender, response, &method, origin).await;
    }

    fn max_fields(&self) -> usize {
        self.context.current.get().limits.max_header_fields
    }

    /// Sends an interim response, if the client accepts it. Returns whether others can follow.
    async fn send_interim<C: QuicTransport>(
        &self,
        sender: &mut Sender<C>,
        interim: &Response<()>,
        origin: &Origin,
    ) -> bool {
        let sending = async {
            match sender.send_response(interim).await {
                // Nothing of it was written.
                Err(RequestError::Send(_)) => Ok(()),
                sent => sent,
            }
        };
        let mut pace = Pace::new(&self.context, &self.responses);
        let failed = tokio::select! {
            biased;
            () = origin.evicted() => ErrorCode::EXCESSIVE_LOAD,
            sent = pace.must(sending) => match sent {
                Ok(()) => return true,
                Err(Incomplete::Slow) => ErrorCode::REQUEST_CANCELLED,
                Err(Incomplete::Broken) => ErrorCode::INTERNAL_ERROR,
            },
        };
        sender.reset(failed);
        false
    }

    /// The origin of a request, whose response has an account of its own.
    fn origin(&self) -> Origin {
        let address = self.recorder.client.ip();
        Origin::new(&self.context, address, Chunk::default(), self.early.clone())
    }

    /// Sends the response of `answer` unless other clients are entitled to its resources.
    async fn send<C: QuicTransport>(
        &self,
        sender: &mut Sender<C>,
        answer: Answer,
        method: &Method,
        origin: &Origin,
    ) {
        let Answer {
            response,
            mut record,
        } = answer;
        let chunk = origin.chunk();
        let sent = tokio::select! {
            biased;
            () = origin.evicted() => Err(ErrorCode::EXCESSIVE_LOAD),
            sent = self.send_all(sender, response, &mut record, method, chunk) => sent,
        };
        match sent {
            Ok(()) => {
                record.confirm_but(0);
                record.received();
            }
            Err(code) => {
                record.confirm_but(sender.unacknowledged());
                sender.reset(code);
            }
        }
    }

    async fn send_all<C: QuicTransport>(
        &self,
        sender: &mut Sender<C>,
        response: Response<Body>,
        record: &mut Record,
        method: &Method,
        chunk: &Chunk,
    ) -> Result<(), ErrorCode> {
        let (parts, body) = response.into_parts();
        let is_bodiless = is_bodiless(method, parts.status);
        let expected = content_length(&parts.headers);
        let header = Response::from_parts(parts, ());
        let mut passing = Passing {
            record,
            pace: Pace::new(&self.context, &self.responses),
            copied: Copied::default(),
        };
        let whole = match is_bodiless {
            true => Some(Bytes::new()),
            false => small_content(&body, expected),
        };
        let sending = async {
            match &whole {
                Some(content) => sender.send_whole(&header, content.clone()).await,
                None => sender.send_response(&header).await.map(|()| false),
            }
        };
        let begun = passing.pace.must(sending).await;
        if begun.map_err(|_| ErrorCode::REQUEST_CANCELLED)? {
            let length = whole.map_or(0, |content| content.len()) as u64;
            passing.record.passed(length, true);
            passing.pace.moved(length);
            passing.pace.restart();
            // Until then, `body` uses the budget.
            return self.finish(sender, &mut passing.pace).await;
        }
        if !is_bodiless {
            let sent = self.send_content(sender, body, expected, chunk, &mut passing);
            sent.await.map_err(|incomplete| match incomplete {
                Incomplete::Slow => ErrorCode::REQUEST_CANCELLED,
                Incomplete::Broken => ErrorCode::INTERNAL_ERROR,
            })?;
        }
        passing.record.passed(0, true);
        passing.pace.restart();
        self.finish(sender, &mut passing.pace).await
    }

    /// Waits until the client has received everything. A client that stops receiving for too long must not keep its buffered
    /// data.
    async fn finish<C: QuicTransport>(
        &self,
        sender: &mut Sender<C>,
        pace: &mut Pace<'_>,
    ) -> Result<(), ErrorCode> {
        loop {
            let before = sender.unacknowledged();
            match pace.step(sender.finish()).await {
                Some(Ok(())) => return Ok(()),
                Some(Err(error)) => {
                    // It may have closed the connection instead of acknowledging the end.
                    let is_end = sender.unacknowledged() <= limits::UNACKNOWLEDGED_END;
                    return match error.is_clean_close() && is_end {
                        true => Ok(()),
                        false => Err(ErrorCode::REQUEST_CANCELLED),
                    };
                }
                None => pace.moved(before.saturating_sub(sender.unacknowledged())),
            }
            if pace.is_over() {
                return Err(ErrorCode::REQUEST_CANCELLED);
            }
        }
    }

    /// Sends `body`, which must have the announced length: a file may shrink while it is read. No more is read than flow
    /// control permits.
    async fn send_content<C: QuicTransport>(
        &self,
        sender: &mut Sender<C>,
        mut body: Body,
        expected: Option<u64>,
        chunk: &Chunk,
        passing: &mut Passing<'_>,
    ) -> Result<(), Incomplete> {
        let Passing {
            record,
            pace,
            copied,
        } = passing;
        let mut sent = 0;
        loop {
            copied.release(|| sender.unacknowledged());
            // If nothing is known to follow, no window may be needed.
            if expected.is_some_and(|expected| sent < expected) {
                chunk.fit(pace.must(sender.writable()).await?);
            }
            // The content may have to wait for bytes that its own connection holds.
            let next = async {
                loop {
                    tokio::select! {
                        biased;
                        frame = body.frame() => return Ok(frame),
                        () = sender.abandoned() => return Err(Incomplete::Broken),
                        () = copied.recheck(&self.context.runtime) => {}
                    }
                    copied.release(|| sender.unacknowledged());
                }
            };
            let Some(frame) = pace.pause(next).await? else {
                break;
            };
            match frame.map_err(|_| Incomplete::Broken)?.into_data() {
                Ok(data) if data.is_empty() => {}
                Ok(data) => {
                    sent += data.len() as u64;
                    if expected.is_some_and(|expected| sent > expected) {
                        return Err(Incomplete::Broken);
                    }
                    pace.must(sender.begin_data(data.len())).await?;
                    send_part(sender, data, record, pace, copied).await?;
                }
                Err(frame) => {
                    if let Ok(trailers) = frame.into_trailers() {
                        pace.must(sender.send_trailers(&trailers)).await?;
                        break;
                    }
                }
            }
        }
        match expected {
            Some(expected) if sent != expected => Err(Incomplete::Broken),
            _ => Ok(()),
        }
    }
}

/// A response on its way to the client.
struct Passing<'a> {
    record: &'a mut Record,
    pace: Pace<'a>,
    copied: Copied,
}

/// The content of `body`, if it is in memory, small, and has the `expected` length, if that is announced.
fn small_content(body: &Body, expected: Option<u64>) -> Option<Bytes> {
    let content = body.in_memory()?;
    let length = content.len();
    let is_whole = expected.is_none_or(|expected| expected == length as u64);
    (is_whole && length <= limits::SMALL_FILE_BYTES).then(|| content.clone())
}

/// Sends content as the client accepts it.
async fn send_part<C: QuicTransport>(
    sender: &mut Sender<C>,
    mut data: Bytes,
    record: &mut Record,
    pace: &mut Pace<'_>,
    copied: &mut Copied,
) -> Result<(), Incomplete> {
    while !data.is_empty() {
        let room = pace.must(sender.writable()).await?;
        let part = data.split_to(room.min(data.len()));
        let length = part.len() as u64;
        copied.on_write(&part);
        pace.must(sender.write(part)).await?;
        record.passed(length, false);
        pace.moved(length);
    }
    Ok(())
}
