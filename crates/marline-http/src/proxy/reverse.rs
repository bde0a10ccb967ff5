//! The reverse proxy: a site whose responses are those of applications.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::header::{
    ALT_SVC, CONNECTION, CONTENT_LENGTH, EXPECT, HOST, HeaderValue, SEC_WEBSOCKET_KEY, TE,
    TRANSFER_ENCODING, UPGRADE,
};
use http::uri::PathAndQuery;
use http::{HeaderMap, Method, Request, Response, StatusCode, Uri, Version};
use http_body::Body as _;
use http_body_util::BodyExt;
use marline_h3::Protocol;
use tokio::time::timeout;
use tower::service_fn;
use tower::util::BoxCloneSyncService;

use super::balance::Key;
use super::config::{ClientFields, ProxyConfig, RewriteFields};
use super::content::Content;
use super::failure::Failure;
use super::fields::{self, Received};
use super::health;
use super::request_body::{Broken, HeldBody};
use super::retry::{Attempted, RetryBudget, Setback, is_unavailable};
use super::tls::UpstreamTlsError;
use super::upstream::{SendError, Slot, Upstream};
use super::upstream_metrics::UpstreamMetrics;
use super::upstreams::Upstreams;
use super::websocket::{WEBSOCKET, ask_for_tunnel, ask_for_upgrade, connected, nonce, upgraded};
use crate::body::Body;
use crate::content::is_bodiless;
use crate::header;
use crate::interim::Interim;
use crate::limits;
use crate::log::Level;
use crate::log::messages::{self, Frequent};
use crate::server::{ClientAddress, EarlyData, PassedOn, Site, TlsClient, Tunnel};
use crate::whole::Whole;

/// A site whose responses are those of the applications of `config`. Content is passed on as it arrives, in both directions, as
/// fast as the slower end takes it. `metrics` count what applications do.
///
/// # Errors
/// The settings of TLS cannot be used.
///
/// # Panics
/// If it is called outside of a tokio runtime and [`ProxyConfig::health_path`] is set.
pub fn reverse_proxy(
    config: ProxyConfig,
    metrics: &UpstreamMetrics,
) -> Result<Site, UpstreamTlsError> {
    let proxy = Arc::new(Proxy::new(config, metrics)?);
    Ok(BoxCloneSyncService::new(service_fn(move |request| {
        let proxy = Arc::clone(&proxy);
        async move { Ok(proxy.answer(request).await) }
    })))
}

struct Proxy {
    config: ProxyConfig,
    upstreams: Upstreams,
    budget: RetryBudget,
}

/// The client of a request, for the choice of an application and of a place there.
#[derive(Clone, Copy)]
struct Asker {
    /// The address that has a share of the places: none where all clients are trusted proxies.
    network: Option<IpAddr>,
    /// The key of the policy, if it has keys.
    key: Option<Key>,
}

/// A response, the application that it is from, and the place of its request.
struct Answered {
    response: Response<Body>,
    upstream: Arc<Upstream>,
    slot: Slot,
}

/// The failure, and the application that was tried last.
struct Unanswered {
    failure: Failure,
    upstream: Option<Arc<Upstream>>,
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self {
            failure,
            upstream: None,
        }
    }
}

impl Unanswered {
    fn into_response(self) -> Response<Body> {
        let url = self.upstream.map(|upstream| upstream.url().to_string());
        let reason = Some(self.failure.reason());
        let passed = PassedOn::to(url, reason);
        let mut response = self.failure.into_response();
        response.extensions_mut().insert(passed);
        response
    }
}

impl Proxy {
    fn new(config: ProxyConfig, metrics: &UpstreamMetrics) -> Result<Self, UpstreamTlsError> {
        let upstreams = Upstreams::new(&config, metrics)?;
        if let Some(path) = &config.health_path {
            for upstream in upstreams.all() {
                let upstream = Arc::downgrade(upstream);
                let interval = config.health_interval;
                tokio::spawn(health::watch(upstream, path.clone(), interval));
            }
        }
        Ok(Self {
            budget: RetryBudget::new(config.retry_budget),
            config,
            upstreams,
        })
    }

    async fn answer(&self, request: Request<Body>) -> Response<Body> {
        if request.method() == Method::OPTIONS && request.uri().path() == "*" {
            // It concerns the server, which is this proxy.
            let mut response = Response::new(Body::empty());
            *response.status_mut() = StatusCode::NO_CONTENT;
            return response;
        }
        if request.uri().path() == "*" {
            return Failure::Malformed("its target is *").into_response();
        }
        let method = request.method().clone();
        let (parts, body) = request.into_parts();
        let is_websocket = parts
            .extensions
            .get::<Protocol>()
            .is_some_and(|protocol| protocol.as_str() == WEBSOCKET);
        let expects = parts
            .headers
            .get(EXPECT)
            .is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
        if is_websocket {
            return self
                .open_websocket(Request::from_parts(parts, ()), body)
                .await;
        }
        let begun = begin(body, &parts, self.config.response_timeout).await;
        let answered = match begun {
            Ok(body) => {
                let buffer = self.config.buffer_uploads;
                let wait = expects && buffer.is_none();
                let content = HeldBody::new(body, wait, &parts.extensions);
                let mut head = Request::from_parts(parts, ());
                let received = match buffer {
                    Some(most) => content.receive(most).await,
                    None => Ok(()),
                };
                let answered = match received {
                    Ok(()) => {
                        if buffer.is_some() {
                            announce(head.headers_mut(), &content);
                        }
                        self.pass_on(head, &content).await
                    }
                    Err(failure) => Err(failure.into()),
                };
                answered.map(|answered| (answered, content))
            }
            Err(failure) => Err(failure.into()),
        };
        match answered {
            Ok((answered, content)) => {
                let upstream = Arc::clone(&answered.upstream);
                let url = upstream.url().to_string();
                let response = self.pass_back(answered, &method, content).await;
                let error = response.as_ref().err().map(Failure::reason);
                let mut response = response.unwrap_or_else(|failure| {
                    upstream.counters().on_failure(&failure);
                    failure.into_response()
                });
                let passed = PassedOn::to(Some(url), error);
                response.extensions_mut().insert(passed);
                response
            }
            Err(unanswered) => unanswered.into_response(),
        }
    }

    /// Joins a client's WebSocket, whose content is `body`, with one of an application.
    async fn open_websocket(&self, mut head: Request<()>, body: Body) -> Response<Body> {
        *head.method_mut() = Method::GET;
        let is_upgrade = head.version() < Version::HTTP_2;
        let key = head.headers().get(SEC_WEBSOCKET_KEY).cloned();
        let content = HeldBody::new(body, false, head.extensions());
        let none = HeldBody::new(Body::empty(), false, head.extensions());
        let asker = self.asker(&head);
        let mut accept = None;
        let asked = match self.prepare(head, &none) {
            Ok(mut head) => {
                accept = ask_for_upgrade(head.headers_mut(), nonce());
                self.send_to_one(&head, asker, &content).await
            }
            Err(failure) => Err(failure.into()),
        };
        let Answered {
            response,
            upstream,
            slot,
        } = match asked {
            Ok(answered) => answered,
            Err(unanswered) => return unanswered.into_response(),
        };
        let passed = PassedOn::to(Some(upstream.url().to_string()), None);
        // To Upgrade, any other response is an answer (RFC 9110, section 7.8). To extended CONNECT, a success would open the tunnel.
        let status = response.status();
        let is_connect = response.version() >= Version::HTTP_2;
        let is_refusal = match is_connect {
            true => !status.is_success(),
            false => {
                status != StatusCode::SWITCHING_PROTOCOLS && (is_upgrade || !status.is_success())
            }
        };
        let opened = if is_refusal {
            let answered = Answered {
                response,
                upstream,
                slot,
            };
            self.pass_back(answered, &Method::GET, none).await
        } else {
            let upgraded = match is_connect {
                true => connected(response, &content, key.as_ref()).await,
                false => upgraded(response, &content, accept).await,
            };
            upgraded.map(|upgraded| {
                let idle = self.config.idle_timeout;
                let guard = (slot, upgraded.task);
                let body = Content::new(upgraded.body, None, idle, content, guard);
                let mut response = Response::new(Body::new(body));
                *response.headers_mut() = upgraded.headers;
                response.extensions_mut().insert(Tunnel);
                response
            })
        };
        let mut response = opened.unwrap_or_else(Failure::into_response);
        response.extensions_mut().insert(passed);
        response
    }

    /// Sends a request to one application after the other, until one answers.
    async fn pass_on(&self, head: Request<()>, content: &HeldBody) -> Result<Answered, Unanswered> {
        let asker = self.asker(&head);
        let head = self.prepare(head, content)?;
        self.send_to_one(&head, asker, content).await
    }

    fn asker(&self, head: &Request<()>) -> Asker {
        let client = head.extensions().get::<ClientAddress>();
        let client = client.map(|client| client.get().ip());
        Asker {
            network: client.filter(|_| self.config.client_fields == ClientFields::Replace),
            key: self.config.balance.key(head.headers(), client),
        }
    }

    async fn send_to_one(
        &self,
        head: &Request<()>,
        asker: Asker,
        content: &HeldBody,
    ) -> Result<Answered, Unanswered> {
        let client = asker.network;
        let is_idempotent = head.method().is_idempotent();
        let is_upgrade = head.headers().contains_key(UPGRADE);
        let mut tried = Vec::new();
        self.budget.on_request();
        loop {
            let Some(upstream) = self.upstreams.next(&tried, asker.key) else {
                return Err(Failure::Refused("requests: it has no application").into());
            };
            let free = match upstream.free_slot(client) {
                Some(slot) => Some((upstream, slot)),
                None => self.upstreams.free(&tried, client),
            };
            let (upstream, slot) = match free {
                Some((upstream, slot)) => (upstream, Ok(slot)),
                None => (upstream, upstream.slot(client).await),
            };
            let upstream = Arc::clone(upstream);
            let unanswered = |failure| Unanswered {
                failure,
                upstream: Some(Arc::clone(&upstream)),
            };
            let slot = match slot {
                Ok(slot) => slot,
                Err(failure) => {
                    upstream.counters().on_failure(&failure);
                    return Err(unanswered(failure));
                }
            };
            let request = |version| self.address(head, &upstream, version, content);
            upstream.counters().on_sent();
            let sent = tokio::select! {
                biased;
                () = slot.evicted() => {
                    upstream.counters().on_failure(&Failure::Busy);
                    return Err(unanswered(Failure::Busy));
                }
                sent = upstream.send(request, content, is_upgrade) => sent,
            };
            let setback = match &sent {
                Ok(response) if is_unavailable(response.status()) => Some(Setback::Unavailable),
                Ok(_) => None,
                Err(error) => {
                    upstream.counters().on_failure(&error.failure);
                    error.setback
                }
            };
            tried.push(Arc::clone(&upstream));
            let attempted = Attempted {
                is_idempotent,
                is_whole: content.is_whole(),
                has_another: self.upstreams.has_another(&tried),
            };
            if let Some(setback) = setback
                && tried.len() <= self.config.retries
                && attempted.is_repeated(setback, &self.budget)
            {
                upstream.counters().on_repeated(setback);
                report(&upstream, setback, sent.err());
                continue;
            }
            content.settle();
            return match sent {
                Ok(response) => Ok(Answered {
                    response,
                    upstream,
                    slot,
                }),
                Err(error) => Err(unanswered(error.failure)),
            };
        }
    }

    /// The header of a request as any application gets it.
    fn prepare(&self, mut head: Request<()>, content: &HeldBody) -> Result<Request<()>, Failure> {
        match *head.method() {
            Method::CONNECT => return Err(Failure::Refused("CONNECT")),
            Method::TRACE => return Err(Failure::Refused("TRACE")),
            _ => {}
        }
        let has_content = matches!(*head.method(), Method::POST | Method::PUT | Method::PATCH);
        let client = head.extensions().get::<ClientAddress>().copied();
        let scheme = client.and_then(ClientAddress::scheme).unwrap_or("https");
        let is_early = head.extensions().get::<EarlyData>().is_some();
        let received = Received::of(&head, client.map(ClientAddress::get), scheme);
        let tls = head.extensions().get::<TlsClient>().cloned();
        let headers = head.headers_mut();
        fields::content_length(headers)?;
        if fields::has_other_coding(headers) {
            return Err(Failure::Refused("transfer codings other than chunked"));
        }
        let takes_trailers = fields::remove_hop_by_hop(headers);
        fields::remove_ambiguous(headers);
        if takes_trailers {
            headers.insert(TE, HeaderValue::from_static("trailers"));
        }
        // After the fields are removed that the client lists in `Connection`.
        let certificate = tls.as_ref().and_then(TlsClient::certificate);
        fields::set_client_certificate(headers, certificate);
        let (how, claims) = (self.config.forwarded, self.config.client_fields);
        fields::add_forwarded(headers, &received, how, claims);
        fields::add_via(headers, received.version).map_err(|_| Failure::ProxyLoop)?;
        if content.is_empty() {
            headers.remove(EXPECT);
            if has_content && !headers.contains_key(CONTENT_LENGTH) {
                // RFC 9110, section 8.6.
                headers.insert(CONTENT_LENGTH, 0.into());
            }
        }
        if self.config.rewrite_fields == RewriteFields::Remove {
            fields::REWRITES
                .iter()
                .for_each(|name| drop(headers.remove(name)));
        }
        if claims == ClientFields::Replace {
            headers.remove(fields::EARLY_DATA);
        }
        if is_early {
            // The application may want to wait (RFC 8470, section 5.1).
            headers.insert(fields::EARLY_DATA, HeaderValue::from_static("1"));
        }
        match received.host {
            Some(host) => headers.insert(HOST, host),
            None => headers.remove(HOST),
        };
        let interim = head.extensions_mut().remove::<Interim>();
        *head.extensions_mut() = http::Extensions::new();
        if let Some(interim) = interim {
            head.extensions_mut().insert(interim);
        }
        Ok(head)
    }

    /// The same as one application gets it over `version`.
    fn address(
        &self,
        head: &Request<()>,
        upstream: &Upstream,
        version: Version,
        content: &HeldBody,
    ) -> Request<()> {
        let mut request = Request::new(());
        *request.method_mut() = head.method().clone();
        let path = head.uri().path_and_query().cloned();
        let path = path.unwrap_or_else(|| PathAndQuery::from_static("/"));
        *request.headers_mut() = head.headers().clone();
        let headers = request.headers_mut();
        let host = headers.remove(HOST).filter(|_| self.config.preserve_host);
        let interim = head.extensions().get::<Interim>().cloned();
        let max_bytes = self.config.max_header_bytes;
        let pass_interim = move |interim: &Interim, response: Response<()>, version| {
            let passed = fields::interim(response, version, max_bytes);
            passed.into_iter().for_each(|one| interim.send(one));
        };
        if version >= Version::HTTP_2 {
            headers.remove(EXPECT);
            content.open();
            ask_for_tunnel(&mut request, version);
            if let Some(interim) = interim {
                let passed = Interim::new(move |response: Response<()>| {
                    pass_interim(&interim, response, version);
                });
                request.extensions_mut().insert(passed);
            }
            *request.uri_mut() = upstream.target(host.as_ref(), path);
            *request.version_mut() = version;
            return request;
        }
        let own = || HeaderValue::from_str(upstream.url().authority().as_str()).ok();
        if let Some(host) = host.or_else(own) {
            headers.insert(HOST, host);
        }
        let is_upgrade = headers.contains_key(UPGRADE);
        if !is_upgrade && !content.is_empty() && !headers.contains_key(CONTENT_LENGTH) {
            // hyper would omit the content of GET and HEAD.
            headers.insert(TRANSFER_ENCODING, HeaderValue::from_static("chunked"));
        }
        if headers.contains_key(TE) {
            headers.insert(CONNECTION, HeaderValue::from_static("te"));
        }
        let expecting = headers.contains_key(EXPECT).then(|| content.opener());
        *request.uri_mut() = Uri::from(path);
        if expecting.is_some() || interim.is_some() {
            hyper::ext::on_informational(&mut request, move |response| {
                if let Some(opener) = &expecting
                    && response.status() == StatusCode::CONTINUE
                {
                    opener.open();
                }
                if let Some(interim) = &interim {
                    let mut passed = Response::new(());
                    *passed.status_mut() = response.status();
                    *passed.headers_mut() = response.headers().clone();
                    pass_interim(interim, passed, response.version());
                }
            });
        }
        request
    }

    /// The response as the client gets it.
    async fn pass_back(
        &self,
        answered: Answered,
        method: &Method,
        request: HeldBody,
    ) -> Result<Response<Body>, Failure> {
        let Answered {
            response,
            slot,
            upstream: _,
        } = answered;
        let malformed = |what: &str| Failure::Response(what.to_owned());
        if let Some(fault) = header::fault(&response, self.config.max_header_fields) {
            return Err(Failure::Response(fault));
        }
        let (mut parts, body) = response.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(malformed("it changes to a protocol that was not requested"));
        }
        // The buffer of the parser is larger.
        let max_bytes = self.config.max_header_bytes;
        if fields::size(&parts.headers) > max_bytes {
            return Err(Failure::Response(format!(
                "its header has more than {max_bytes} bytes"
            )));
        }
        let lengths = parts.headers.get_all(CONTENT_LENGTH).iter().count();
        let is_chunked = parts.headers.contains_key(TRANSFER_ENCODING);
        if lengths > 1 || (lengths == 1 && is_chunked) {
            return Err(malformed("its length is ambiguous"));
        }
        if fields::has_other_coding(&parts.headers) {
            return Err(malformed("it has a transfer coding other than chunked"));
        }
        let announced = match parts.headers.get(CONTENT_LENGTH) {
            Some(value) => Some(
                value
                    .to_str()
                    .ok()
                    .and_then(|value| value.parse::<u64>().ok())
                    .ok_or_else(|| malformed("its length is invalid"))?,
            ),
            None => None,
        };
        fields::remove_hop_by_hop(&mut parts.headers);
        // It refers to the application's address, not to that of this server, which adds a field of its own.
        parts.headers.remove(ALT_SVC);
        let passed = fields::add_via(&mut parts.headers, parts.version);
        passed.map_err(|_| Failure::ProxyLoop)?;
        let is_new = parts.version >= Version::HTTP_2;
        parts.version = Version::HTTP_11;
        parts.extensions = http::Extensions::new();
        let mut body = body;
        let length = announced.filter(|_| !is_bodiless(method, parts.status));
        let idle = self.config.idle_timeout;
        if let Some(length) = length.filter(|_| is_new) {
            let confirming = timeout(idle, Whole::new(body, length).confirmed());
            let confirmed = confirming
                .await
                .map_err(|_| Failure::ResponseTimeout(idle))?;
            body = Body::new(confirmed.map_err(|error| Failure::Response(error.to_string()))?);
        }
        let content = Content::new(body, length, idle, request, slot);
        Ok(Response::from_parts(parts, Body::new(content)))
    }
}

/// Logs why a request is sent again: nothing else shows it, unless that fails as well.
fn report(upstream: &Upstream, setback: Setback, error: Option<SendError>) {
    if setback == Setback::Stale {
        // Applications close idle connections.
        return;
    }
    messages::emit_frequent(Level::Warning, Frequent::Upstream, || {
        let url = upstream.url();
        match error {
            Some(error) => format!(
                "{url} gave no response, and the request was sent again: {}",
                error.failure.reason()
            ),
            None => {
                format!("{url} answered that it is unavailable, and the request was sent again")
            }
        }
    });
}

/// The header of a request whose content was received before: the client has sent it without waiting for an application, and its length
/// may be known only now.
fn announce(headers: &mut HeaderMap, content: &HeldBody) {
    headers.remove(EXPECT);
    let length = content.received().filter(|_| !content.is_empty());
    if let Some(length) = length
        && !headers.contains_key(CONTENT_LENGTH)
    {
        headers.insert(CONTENT_LENGTH, length.into());
    }
}

/// Begins to read the content of a request, to know whether there is any: HTTP/1.1 has to announce it. `limit` is the
/// time limit for its first part, where a method usually has none. Others wait for [`limits::FIRST_CONTENT`]: their clients may want
/// the response first.
async fn begin(
    mut body: Body,
    parts: &http::request::Parts,
    limit: Duration,
) -> Result<Body, Failure> {
    let is_announced = parts.headers.contains_key(CONTENT_LENGTH);
    let has_none = matches!(
        parts.method,
        Method::GET | Method::HEAD | Method::DELETE | Method::OPTIONS
    );
    let expects = parts.headers.contains_key(EXPECT);
    if is_announced || body.is_end_stream() || parts.version < Version::HTTP_2 || expects {
        return Ok(body);
    }
    let wait = if has_none {
        limit
    } else {
        limits::FIRST_CONTENT
    };
    let first = async {
        loop {
            let frame = body.frame().await;
            let is_empty_data =
                matches!(&frame, Some(Ok(frame)) if frame.data_ref().is_some_and(Bytes::is_empty));
            if !is_empty_data {
                return frame;
            }
        }
    };
    match timeout(wait, first).await {
        Ok(None) => Ok(Body::empty()),
        Ok(Some(Ok(frame))) => Ok(Body::new(Begun {
            first: Some(frame),
            rest: body,
        })),
        Ok(Some(Err(error))) => Err(Broken::of(&error).failure()),
        Err(_) if !has_none => Ok(body),
        Err(_) => {
            let waited = format!("nothing of it within {} s", limit.as_secs_f64());
            Err(Failure::Content(waited))
        }
    }
}

/// Content whose first part has arrived.
struct Begun {
    first: Option<http_body::Frame<Bytes>>,
    rest: Body,
}

impl http_body::Body for Begun {
    type Data = Bytes;
    type Error = crate::body::BoxError;

    fn poll_frame(
        self: std::pin::Pin<&mut Self>,
        cx: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<http_body::Frame<Bytes>, crate::body::BoxError>>> {
        let this = self.get_mut();
        match this.first.take() {
            Some(frame) => std::task::Poll::Ready(Some(Ok(frame))),
            None => std::pin::Pin::new(&mut this.rest).poll_frame(cx),
        }
    }
}

#[cfg(test)]
mod tests;
