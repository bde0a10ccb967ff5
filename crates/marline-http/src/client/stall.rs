//! Requests that make no progress.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use crate::body::BoxError;
use crate::runtime::RuntimeHandle;

/// Parts of the time limit after which progress is checked: a request ends after at most a quarter
/// more.
const STEPS: u32 = 4;

/// Nothing of a response arrived within this time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("nothing arrived for {} s", .0.as_secs_f64())]
pub(crate) struct Stalled(Duration);

impl Stalled {
    /// The time.
    pub(crate) fn limit(self) -> Duration {
        self.0
    }
}

/// The progress of the requests of a connection: headers of responses and content. Interim responses, and frames that
/// belong to no response, do not count. The responses of a connection may have to wait for each other, so that all have
/// the same progress.
pub(super) struct Activity {
    runtime: RuntimeHandle,
    limit: Option<Duration>,
    /// Bytes of content.
    received: AtomicU64,
    /// Counts headers of responses and chunks of content.
    progress: AtomicU64,
    /// Bytes that were read from a connection over TCP since the last progress.
    idle_bytes: AtomicU64,
}

impl Activity {
    pub(super) fn new(runtime: RuntimeHandle, limit: Option<Duration>) -> Arc<Self> {
        Arc::new(Self {
            runtime,
            limit,
            received: AtomicU64::new(0),
            progress: AtomicU64::new(0),
            idle_bytes: AtomicU64::new(0),
        })
    }

    /// The runtime of the connection.
    pub(super) fn runtime(&self) -> &RuntimeHandle {
        &self.runtime
    }

    /// Bytes of content that arrived.
    pub(super) fn received(&self) -> u64 {
        self.received.load(Relaxed)
    }

    /// Whether the header of a response arrived, or a part of a request's content was sent.
    pub(super) fn has_progress(&self) -> bool {
        self.progress.load(Relaxed) > 0
    }

    /// The header of a response arrived.
    pub(super) fn on_response(&self) {
        self.progress.fetch_add(1, Relaxed);
        self.idle_bytes.store(0, Relaxed);
    }

    /// A part of the content of a request is sent.
    pub(super) fn on_upload(&self) {
        self.on_response();
    }

    /// `bytes` of content arrived.
    pub(super) fn on_content(&self, bytes: usize) {
        self.received.fetch_add(bytes as u64, Relaxed);
        self.on_response();
    }

    /// `bytes` were read from the connection. Returns how many since the last progress.
    pub(super) fn on_read(&self, bytes: usize) -> u64 {
        let bytes = bytes as u64;
        self.idle_bytes.fetch_add(bytes, Relaxed) + bytes
    }

    /// Runs `work`, which waits for a response, unless there is no progress for too long.
    pub(super) async fn watch<T>(
        self: &Arc<Self>,
        work: impl Future<Output = Result<T, BoxError>>,
    ) -> Result<T, BoxError> {
        let mut work = pin!(work);
        let mut watch = Watch::new(self);
        poll_fn(|cx| match work.as_mut().poll(cx) {
            Poll::Ready(result) => Poll::Ready(result),
            Poll::Pending => watch.poll(cx).map(|stalled| Err(stalled.into())),
        })
        .await
    }
}

/// Waits until a connection makes no progress for too long. It counts time only while it is polled.
pub(super) struct Watch {
    activity: Arc<Activity>,
    /// The progress at the last check.
    seen: u64,
    /// Steps without progress.
    quiet: u32,
    step: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Watch {
    pub(super) fn new(activity: &Arc<Activity>) -> Self {
        Self {
            activity: Arc::clone(activity),
            seen: activity.progress.load(Relaxed),
            quiet: 0,
            step: None,
        }
    }

    pub(super) fn poll(&mut self, cx: &mut Context<'_>) -> Poll<Stalled> {
        let Some(limit) = self.activity.limit else {
            return Poll::Pending;
        };
        loop {
            let step = self.step.get_or_insert_with(|| {
                let runtime = self.activity.runtime.clone();
                Box::pin(async move { runtime.sleep(limit / STEPS).await })
            });
            ready!(step.as_mut().poll(cx));
            self.step = None;
            let progress = self.activity.progress.load(Relaxed);
            if progress != self.seen {
                self.seen = progress;
                self.quiet = 0;
                continue;
            }
            self.quiet += 1;
            if self.quiet >= STEPS {
                self.quiet = 0;
                return Poll::Ready(Stalled(limit));
            }
        }
    }
}
