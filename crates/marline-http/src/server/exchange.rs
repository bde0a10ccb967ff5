//! One request and its response, in any version of HTTP.

use std::sync::Arc;
use std::time::UNIX_EPOCH;

use http::header::{ALT_SVC, CONNECTION, CONTENT_LENGTH, DATE, HeaderValue};
use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use marline_h3::Protocol;
use tower::ServiceExt;

use super::alt_svc::asked_port;
use super::files::without_content;
use super::paced::{Pace, Paced};
use super::panics::{self, Panicked};
use super::record::{Answer, Record, Recorder};
use super::refusal::Refusal;
use super::resources::Origin;
use super::{Context, Site};
use crate::body::Body;
use crate::content::{content_length, http_date, is_bodiless};
use crate::whole::Whole;

/// The extension of a request in 0-RTT whose handshake is not complete: it may be a replay (RFC 8470). Its method is safe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EarlyData;

/// The extension of a response to CONNECT by which a site accepts: the contents of request and response are the two directions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tunnel;

/// Passes a request of `origin` to the site, and records the response in log and metrics.
pub(super) async fn respond(
    context: &Context,
    recorder: &Arc<Recorder>,
    mut request: Request<Body>,
    origin: Origin,
) -> Answer {
    let asked = Asked::of(recorder, &request);
    let current = context.current.get();
    let log = current.log.clone();
    let client = current.trusted.client(recorder.client, request.headers());
    request.extensions_mut().insert(client);
    if let Some(tls) = recorder.tls(&current.client_rules) {
        request.extensions_mut().insert(tls.clone());
    }
    let record = Record::new(recorder, log, &request);
    if origin.is_early() {
        request.extensions_mut().insert(EarlyData);
    }
    request.extensions_mut().insert(origin);
    let method = request.method().clone();
    let wants_tunnel = asks_for_tunnel(&request);
    let pace = Pace::default();
    let request = match method == Method::CONNECT || request.body().is_end_stream() {
        true => request,
        false => request.map(|content| {
            let content = Paced::new(content, &pace, &context.runtime, &current.limits);
            Body::new(content)
        }),
    };
    let responding = answered_by(context, current.site.clone(), request);
    let response = tokio::select! {
        biased;
        response = responding => response,
        () = pace.too_slow() => Err(Refusal::TooSlow),
    };
    pace.on_answer();
    let response = match response {
        // Whatever the site makes of content that has failed.
        _ if pace.is_too_slow() => {
            let mut response = refusal(context, recorder, asked, Refusal::TooSlow);
            if asked.version < Version::HTTP_2 {
                let close = HeaderValue::from_static("close");
                response.headers_mut().insert(CONNECTION, close);
            }
            return record.begin(response);
        }
        Ok(response) if wants_tunnel && !is_tunnel_or_refusal(&response) => {
            return record.begin(refusal(context, recorder, asked, Refusal::NoTunnel));
        }
        Ok(response) => response,
        // A stream of HTTP/3 is reset instead, one of HTTP/2 was by the `h2` library.
        Err(reason) => return record.begin(refusal(context, recorder, asked, reason)),
    };
    let mut response = without_content_where_none_is_allowed(response, &method);
    add_header_fields(context, recorder, asked, &mut response);
    record.begin(response)
}

/// Whether `request` is for a tunnel and nothing else. An Upgrade of HTTP/1.1, which sites get as extended CONNECT, may be ignored
/// (RFC 9110, section 7.8).
fn asks_for_tunnel<B>(request: &Request<B>) -> bool {
    let is_upgrade =
        request.version() < Version::HTTP_2 && request.extensions().get::<Protocol>().is_some();
    *request.method() == Method::CONNECT && !is_upgrade
}

/// Whether `response` is no success of a site that knows nothing of CONNECT: its content would be taken for that of a tunnel
/// (RFC 9110, section 9.3.6).
fn is_tunnel_or_refusal<B>(response: &Response<B>) -> bool {
    response.extensions().get::<Tunnel>().is_some() || !response.status().is_success()
}

/// The response of `site` to a well-formed request.
///
/// # Errors
/// The content of the request is malformed.
async fn answered_by(
    context: &Context,
    site: Site,
    request: Request<Body>,
) -> Result<Response<Body>, Refusal> {
    let request = whole(context, request).await?;
    Ok(match panics::caught(site.oneshot(request)).await {
        Ok(Ok(response)) => response.map(|content| panics::guard(content, &context.metrics)),
        Err(Panicked) => {
            context.metrics.handler_panicked();
            refused(Refusal::Internal)
        }
    })
}

/// The request; over HTTP/2 and 3, its content has the announced length, or fails.
///
/// # Errors
/// It announces no content and has some, or does not end in time.
async fn whole(context: &Context, request: Request<Body>) -> Result<Request<Body>, Refusal> {
    let announced = content_length(request.headers());
    let is_tunnel = *request.method() == Method::CONNECT;
    let Some(length) = announced.filter(|_| request.version() >= Version::HTTP_2 && !is_tunnel)
    else {
        return Ok(request);
    };
    let (parts, body) = request.into_parts();
    let limit = context.current.get().limits.header_timeout;
    let confirming = Whole::new(body, length).confirmed();
    match context.runtime.timeout(limit, confirming).await {
        Ok(Ok(body)) => Ok(Request::from_parts(parts, Body::new(body))),
        Ok(Err(_)) => Err(Refusal::Malformed),
        Err(_) => Err(Refusal::TooSlow),
    }
}

/// The response, without the site's content if none is allowed: HTTP/2 would send it.
fn without_content_where_none_is_allowed(
    mut response: Response<Body>,
    method: &Method,
) -> Response<Body> {
    let status = response.status();
    if status == StatusCode::NO_CONTENT {
        // Section 8.6.
        response.headers_mut().remove(CONTENT_LENGTH);
    }
    match is_bodiless(method, status) {
        true => response.map(|_| Body::empty()),
        false => response,
    }
}

/// Refuses a request for `reason`, and records that.
pub(super) fn refuse(
    context: &Context,
    recorder: &Arc<Recorder>,
    request: &Request<Body>,
    reason: Refusal,
) -> Answer {
    let asked = Asked::of(recorder, request);
    let log = context.current.get().log.clone();
    let record = Record::new(recorder, log, request);
    record.begin(refusal(context, recorder, asked, reason))
}

/// Refuses a request that could not be read for `reason`, and records that.
pub(super) fn refuse_unreadable(
    context: &Context,
    recorder: &Arc<Recorder>,
    version: Version,
    reason: Refusal,
) -> Answer {
    let asked = Asked {
        version,
        port: None,
    };
    let response = refusal(context, recorder, asked, reason);
    unreadable(context, recorder, version).begin(response)
}

/// The record of a request that could not be read.
pub(super) fn unreadable(context: &Context, recorder: &Arc<Recorder>, version: Version) -> Record {
    let log = context.current.get().log.clone();
    Record::unreadable(recorder, log, version)
}

/// The facts from which the header of a response follows.
#[derive(Clone, Copy)]
struct Asked {
    version: Version,
    /// The port of https that the client has reached, if the response is to name that of HTTP/3.
    port: Option<u16>,
}

impl Asked {
    fn of<B>(recorder: &Recorder, request: &Request<B>) -> Self {
        let has_tls = recorder.alt_svc.is_some() && recorder.tls.get().is_some();
        Self {
            version: request.version(),
            port: has_tls.then(|| asked_port(request)).flatten(),
        }
    }
}

/// A response by the server itself, without content.
fn refusal(
    context: &Context,
    recorder: &Recorder,
    asked: Asked,
    reason: Refusal,
) -> Response<Body> {
    let mut response = refused(reason);
    add_header_fields(context, recorder, asked, &mut response);
    response
}

fn refused(reason: Refusal) -> Response<Body> {
    let mut response = without_content(reason.status());
    response.extensions_mut().insert(reason);
    response
}

fn add_header_fields(
    context: &Context,
    recorder: &Recorder,
    asked: Asked,
    response: &mut Response<Body>,
) {
    let headers = response.headers_mut();
    if asked.version >= Version::HTTP_2 {
        // hyper adds the field for HTTP/1.1.
        let now = UNIX_EPOCH.checked_add(context.runtime.unix_time());
        if let Some(date) = now.and_then(http_date) {
            headers.entry(DATE).or_insert(date);
        }
    }
    if let Some(alt_svc) = &recorder.alt_svc {
        let field = asked
            .port
            .map_or_else(|| alt_svc.listening(), |port| alt_svc.of(port));
        headers.insert(ALT_SVC, field);
    }
}
