//! The content of requests of HTTP/2.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use futures_util::future::poll_fn;
use h2::{Reason, RecvStream};
use http::Version;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::timeout;

use super::super::super::received::{OpenContent, OpenContents};
use super::super::super::record::Recorder;
use super::outgoing::Activity;
use crate::header::has_blanks;
use crate::limits;

/// The content that a client sends on a stream after the header of its request. The windows are reopened as it is read.
pub(super) struct RequestContent {
    stream: RecvStream,
    /// `None` once it has ended.
    open: Option<OpenContent>,
    has_data_ended: bool,
}

impl RequestContent {
    /// The content on `stream`, one of the `contents` of its connection.
    pub(super) fn new(stream: RecvStream, contents: &OpenContents) -> Self {
        Self {
            open: (!stream.is_end_stream()).then(|| contents.open()),
            stream,
            has_data_ended: false,
        }
    }

    /// Whether nothing follows.
    pub(super) fn has_ended(&self) -> bool {
        self.open.is_none()
    }

    /// The content of a request other than CONNECT.
    pub(super) fn of_request(self, recorder: &Arc<Recorder>) -> Counted {
        Counted {
            content: Some(self),
            recorder: Arc::clone(recorder),
            activity: None,
        }
    }

    /// The content of a tunnel with this `activity`.
    pub(super) fn of_tunnel(self, recorder: &Arc<Recorder>, activity: Activity) -> Counted {
        Counted {
            content: Some(self),
            recorder: Arc::clone(recorder),
            activity: Some(activity),
        }
    }

    /// Reads and discards the rest, if it is small and arrives soon.
    async fn discard(mut self) {
        let mut left = limits::MAX_DISCARDED_BYTES;
        while let Some(Ok(frame)) = poll_fn(|cx| self.poll_next(cx)).await {
            let len = frame.data_ref().map_or(0, Bytes::len);
            match left.checked_sub(len) {
                Some(rest) => left = rest,
                None => break,
            }
        }
    }

    fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if self.has_ended() {
            return Poll::Ready(None);
        }
        let next = match ready!(self.poll_frame_of_stream(cx)) {
            // The client has ended it without an error.
            Some(Err(error)) if error.reason() == Some(Reason::NO_ERROR) => None,
            next => next,
        };
        match &next {
            Some(Ok(frame)) if frame.is_data() => {}
            _ => self.open = None,
        }
        Poll::Ready(next)
    }

    fn poll_frame_of_stream(
        &mut self,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        if !self.has_data_ended {
            match ready!(self.stream.poll_data(cx)) {
                Some(Ok(data)) => {
                    let len = data.len();
                    // Fails if the stream was reset.
                    let _ = self.stream.flow_control().release_capacity(len);
                    self.open.iter().for_each(|open| open.on_read(len));
                    return Poll::Ready(Some(Ok(Frame::data(data))));
                }
                Some(Err(error)) => return Poll::Ready(Some(Err(error))),
                None => self.has_data_ended = true,
            }
        }
        let trailers = ready!(self.stream.poll_trailers(cx)).transpose();
        Poll::Ready(trailers.map(|trailers| match trailers? {
            malformed if has_blanks(Version::HTTP_2, &malformed) => {
                Err(Reason::PROTOCOL_ERROR.into())
            }
            trailers => Ok(Frame::trailers(trailers)),
        }))
    }
}

/// The content of a request whose arrival is progress of its connection. If the site drops it unread, the rest is read and
/// discarded within limits, unless it is that of a tunnel: clients that are still sending read the response last. Content beyond
/// the limits is refused after the response, with NO_ERROR (RFC 9113, section 8.1).
pub(super) struct Counted {
    /// `None` once it is dropped.
    content: Option<RequestContent>,
    recorder: Arc<Recorder>,
    /// The activity of the tunnel, if it is one.
    activity: Option<Activity>,
}

impl http_body::Body for Counted {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = self.get_mut();
        let Some(content) = &mut this.content else {
            return Poll::Ready(None);
        };
        let next = ready!(content.poll_next(cx));
        if let Some(Ok(frame)) = &next {
            let bytes = frame.data_ref().map_or(0, Bytes::len) as u64;
            match &this.activity {
                Some(activity) => {
                    activity.moved();
                    this.recorder.on_tunnel(bytes);
                }
                None => this.recorder.on_content(bytes),
            }
        }
        Poll::Ready(next)
    }

    fn is_end_stream(&self) -> bool {
        let content = self.content.as_ref();
        content.is_none_or(|content| content.has_ended() || content.stream.is_end_stream())
    }

    fn size_hint(&self) -> SizeHint {
        match self.is_end_stream() {
            true => SizeHint::with_exact(0),
            false => SizeHint::default(),
        }
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        if self.is_end_stream() || self.activity.is_some() {
            return;
        }
        if let (Some(content), Ok(runtime)) =
            (self.content.take(), tokio::runtime::Handle::try_current())
        {
            runtime.spawn(timeout(limits::DISCARD_TIMEOUT, content.discard()));
        }
    }
}
