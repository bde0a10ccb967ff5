//! Redirects (RFC 9110, section 15.4).

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response, Uri};
use tower::{Layer, Service, ServiceExt};

use super::{Requests, ResponseFuture, ignore};
use crate::client::redirect::location;
use crate::client::{Client, ClientError, Hsts, Redirects, Upload};
use crate::runtime::RuntimeHandle;

/// The URI that a response is for, after redirects: among the extensions of responses through a [`RedirectLayer`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FinalUri(pub Uri);

/// Follows redirects.
#[derive(Clone, Debug)]
pub struct RedirectLayer {
    policy: Option<Redirects>,
    hsts: Option<Arc<Hsts>>,
    runtime: RuntimeHandle,
}

impl RedirectLayer {
    /// As `policy` says, with the timers of `client`, and [its hosts](crate::client::ClientConfig::hsts) that are only reached
    /// over TLS.
    pub fn new(policy: Redirects, client: &Client) -> Self {
        Self::optional(Some(policy), client.config().hsts.clone(), client)
    }

    /// Without a policy, none is followed.
    pub(super) fn optional(
        policy: Option<Redirects>,
        hsts: Option<Arc<Hsts>>,
        client: &Client,
    ) -> Self {
        Self {
            policy,
            hsts,
            runtime: client.runtime().clone(),
        }
    }

    pub(super) fn around<S>(self, inner: S) -> Redirect<S> {
        Redirect { inner, layer: self }
    }

    /// `url` with `https` if its host is only reached over TLS.
    fn upgraded(&self, url: String) -> String {
        let hsts = self.hsts.as_ref();
        hsts.and_then(|hsts| hsts.upgraded(&url, self.runtime.unix_time()))
            .unwrap_or(url)
    }
}

impl<S> Layer<S> for RedirectLayer {
    type Service = Redirect<S>;

    fn layer(&self, inner: S) -> Redirect<S> {
        self.clone().around(inner)
    }
}

/// The service of a [`RedirectLayer`].
#[derive(Clone, Debug)]
pub struct Redirect<S> {
    inner: S,
    layer: RedirectLayer,
}

impl<S: Requests> Service<Request<Upload>> for Redirect<S> {
    type Response = Response<S::Content>;
    type Error = ClientError;
    type Future = ResponseFuture<S::Content>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Self::Future {
        let Self { inner, layer } = self.clone();
        Box::pin(follow(inner, layer, request))
    }
}

async fn follow<S: Requests>(
    inner: S,
    layer: RedirectLayer,
    mut request: Request<Upload>,
) -> Result<Response<S::Content>, ClientError> {
    let mut followed = 0;
    loop {
        let mut response = inner.clone().oneshot(request.clone()).await?;
        let found = location(request.uri(), response.status(), response.headers());
        let (Some(policy), Some(url)) = (&layer.policy, found) else {
            let uri = request.uri().clone();
            response.extensions_mut().insert(FinalUri(uri));
            return Ok(response);
        };
        if let Some(limit) = policy.limit.filter(|limit| followed >= *limit) {
            return Err(ClientError::TooManyRedirects { limit });
        }
        followed += 1;
        request = policy.redirected(request, &layer.upgraded(url), response.status())?;
        ignore(response.into_body(), &layer.runtime).await;
    }
}
