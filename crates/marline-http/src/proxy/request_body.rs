//! The content of a request that may have to be sent again.

use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};

use bytes::Bytes;
use http_body::{Body as _, Frame, SizeHint};
use tokio::time::Instant;

use super::fields;
use crate::body::{Body, BoxError};
use crate::limits;

/// The content of a request, as its owner sees it while it is sent. Until its first part was taken, it can be sent again.
#[derive(Clone)]
pub(super) struct HeldBody(Arc<Mutex<State>>);

struct State {
    body: Body,
    /// Whether a part was taken.
    is_begun: bool,
    /// Whether it may be taken: the server behind the proxy may want to refuse the request first.
    is_open: bool,
    /// Whether the response is over, so that nobody needs the rest.
    is_abandoned: bool,
    /// Who waits for it.
    waiting: Option<Waker>,
    /// When a part was taken last.
    last: Instant,
    /// When enough was taken to count as progress.
    progressed: Instant,
    /// Bytes that were taken since.
    taken: u64,
    /// Why the rest does not arrive.
    failure: Option<String>,
}

impl HeldBody {
    /// `body`, which is sent when it is [opened](Self::open) if it shall `wait`.
    pub(super) fn new(body: Body, wait: bool) -> Self {
        Self(Arc::new(Mutex::new(State {
            body,
            is_begun: false,
            is_open: !wait,
            is_abandoned: false,
            waiting: None,
            last: Instant::now(),
            progressed: Instant::now(),
            taken: 0,
            failure: None,
        })))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The server behind the proxy wants the content.
    pub(super) fn open(&self) {
        let mut state = self.state();
        state.is_open = true;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Whether it can still be sent from its beginning.
    pub(super) fn is_whole(&self) -> bool {
        !self.state().is_begun
    }

    /// Whether there is no content.
    pub(super) fn is_empty(&self) -> bool {
        let state = self.state();
        !state.is_begun && state.body.is_end_stream()
    }

    /// When a part was taken last; at first, when the request arrived.
    pub(super) fn last(&self) -> Instant {
        self.state().last
    }

    /// When [`limits::MIN_PROGRESS_BYTES`] were taken last, or the end; at first, when the request arrived. A client that sends a byte now
    /// and then keeps no place at the server for it.
    pub(super) fn progressed(&self) -> Instant {
        self.state().progressed
    }

    /// Nobody wants the rest: who sends it stops.
    pub(super) fn abandon(&self) {
        let mut state = self.state();
        state.is_abandoned = true;
        let waiting = state.waiting.take();
        drop(state);
        waiting.into_iter().for_each(Waker::wake);
    }

    /// Why the rest does not arrive, if it does not.
    pub(super) fn failure(&self) -> Option<String> {
        self.state().failure.clone()
    }

    /// What is sent.
    pub(super) fn to_body(&self) -> Body {
        match self.is_empty() {
            true => Body::empty(),
            false => Body::new(Sent(self.clone())),
        }
    }
}

/// The content on its way.
struct Sent(HeldBody);

impl http_body::Body for Sent {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let mut state = self.0.state();
        if state.is_abandoned {
            return Poll::Ready(Some(Err("nobody needs the rest of the request".into())));
        }
        state.waiting = Some(cx.waker().clone());
        if !state.is_open {
            return Poll::Pending;
        }
        let mut frame = ready!(Pin::new(&mut state.body).poll_frame(cx));
        state.is_begun = true;
        state.last = Instant::now();
        let data = frame.iter().flatten().filter_map(Frame::data_ref);
        state.taken += data.map(|data| data.len() as u64).sum::<u64>();
        if state.taken >= limits::MIN_PROGRESS_BYTES
            || state.body.is_end_stream()
            || frame.is_none()
        {
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
        self.0.state().body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.0.state().body.size_hint()
    }
}
