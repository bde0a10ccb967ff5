//! Requests of HTTP/1.1 that make their connection a tunnel: CONNECT and the Upgrade to WebSocket. Sites see both as CONNECT, whose
//! content and whose response's content are the two directions, as in HTTP/2 and 3.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use http::header::{CONNECTION, CONTENT_LENGTH, UPGRADE};
use http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use http_body::Frame;
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use marline_h3::Protocol;
use tokio::io::ReadHalf;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinSet;

use super::super::Tunnel;
use super::super::idle::IdleTimeout;
use super::super::record::Answer;
use super::deliveries::{Content, Deliveries};
use super::socket::Reset;
use crate::body::{Body, BoxError};
use crate::stream::{End, ReadBody, write_all};

const WEBSOCKET: &str = "websocket";

type Stream = IdleTimeout<TokioIo<hyper::upgrade::Upgraded>>;

/// The tunnel of one connection, if it has become one. It ends with the connection.
#[derive(Clone)]
pub(in crate::server) struct Tunnels {
    running: Arc<Mutex<JoinSet<()>>>,
    /// Held by the tunnel, so that a server that stops can wait for them.
    open: mpsc::WeakSender<()>,
    /// The reset of the connection.
    reset: Reset,
}

impl Tunnels {
    pub(in crate::server) fn new(open: mpsc::WeakSender<()>, reset: Reset) -> Self {
        Self {
            running: Arc::default(),
            open,
            reset,
        }
    }

    fn running(&self) -> MutexGuard<'_, JoinSet<()>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until it has ended.
    pub(super) async fn ended(self) {
        let mut running = std::mem::take(&mut *self.running());
        while running.join_next().await.is_some() {}
    }

    /// Makes `answer` begin the tunnel of `asked` if the site has accepted it. The tunnel ends after `idle` without activity.
    pub(super) fn answer(
        &self,
        asked: Asked,
        answer: Answer,
        deliveries: &Deliveries,
        idle: Duration,
    ) -> Response<Content> {
        if answer.response.extensions().get::<Tunnel>().is_none() {
            return deliveries.follow(answer);
        }
        let Answer { response, record } = answer;
        let (mut parts, content) = response.into_parts();
        let content = deliveries.follow_stream(content, record);
        parts.headers.remove(CONTENT_LENGTH);
        if asked.is_upgrade {
            parts.status = StatusCode::SWITCHING_PROTOCOLS;
            let headers = &mut parts.headers;
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
            headers.insert(UPGRADE, HeaderValue::from_static(WEBSOCKET));
        }
        let open = self.open.upgrade();
        let reset = self.reset.clone();
        self.running().spawn(async move {
            let _open = open;
            let Ok(stream) = asked.on.await else { return };
            let stream = IdleTimeout::new(TokioIo::new(stream), idle);
            let (read, mut write) = tokio::io::split(stream);
            // The site may not need the client's data.
            let _ = asked.read.send(read);
            if write_all(content, &mut write).await == End::Aborted {
                reset.when_closed();
            }
        });
        Response::from_parts(parts, Content::empty())
    }
}

/// A client asks for a tunnel.
pub(super) struct Asked {
    on: OnUpgrade,
    read: oneshot::Sender<ReadHalf<Stream>>,
    is_upgrade: bool,
}

/// A request for a tunnel, with the client's data in it as its content.
pub(super) struct Asking {
    pub(super) request: Request<Body>,
    pub(super) asked: Asked,
}

/// Converts `request` to the CONNECT that sites know, if it asks for a tunnel.
#[expect(clippy::result_large_err, reason = "the request goes on")]
pub(super) fn asked<B: http_body::Body>(mut request: Request<B>) -> Result<Asking, Request<B>> {
    let is_connect = request.method() == Method::CONNECT;
    // The tunnel would begin after the content, which belongs to the request (RFC 9110, section 7.8): an Upgrade may be ignored.
    let is_upgrade = request.version() == Version::HTTP_11
        && is_websocket(&request)
        && request.body().is_end_stream();
    if !is_connect && !is_upgrade {
        return Err(request);
    }
    let on = hyper::upgrade::on(&mut request);
    let (mut parts, _) = request.into_parts();
    if is_upgrade {
        parts.method = Method::CONNECT;
        parts.headers.remove(UPGRADE);
        parts.headers.remove(CONNECTION);
        if let Some(protocol) = Protocol::new(WEBSOCKET) {
            parts.extensions.insert(protocol);
        }
    }
    let (send, read) = oneshot::channel();
    let content = Body::new(Received::Waiting(read));
    Ok(Asking {
        request: Request::from_parts(parts, content),
        asked: Asked {
            on,
            read: send,
            is_upgrade,
        },
    })
}

fn is_websocket<B>(request: &Request<B>) -> bool {
    let has = |name, token: &str| {
        let values = request.headers().get_all(name).iter();
        let mut tokens = values
            .filter_map(|value| value.to_str().ok())
            .flat_map(|value| value.split(','));
        tokens.any(|one| one.trim().eq_ignore_ascii_case(token))
    };
    request.method() == Method::GET && has(UPGRADE, WEBSOCKET) && has(CONNECTION, "upgrade")
}

/// The client's data in a tunnel, once that is open.
enum Received {
    Waiting(oneshot::Receiver<ReadHalf<Stream>>),
    Open(ReadBody<ReadHalf<Stream>>),
    Ended,
}

impl http_body::Body for Received {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        loop {
            match &mut *self {
                Self::Waiting(read) => {
                    *self = match ready!(Pin::new(read).poll(cx)) {
                        Ok(read) => Self::Open(ReadBody::new(read)),
                        Err(_) => Self::Ended,
                    };
                }
                Self::Open(read) => return Pin::new(read).poll_frame(cx),
                Self::Ended => return Poll::Ready(None),
            }
        }
    }
}
