//! Interim responses of a site on their way to the client.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Poll, Waker};

use http::Response;

use crate::interim::Interim;
use crate::limits;

/// The interim responses to one request. More than [`limits::MAX_INTERIM_RESPONSES`] are dropped.
pub(super) struct Interims(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    waiting: VecDeque<Response<()>>,
    /// Responses so far.
    taken: usize,
    /// The task of the request, if it waits for one.
    waker: Option<Waker>,
}

impl Interims {
    pub(super) fn new() -> Self {
        Self(Arc::default())
    }

    /// The end that the site hands interim responses to.
    pub(super) fn taker(&self) -> Interim {
        let state = Arc::clone(&self.0);
        Interim::new(move |response| {
            let mut state = lock(&state);
            if state.taken < limits::MAX_INTERIM_RESPONSES {
                state.taken += 1;
                state.waiting.push_back(response);
                let waker = state.waker.take();
                drop(state);
                waker.into_iter().for_each(Waker::wake);
            }
        })
    }

    /// The next one, if the site has given it already.
    pub(super) fn take(&self) -> Option<Response<()>> {
        lock(&self.0).waiting.pop_front()
    }

    /// Waits for the next one.
    pub(super) async fn next(&self) -> Response<()> {
        poll_fn(|cx| {
            let mut state = lock(&self.0);
            if let Some(response) = state.waiting.pop_front() {
                return Poll::Ready(response);
            }
            match &mut state.waker {
                Some(waker) => waker.clone_from(cx.waker()),
                waker => *waker = Some(cx.waker().clone()),
            }
            Poll::Pending
        })
        .await
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
