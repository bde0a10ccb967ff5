//! The requests of the protocol, by marline's own client.

use std::fmt;
use std::future::Future;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use http::header::RETRY_AFTER;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use instant_acme::{BodyWrapper, BytesResponse, Error, HttpClient};
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, ClientError, HttpVersion, Trust, parse_url};
use serde::Deserialize;

use crate::error::CertificateError;

/// The largest response, in bytes: a chain of some certificates has tens of KiB.
const MAX_RESPONSE: usize = 1 << 20;

/// The version of HTTP: what all authorities serve.
const VERSION: HttpVersion = HttpVersion::Http2;

/// A client of one authority. All clones are one.
#[derive(Clone)]
pub(super) struct Http {
    client: Arc<Client>,
    /// See [`wait`](Self::wait).
    wait: Arc<Mutex<Option<Duration>>>,
}

impl fmt::Debug for Http {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Http").finish_non_exhaustive()
    }
}

/// The part of a directory that the library does not read (RFC 8555, section 7.1.1).
#[derive(Deserialize)]
struct Directory {
    #[serde(default)]
    meta: Meta,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Meta {
    terms_of_service: Option<String>,
}

impl Http {
    /// A client that trusts the certificates of the file `ca`, or those that this machine trusts.
    pub(super) fn new(ca: Option<&Path>) -> Result<Self, CertificateError> {
        let config = ClientConfig {
            version: VERSION,
            or_http11: true,
            trust: match ca {
                Some(file) => Trust::File(file.to_owned()),
                None => Trust::System,
            },
            ..ClientConfig::default()
        };
        Ok(Self {
            client: Arc::new(Client::new(config)?),
            wait: Arc::default(),
        })
    }

    /// The time of `Retry-After` in the last response, if that was an error (RFC 8555, section 6.6).
    pub(super) fn wait(&self) -> Option<Duration> {
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The terms of service that the directory at `url` names.
    pub(super) async fn terms_of_service(
        &self,
        url: &str,
    ) -> Result<Option<String>, CertificateError> {
        let mut request = Request::new(Body::empty());
        *request.uri_mut() = url
            .parse()
            .map_err(|_| CertificateError::Protocol(format!("{url:?} is not a URL")))?;
        let response = self.send(request).await?;
        let directory = serde_json::from_slice::<Directory>(response.body());
        let directory = directory.map_err(|_| {
            CertificateError::Protocol(format!("{url} is not the directory of an authority"))
        })?;
        Ok(directory.meta.terms_of_service)
    }

    async fn send(&self, request: Request<Body>) -> Result<Response<Bytes>, CertificateError> {
        let url = parse_url(&request.uri().to_string(), VERSION)?;
        // Orders are rare: no connection is kept between requests.
        let connection = self.client.connect(&url.origin).await?;
        let response = connection.request(&url.origin, request).await?;
        let (parts, mut content) = response.into_parts();
        let mut bytes = Vec::new();
        while let Some(chunk) = content.chunk().await? {
            if bytes.len() + chunk.len() > MAX_RESPONSE {
                let reason = "a response has more than 1 MiB";
                return Err(CertificateError::Protocol(reason.to_owned()));
            }
            bytes.extend_from_slice(&chunk);
        }
        let wait = parts
            .headers
            .get(RETRY_AFTER)
            .filter(|_| parts.status.is_client_error() || parts.status.is_server_error());
        let wait = wait.and_then(|wait| wait.to_str().ok()?.parse().ok());
        *self.wait.lock().unwrap_or_else(PoisonError::into_inner) = wait.map(Duration::from_secs);
        Ok(Response::from_parts(parts, bytes.into()))
    }
}

impl HttpClient for Http {
    fn request(
        &self,
        request: Request<BodyWrapper<Bytes>>,
    ) -> Pin<Box<dyn Future<Output = Result<BytesResponse, Error>> + Send>> {
        let http = self.clone();
        Box::pin(async move {
            let (parts, content) = request.into_parts();
            let content = match content.collect().await {
                Ok(content) => content.to_bytes(),
                Err(never) => match never {},
            };
            let content = match content.is_empty() {
                true => Body::empty(),
                false => Body::full(content),
            };
            let response = http.send(Request::from_parts(parts, content)).await;
            let response = response.map_err(|error| match error {
                CertificateError::Unreachable(cause) => {
                    Error::Other(Box::<ClientError>::from(cause))
                }
                other => Error::Other(Box::new(other)),
            })?;
            Ok(BytesResponse::from(response.map(Full::new)))
        })
    }
}
