//! Repetition of requests that failed for a reason that may pass.

use std::task::{Context, Poll};
use std::time::SystemTime;

use http::{Request, Response};
use tower::{Layer, Service, ServiceExt};

use super::{Requests, ResponseFuture, ignore};
use crate::client::{Client, ClientError, Retry, Upload};
use crate::runtime::RuntimeHandle;

/// Repeats requests without a response, or with the status of a failure that may pass, if their content can be sent again.
/// Content of responses that breaks off is not repeated: [`Client::fetch`] does so.
#[derive(Clone, Debug)]
pub struct RetryLayer {
    retry: Retry,
    runtime: RuntimeHandle,
}

impl RetryLayer {
    /// Repeats requests as `retry` configures, with the clock and timers of `client`.
    pub fn new(retry: Retry, client: &Client) -> Self {
        Self {
            retry,
            runtime: client.runtime().clone(),
        }
    }
}

impl<S> Layer<S> for RetryLayer {
    type Service = Repeat<S>;

    fn layer(&self, inner: S) -> Repeat<S> {
        Repeat {
            inner,
            layer: self.clone(),
        }
    }
}

/// The service of a [`RetryLayer`].
#[derive(Clone, Debug)]
pub struct Repeat<S> {
    inner: S,
    layer: RetryLayer,
}

impl<S: Requests> Service<Request<Upload>> for Repeat<S> {
    type Response = Response<S::Content>;
    type Error = ClientError;
    type Future = ResponseFuture<S::Content>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Self::Future {
        let Self { inner, layer } = self.clone();
        Box::pin(repeat(inner, layer, request))
    }
}

async fn repeat<S: Requests>(
    inner: S,
    layer: RetryLayer,
    request: Request<Upload>,
) -> Result<Response<S::Content>, ClientError> {
    let RetryLayer { retry, runtime } = layer;
    let start = runtime.now();
    let mut attempt = 0;
    loop {
        let outcome = inner.clone().oneshot(request.clone()).await;
        let passes = match &outcome {
            Ok(response) => retry.covers_status(response.status()),
            Err(error) => retry.covers_error(error),
        };
        let elapsed = runtime.now().saturating_since(start);
        let may_repeat = attempt < retry.times
            && request.body().is_repeatable()
            && retry.max_time.is_none_or(|limit| elapsed < limit);
        if !passes || !may_repeat {
            return outcome;
        }
        attempt += 1;
        let now = SystemTime::UNIX_EPOCH + runtime.unix_time();
        let headers = outcome.as_ref().ok().map(Response::headers);
        let delay = retry.delay(attempt, headers, now);
        if let Ok(response) = outcome {
            ignore(response.into_body(), &runtime).await;
        }
        runtime.sleep(delay).await;
    }
}
