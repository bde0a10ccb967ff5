//! Requests over pooled connections.

use std::fmt;
use std::sync::Arc;
use std::task::{Context, Poll};

use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use tower::Service;

use super::{Layered, ResponseFuture};
use crate::BoxError;
use crate::client::origins::Origins;
use crate::client::pooled::Outgoing;
use crate::client::{Client, ClientError, Download, Upload, parse_url};

/// Sends requests, each over the connection to the origin of its URI, which must be absolute. Clones share connections. A connection
/// that has failed is replaced; requests that are idempotent, and whose content can be sent again, are then repeated, unless their
/// response has begun. Over HTTP/1.1, a request waits until the response before it has been read.
///
/// Besides an [`Upload`], the content may be any body: it is sent as it comes, also while the response arrives, and once.
/// An [`Interim`](crate::Interim) among the extensions of a request takes interim responses, and a `marline_h3::Protocol` makes
/// CONNECT extended CONNECT.
#[derive(Clone)]
pub struct HttpService {
    client: Arc<Client>,
    origins: Arc<Origins>,
}

impl HttpService {
    async fn send(self, request: Request<Upload>) -> Result<Response<Download>, ClientError> {
        let Self { client, origins } = self;
        let url = request.uri().to_string();
        let parsed = parse_url(&url, client.config().version)?;
        let pooled = origins.to(&client, &parsed.origin);
        pooled.forget_closed();
        let request = Outgoing {
            method: request.method(),
            uri: &parsed.uri,
            headers: request.headers(),
            extensions: request.extensions(),
            upload: request.body(),
            pace: None,
        };
        Ok(pooled.send(&client, request).await?.response)
    }
}

impl Service<Request<Upload>> for HttpService {
    type Response = Response<Download>;
    type Error = ClientError;
    type Future = ResponseFuture<Download>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Upload>) -> Self::Future {
        Box::pin(self.clone().send(request))
    }
}

impl<B> Service<Request<B>> for HttpService
where
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    type Response = Response<Download>;
    type Error = ClientError;
    type Future = ResponseFuture<Download>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ClientError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        Box::pin(self.clone().send(request.map(Upload::stream)))
    }
}

impl fmt::Debug for HttpService {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpService").finish_non_exhaustive()
    }
}

impl Client {
    /// A service for single requests, with connections of its own.
    pub fn service(self: &Arc<Self>) -> HttpService {
        HttpService {
            client: Arc::clone(self),
            origins: Arc::default(),
        }
    }

    /// The same with the layers that the configuration asks for: redirects, cookies, credentials, HSTS, `Alt-Svc`, decompression.
    pub fn layered(self: &Arc<Self>) -> Layered<HttpService> {
        self.layers(self.service())
    }
}
