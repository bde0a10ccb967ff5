//! Alternative services (RFC 7838).

use std::sync::Arc;
use std::task::{Context, Poll};

use http::{Request, Response};
use tower::{Layer, Service, ServiceExt};

use super::{Requests, ResponseFuture};
use crate::client::{AltServices, Client, ClientError, HttpVersion, Upload, parse_url};
use crate::runtime::RuntimeHandle;

/// Keeps the servers for HTTP/3 that responses over TLS name. A client [whose configuration has
/// them](crate::client::ClientConfig::alt_services) connects there. Only for clients that verify certificates.
#[derive(Clone, Debug)]
pub struct AltSvcLayer {
    services: Option<Arc<AltServices>>,
    runtime: RuntimeHandle,
}

impl AltSvcLayer {
    /// Into `services`, with the clock of `client`.
    pub fn new(services: Arc<AltServices>, client: &Client) -> Self {
        Self::optional(Some(services), client)
    }

    pub(super) fn optional(services: Option<Arc<AltServices>>, client: &Client) -> Self {
        Self {
            services,
            runtime: client.runtime().clone(),
        }
    }

    pub(super) fn around<S>(self, inner: S) -> AltSvc<S> {
        AltSvc { inner, layer: self }
    }
}

impl<S> Layer<S> for AltSvcLayer {
    type Service = AltSvc<S>;

    fn layer(&self, inner: S) -> AltSvc<S> {
        self.clone().around(inner)
    }
}

/// The service of an [`AltSvcLayer`].
#[derive(Clone, Debug)]
pub struct AltSvc<S> {
    inner: S,
    layer: AltSvcLayer,
}

impl<S: Requests> Service<Request<Upload>> for AltSvc<S> {
    type Response = Response<S::Content>;
    type Error = ClientError;
    type Future = ResponseFuture<S::Content>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Self::Future {
        let AltSvcLayer { services, runtime } = self.layer.clone();
        let url = request.uri().to_string();
        let response = self.inner.clone().oneshot(request);
        let Some(services) = services else {
            return Box::pin(response);
        };
        Box::pin(async move {
            let response = response.await?;
            let origin = parse_url(&url, HttpVersion::Http3).map(|parsed| parsed.origin);
            if let Ok(origin) = origin
                && origin.is_encrypted()
            {
                services.keep(&origin, response.headers(), runtime.unix_time());
            }
            Ok(response)
        })
    }
}
