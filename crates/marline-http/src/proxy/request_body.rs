//! The content of a request that may have to be sent again.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::{Extensions, HeaderMap};
use http_body::{Body as _, Frame, SizeHint};
use http_body_util::LengthLimitError;
use tokio::time::Instant;

use super::failure::Failure;
use super::fields;
use crate::body::{Body, BoxError};
use crate::limits;
use crate::server::ProxiedContent;

/// The content of a request, as its owner observes it while it is sent. Until its first part was taken, it can be sent
/// again; after that, only if all of it was [received](Self::receive) before. Dropping it stops the transfer.
pub(super) struct HeldBody(Shared);

/// The reason why content does not arrive.
pub(super) enum Broken {
    /// It is larger than the site allows.
    TooLarge,
    Other(String),
}

impl Broken {
    pub(super) fn of(error: &BoxError) -> Self {
        match error.is::<LengthLimitError>() {
            true => Self::TooLarge,
            false => Self::Other(error.to_string()),
        }
    }

    pub(super) fn failure(&self) -> Failure {
        match self {
            Self::TooLarge => Failure::TooLarge,
            Self::Other(reason) => Failure::Content(reason.clone()),
        }
    }
}

/// The condition under which content is sent.
#[derive(Clone)]
pub(super) struct Opener(Shared);

#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

struct State {
    body: Body,
    /// The part of the server's budget that it uses.
    passage: ProxiedContent,
    /// Content that was received before it was sent.
    received: Received,
    /// The number of times that its sending has begun: only the last goes on.
    sendings: u64,
    /// Whether a part was taken.
    is_begun: bool,
    /// Whether it may be taken: the server behind the proxy may want to refuse the request first.
    is_open: bool,
    /// Whether the rest is not needed: the response has ended, or there is none.
    is_abandoned: bool,
    /// The task that waits for it.
    waiting: Option<Waker>,
    /// The time when a part was last taken.
    last: Instant,
    /// The time when enough bytes were last taken to count as progress.
    progressed: Instant,
    /// Bytes that were taken since.
    taken: u64,
    /// The reason why the rest does not arrive.
    failure: Option<Broken>,
}

/// Content that waits to be sent. Its parts are in the budget of the server.
#[derive(Default)]
struct Received {
    parts: VecDeque<Bytes>,
    trailers: Option<HeaderMap>,
    bytes: u64,
    /// Whether nothing follows.
    is_whole: bool,
    /// Whether it is kept after it was sent, to be sent again.
    is_kept: bool,
    /// Parts and trailers that were sent by the last sending, and are kept.
    sent: usize,
}

impl Received {
    fn push(&mut self, frame: Frame<Bytes>) {
        match frame.into_data() {
            Ok(data) if data.is_empty() => {}
            Ok(data) => {
                self.bytes += data.len() as u64;
                self.parts.push_back(data);
            }
            Err(other) => {
                let mut trailers = other.into_trailers().unwrap_or_default();
                fields::clean_trailers(&mut trailers);
                self.trailers = Some(trailers);
                self.is_whole = true;
            }
        }
    }

    /// The next part to send; trailers are the last.
    fn next(&mut self) -> Option<Frame<Bytes>> {
        let part = match self.is_kept {
            true => self.parts.get(self.sent).cloned(),
            false => self.parts.pop_front(),
        };
        let frame = match part {
            Some(part) => Frame::data(part),
            None if self.is_sent() => return None,
            None if self.is_kept => Frame::trailers(self.trailers.clone()?),
            None => Frame::trailers(self.trailers.take()?),
        };
        if self.is_kept {
            self.sent += 1;
        }
        Some(frame)
    }

    /// Whether nothing of it is still to be sent.
    fn is_sent(&self) -> bool {
        self.sent >= self.parts.len() + usize::from(self.trailers.is_some())
    }

    /// Keeps no longer what was sent.
    fn settle(&mut self) {
        self.is_kept = false;
        let sent = std::mem::take(&mut self.sent);
        if sent > self.parts.len() {
            self.trailers = None;
        }
        self.parts.drain(..sent.min(self.parts.len()));
    }
}

impl State {
    fn is_end_stream(&self) -> bool {
        let has_ended = self.passage.is_empty() && self.body.is_end_stream();
        (self.received.is_whole || has_ended) && self.received.is_sent()
    }

    fn poll_receive(&mut self, most: u64, cx: &mut Context<'_>) -> Poll<Result<(), Failure>> {
        while self.received.bytes < most && !self.received.is_whole {
            let Poll::Ready(frame) = self.passage.poll_frame(&mut self.body, cx) else {
                if self.passage.is_empty() {
                    return Poll::Pending;
                }
                // What has arrived waits for the budget, which sending frees.
                break;
            };
            match frame.transpose() {
                Ok(Some(frame)) => self.received.push(frame),
                Ok(None) => self.received.is_whole = true,
                Err(error) => return Poll::Ready(Err(Broken::of(&error).failure())),
            }
        }
        self.received.is_whole |= self.passage.is_empty() && self.body.is_end_stream();
        self.received.is_kept = self.received.is_whole;
        self.last = Instant::now();
        self.progressed = self.last;
        Poll::Ready(Ok(()))
    }
}

impl HeldBody {
    /// `body` of the request that has these `extensions`, which is sent only after [`open`](Self::open) if it has to
    /// `wait`.
    pub(super) fn new(body: Body, wait: bool, extensions: &Extensions) -> Self {
        Self(Shared(Arc::new(Mutex::new(State {
            body,
            passage: ProxiedContent::of(extensions),
            received: Received::default(),
            sendings: 0,
            is_begun: false,
            is_open: !wait,
            is_abandoned: false,
            waiting: None,
            last: Instant::now(),
            progressed: Instant::now(),
            taken: 0,
            failure: None,
        }))))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state()
    }

    /// Receives up to `most` bytes of the content before it is sent, as far as the budget of the server allows.
    ///
    /// # Errors
    /// The rest does not arrive.
    pub(super) async fn receive(&self, most: u64) -> Result<(), Failure> {
        poll_fn(|cx| self.state().poll_receive(most, cx)).await
    }

    /// The number of its bytes, if all were [received](Self::receive), and no trailers follow them.
    pub(super) fn received(&self) -> Option<u64> {
        let state = self.state();
        let received = &state.received;
        let is_known = received.is_whole && received.trailers.is_none();
        is_known.then_some(received.bytes)
    }

    /// It is not sent again.
    pub(super) fn settle(&self) {
        self.state().received.settle();
    }

    /// The server behind the proxy wants the content.
    pub(super) fn open(&self) {
        self.opener().open();
    }

    /// The condition under which content is sent, as long as it is needed.
    pub(super) fn opener(&self) -> Opener {
        Opener(self.0.clone())
    }

    /// Whether it can still be sent from its beginning.
    pub(super) fn is_whole(&self) -> bool {
        let state = self.state();
        !state.is_begun || (state.received.is_whole && state.received.is_kept)
    }

    /// Whether there is no content.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.state();
        !state.is_begun && state.is_end_stream()
    }

    /// The time when a part was last taken; initially, when the request arrived.
    pub(super) fn last(&self) -> Instant {
        self.state().last
    }

    /// The time when [`limits::MIN_PROGRESS_BYTES`] or the end were last taken; initially, when the request arrived. So
    /// a client that sends single bytes does not keep its place at the server.
    pub(super) fn progressed(&self) -> Instant {
        self.state().progressed
    }

    /// The reason why the rest does not arrive, if so.
    pub(super) fn failure(&self) -> Option<Failure> {
        self.state().failure.as_ref().map(Broken::failure)
    }

    /// The budget of the opposite direction, of the response.
    pub(super) fn way_back(&self) -> ProxiedContent {
        self.state().passage.opposite()
    }

    /// The content as a body to send.
    pub(super) fn to_body(&self) -> Body {
        match self.is_empty() {
            true => Body::empty(),
            false => {
                let number = self.0.change(|state| {
                    state.received.sent = 0;
                    state.sendings += 1;
                    state.sendings
                });
                Body::new(Sent {
                    content: self.0.clone(),
                    number,
                })
            }
        }
    }
}

impl Drop for HeldBody {
    fn drop(&mut self) {
        let rest = self.0.change(|state| {
            state.is_abandoned = true;
            // Released now, as the sender may not poll again for a long time.
            let nowhere = state.passage.opposite();
            let passage = std::mem::replace(&mut state.passage, nowhere);
            let received = std::mem::take(&mut state.received);
            let body = std::mem::replace(&mut state.body, Body::empty());
            (passage, body, received)
        });
        drop(rest);
    }
}

impl Opener {
    pub(super) fn open(&self) {
        self.0.change(|state| state.is_open = true);
    }
}

impl Shared {
    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the state, and wakes the sender of the content.
    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        let mut state = self.state();
        let changed = change(&mut state);
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
        changed
    }
}

/// The content while it is sent.
struct Sent {
    content: Shared,
    /// Which of its sendings this is.
    number: u64,
}

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.content.state();
        if state.is_abandoned || state.sendings != self.number {
            return Poll::Ready(Some(Err("the rest of the request is not needed".into())));
        }
        state.waiting = Some(cx.waker().clone());
        if !state.is_open {
            return Poll::Pending;
        }
        let State {
            body,
            passage,
            received,
            ..
        } = &mut *state;
        let mut frame = match received.next() {
            Some(part) => Some(Ok(part)),
            None if received.is_whole => None,
            None => ready!(passage.poll_frame(body, cx)),
        };
        state.is_begun = true;
        state.last = Instant::now();
        let data = frame.iter().flatten().filter_map(Frame::data_ref);
        state.taken += data.map(|data| data.len() as u64).sum::<u64>();
        if state.taken >= limits::MIN_PROGRESS_BYTES || state.is_end_stream() || frame.is_none() {
            state.progressed = state.last;
            state.taken = 0;
        }
        if let Some(Ok(frame)) = &mut frame
            && let Some(trailers) = frame.trailers_mut()
        {
            fields::clean_trailers(trailers);
        }
        if let Some(Err(error)) = &frame {
            state.failure = Some(Broken::of(error));
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.content.state().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.content.state();
        match state.passage.is_empty() && state.received.is_sent() {
            true => state.body.size_hint(),
            false => SizeHint::default(),
        }
    }
}
