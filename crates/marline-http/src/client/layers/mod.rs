//! HTTP as services of [`tower`]: requests over connections of a [`Client`], and layers around them.
//!
//! [`Client::service`](super::Client::service) sends requests, each over a connection to the origin of its URI; proxies,
//! addresses and the fallback to HTTP/2 are those of the client. The layers add what a user agent does: [`RedirectLayer`],
//! [`RetryLayer`], [`CookieLayer`], [`CredentialsLayer`], [`HstsLayer`], [`AltSvcLayer`] and [`DecompressLayer`].
//! [`Client::layered`](super::Client::layered) has those of its configuration in the order in which
//! [`Client::fetch`](super::Client::fetch) has them.
//!
//! The content of requests is an [`Upload`], which can be sent again unless it is a [stream](Upload::stream).
//!
//! ```no_run
//! use std::sync::Arc;
//!
//! use http::Request;
//! use marline_http::client::layers::{CookieLayer, DecompressLayer, RedirectLayer, RetryLayer};
//! use marline_http::client::{Client, ClientConfig, CookieJar, Redirects, Retry, Upload};
//! use tower::{ServiceBuilder, ServiceExt};
//!
//! # async fn run() -> Result<(), Box<dyn std::error::Error>> {
//! let client = Arc::new(Client::new(ClientConfig::default())?);
//! let retry = Retry { times: 3, ..Retry::default() };
//! let service = ServiceBuilder::new()
//!     .layer(DecompressLayer)
//!     .layer(RetryLayer::new(retry, &client))
//!     .layer(RedirectLayer::new(Redirects::default(), &client))
//!     .layer(CookieLayer::new(Arc::new(CookieJar::new())))
//!     .service(client.service());
//! let request = Request::get("https://example.org/").body(Upload::default())?;
//! let mut body = service.oneshot(request).await?.into_body();
//! while let Some(chunk) = body.chunk().await? {
//!     println!("{} bytes", chunk.len());
//! }
//! # Ok(())
//! # }
//! ```

mod alt_svc;
mod cookies;
mod credentials;
mod decompress;
mod hsts;
mod redirect;
mod retry;
mod send;

use std::time::Duration;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use tower::Service;

pub use self::alt_svc::{AltSvc, AltSvcLayer};
pub use self::cookies::{CookieLayer, Cookies};
pub(super) use self::credentials::authorize;
pub use self::credentials::{CredentialsLayer, WithCredentials};
pub use self::decompress::{Decompress, DecompressLayer};
pub use self::hsts::{HstsLayer, Upgrade};
pub use self::redirect::{FinalUri, Redirect, RedirectLayer};
pub use self::retry::{Repeat, RetryLayer};
pub use self::send::HttpService;
use super::{Client, ClientConfig, ClientError, Trust, Upload};
use crate::limits::MAX_IGNORED;
use crate::runtime::RuntimeHandle;

/// The future of a response.
pub type ResponseFuture<B> = BoxFuture<'static, Result<Response<B>, ClientError>>;

/// A service that the layers can be put around: it takes requests whose content may be sent again.
pub trait Requests:
    Service<
        Request<Upload>,
        Response = Response<<Self as Requests>::Content>,
        Error = ClientError,
        Future: Send + 'static,
    > + Clone
    + Send
    + 'static
{
    /// The content of its responses.
    type Content: Body<Data = Bytes, Error = ClientError> + Unpin + Send + 'static;
}

impl<S, B> Requests for S
where
    S: Service<
            Request<Upload>,
            Response = Response<B>,
            Error = ClientError,
            Future: Send + 'static,
        > + Clone
        + Send
        + 'static,
    B: Body<Data = Bytes, Error = ClientError> + Unpin + Send + 'static,
{
    type Content = B;
}

/// A service with the layers of a configuration: [`Client::layered`](super::Client::layered).
pub type Layered<S> = Decompress<Redirect<Upgrade<AltSvc<WithCredentials<Cookies<S>>>>>>;

impl Client {
    /// `inner` with the layers of the configuration, from the outermost: decompression, redirects, HSTS, `Alt-Svc`, credentials,
    /// cookies.
    pub(super) fn layers<S: Requests>(&self, inner: S) -> Layered<S> {
        let config = self.config();
        // Nothing is kept from servers whose certificates are not verified (RFC 6797, section 8.1; RFC 7838, section 2.1).
        let is_verified = config.trust != Trust::Insecure;
        let ClientConfig {
            cookies,
            hsts,
            alt_services,
            redirects,
            ..
        } = config;
        let known = AltSvcLayer::optional(alt_services.clone().filter(|_| is_verified), self);
        let inner = Cookies::new(inner, cookies.clone());
        let inner = WithCredentials::new(inner, config.credentials.clone().into());
        let inner = known.around(inner);
        let inner = HstsLayer::optional(hsts.clone(), is_verified, self).around(inner);
        let inner = RedirectLayer::optional(*redirects, hsts.clone(), self).around(inner);
        Decompress::new(inner, config.decompress)
    }
}

/// The longest wait for content that nobody reads.
const IGNORING: Duration = Duration::from_secs(1);

/// Reads the short content of a response, so that its connection can be used again.
async fn ignore(mut body: impl Body + Unpin, runtime: &RuntimeHandle) {
    let bytes = body.size_hint().exact();
    if bytes.is_none_or(|bytes| bytes > MAX_IGNORED) {
        return;
    }
    let reading = async { while let Some(Ok(_)) = body.frame().await {} };
    let _ = runtime.timeout(IGNORING, reading).await;
}
