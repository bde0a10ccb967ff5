//! Content codings (RFC 9110, section 8.4).

use std::task::{Context, Poll};

use http::header::ACCEPT_ENCODING;
use http::{Request, Response};
use tower::{Layer, Service, ServiceExt};

use super::{Requests, ResponseFuture};
use crate::client::decode::{ACCEPTED, Decoding, decoded};
use crate::client::{ClientError, Upload};

/// Asks for compressed content, and decodes it: gzip, deflate, Brotli and Zstandard, within [a limit of
/// expansion](crate::limits::MAX_EXPANSION), several of them in turn; content of another coding is an error. The fields of a response that has been decoded are those of the decoded content.
#[derive(Clone, Copy, Debug, Default)]
pub struct DecompressLayer;

impl<S> Layer<S> for DecompressLayer {
    type Service = Decompress<S>;

    fn layer(&self, inner: S) -> Decompress<S> {
        Decompress::new(inner, true)
    }
}

/// The service of a [`DecompressLayer`].
#[derive(Clone, Debug)]
pub struct Decompress<S> {
    inner: S,
    is_on: bool,
}

impl<S> Decompress<S> {
    pub(super) fn new(inner: S, is_on: bool) -> Self {
        Self { inner, is_on }
    }
}

impl<S: Requests> Service<Request<Upload>> for Decompress<S> {
    type Response = Response<Decoding<S::Content>>;
    type Error = ClientError;
    type Future = ResponseFuture<Decoding<S::Content>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Upload>) -> Self::Future {
        let is_on = self.is_on;
        if is_on && !request.headers().contains_key(ACCEPT_ENCODING) {
            request.headers_mut().insert(ACCEPT_ENCODING, ACCEPTED);
        }
        let response = self.inner.clone().oneshot(request);
        Box::pin(async move {
            let response = response.await?;
            match is_on {
                true => decoded(response),
                false => Ok(response.map(Decoding::plain)),
            }
        })
    }
}
