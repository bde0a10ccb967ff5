//! Requests to responders of OCSP, by marline's own client.

use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderValue, USER_AGENT};
use http::{Method, Request, StatusCode};
use marline_http::Body;
use marline_http::client::{Client, ClientConfig, ClientError, HttpVersion, parse_url};
use marline_http::server::{CertificateStatus, StatusError, StatusQuery};
use tokio::time::timeout;

/// The version of HTTP: responders are asked without TLS.
const VERSION: HttpVersion = HttpVersion::Http11Cleartext;

/// The largest response, in bytes, all of which each client receives in its handshake: some have a certificate, none has a chain.
const MAX_RESPONSE: usize = 32 << 10;

/// The longest time of a request.
const TIME: Duration = Duration::from_secs(15);

/// The reason why a responder has given no status.
#[derive(Debug, thiserror::Error)]
pub(super) enum ResponderError {
    /// It cannot be reached, or the response is incomplete.
    #[error(transparent)]
    Unreachable(#[from] ClientError),
    /// The response is not one of OCSP. Redirections are not followed.
    #[error("it answers with status {}", .0.as_u16())]
    Status(StatusCode),
    /// The response has too many bytes.
    #[error("its response has more than {} KiB", MAX_RESPONSE >> 10)]
    TooLarge,
    /// The request took too long.
    #[error("it does not answer within {} s", TIME.as_secs())]
    Timeout,
    /// The response is not a valid status of the certificate.
    #[error(transparent)]
    Invalid(#[from] StatusError),
}

/// A client of responders.
#[derive(Debug)]
pub(super) struct Responders(Client);

impl Responders {
    pub(super) fn new() -> Result<Self, ClientError> {
        let config = ClientConfig {
            version: VERSION,
            ..ClientConfig::default()
        };
        Ok(Self(Client::new(config)?))
    }

    /// Asks the responder at `url` at `unix_time`.
    pub(super) async fn ask(
        &self,
        url: &str,
        query: &StatusQuery,
        unix_time: Duration,
    ) -> Result<CertificateStatus, ResponderError> {
        let response = timeout(TIME, self.request(url, query.request()?)).await;
        let response = response.map_err(|_| ResponderError::Timeout)??;
        Ok(query.verify(&response, unix_time)?)
    }

    async fn request(&self, url: &str, content: Vec<u8>) -> Result<Vec<u8>, ResponderError> {
        let url = parse_url(url, VERSION)?;
        let length = content.len();
        let mut request = Request::new(Body::full(content));
        *request.method_mut() = Method::POST;
        *request.uri_mut() = url.uri;
        let fields = request.headers_mut();
        // Not every responder of HTTP/1.1 reads a chunked request.
        fields.insert(CONTENT_LENGTH, length.into());
        let kind = HeaderValue::from_static("application/ocsp-request");
        fields.insert(CONTENT_TYPE, kind);
        let agent = concat!("marline/", env!("CARGO_PKG_VERSION"));
        fields.insert(USER_AGENT, HeaderValue::from_static(agent));
        let connection = self.0.connect(&url.origin).await?;
        let response = connection.request(&url.origin, request).await?;
        if response.status() != StatusCode::OK {
            return Err(ResponderError::Status(response.status()));
        }
        let mut received = Vec::new();
        let mut content = response.into_body();
        while let Some(chunk) = content.chunk().await? {
            if received.len() + chunk.len() > MAX_RESPONSE {
                return Err(ResponderError::TooLarge);
            }
            received.extend_from_slice(&chunk);
        }
        Ok(received)
    }
}
