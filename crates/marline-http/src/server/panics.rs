//! Panics of sites: one request fails, and nothing else.

use std::cell::Cell;
use std::future::poll_fn;
use std::panic::{self, AssertUnwindSafe, PanicHookInfo};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Frame, SizeHint};

use super::metrics::Metrics;
use crate::body::{Body, BoxError};
use crate::log::Level;
use crate::log::messages::{self, Subject};

thread_local! {
    /// Whether this thread runs a site.
    static IN_SITE: Cell<bool> = const { Cell::new(false) };
}

/// A site has panicked.
#[derive(Debug, thiserror::Error)]
#[error("the site has panicked")]
pub(super) struct Panicked;

/// Reports panics of sites in one line of the error log each, without a backtrace: the server continues, and answers the
/// request with status 500. Other panics are left to the hook that is set when this is called.
pub fn report_panics_in_one_line() {
    let others = panic::take_hook();
    panic::set_hook(Box::new(move |panic| match IN_SITE.get() {
        true => report(panic),
        false => others(panic),
    }));
}

fn report(panic: &PanicHookInfo<'_>) {
    let payload = panic.payload();
    let text = payload.downcast_ref::<&str>().copied();
    let text = text.or_else(|| payload.downcast_ref().map(String::as_str));
    let message = text.unwrap_or("no message");
    let message = message.replace(['\n', '\r'], " ");
    let place = panic
        .location()
        .map_or_else(String::new, |place| format!(" at {place}"));
    let text = format!("a request failed by a defect of this program{place}: {message}");
    messages::emit(Level::Error, Subject::Defect, &text);
}

/// Runs `site`.
fn catch<T>(site: impl FnOnce() -> T) -> Result<T, Panicked> {
    /// Resets the flag, also when sites are nested.
    struct Within(bool);
    impl Drop for Within {
        fn drop(&mut self) {
            IN_SITE.set(self.0);
        }
    }
    let _within = Within(IN_SITE.replace(true));
    // The panicked value is not used again.
    panic::catch_unwind(AssertUnwindSafe(site)).map_err(|payload| {
        // Its drop may panic, too.
        std::mem::forget(payload);
        Panicked
    })
}

/// The result of `work`, unless it panics.
pub(super) async fn caught<T>(work: impl Future<Output = T>) -> Result<T, Panicked> {
    let mut work = pin!(work);
    poll_fn(|cx| match catch(|| work.as_mut().poll(cx)) {
        Ok(polled) => polled.map(Ok),
        Err(panicked) => Poll::Ready(Err(panicked)),
    })
    .await
}

/// The same content, which fails and is counted if it panics.
pub(super) fn guard(content: Body, metrics: &Arc<Metrics>) -> Body {
    if content.in_memory().is_some() {
        return content;
    }
    Body::new(Guarded {
        content,
        metrics: Arc::clone(metrics),
    })
}

struct Guarded {
    content: Body,
    metrics: Arc<Metrics>,
}

impl http_body::Body for Guarded {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let content = Pin::new(&mut self.content);
        catch(|| content.poll_frame(cx)).unwrap_or_else(|panicked| {
            self.content = Body::empty();
            self.metrics.handler_panicked();
            Poll::Ready(Some(Err(panicked.into())))
        })
    }

    fn is_end_stream(&self) -> bool {
        self.content.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.content.size_hint()
    }
}
