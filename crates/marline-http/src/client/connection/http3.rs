//! Requests over HTTP/3, with their content.

use std::task::{Context, Poll};

use futures_util::future::{AbortHandle, abortable};
use http::{Request, Response, Version};
use http_body::Body as _;
use http_body_util::BodyExt;
use marline_h3::{ErrorCode, Protocol, StreamEvent};

use crate::body::Body;
use crate::content::content_length;
use crate::http3::{Receiver, RequestError, RequestStream, Sender, Session};
use crate::interim::Interim;
use crate::limits;
use crate::runtime::RuntimeHandle;

/// The content of a response, and the upload of the request. Dropping it ends both.
pub(in crate::client) struct Http3Content {
    receiver: Receiver<marline::Connection>,
    _upload: Option<Upload>,
}

/// The task that sends the content of a request, until it is dropped.
struct Upload(AbortHandle);

impl Drop for Upload {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Http3Content {
    /// The next part of the response; `None` when it is complete.
    pub(in crate::client) fn poll_next(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<StreamEvent>, RequestError>> {
        self.receiver.poll_next(cx)
    }
}

/// Sends a request on `stream`, or else on one that it opens, and waits for its response; interim ones are for the [`Interim`] of the request. Content is sent by a task of its own.
pub(super) async fn exchange(
    session: &Session<marline::Connection>,
    runtime: &RuntimeHandle,
    request: Request<Body>,
    stream: Option<RequestStream<marline::Connection>>,
) -> Result<Response<Http3Content>, RequestError> {
    let (parts, body) = request.into_parts();
    let length = content_length(&parts.headers);
    let interim = parts.extensions.get::<Interim>().cloned();
    let head = Request::from_parts(parts, ());
    let is_extended = head.extensions().get::<Protocol>().is_some();
    if is_extended {
        await_settings(session, runtime).await;
    }
    let RequestStream {
        mut sender,
        mut receiver,
    } = match stream {
        Some(mut stream) => {
            stream.begin(&head).await?;
            stream
        }
        None => RequestStream::open(session, &head).await?,
    };
    let datagrams = is_extended.then(|| receiver.datagrams()).flatten();
    let upload = if body.is_end_stream() {
        sender.finish().await?;
        None
    } else {
        let (sending, handle) = abortable(send_content(sender, body, length));
        runtime.spawn(async move {
            // Aborted if the response is no longer needed.
            let _ = sending.await;
        });
        Some(Upload(handle))
    };
    loop {
        match receiver.next().await? {
            Some(StreamEvent::Response(mut response)) => {
                if let Some(datagrams) = datagrams {
                    response.extensions_mut().insert(datagrams);
                }
                return Ok(response.map(|()| Http3Content {
                    receiver,
                    _upload: upload,
                }));
            }
            Some(StreamEvent::Interim(mut response)) => {
                *response.version_mut() = Version::HTTP_3;
                if let Some(interim) = &interim {
                    interim.send(*response);
                }
            }
            Some(_) => {}
            // The end before a response is an error.
            None => return Err(RequestError::Closed),
        }
    }
}

/// Waits until the server has announced that it accepts extended CONNECT, or a time limit expires.
async fn await_settings(session: &Session<marline::Connection>, runtime: &RuntimeHandle) {
    for _ in 0..limits::SETTINGS_POLLS {
        if session.accepts_extended_connect() {
            return;
        }
        runtime.sleep(limits::SETTINGS_POLL).await;
    }
}

/// Sends content as the server takes it; resets the stream if it fails, or has another length than was announced.
async fn send_content(
    mut sender: Sender<marline::Connection>,
    mut body: Body,
    length: Option<u64>,
) {
    let sent = send_frames(&mut sender, &mut body, length).await;
    if matches!(sent, Err(Incomplete::Broken)) {
        sender.reset(ErrorCode::REQUEST_CANCELLED);
    }
}

/// The reason why content was not sent completely.
enum Incomplete {
    /// The server needs no more of it, or the connection has ended: the response shows which.
    Stopped,
    /// It ended early.
    Broken,
}

impl From<RequestError> for Incomplete {
    fn from(_: RequestError) -> Self {
        Self::Stopped
    }
}

async fn send_frames(
    sender: &mut Sender<marline::Connection>,
    body: &mut Body,
    length: Option<u64>,
) -> Result<(), Incomplete> {
    let mut sent = 0;
    loop {
        let frame = tokio::select! {
            biased;
            frame = body.frame() => frame,
            () = sender.abandoned() => return Err(Incomplete::Stopped),
        };
        let Some(frame) = frame else { break };
        match frame.map_err(|_| Incomplete::Broken)?.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(mut data) => {
                sent += data.len() as u64;
                sender.begin_data(data.len()).await?;
                while !data.is_empty() {
                    let room = sender.writable().await?;
                    let part = data.split_to(room.min(data.len()));
                    sender.write(part).await?;
                }
            }
            Err(frame) => {
                if let Ok(trailers) = frame.into_trailers() {
                    sender.send_trailers(&trailers).await?;
                    break;
                }
            }
        }
    }
    match length {
        Some(length) if length != sent => Err(Incomplete::Broken),
        _ => Ok(sender.finish().await?),
    }
}
