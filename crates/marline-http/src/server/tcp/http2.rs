//! HTTP/2, over the `h2` library.
//!
//! ```text
//! Connection -> Stream (a task each) -> respond -> site
//!                 \-- Outgoing: content, flow control -> Connection
//! ```

mod content;
mod outgoing;

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::Poll;

use futures_util::FutureExt as _;
use h2::server::{Builder, Connection, SendResponse};
use h2::{Reason, RecvStream};
use http::header::{
    CONNECTION, CONTENT_LENGTH, EXPECT, HeaderMap, HeaderName, TE, TRANSFER_ENCODING, UPGRADE,
};
use http::{Method, Request, StatusCode};
use http_body::Body as _;
use marline_h3::Protocol;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::task::JoinSet;
use tokio::time::{Sleep, sleep, timeout};

use self::content::RequestContent;
use self::outgoing::{Activity, Outgoing};
use super::super::exchange::respond;
use super::super::record::Answer;
use super::super::resources::Origin;
use super::super::stop::Stopped;
use super::super::{ServerLimits, Tunnel};
use super::OfRequests;
use super::deliveries::Part;
use super::outbox::Outbox;
use crate::body::Body;
use crate::content::content_length;
use crate::{header, limits};

/// Serves HTTP/2 over `stream` until it ends, or until the requests in progress have ended after `stopped` completed. GOAWAY is
/// then sent twice: with the last stream only after a round trip (RFC 9113, section 6.8).
///
/// # Errors
/// The client violates HTTP/2, or the stream has failed.
pub(super) async fn serve<S>(
    stream: S,
    of_requests: Arc<OfRequests>,
    outbox: Outbox,
    origin: Origin,
    stopped: Stopped,
) -> Result<(), h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let context = &of_requests.context;
    let limits = context.current.get().limits.clone();
    let builder = builder(&limits, context.protocols.tunnels);
    let mut connection = builder.handshake::<_, Part>(stream).await?;
    let mut streams = JoinSet::new();
    outbox.join_writes();
    let served = {
        let mut serving = pin!(accept(
            &mut connection,
            &mut streams,
            &of_requests,
            &origin,
            stopped,
        ));
        poll_fn(|cx| {
            let served = serving.as_mut().poll(cx);
            outbox.poll_send(cx);
            served
        })
        .await
    };
    // Their sent bytes are counted when they have ended, which is soon, since the connection has.
    let ended = async { while streams.join_next().await.is_some() {} };
    let _ = timeout(limits::LINGER, ended).await;
    of_requests.deliveries.settle_flushed();
    served
}

fn builder(limits: &ServerLimits, has_tunnels: bool) -> Builder {
    let mut builder = Builder::new();
    builder
        .max_header_list_size(limits.max_header_bytes)
        .max_concurrent_streams(limits.max_concurrent_requests)
        .max_send_buffer_size(limits::HTTP2_SEND_BUFFER)
        .max_pending_accept_reset_streams(limits::MAX_RESET_STREAMS)
        .max_local_error_reset_streams(Some(limits::MAX_RESET_STREAMS))
        .initial_window_size(limits::HTTP2_STREAM_WINDOW)
        .initial_connection_window_size(limits::HTTP2_CONNECTION_WINDOW);
    if has_tunnels {
        builder.enable_connect_protocol();
    }
    builder
}

/// Answers each request in a task of `streams`.
async fn accept<S>(
    connection: &mut Connection<S, Part>,
    streams: &mut JoinSet<()>,
    of_requests: &Arc<OfRequests>,
    origin: &Origin,
    stopped: Stopped,
) -> Result<(), h2::Error>
where
    S: AsyncRead + AsyncWrite + Unpin,
{
    let mut stopped = pin!(stopped.fuse());
    let mut has_requests = false;
    // The first request may be under way: a client that gets GOAWAY before may send that behind its answer to PING, after which
    // `h2` serves no further request.
    let mut leaving: Option<Pin<Box<Sleep>>> = None;
    loop {
        let accepted = poll_fn(|cx| {
            if stopped.as_mut().poll(cx).is_ready() {
                leaving = Some(Box::pin(sleep(limits::DRAIN)));
            }
            if let Some(waiting) = &mut leaving
                && (has_requests || waiting.as_mut().poll(cx).is_ready())
            {
                leaving = None;
                connection.graceful_shutdown();
            }
            connection.poll_accept(cx)
        })
        .await;
        while streams.try_join_next().is_some() {}
        let Some(accepted) = accepted else {
            return Ok(());
        };
        let (request, respond) = accepted?;
        has_requests = true;
        let stream = Stream {
            of_requests: Arc::clone(of_requests),
            origin: origin.clone(),
        };
        // On the heap: it has kilobytes, which the end of the task would copy.
        streams.spawn(Box::pin(stream.answer(request, respond)));
    }
}

/// One request and its response.
struct Stream {
    of_requests: Arc<OfRequests>,
    origin: Origin,
}

impl Stream {
    async fn answer(self, request: Request<RecvStream>, mut respond: SendResponse<Part>) {
        let is_connect = *request.method() == Method::CONNECT;
        if !is_connect && !request.body().is_end_stream() && expects_continue(request.headers()) {
            let mut interim = http::Response::new(());
            *interim.status_mut() = StatusCode::CONTINUE;
            // Fails if the stream was reset, which the answer finds out.
            let _ = respond.send_informational(interim);
        }
        let activity = Activity::new();
        let idle = self.of_requests.idle;
        let deliveries = self.of_requests.deliveries.clone();
        let answer = {
            let mut answering = pin!(self.answer_for(request, &activity));
            let answered = poll_fn(|cx| {
                if let Poll::Ready(answer) = answering.as_mut().poll(cx) {
                    return Poll::Ready(Some(answer));
                }
                // The client has cancelled the request, or is disconnected.
                respond.poll_reset(cx).map(|_| None)
            });
            match answered.await {
                Some(answer) => answer,
                None => return,
            }
        };
        let is_tunnel = answer.response.extensions().get::<Tunnel>().is_some();
        let (mut parts, content) = deliveries.follow(answer).into_parts();
        remove_connection_specific(&mut parts.headers);
        if is_connect && parts.status.is_success() {
            // The following bytes are those of the tunnel (RFC 9110, section 9.3.6).
            parts.headers.remove(CONTENT_LENGTH);
        } else if let Some(length) = content.size_hint().exact()
            && !content.is_end_stream()
        {
            parts
                .headers
                .entry(CONTENT_LENGTH)
                .or_insert_with(|| length.into());
        }
        let is_end = content.is_end_stream();
        let mut head = http::Response::new(());
        *head.status_mut() = parts.status;
        *head.headers_mut() = parts.headers;
        match respond.send_response(head, is_end) {
            Ok(_) if is_end => {}
            Ok(stream) => {
                let activity = is_tunnel.then_some(activity);
                Outgoing::new(content, stream, activity, idle).run().await;
            }
            // The site's header is invalid in HTTP/2, or the stream has ended.
            Err(_) => {
                content.cut();
                respond.send_reset(Reason::INTERNAL_ERROR);
            }
        }
    }

    /// The answer of the server or the site.
    async fn answer_for(self, request: Request<RecvStream>, activity: &Activity) -> Answer {
        let Self {
            of_requests,
            origin,
        } = self;
        let request = request.map(|stream| RequestContent::new(stream, &of_requests.contents));
        let has_content = content_length(request.headers()).is_some_and(|length| length > 0);
        let request = match of_requests.refused(request, has_content) {
            Ok(request) => request,
            Err(answer) => return *answer,
        };
        let is_connect = *request.method() == Method::CONNECT;
        let (mut parts, content) = request.into_parts();
        header::join_cookies(&mut parts.headers);
        if let Some(protocol) = parts.extensions.remove::<h2::ext::Protocol>()
            && let Some(protocol) = Protocol::new(protocol.as_str())
        {
            parts.extensions.insert(protocol);
        }
        let content = match (is_connect, content.has_ended()) {
            (true, _) => Body::new(content.of_tunnel(&of_requests.recorder, activity.clone())),
            (false, true) => Body::empty(),
            (false, false) => Body::new(content.of_request(&of_requests.recorder)),
        };
        let request = Request::from_parts(parts, content);
        respond(&of_requests.context, &of_requests.recorder, request, origin).await
    }
}

/// Whether the client waits for an interim response before it sends content (RFC 9110, section 10.1.1).
fn expects_continue(headers: &HeaderMap) -> bool {
    headers
        .get(EXPECT)
        .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"))
}

/// Removes fields that HTTP/2 does not allow (RFC 9113, section 8.2.2).
fn remove_connection_specific(headers: &mut HeaderMap) {
    let listed: Vec<String> = headers
        .get_all(CONNECTION)
        .iter()
        .filter_map(|list| list.to_str().ok())
        .flat_map(|list| list.split(','))
        .map(|name| name.trim().to_owned())
        .collect();
    for name in &listed {
        headers.remove(name);
    }
    const KEEP_ALIVE: HeaderName = HeaderName::from_static("keep-alive");
    const PROXY_CONNECTION: HeaderName = HeaderName::from_static("proxy-connection");
    for name in [
        CONNECTION,
        TRANSFER_ENCODING,
        UPGRADE,
        TE,
        KEEP_ALIVE,
        PROXY_CONNECTION,
    ] {
        headers.remove(name);
    }
}
