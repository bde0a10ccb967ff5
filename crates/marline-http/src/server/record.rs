//! One record per request: a line of the access log, and the counts of the metrics.

use std::net::SocketAddr;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use http::{Method, Request, Response, StatusCode, Version};
use http_body::Body as _;
use marline::Instant;

use super::access_log::{AccessLog, Line, RequestLine};
use super::alt_svc::AltSvc;
use super::client_certificates::{ClientCertificate, ClientRules, TlsClient};
use super::metrics::{Metrics, SiteName};
use super::monitor::Activity;
use super::progress::Progress;
use super::refusal::{Refusal, RouteName};
use super::trusted::ClientAddress;
use crate::body::Body;
use crate::content::{content_length, is_bodiless};
use crate::log::Level;
use crate::log::messages::{self, Frequent};
use crate::runtime::RuntimeHandle;

/// The extension of a response that names the destination of its request, for the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOn {
    /// `None` if none was asked.
    upstream: Option<String>,
    error: Option<String>,
    pipe: Option<usize>,
}

impl PassedOn {
    /// The request was passed on to `upstream`, if one was asked; `error` says why there was no response.
    pub fn to(upstream: Option<String>, error: Option<String>) -> Self {
        Self {
            upstream,
            error,
            pipe: None,
        }
    }

    /// Whether the response is that of the upstream.
    pub fn is_answered(&self) -> bool {
        self.error.is_none()
    }

    /// The same over the pipe with this number, from 0, of a [pool](crate::pipes).
    #[must_use]
    pub fn over_pipe(self, pipe: Option<usize>) -> Self {
        Self { pipe, ..self }
    }
}

/// State that is shared by the records of one connection.
#[derive(Debug)]
pub(super) struct Recorder {
    pub(super) runtime: RuntimeHandle,
    pub(super) metrics: Arc<Metrics>,
    pub(super) client: SocketAddr,
    pub(super) connection: String,
    /// Where the server has HTTP/3, for clients of other versions (RFC 7838).
    pub(super) alt_svc: Option<AltSvc>,
    /// The client, once it is known, if the connection has TLS.
    pub(super) tls: OnceLock<TlsClient>,
    /// Whether requests make progress, if it is a connection over TCP.
    pub(super) progress: Option<Arc<Progress>>,
    /// The activity of its requests.
    pub(super) activity: Activity,
    /// The connection, if it is QUIC: it may join a bundle after its first request.
    pub(super) quic: Option<marline::Connection>,
}

impl Recorder {
    /// The client of a request that has arrived, if the connection has TLS. That of QUIC is known with its first request: in 0-RTT, it
    /// is that of the session, and else the handshake is complete.
    pub(super) fn tls(&self, rules: &ClientRules) -> Option<&TlsClient> {
        let Some(quic) = &self.quic else {
            return self.tls.get();
        };
        Some(self.tls.get_or_init(|| {
            let (name, chain) = (quic.server_name(), quic.peer_certificates());
            let now = self.runtime.unix_time();
            rules.client(name.as_deref(), chain.as_deref(), now)
        }))
    }

    /// Content has moved.
    pub(super) fn on_content(&self, bytes: u64) {
        if let Some(progress) = &self.progress {
            progress.on_content(bytes);
        }
    }

    /// Something has arrived in a tunnel, in which single bytes keep a connection alive.
    pub(super) fn on_tunnel(&self, _bytes: u64) {
        if let Some(progress) = &self.progress {
            progress.advance();
        }
    }
}

/// A request that could be read.
struct Read {
    method: Method,
    /// `None` without a log.
    line: Option<Box<RequestLine>>,
}

/// A response, and the record of its outcome.
pub(super) struct Answer {
    pub(super) response: Response<Body>,
    pub(super) record: Record,
}

/// The outcome of one request. It is logged and counted when it is dropped.
pub(super) struct Record {
    recorder: Arc<Recorder>,
    log: Option<AccessLog>,
    client: ClientAddress,
    start: Instant,
    time: f64,
    request: Option<Read>,
    version: Version,
    status: Option<StatusCode>,
    /// Bytes of content that were passed to the connection.
    passed: u64,
    /// Bytes of content that the client has received.
    confirmed: u64,
    expected: Option<u64>,
    /// The time until the whole response was passed to the connection.
    whole_after: Option<Duration>,
    is_received: bool,
    passed_on: Option<PassedOn>,
    site: Option<SiteName>,
    route: Option<RouteName>,
    refusal: Option<Refusal>,
}

impl Record {
    /// A record of `request`, whose client is the one of its [`ClientAddress`], as a trusted proxy reports it, or else the peer.
    pub(super) fn new<B>(
        recorder: &Arc<Recorder>,
        log: Option<AccessLog>,
        request: &Request<B>,
    ) -> Self {
        let line = log.as_ref().map(|_| Box::new(RequestLine::of(request)));
        let mut record = Self::unreadable(recorder, log, request.version());
        record.refusal = None;
        if let Some(client) = request.extensions().get::<ClientAddress>() {
            record.client = *client;
        }
        record.request = Some(Read {
            method: request.method().clone(),
            line,
        });
        record
    }

    /// A record of a request that is malformed or too large.
    pub(super) fn unreadable(
        recorder: &Arc<Recorder>,
        log: Option<AccessLog>,
        version: Version,
    ) -> Self {
        if let Some(progress) = &recorder.progress {
            progress.on_request();
        }
        recorder.metrics.record_opened();
        recorder.activity.on_request();
        Self {
            recorder: Arc::clone(recorder),
            log,
            client: ClientAddress::new(recorder.client),
            start: recorder.runtime.now(),
            time: recorder.runtime.unix_time().as_secs_f64(),
            request: None,
            version,
            status: None,
            passed: 0,
            confirmed: 0,
            expected: None,
            whole_after: None,
            is_received: false,
            passed_on: None,
            site: None,
            route: None,
            refusal: Some(Refusal::Malformed),
        }
    }

    /// The response is of this refusal.
    pub(super) fn refuse(&mut self, refusal: Refusal) {
        self.status = Some(refusal.status());
        self.refusal = Some(refusal);
    }

    /// The request is answered with `response`.
    pub(super) fn begin(mut self, response: Response<Body>) -> Answer {
        self.status = Some(response.status());
        let extensions = response.extensions();
        self.passed_on = extensions.get().cloned();
        self.site = extensions.get().cloned();
        self.route = extensions.get().cloned();
        self.refusal = extensions.get().copied();
        if let Some(PassedOn {
            upstream,
            error: Some(error),
            ..
        }) = &self.passed_on
        {
            messages::emit_frequent(Level::Warning, Frequent::Upstream, || match upstream {
                Some(upstream) => format!("{upstream} gave no response: {error}"),
                None => format!("a request was not passed on: {error}"),
            });
        }
        self.expected = content_length(response.headers());
        let request = self.request.as_ref();
        let status = response.status();
        let is_bodiless = request.is_some_and(|request| is_bodiless(&request.method, status));
        if is_bodiless || response.body().is_end_stream() {
            self.passed(0, true);
        }
        Answer {
            response,
            record: self,
        }
    }

    /// Content was passed to the connection; `is_end` is whether nothing follows. With a known length, that need not be
    /// stated.
    pub(super) fn passed(&mut self, bytes: u64, is_end: bool) {
        self.passed += bytes;
        self.recorder.activity.on_passed(bytes);
        if self.whole_after.is_none() && (is_end || Some(self.passed) == self.expected) {
            self.whole_after = Some(self.recorder.runtime.now() - self.start);
        }
    }

    /// The client has received `bytes` more of content.
    pub(super) fn confirm(&mut self, bytes: u64) {
        self.confirmed += bytes;
    }

    /// The client has received all but the last `missing` bytes passed to the connection.
    pub(super) fn confirm_but(&mut self, missing: u64) {
        self.confirmed = self.passed.saturating_sub(missing);
    }

    /// The client has received everything passed to the connection.
    pub(super) fn received(mut self) {
        self.is_received = true;
    }
}

impl Drop for Record {
    fn drop(&mut self) {
        let recorder = &self.recorder;
        let until_now = recorder.runtime.now() - self.start;
        let metrics = &recorder.metrics;
        let status = self.status;
        if let Some(status) = status {
            // The time that the site and the windows took: acknowledgments over TCP are noticed at intervals only.
            let duration = self.whole_after.unwrap_or(until_now);
            let site = self.site.as_ref();
            metrics.responded(self.version, site, status, self.confirmed, duration);
        }
        match (&self.request, status) {
            (None, _) => metrics.request_unreadable(self.version),
            (Some(_), None) => metrics.request_unanswered(self.version),
            (Some(_), Some(_)) => {}
        }
        recorder.activity.on_end();
        if let Some(progress) = &recorder.progress {
            progress.on_response_end();
        }
        let Some(log) = &self.log else {
            return metrics.record_closed();
        };
        let request = self.request.as_ref();
        let certificate = recorder.tls.get().and_then(TlsClient::certificate);
        let line = Line {
            time: self.time,
            client: self.client.get(),
            request: request.and_then(|request| request.line.as_deref()),
            status: status.map(|status| status.as_u16()),
            bytes: self.confirmed,
            http_version: self.version,
            connection: &recorder.connection,
            client_subject: certificate.map(ClientCertificate::subject),
            client_fingerprint: certificate.map(ClientCertificate::fingerprint),
            bundle: recorder.quic.as_ref().and_then(marline::Connection::bundle),
            initial_window: recorder
                .quic
                .as_ref()
                .map(marline::Connection::initial_window),
            paths: recorder.quic.as_ref().map(paths),
            duration_s: until_now.as_secs_f64(),
            complete: self.is_received && self.whole_after.is_some(),
            upstream: self
                .passed_on
                .as_ref()
                .and_then(|passed| passed.upstream.as_deref()),
            upstream_error: self
                .passed_on
                .as_ref()
                .and_then(|passed| passed.error.as_deref()),
            pipe: self.passed_on.as_ref().and_then(|passed| passed.pipe),
            site: self.site.as_ref().map(SiteName::as_str),
            route: self.route.as_ref().map(RouteName::as_str),
            reason: self.refusal.map(Refusal::name),
        };
        log.write(&line);
        metrics.record_closed();
    }
}

fn paths(connection: &marline::Connection) -> usize {
    match connection.is_multipath() {
        true => connection.paths().len(),
        false => 1,
    }
}
