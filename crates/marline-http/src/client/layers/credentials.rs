//! Credentials (RFC 9110, section 11.6.2).

use std::collections::BTreeMap;
use std::sync::Arc;
use std::task::{Context, Poll};

use http::header::AUTHORIZATION;
use http::{HeaderMap, Request, Response, Uri};
use tower::{Layer, Service, ServiceExt};

use super::{Requests, ResponseFuture};
use crate::client::{ClientError, Credentials, Upload};

/// Adds `Authorization` to requests without it: the [`Credentials`] among the extensions of the request, which a
/// [redirect](super::RedirectLayer) to another server removes, or else those that are kept for the host.
#[derive(Clone, Debug, Default)]
pub struct CredentialsLayer(Arc<BTreeMap<String, Credentials>>);

impl CredentialsLayer {
    /// With credentials for hosts, by lower-case name.
    pub fn new(hosts: BTreeMap<String, Credentials>) -> Self {
        Self(Arc::new(hosts))
    }
}

impl<S> Layer<S> for CredentialsLayer {
    type Service = WithCredentials<S>;

    fn layer(&self, inner: S) -> WithCredentials<S> {
        WithCredentials::new(inner, Arc::clone(&self.0))
    }
}

/// The service of a [`CredentialsLayer`].
#[derive(Clone, Debug)]
pub struct WithCredentials<S> {
    inner: S,
    hosts: Arc<BTreeMap<String, Credentials>>,
}

impl<S> WithCredentials<S> {
    pub(super) fn new(inner: S, hosts: Arc<BTreeMap<String, Credentials>>) -> Self {
        Self { inner, hosts }
    }
}

impl<S: Requests> Service<Request<Upload>> for WithCredentials<S> {
    type Response = Response<S::Content>;
    type Error = ClientError;
    type Future = ResponseFuture<S::Content>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Self::Future {
        let (mut parts, upload) = request.into_parts();
        let own = parts.extensions.get();
        authorize(own, &self.hosts, &parts.uri, &mut parts.headers);
        Box::pin(
            self.inner
                .clone()
                .oneshot(Request::from_parts(parts, upload)),
        )
    }
}

/// Adds `own` credentials, or those for the host of `uri`, unless there are some.
pub(in crate::client) fn authorize(
    own: Option<&Credentials>,
    hosts: &BTreeMap<String, Credentials>,
    uri: &Uri,
    headers: &mut HeaderMap,
) {
    let host = uri.host().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let of_host = || hosts.get(&host.to_ascii_lowercase());
    if let Some(credentials) = own.or_else(of_host)
        && !headers.contains_key(AUTHORIZATION)
    {
        headers.insert(AUTHORIZATION, credentials.value().clone());
    }
}
