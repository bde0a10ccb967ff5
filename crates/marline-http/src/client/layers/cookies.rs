//! Cookies (RFC 6265).

use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::COOKIE;
use http::{Request, Response};
use tower::{Layer, Service, ServiceExt};

use super::{Requests, ResponseFuture};
use crate::client::{ClientError, CookieJar, Upload};

/// Sends the cookies of a jar, and keeps those of responses. Within [redirects](super::RedirectLayer), so that each server gets
/// its own.
#[derive(Clone, Debug)]
pub struct CookieLayer(Arc<CookieJar>);

impl CookieLayer {
    /// With the cookies of `jar`.
    pub fn new(jar: Arc<CookieJar>) -> Self {
        Self(jar)
    }
}

impl<S> Layer<S> for CookieLayer {
    type Service = Cookies<S>;

    fn layer(&self, inner: S) -> Cookies<S> {
        Cookies::new(inner, Some(Arc::clone(&self.0)))
    }
}

/// The service of a [`CookieLayer`].
#[derive(Clone, Debug)]
pub struct Cookies<S> {
    inner: S,
    jar: Option<Arc<CookieJar>>,
}

impl<S> Cookies<S> {
    /// Without a jar, requests and responses pass unchanged.
    pub(super) fn new(inner: S, jar: Option<Arc<CookieJar>>) -> Self {
        Self { inner, jar }
    }
}

impl<S: Requests> Service<Request<Upload>> for Cookies<S> {
    type Response = Response<S::Content>;
    type Error = ClientError;
    type Future = ResponseFuture<S::Content>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Upload>) -> Self::Future {
        let inner = self.inner.clone();
        let Some(jar) = self.jar.clone() else {
            return Box::pin(inner.oneshot(request));
        };
        let uri = request.uri().clone();
        let field = jar.field(&uri, request.headers().get(COOKIE));
        if let Some(value) = field {
            request.headers_mut().insert(COOKIE, value);
        }
        Box::pin(async move {
            let response = inner.oneshot(request).await?;
            jar.keep(&uri, response.headers());
            Ok(response)
        })
    }
}
