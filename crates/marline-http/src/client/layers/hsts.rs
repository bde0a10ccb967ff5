//! HTTP Strict Transport Security (RFC 6797).

use std::sync::Arc;
use std::task::{Context, Poll};

use http::uri::Scheme;
use http::{Request, Response};
use tower::{Layer, Service, ServiceExt};

use super::{Requests, ResponseFuture};
use crate::client::{Client, ClientError, Hsts, Upload};
use crate::runtime::RuntimeHandle;

/// Requests hosts over TLS that are only reached so, and keeps which announce it. Only for clients that verify certificates.
#[derive(Clone, Debug)]
pub struct HstsLayer {
    hosts: Option<Arc<Hsts>>,
    keeps: bool,
    runtime: RuntimeHandle,
}

impl HstsLayer {
    /// With the hosts of `hosts`, and the clock of `client`.
    pub fn new(hosts: Arc<Hsts>, client: &Client) -> Self {
        Self::optional(Some(hosts), true, client)
    }

    /// `keeps`: whether hosts are added, too.
    pub(super) fn optional(hosts: Option<Arc<Hsts>>, keeps: bool, client: &Client) -> Self {
        Self {
            hosts,
            keeps,
            runtime: client.runtime().clone(),
        }
    }

    pub(super) fn around<S>(self, inner: S) -> Upgrade<S> {
        Upgrade { inner, layer: self }
    }
}

impl<S> Layer<S> for HstsLayer {
    type Service = Upgrade<S>;

    fn layer(&self, inner: S) -> Upgrade<S> {
        self.clone().around(inner)
    }
}

/// The service of an [`HstsLayer`].
#[derive(Clone, Debug)]
pub struct Upgrade<S> {
    inner: S,
    layer: HstsLayer,
}

impl<S: Requests> Service<Request<Upload>> for Upgrade<S> {
    type Response = Response<S::Content>;
    type Error = ClientError;
    type Future = ResponseFuture<S::Content>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Upload>) -> Self::Future {
        let HstsLayer {
            hosts,
            keeps,
            runtime,
        } = self.layer.clone();
        let inner = self.inner.clone();
        let Some(hosts) = hosts else {
            return Box::pin(inner.oneshot(request));
        };
        let now = runtime.unix_time();
        let upgraded = hosts.upgraded(&request.uri().to_string(), now);
        if let Some(uri) = upgraded.and_then(|url| url.parse().ok()) {
            *request.uri_mut() = uri;
        }
        let is_kept = keeps && request.uri().scheme() == Some(&Scheme::HTTPS);
        let host = request.uri().host().map(str::to_owned);
        Box::pin(async move {
            let response = inner.oneshot(request).await?;
            if let Some(host) = host.filter(|_| is_kept) {
                let host = host.trim_start_matches('[').trim_end_matches(']');
                let host = host.to_ascii_lowercase();
                hosts.keep(&host, response.headers(), runtime.unix_time());
            }
            Ok(response)
        })
    }
}
