//! One record per request: a line of the access log, and the counts of the metrics.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderValue, Method, Response, StatusCode, Version};
use http_body::Body as _;
use marline::Instant;
use serde::Serialize;

use super::access_log::AccessLog;
use super::metrics::{Metrics, version_name};
use super::progress::Progress;
use super::trusted::ClientAddress;
use crate::body::Body;
use crate::content::{content_length, is_bodiless};
use crate::runtime::RuntimeHandle;

/// The fields of a line. Their names are a stable interface, except `complete`.
#[derive(Serialize)]
struct Line<'a> {
    /// Seconds since 1970, when the request's header had arrived.
    time: f64,
    /// The client, as a trusted proxy reports it: the port is then 0 if the proxy does not name it.
    client: SocketAddr,
    /// `None` if the request could not be read.
    method: Option<&'a str>,
    path: Option<&'a str>,
    /// `None` if a malformed request was answered with a reset of its stream, or if its client or connection was lost before
    /// the response.
    status: Option<u16>,
    /// Bytes of content that the client has acknowledged.
    bytes: u64,
    http_version: &'static str,
    connection: &'a str,
    /// The number of the QUIC connection's bundle in this process, if it has one.
    bundle: Option<u64>,
    /// The initial window of the QUIC connection's path, in bytes.
    initial_window: Option<u64>,
    /// The paths that the QUIC connection has, including recently closed ones.
    paths: Option<usize>,
    /// From the request's header until the client has acknowledged the response, or will not.
    duration_s: f64,
    /// Whether the client has acknowledged the whole response.
    complete: bool,
    /// The source of the response, if the request was passed on.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream: Option<&'a str>,
    /// The reason why that source gave no response.
    #[serde(skip_serializing_if = "Option::is_none")]
    upstream_error: Option<&'a str>,
    /// The pipe that carried the response, from 0, if the request was passed on over a pool of pipes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pipe: Option<usize>,
}

/// The extension of a response that names the destination of its request, for the access log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PassedOn {
    upstream: String,
    error: Option<String>,
    pipe: Option<usize>,
}

impl PassedOn {
    /// The request was passed on to `upstream`; `error` says why there was no response.
    pub fn to(upstream: impl Into<String>, error: Option<String>) -> Self {
        Self {
            upstream: upstream.into(),
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
    pub(super) alt_svc: Option<HeaderValue>,
    /// Whether requests make progress, if it is a connection over TCP.
    pub(super) progress: Option<Arc<Progress>>,
    /// The connection, if it is QUIC: it may join a bundle after its first request.
    pub(super) quic: Option<marline::Connection>,
}

impl Recorder {
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
struct Request {
    method: Method,
    /// Empty without a log.
    path: String,
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
    request: Option<Request>,
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
}

impl Record {
    pub(super) fn new(
        recorder: &Arc<Recorder>,
        log: Option<AccessLog>,
        method: &Method,
        path: &str,
        version: Version,
    ) -> Self {
        let path = match &log {
            Some(_) => path.to_owned(),
            None => String::new(),
        };
        let request = Request {
            method: method.clone(),
            path,
        };
        let mut record = Self::unreadable(recorder, log, version);
        record.request = Some(request);
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
        }
    }

    /// The request is of `client`, by what a trusted proxy reports.
    pub(super) fn of_client(&mut self, client: ClientAddress) {
        self.client = client;
    }

    /// The response has this status.
    pub(super) fn answer(&mut self, status: StatusCode) {
        self.status = Some(status);
    }

    /// The request is answered with `response`.
    pub(super) fn begin(mut self, response: Response<Body>) -> Answer {
        self.answer(response.status());
        self.passed_on = response.extensions().get().cloned();
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
            metrics.responded(self.version, status, self.confirmed, duration);
        }
        match (&self.request, status) {
            (None, _) => metrics.request_unreadable(self.version),
            (Some(_), None) => metrics.request_unanswered(self.version),
            (Some(_), Some(_)) => {}
        }
        if let Some(progress) = &recorder.progress {
            progress.on_response_end();
        }
        let Some(log) = &self.log else {
            return metrics.record_closed();
        };
        let request = self.request.as_ref();
        let line = Line {
            time: self.time,
            client: self.client.get(),
            method: request.map(|request| request.method.as_str()),
            path: request.map(|request| &*request.path),
            status: status.map(|status| status.as_u16()),
            bytes: self.confirmed,
            http_version: version_name(self.version),
            connection: &recorder.connection,
            bundle: recorder.quic.as_ref().and_then(marline::Connection::bundle),
            initial_window: recorder
                .quic
                .as_ref()
                .map(marline::Connection::initial_window),
            paths: recorder.quic.as_ref().map(paths),
            duration_s: until_now.as_secs_f64(),
            complete: self.is_received && self.whole_after.is_some(),
            upstream: self.passed_on.as_ref().map(|passed| &*passed.upstream),
            upstream_error: self
                .passed_on
                .as_ref()
                .and_then(|passed| passed.error.as_deref()),
            pipe: self.passed_on.as_ref().and_then(|passed| passed.pipe),
        };
        log.write(self.time, &line);
        metrics.record_closed();
    }
}

fn paths(connection: &marline::Connection) -> usize {
    match connection.is_multipath() {
        true => connection.paths().len(),
        false => 1,
    }
}
