//! The content of a request that may have to be sent again.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http::Extensions;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::Instant;

use super::fields;
use crate::body::{Body, BoxError};
use crate::limits;
use crate::server::ProxiedContent;

/// The content of a request, as its owner observes it while it is sent. Until its first part was taken, it can be sent
/// again. Dropping it stops the transfer.
pub(super) struct HeldBody(Shared);

/// The condition under which content is sent.
#[derive(Clone)]
pub(super) struct Opener(Shared);

#[derive(Clone)]
struct Shared(Arc<Mutex<State>>);

struct State {
    body: Body,
    /// The part of the server's budget that it uses.
    passage: ProxiedContent,
    /// Whether a part was taken.
    is_begun: bool,
    /// Whether it may be taken: the server behind the proxy may want to refuse the request first.
    is_open: bool,
    /// Whether the rest is not needed: the response is over, or there is none.
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
    failure: Option<String>,
}

impl State {
    fn is_end_stream(&self) -> bool {
        self.passage.is_empty() && self.body.is_end_stream()
    }
}

impl HeldBody {
    /// `body` of the request that has these `extensions`, which is sent only after [`open`](Self::open) if it has to
    /// `wait`.
    pub(super) fn new(body: Body, wait: bool, extensions: &Extensions) -> Self {
        Self(Shared(Arc::new(Mutex::new(State {
            body,
            passage: ProxiedContent::of(extensions),
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
        !self.state().is_begun
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
    pub(super) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// The budget of the opposite direction, of the response.
    pub(super) fn way_back(&self) -> ProxiedContent {
        self.state().passage.opposite()
    }

    /// The content as a body to send.
    pub(super) fn to_body(&self) -> Body {
        match self.is_empty() {
            true => Body::empty(),
            false => Body::new(Sent(self.0.clone())),
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
            (passage, std::mem::replace(&mut state.body, Body::empty()))
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
struct Sent(Shared);

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.0.state();
        if state.is_abandoned {
            return Poll::Ready(Some(Err("the rest of the request is not needed".into())));
        }
        state.waiting = Some(cx.waker().clone());
        if !state.is_open {
            return Poll::Pending;
        }
        let State { body, passage, .. } = &mut *state;
        let mut frame = ready!(passage.poll_frame(body, cx));
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
            state.failure = Some(error.to_string());
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.0.state().is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        let state = self.0.state();
        match state.passage.is_empty() {
            true => state.body.size_hint(),
            false => SizeHint::default(),
        }
    }
}
