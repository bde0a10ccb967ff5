//! The minimum speed at which the content of a request has to arrive.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::ServerLimits;
use super::stop::{Stop, Stopped};
use crate::body::{Body, BoxError};
use crate::runtime::{RuntimeHandle, Stopwatch};

/// The client sends the content of its request too slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the content of the request arrives too slowly")]
struct TooSlow;

/// The state of a request whose content is paced.
#[derive(Clone, Debug, Default)]
pub(super) struct Pace {
    too_slow: Stop,
    is_answered: Arc<AtomicBool>,
}

impl Pace {
    /// Notes that the response has begun. From now on, the client may wait for it before it sends more.
    pub(super) fn on_answer(&self) {
        self.is_answered.store(true, Relaxed);
    }

    /// Whether the content arrived too slowly.
    pub(super) fn is_too_slow(&self) -> bool {
        self.too_slow.is_stopping()
    }

    /// Completes when the content arrives too slowly.
    pub(super) fn too_slow(&self) -> Stopped {
        self.too_slow.stopped()
    }
}

/// Content that fails if less than [`ServerLimits::min_progress_bytes`] of it arrive within [`ServerLimits::idle_timeout`] of
/// waiting for the client, until the response begins. The time in which no one reads does not count.
pub(super) struct Paced {
    body: Body,
    pace: Pace,
    runtime: RuntimeHandle,
    limit: Duration,
    min_bytes: u64,
    /// Bytes since the time began.
    arrived: u64,
    /// The remaining time.
    left: Duration,
    /// The time for which the client has been waited for.
    waiting: Option<Stopwatch>,
    /// Fires before the time is over, or at its end.
    alarm: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
}

impl Paced {
    pub(super) fn new(
        body: Body,
        pace: &Pace,
        runtime: &RuntimeHandle,
        limits: &ServerLimits,
    ) -> Self {
        Self {
            body,
            pace: pace.clone(),
            runtime: runtime.clone(),
            limit: limits.idle_timeout,
            min_bytes: limits.min_progress_bytes,
            arrived: 0,
            left: limits.idle_timeout,
            waiting: None,
            alarm: None,
        }
    }

    /// Notes that `bytes` arrived.
    fn on_arrival(&mut self, bytes: usize) {
        if let Some(since) = self.waiting.take() {
            let waited = self.runtime.elapsed(since);
            self.left = self.left.saturating_sub(waited);
        }
        self.arrived += bytes as u64;
        if self.arrived >= self.min_bytes {
            self.arrived = 0;
            self.left = self.limit;
        }
    }

    /// Ready if the client has been waited for too long.
    fn poll_late(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.pace.is_answered.load(Relaxed) {
            return Poll::Pending;
        }
        let since = *self.waiting.get_or_insert_with(|| self.runtime.stopwatch());
        loop {
            let left = self.left.saturating_sub(self.runtime.elapsed(since));
            if left.is_zero() {
                return Poll::Ready(());
            }
            let alarm = self.alarm.get_or_insert_with(|| {
                let runtime = self.runtime.clone();
                Box::pin(async move { runtime.sleep(left).await })
            });
            if alarm.as_mut().poll(cx).is_pending() {
                return Poll::Pending;
            }
            self.alarm = None;
        }
    }
}

impl http_body::Body for Paced {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = self.get_mut();
        if let Poll::Ready(frame) = Pin::new(&mut this.body).poll_frame(cx) {
            if let Some(Ok(frame)) = &frame {
                this.on_arrival(frame.data_ref().map_or(0, Bytes::len));
            }
            return Poll::Ready(frame);
        }
        if this.poll_late(cx).is_pending() {
            return Poll::Pending;
        }
        this.pace.too_slow.stop();
        Poll::Ready(Some(Err(TooSlow.into())))
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
mod tests {
    use http_body_util::{BodyExt, StreamBody};
    use tokio::time::sleep;

    use super::*;

    /// The bytes read of content that arrives at `bytes` per second, for an hour.
    async fn read(bytes: usize, pace: &Pace) -> Result<usize, BoxError> {
        let second = Duration::from_secs(1);
        let parts = futures_util::stream::unfold(0, move |parts| async move {
            sleep(second).await;
            let part = Frame::data(Bytes::from(vec![7; bytes]));
            (parts < 3600).then_some((Ok::<_, BoxError>(part), parts + 1))
        });
        let body = Body::new(StreamBody::new(Box::pin(parts)));
        let runtime = RuntimeHandle::new(None).unwrap();
        let mut paced = Paced::new(body, pace, &runtime, &ServerLimits::default());
        let mut read = 0;
        while let Some(frame) = paced.frame().await {
            read += frame?.into_data().unwrap_or_default().len();
        }
        Ok(read)
    }

    #[tokio::test(start_paused = true)]
    async fn content_has_to_arrive_at_a_minimum_rate() {
        for (bytes, is_too_slow) in [(1, true), (60, true), (70, false), (1000, false)] {
            let pace = Pace::default();
            let read = read(bytes, &pace).await;
            assert_eq!(pace.is_too_slow(), is_too_slow, "{bytes}");
            assert_eq!(read.ok(), (!is_too_slow).then_some(3600 * bytes));
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_client_that_has_an_answer_may_send_slowly() {
        let pace = Pace::default();
        pace.on_answer();
        assert_eq!(read(1, &pace).await.unwrap(), 3600);
    }

    #[tokio::test(start_paused = true)]
    async fn the_time_in_which_nobody_reads_is_not_the_clients() {
        let part = || Ok::<_, BoxError>(Frame::data(Bytes::from_static(b"x")));
        let parts = std::iter::repeat_with(part).take(3600);
        let body = Body::new(StreamBody::new(futures_util::stream::iter(parts)));
        let runtime = RuntimeHandle::new(None).unwrap();
        let pace = Pace::default();
        let mut paced = Paced::new(body, &pace, &runtime, &ServerLimits::default());
        while let Some(frame) = paced.frame().await {
            assert!(frame.is_ok());
            sleep(Duration::from_secs(1)).await;
        }
        assert!(!pace.is_too_slow());
    }
}
