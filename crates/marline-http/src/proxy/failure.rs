//! The responses that a proxy generates itself.

use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use http::header::{CONTENT_LENGTH, CONTENT_TYPE, HeaderName, HeaderValue, RETRY_AFTER};
use http::{Response, StatusCode};
use marline::ConnectionError;
use marline_h3::SendError;

use super::fields::InvalidLength;
use crate::body::{Body, BoxError};
use crate::http3::RequestError;
use crate::limits;
use crate::server::Refusal;

const PROXY_STATUS: HeaderName = HeaderName::from_static("proxy-status");

/// The reason why there is no response of the server behind the proxy. Its text is for the client, and names no host
/// other than the requested one.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Failure {
    /// It cannot be reached.
    #[error("the server behind this proxy cannot be reached: {0}")]
    Connect(String),
    /// Connecting took too long.
    #[error("the server behind this proxy cannot be reached: no answer within {} s", .0.as_secs_f64())]
    ConnectTimeout(Duration),
    /// Its certificate is not accepted; the text, which may name other hosts, is for the log only.
    #[error("the server behind this proxy has a certificate that this proxy does not accept")]
    Certificate(String),
    /// TLS failed; the text is for the log only.
    #[error("the server behind this proxy cannot be reached: TLS failed")]
    Tls(String),
    /// There was no response in time.
    #[error("the server behind this proxy did not respond within {} s", .0.as_secs_f64())]
    ResponseTimeout(Duration),
    /// The connection ended before the response, or the response is malformed.
    #[error("the server behind this proxy sent no complete response: {0}")]
    Response(String),
    /// Too many requests wait for it.
    #[error("the server behind this proxy has too many requests; try again")]
    Busy,
    /// The content of the request ended early.
    #[error("the content of the request did not arrive: {0}")]
    Content(String),
    /// The content of the request is larger than the site allows.
    #[error("the content of the request is too large")]
    TooLarge,
    /// The request is malformed.
    #[error("the request is malformed: {0}")]
    Malformed(&'static str),
    /// The request cannot be passed on.
    #[error("this proxy does not pass on {0}")]
    Refused(&'static str),
    /// The target is not allowed.
    #[error("this proxy does not connect to {0}")]
    Forbidden(String),
    /// It was meant for another server.
    #[error("this gateway is not known by the name {0}; start it with --host NAME to allow it")]
    Misdirected(String),
    /// It has passed too many proxies.
    #[error("the request has passed {} proxies; it is in a loop", limits::MAX_VIA)]
    ProxyLoop,
}

impl Failure {
    /// The status of the answer.
    pub(crate) fn status(&self) -> StatusCode {
        match self {
            Self::Connect(_)
            | Self::Certificate(_)
            | Self::Tls(_)
            | Self::Response(_)
            | Self::ProxyLoop => StatusCode::BAD_GATEWAY,
            Self::ConnectTimeout(_) | Self::ResponseTimeout(_) => StatusCode::GATEWAY_TIMEOUT,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Content(_) | Self::Malformed(_) => StatusCode::BAD_REQUEST,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::Refused(_) => StatusCode::NOT_IMPLEMENTED,
            Self::Forbidden(_) => StatusCode::FORBIDDEN,
            Self::Misdirected(_) => StatusCode::MISDIRECTED_REQUEST,
        }
    }

    /// The type of the error (RFC 9209, section 2.3).
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Connect(_) => "destination_unavailable",
            Self::ConnectTimeout(_) => "connection_timeout",
            Self::Certificate(_) => "tls_certificate_error",
            Self::Tls(_) => "tls_protocol_error",
            Self::ResponseTimeout(_) => "http_response_timeout",
            Self::Response(_) => "http_response_incomplete",
            Self::Busy => "connection_limit_reached",
            Self::Content(_) | Self::TooLarge | Self::Malformed(_) => "http_request_error",
            Self::Refused(_) | Self::Forbidden(_) | Self::Misdirected(_) => "http_request_denied",
            Self::ProxyLoop => "proxy_loop_detected",
        }
    }

    /// The reason for the log of the proxy.
    pub(super) fn reason(&self) -> String {
        match self {
            Self::Certificate(detail) | Self::Tls(detail) => format!("{self}: {detail}"),
            other => other.to_string(),
        }
    }

    /// The answer to the client.
    pub(crate) fn into_response(self) -> Response<Body> {
        let text = format!("{self}\n");
        let mut response = Response::new(Body::empty());
        *response.status_mut() = self.status();
        let headers = response.headers_mut();
        headers.insert(CONTENT_LENGTH, text.len().into());
        let plain = HeaderValue::from_static("text/plain; charset=utf-8");
        headers.insert(CONTENT_TYPE, plain);
        if let Ok(status) = HeaderValue::try_from(format!("marline; error={}", self.kind())) {
            headers.insert(PROXY_STATUS, status);
        }
        let refusal = Refusal::Upstream(self.kind());
        response.extensions_mut().insert(refusal);
        if matches!(self, Self::Busy) {
            let seconds = limits::RETRY_AFTER.as_secs();
            response.headers_mut().insert(RETRY_AFTER, seconds.into());
        }
        response.map(|_| Body::full(text))
    }
}

impl From<InvalidLength> for Failure {
    fn from(_: InvalidLength) -> Self {
        Self::Malformed("its Content-Length is not one number")
    }
}

/// The innermost cause of `error`, which states the error; the outer ones state the context.
pub(super) fn cause(error: &(dyn StdError + 'static)) -> String {
    let mut last = error;
    while let Some(source) = last.source() {
        last = source;
    }
    last.to_string()
}

/// Why a connection does not open, for a message that says that it does not.
pub(super) fn unreachable(error: &BoxError) -> String {
    match error.downcast_ref() {
        Some(ConnectionError::Unreachable(what)) => what.to_string(),
        _ => error.to_string(),
    }
}

/// Whether the header of a message was too large, in bytes or in fields.
pub(super) fn is_too_large(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && error.is_parse_too_large()
        {
            return true;
        }
        next = error.source();
    }
    false
}

/// Whether an application does not accept extended CONNECT.
pub(super) fn lacks_connect(error: &(dyn StdError + 'static)) -> bool {
    let error = error.downcast_ref();
    matches!(
        error,
        Some(RequestError::Send(SendError::NoConnectProtocol))
    )
}

/// Whether the connection ended, so that another may succeed.
pub(super) fn is_lost_connection(error: &(dyn StdError + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(error) = error.downcast_ref::<hyper::Error>()
            && (error.is_incomplete_message() || error.is_canceled() || error.is_closed())
        {
            return true;
        }
        if let Some(error) = error.downcast_ref::<RequestError>() {
            return matches!(error, RequestError::Lost(_) | RequestError::Closed);
        }
        if let Some(error) = error.downcast_ref::<io::Error>() {
            return matches!(
                error.kind(),
                io::ErrorKind::ConnectionReset
                    | io::ErrorKind::ConnectionAborted
                    | io::ErrorKind::BrokenPipe
                    | io::ErrorKind::UnexpectedEof
            );
        }
        next = error.source();
    }
    false
}
